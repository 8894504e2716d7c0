"""What real runs need of the system they are driven on; Windows does not have it."""

from __future__ import annotations

import importlib.util
import os
import sys

from weft.errors import InputError

# locks that end with their process, owners of files, processes that end as a group
CAN_RUN = importlib.util.find_spec("fcntl") is not None and all(
    hasattr(os, name) for name in ("fork", "geteuid", "killpg")
)


def check_system() -> None:
    """Refuse to drive a run, or to look at one, where that cannot be done safely."""
    if not CAN_RUN:
        raise InputError(
            f"real runs need file locks, file owners and process groups of Linux or macOS, which "
            f"this Python ({sys.platform}) does not have: drive them there, in WSL or in a Linux "
            "container; plan, simulate, compare and what-if work here"
        )
