"""The commands of `weft bench`."""
