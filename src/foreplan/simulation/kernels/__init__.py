"""Plain functions on the arrays of a simulated world, compiled when foreplan is built."""
