"""A place where attempts run one after another: what they leave empty is used again."""

from __future__ import annotations

import os
from contextlib import suppress

from weft.executors.logs import LOG_ENDS, open_log
from weft.executors.scratch import Scratch, remove


class Desk:
    """A directory, two log files beside it, and the file with the notes on what is done.

    To make and remove them for every attempt would take longer than a short command, most of all
    on file systems that pass over what was removed in the last minutes one by one.
    """

    def __init__(self, path: str, notes: str) -> None:
        self.path = path
        self._is_empty = False  # the directory is there, and nothing is in it
        self._notes_path = notes
        self._files: dict[str, int] = {}
        self._used: Scratch | None = None

    def _opened(self, path: str, mode: int) -> int:
        if path not in self._files:
            self._files[path] = os.open(path, mode, 0o600)
        return self._files[path]

    def streams(self) -> tuple[int, int, int]:
        """Descriptors for stdin, stdout and stderr."""
        for end in LOG_ENDS:
            if end not in self._files:
                self._files[end] = open_log(self.path + end)
        nothing = self._opened(os.devnull, os.O_RDONLY)
        return nothing, self._files[LOG_ENDS[0]], self._files[LOG_ENDS[1]]

    def keep_logs(self, log: str) -> None:
        """Give the logs that hold something the name under which they are kept."""
        for end in LOG_ENDS:
            if end in self._files and os.fstat(self._files[end]).st_size:
                os.close(self._files.pop(end))
                with suppress(OSError):
                    os.replace(self.path + end, log + end)

    def leave(self, used: Scratch) -> None:
        """Leave the directory to be tidied, once it has been told how the attempt ended."""
        self._used = used

    def tidy(self) -> None:
        """Make the directory ready for the next attempt, if the last one has left it."""
        if self._used is not None:
            self._is_empty = self._used.clear(leave=True)
            self._used = None

    def take(self) -> bool:
        """Take the directory; False if it must be made first."""
        self.tidy()
        taken, self._is_empty = self._is_empty, False
        return taken

    def note(self, line: bytes) -> None:
        """Add a line to the notes."""
        mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.write(self._opened(self._notes_path, mode), line)

    def close(self) -> None:
        """Remove the directory and the logs, but not the notes."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()
        self._used, self._is_empty = None, False
        remove(self.path)
        for end in LOG_ENDS:
            with suppress(OSError):
                os.unlink(self.path + end)
