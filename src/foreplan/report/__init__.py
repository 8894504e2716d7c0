"""The report of a run: its data, in words and tables, and as a page."""
