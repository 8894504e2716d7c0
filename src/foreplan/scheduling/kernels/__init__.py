"""Plain functions on flat arrays that plan, compiled when foreplan is built."""
