"""The command line."""

from weft.cli.main import main

__all__ = ["main"]
