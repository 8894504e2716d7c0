"""Plain functions on the arrays of a simulated world, compiled when weft is built."""
