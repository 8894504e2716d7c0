"""Commands and functions on this machine."""
