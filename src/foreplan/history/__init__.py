"""The performance history: what tasks took, by category and machine."""
