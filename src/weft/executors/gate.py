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
    """Opened by the thread that drives the run; the thread of a processor closes it in the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stdin, self._ours = os.pipe()
        self._is_there = True
        self.opened: float | None = None  # when, by the performance counter

    def open(self) -> None:
        """Let the command begin, now or as soon as its shell is up."""
        with self._lock:
            self.opened = time.perf_counter()
            if self._is_there:
                with suppress(BrokenPipeError):  # the shell was killed
                    os.write(self._ours, b"\n")

    def close(self) -> None:
        """The shell is gone, or never came."""
        with self._lock:
            self._is_there = False
            os.close(self.stdin)
            os.close(self._ours)
