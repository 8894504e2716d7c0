"""The log files of an attempt: what it has printed to stdout and to stderr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOG_ENDS = (".out", ".err")
TAIL_BYTES, TAIL_LINES = 4096, 20


def open_log(path: str) -> int:
    """A new log file, for its owner only."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)


@contextmanager
def opened_logs(log: str) -> Iterator[tuple[int, int]]:
    """Files for stdout and stderr, for as long as it takes to start a process."""
    out = open_log(log + ".out")
    try:
        err = open_log(log + ".err")
        try:
            yield out, err
        finally:
            os.close(err)
    finally:
        os.close(out)


def keep_logs(live: str, log: str) -> None:
    """Give logs that hold something the name under which they are kept."""
    for end in LOG_ENDS:
        with suppress(OSError):  # never made
            if os.stat(live + end).st_size:
                os.replace(live + end, log + end)


def tail_of(log: str) -> tuple[str, str | None]:
    """The last lines of stderr, or else of stdout, and the file that they are from."""
    for path in (log + ".err", log + ".out"):
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - TAIL_BYTES))
                text = file.read(TAIL_BYTES).decode("utf-8", "replace").rstrip()
        except OSError:
            continue
        if text:
            return "\n".join(text.splitlines()[-TAIL_LINES:]), path
    return "", None
