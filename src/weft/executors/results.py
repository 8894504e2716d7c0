"""The results of Python functions, pickled, in the run's own home.

A result has a file of its own, `<task>.pkl`. Many small ones that come in together are appended to
one file, `small.bin`: to make a file for each would cost more than the tasks do.
"""

from __future__ import annotations

import os
import pickle
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

from weft.errors import WeftError

SMALL = "small.bin"
_HEAD = struct.Struct("<qq")  # task, length


def result_path(results: str | os.PathLike[str], task: int) -> str:
    """The file of a task's result."""
    return os.path.join(results, f"{task}.pkl")


def error_path(results: str | os.PathLike[str], task: int) -> str:
    """The file of the error that a task raised last."""
    return os.path.join(results, f"{task}.error")


def load_error(results: str | os.PathLike[str], task: int) -> Exception | None:
    """The error that a task raised last, as far as it can be had."""
    try:
        error = pickle.loads(Path(error_path(results, task)).read_bytes())
    except Exception:  # there is none, or unpickling it calls code that raises
        return None
    return error if isinstance(error, Exception) else None


class NoResultError(WeftError):
    """There is no result of a task here."""


class SmallResults:
    """The file of small results, to append to; a record that is cut short counts as none."""

    def __init__(self, results: str | os.PathLike[str]) -> None:
        self._results = os.fspath(results)
        self._descriptor = -1
        names = [name.partition(".pkl")[0] for name in os.listdir(self._results)]
        self.large = {int(name) for name in names if name.isdecimal()}  # with a file of their own

    def keep(self, task: int, content: bytes) -> None:
        """Append a result; it takes the place of any that the task has."""
        if self._descriptor < 0:
            path = os.path.join(self._results, SMALL)
            _cut_to(path, _whole(path))
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
        if task in self.large:
            os.unlink(result_path(self._results, task))
            self.large.discard(task)
        record = _HEAD.pack(task, len(content)) + content
        if os.write(self._descriptor, record) < len(record):
            raise OSError(28, "No space left on device")

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def small_places(results: str | os.PathLike[str]) -> dict[int, tuple[int, int]]:
    """Where each small result is in its file: offset and length, the newest of each task."""
    path = os.path.join(results, SMALL)
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return {}
    return _places(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4)
def _places(path: str, size: int, changed: int) -> dict[int, tuple[int, int]]:
    return {task: (offset, length) for task, offset, length in _records(path)}


def _records(path: str) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return found
    at = 0
    while at + _HEAD.size <= len(content):
        task, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        if length < 0 or at + length > len(content):
            break
        found.append((task, at, length))
        at += length
    return found


def _whole(path: str) -> int:
    """The length of the file without a record that was cut short."""
    records = _records(path)
    return records[-1][1] + records[-1][2] if records else 0


def _cut_to(path: str, length: int) -> None:
    if os.path.exists(path) and os.path.getsize(path) > length:
        os.truncate(path, length)


def is_kept(results: str | os.PathLike[str], task: int) -> bool:
    """Whether the result of a task is there."""
    return os.path.exists(result_path(results, task)) or task in small_places(results)


def load_result(results: str | os.PathLike[str], task: int, name: str = "") -> Any:
    """The result of a task that has finished."""
    shown = repr(name) if name else str(task)
    path = Path(result_path(results, task))
    try:
        return pickle.loads(_content(results, task, path))
    except FileNotFoundError:
        raise NoResultError(f"task {shown} has no result: it has not finished") from None
    except Exception as error:  # unpickling calls code of the objects, which may raise anything
        what = f"{type(error).__name__}: {error}"
        raise WeftError(f"the result of task {shown} cannot be read: {what} ({path})") from error


def _content(results: str | os.PathLike[str], task: int, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        place = small_places(results).get(task)
        if place is None:
            raise
        with open(os.path.join(results, SMALL), "rb") as file:
            file.seek(place[0])
            return file.read(place[1])
