"""The command line."""

from foreplan.cli.main import main

__all__ = ["main"]
