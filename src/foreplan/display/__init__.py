"""A run while it goes on: on a terminal, in a notebook, or in lines."""
