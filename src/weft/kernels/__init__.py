"""Plain functions on flat arrays, compiled when weft is built."""
