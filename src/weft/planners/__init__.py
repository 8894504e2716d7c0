"""One short file per algorithm, found by the registry."""
