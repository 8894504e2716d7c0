"""The results of Python functions, pickled, in the run's own home.

A result has a file of its own, `<task>.pkl`. Many small ones that come in together are appended to
one file, `small.bin`: to make a file for each would cost more than the tasks do. The newest record
of a task counts there; an empty one says that the task has no result any more.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from foreplan.durable import open_file
from foreplan.errors import ForeplanError
from foreplan.executors import packing
from foreplan.executors.packing import Frame, Frames
from foreplan.store.content import Entry, Memory, digest_of, settle, status_of
from foreplan.store.store import KeptResult

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
        error = packing.unpack(packing.read(error_path(results, task)))
    except Exception:  # there is none, or unpickling it calls code that raises
        return None
    return error if isinstance(error, Exception) else None


def write_private(path: str, content: bytes) -> None:
    """Write a file for its owner only."""
    with open(path, "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        file.write(content)


class NoResultError(ForeplanError):
    """There is no result of a task here."""


class SmallResults:
    """The file of small results, to append to; a record that is cut short counts as none."""

    def __init__(self, results: str | os.PathLike[str]) -> None:
        self._results = os.fspath(results)
        self._descriptor = -1
        self._lock = threading.Lock()  # threads bring results home, several at a time
        files = (name.partition(".") for name in os.listdir(self._results))
        # the tasks whose results have a file of their own
        self.large = {int(task) for task, _, end in files if end == "pkl" and task.isdecimal()}
        records = _records_in(os.path.join(self._results, SMALL))
        self._places = _newest(records)
        self._end = records[-1][1] + records[-1][2] if records else 0  # of the last whole record

    def has(self, task: int) -> bool:
        """Return whether the result of a task is here."""
        return task in self.large or task in self._places

    def read(self, task: int) -> list[Frame]:
        """Return the result of a task as it is packed."""
        if task in self.large or task not in self._places:
            return packing.read(result_path(self._results, task))
        return [_read_small(self._results, *self._places[task])]

    def keep(self, task: int, content: bytes) -> None:
        """Append a result; it takes the place of any that the task has; from any thread."""
        with self._lock:
            self._remove_file(task)
            self._append(task, content)
            self._places[task] = (self._end - len(content), len(content))

    def drop(self, task: int) -> None:
        """Have no result of a task any more: it is about to be made again."""
        with self._lock:
            self._remove_file(task)
            if self._places.pop(task, None) is not None:
                self._append(task, b"")

    def _remove_file(self, task: int) -> None:
        if task in self.large:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(result_path(self._results, task))
            self.large.discard(task)

    def _append(self, task: int, content: bytes) -> None:
        if self._descriptor < 0:
            path = os.path.join(self._results, SMALL)
            _cut_to(path, self._end)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = open_file(path, flags)
        record = _HEAD.pack(task, len(content)) + content
        if os.write(self._descriptor, record) < len(record):
            os.ftruncate(self._descriptor, self._end)
            raise OSError(28, "No space left on device")
        self._end += len(record)

    def keep_apart(
        self,
        task: int,
        frames: Frames,
        note: Callable[[str], None] = lambda path: None,
        taken: Iterable[int] = (),
    ) -> None:
        """Keep a result in a file of its own, which appears whole, after it was taken note of.

        If it is that of a task that it was made from (`taken`), it is a link.
        """
        path = result_path(self._results, task)
        packing.write_frames(path + ".tmp", frames, [result_path(self._results, t) for t in taken])
        note(path + ".tmp")
        with self._lock:
            os.replace(path + ".tmp", path)
            self.large.add(task)

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
    return _newest(_records_in(path))


def _newest(records: list[tuple[int, int, int]]) -> dict[int, tuple[int, int]]:
    found = {task: (offset, length) for task, offset, length in records}
    return {task: place for task, place in found.items() if place[1]}


def _records_in(path: str) -> list[tuple[int, int, int]]:
    """The records of a file, of which only the heads are read."""
    try:
        with open(open_file(path), "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return []
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _records(content)
    except FileNotFoundError:
        return []


def _read_small(results: str | os.PathLike[str], offset: int, length: int) -> bytes:
    with open(open_file(os.path.join(results, SMALL)), "rb") as file:
        file.seek(offset)
        return file.read(length)


def _records(content: bytes | mmap.mmap) -> list[tuple[int, int, int]]:
    """The task, the offset and the length of each whole record."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at + _HEAD.size <= len(content):
        task, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        if length < 0 or at + length > len(content):
            break
        found.append((task, at, length))
        at += length
    return found


def _cut_to(path: str, length: int) -> None:
    if os.path.exists(path) and os.path.getsize(path) > length:
        os.truncate(path, length)


def is_kept(results: str | os.PathLike[str], task: int) -> bool:
    """Whether the result of a task is there."""
    return os.path.exists(result_path(results, task)) or task in small_places(results)


class KeptResults:
    """What the runs of a directory have kept of functions: is it there, and as it was?"""

    def __init__(self, data: str | os.PathLike[str]) -> None:
        self._data, self._memory = os.fspath(data), Memory(data)
        self._seen: dict[KeptResult, bool] = {}
        self._small: dict[str, dict[int, tuple[int, int]]] = {}  # places, by run

    def folder(self, run: str) -> str:
        """Where the results of a run are."""
        return os.path.join(self._data, _results_of(run))

    def has(self, kept: KeptResult) -> bool:
        """Whether a result is there with the content that it had; it is looked at once."""
        if kept not in self._seen:
            self._seen[kept] = self._look(kept)
        return self._seen[kept]

    def _look(self, kept: KeptResult) -> bool:
        if not kept.run or "/" in kept.run or kept.run.startswith("."):
            return False
        name = result_path(_results_of(kept.run), kept.number)
        self._memory.learn(name, kept.file)
        content = self._memory.content(name)
        folder = self.folder(kept.run)
        if kept.run not in self._small:
            self._small[kept.run] = small_places(folder)
        if content is None and (place := self._small[kept.run].get(kept.number)) is not None:
            content = digest_of(_read_small(folder, *place))
        return content == kept.file[3]

    def bring(self, kept: KeptResult, results: str, task: int) -> Entry:
        """Have a result among those of another run, too; its file as it is there.

        It is a link where there can be one: then it stays when the run that made it goes.
        """
        source, target = result_path(self.folder(kept.run), kept.number), result_path(results, task)
        if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
            return kept.file
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target + ".tmp")
        entry: Entry | None = kept.file
        try:
            os.link(source, target + ".tmp")
        except OSError:  # it is among small ones, or this file system has no links
            packing.write_frames(target + ".tmp", read_result(self.folder(kept.run), kept.number))
            entry = settle(target + ".tmp")
        if entry is None or entry[3] != kept.file[3]:
            raise FileNotFoundError(2, "it is not what it was", source)
        os.replace(target + ".tmp", target)
        return entry


def _results_of(run: str) -> str:
    return os.path.join(".foreplan", "runs", run, "results")


def load_result(results: str | os.PathLike[str], task: int, name: str = "") -> Any:
    """The result of a task that has finished."""
    shown = repr(name) if name else str(task)
    path = Path(result_path(results, task))
    try:
        return packing.unpack(read_result(results, task))
    except FileNotFoundError:
        raise NoResultError(f"task {shown} has no result: it has not finished") from None
    except Exception as error:  # unpickling calls code of the objects, which may raise anything
        what = f"{type(error).__name__}: {error}"
        raise ForeplanError(
            f"the result of task {shown} cannot be read: {what} ({path})"
        ) from error


def read_result(results: str | os.PathLike[str], task: int) -> list[Frame]:
    """The result of a task that has finished, as it is packed."""
    try:
        return packing.read(result_path(results, task))
    except FileNotFoundError:
        place = small_places(results).get(task)
        if place is None:
            raise
        return [_read_small(results, *place)]


def file_of_result(results: str | os.PathLike[str], task: int) -> str:
    """Return the file of a task's result; a result among small ones gets one of its own."""
    path = result_path(results, task)
    if not os.path.exists(path) and (place := small_places(results).get(task)) is not None:
        own = f"{path}.{threading.get_ident()}.tmp"  # others may do the same now
        packing.write_frames(own, [_read_small(results, *place)])
        os.replace(own, path)
    return path


def settle_result(path: str) -> Entry | None:
    """The status and content of a result that is made; a link has those that it has elsewhere.

    It is never written to, under whatever name, and its time was set when it was first settled.
    """
    entry = settle(path)
    if entry is None or os.stat(path).st_nlink == 1:
        return entry
    return (*status_of(os.stat(path)), entry[3])
