"""Where tasks run: so far in a simulated world."""
