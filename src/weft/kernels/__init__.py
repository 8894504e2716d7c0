"""Plain functions on flat arrays, compiled where it pays."""
