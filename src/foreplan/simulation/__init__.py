"""Simulated worlds: their truth, what happens in them, and the native loop."""
