"""Plain functions on the arrays of a run, compiled when weft is built."""
