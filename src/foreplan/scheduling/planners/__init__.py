"""One file per paper; the planners in it are found by the registry."""
