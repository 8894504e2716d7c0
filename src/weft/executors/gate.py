"""A gate before a command: its shell may be up already, but waits until it is let in.

To start a shell takes longer than to put on disk why its command is to run. So both happen at once.
If weft dies before it opens the gate, the shell finds nobody there, and ends.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

# before all else: any shell can wait so, and the command finds the stdin that it always has
WAIT = "read -r WEFT_GO || exit 125; unset WEFT_GO; exec </dev/null; "


class Gate:
    """Opened by the thread that drives the run; built and closed by the thread of a processor."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: tuple[int, int] | None = None  # the shell's, and ours
        self.opened: float | None = None  # when, by the performance counter

    def open(self) -> None:
        """Let the command begin, now or as soon as its shell is up."""
        with self._lock:
            self.opened = time.perf_counter()
            self._call()

    def build(self) -> int:
        """What the shell is to read from."""
        with self._lock:
            self._ends = os.pipe()
            self._call()
            return self._ends[0]

    def close(self) -> None:
        """The shell is gone, or never came."""
        with self._lock:
            for end in self._ends or ():
                os.close(end)
            self._ends = None

    def _call(self) -> None:
        if self.opened is not None and self._ends is not None:
            with suppress(BrokenPipeError):  # the shell was killed
                os.write(self._ends[1], b"\n")
