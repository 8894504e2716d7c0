"""Plain functions on the arrays of a run, compiled when foreplan is built."""
