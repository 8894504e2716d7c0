"""The version, and the name by which pip installs foreplan; everything may import this module."""

__version__ = "0.1.0"
DISTRIBUTION = "foreplan"  # as package indexes know it


def install_command(extra: str) -> str:
    """Return the command that installs an extra, ready to be pasted into a shell."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
