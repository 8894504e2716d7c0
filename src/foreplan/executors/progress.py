"""How much of a task is done, as the task itself says."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterator

VARIABLE = "FOREPLAN_PROGRESS"  # names the file that a task writes numbers to; the last one counts
ENDING = ".progress"
_PAUSE = 0.1  # seconds between two notes: a task may tell its progress as often as it likes
_TAIL = 200  # bytes that the last number is looked for in

Report = tuple[float, float]  # the share that is done, and how many seconds ago that was said

_here = threading.local()  # `hear`: who listens to the task of this thread, on a Dask worker
_noted = ("", 0.0)  # the file last written to, and when


def progress(fraction: float) -> None:
    """Tell how much of the running task is done, from 0 to 1; outside of a run this does nothing.

    On Dask it must be called by the thread that the task was called in.
    """
    share = float(fraction)
    if math.isnan(share):
        return
    share = min(1.0, max(0.0, share))
    hear: Callable[[float], None] | None = getattr(_here, "hear", None)
    if hear is not None:
        hear(share)
    elif path := os.environ.get(VARIABLE):
        _note(path, share)


def _note(path: str, share: float) -> None:
    global _noted
    now = time.monotonic()
    if _noted[0] == path and now < _noted[1] + _PAUSE:
        return
    _noted = path, now
    with contextlib.suppress(OSError):  # a task must not fail because nobody hears of it
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, b"%g\n" % share)
        finally:
            os.close(fd)


@contextlib.contextmanager
def report_to(hear: Callable[[float], None]) -> Iterator[None]:
    """While this lasts, what this thread tells of its progress is heard."""
    before = getattr(_here, "hear", None)
    _here.hear = hear
    try:
        yield
    finally:
        _here.hear = before


def read_progress(path: str) -> Report | None:
    """The last number in a file, and when it was written; None if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        state = os.fstat(fd)
        os.lseek(fd, max(0, state.st_size - _TAIL), os.SEEK_SET)
        words = os.read(fd, _TAIL).split()
        share = float(words[-1]) if words else math.nan
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    if math.isnan(share):
        return None
    return min(1.0, max(0.0, share)), max(0.0, time.time() - state.st_mtime)


def forget_progress(path: str) -> None:
    """Remove the file, if the task has made it."""
    with contextlib.suppress(OSError):
        os.unlink(path)
