"""Open files and processes: how many there may be, and attempts that must wait for some.

Foreplan raises its own soft limit of open files to the hard one. The commands that it runs get
back the soft limit that foreplan was started with: programs that use select(), or close every
descriptor up to the limit, cannot bear a high one.
"""

from __future__ import annotations

import contextlib
import errno
import math

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

RESERVED = 32  # descriptors for the journal, the history, the store, the display and imports
EACH = 6  # of a running attempt: its streams, its pipe, its output, and what publishing opens
_SHORTAGES = {
    errno.EMFILE: "ulimit -n",
    errno.ENFILE: "the system's limit, fs.file-max",
    errno.EAGAIN: "ulimit -u",
}

_given: int | None = None  # the soft limit before it was raised


class ShortageError(Exception):
    """Too few descriptors or processes for an attempt; it may run when another one has ended."""

    def __init__(self, problem: str, error: OSError) -> None:
        limit = _SHORTAGES[error.errno or 0]
        super().__init__(f"{problem}, although no other task runs; raise the limit ({limit})")


def is_shortage(error: BaseException) -> bool:
    """Return whether the system refused a descriptor or a process for lack of them."""
    return isinstance(error, OSError) and error.errno in _SHORTAGES


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard one."""
    global _given
    soft, hard = _limits()
    if soft == hard:
        return
    with contextlib.suppress(ValueError, OSError):  # some systems have a limit below the hard one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        _given = soft


def restoring_prefix() -> str:
    """Return what a shell runs first to have the soft limit that foreplan was started with."""
    return "" if _given is None else f"ulimit -Sn {_given} || :; "


def restore_limit(pid: int) -> None:
    """Give a process the soft limit that foreplan was started with, where the system can."""
    if _given is not None and hasattr(resource, "prlimit"):  # Linux
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (_given, _limits()[1]))


def most_attempts() -> float:
    """Return how many attempts may run at once without using up the descriptors."""
    soft = _limits()[0]
    return math.inf if soft < 0 else max(1, (soft - RESERVED) // EACH)


def _limits() -> tuple[int, int]:
    """Return the soft and the hard limit of open files; -1 is none."""
    return (-1, -1) if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)
