"""The experiments of the papers: `weft reproduce`."""
