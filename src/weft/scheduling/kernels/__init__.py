"""Plain functions on flat arrays that plan, compiled when weft is built."""
