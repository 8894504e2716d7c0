"""The terminal of this process, which may be left while a run goes on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

STANDARD = (0, 1, 2)  # input, output, errors


class Terminal:
    """What this process's standard streams are, as long as somebody is there."""

    def __init__(self, ours: bool = True) -> None:
        # asked now: of a terminal that is closed nobody can tell any more
        self._ours = [number for number in STANDARD if ours and _is_terminal(number)]

    def leave(self, everything: bool = False) -> None:
        """Let what is written there go nowhere; a signal handler may do this."""
        for number in STANDARD if everything else self._ours:
            with suppress(OSError):
                _redirect(os.devnull, number, os.O_RDONLY if number == 0 else os.O_WRONLY)
        self._ours = list(STANDARD) if everything else self._ours

    def send_errors_to(self, log: Path) -> None:
        """Let errors go to a file, after this was left."""
        if 2 in self._ours:
            # to open a FIFO in its place must not wait for a reader
            _redirect(log, 2, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def _redirect(path: Path | str, number: int, flags: int) -> None:
    descriptor = os.open(path, flags, 0o600)
    os.dup2(descriptor, number)
    if descriptor != number:
        os.close(descriptor)
