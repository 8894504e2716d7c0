"""The files of an attempt: its directory, its logs, and the note that it is done.

Inputs are linked into the directory; `foreplan.executors.publishing` takes the outputs out of it.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress

from foreplan.durable import open_file, read_file
from foreplan.model.causes import SYSTEM
from foreplan.model.filenames import (
    covers,
    fixed_folder,
    is_many,
    is_pattern,
    is_tree,
    matching_files,
)
from foreplan.shell import IS_INPUT, IS_THERE, is_among, there

LOG_ENDS = (".out", ".err")
_TAIL_BYTES, _TAIL_LINES = 4096, 20
Status = tuple[int, int]  # the size of a file, and when it was changed


class AttemptError(Exception):
    """Why an attempt fails, in a line for people; the cause in a word."""

    def __init__(self, problem: str, cause: str = SYSTEM) -> None:
        super().__init__(problem)
        self.cause = cause


class OverwriteError(AttemptError):
    """A command would overwrite a file that its task does not make."""


class Scratch:
    """An attempt's directory, whose inputs and outputs are files of a data directory."""

    def __init__(self, path: str, data: str, anywhere: bool = False) -> None:
        self.path, self.data, self.anywhere = path, data, anywhere
        self._links: list[str] = []
        self._folders: list[str] = []

    def make(self) -> None:
        """Make it, empty."""
        try:
            os.mkdir(self.path)
        except FileExistsError:  # of a run that was killed
            remove(self.path)
            os.mkdir(self.path)

    def fill(
        self,
        inputs: Iterable[str],
        outputs: Iterable[str],
        command: str,
        ignores: Container[str] = (),
        redirected: Iterable[str] = (),
    ) -> None:
        """Put links to the inputs and to the files that the command names into it.

        A link to a file that the command redirects output to would let it write to that file: that
        is an OverwriteError, or no link if the file is ignored.
        """
        inputs, outputs = list(inputs), list(outputs)
        unlinked: set[str] = set()
        for name in sorted(redirected):
            if is_among(name, outputs) or not os.path.isfile(os.path.join(self.data, name)):
                continue
            if is_among(name, inputs):
                raise OverwriteError(f"it redirects output to {name}, which {IS_INPUT}")
            if name not in ignores:
                raise OverwriteError(f"it redirects output to {name}, which {IS_THERE}")
            unlinked.add(name)
        for name in inputs:
            self._link_input(name)
        for name in outputs:
            if "/" in name and not os.path.isabs(name) and (folder := fixed_folder(name)):
                self._make_folders(folder)
        named = [name for name in there(command, self.data, ignores) if name not in unlinked]
        self._link_named(named, {*inputs, *outputs})

    def _link_input(self, name: str) -> None:
        if is_pattern(name):
            files = matching_files(self.data, name)
            if not files:
                raise AttemptError(f"no file matches its input {name!r}")
            for file in files:
                self._link_input(file)
            return
        source = os.path.join(self.data, name)
        if is_tree(name) and not os.path.isdir(source):
            raise AttemptError(f"its input {name!r} is no directory, or is missing")
        name, source = name.rstrip("/"), source.rstrip("/")
        try:
            mode = os.lstat(source).st_mode
            if "/" in name or stat.S_ISLNK(mode):
                os.stat(source)
        except (FileNotFoundError, NotADirectoryError):
            raise AttemptError(f"its input {name!r} is missing") from None
        if not self.anywhere and ("/" in name or stat.S_ISLNK(mode)):
            self.check_inside(source, f"its input {name!r}")
        if not os.path.isabs(name):
            self._link(source, name)

    def _link_named(self, names: list[str], declared: set[str]) -> None:
        many = list(filter(is_many, declared))
        for name in names:
            source = os.path.join(self.data, name)
            if name in declared or (many and any(covers(other, name) for other in many)):
                continue
            # its declared parts are there; a link to it would let outputs through to the data
            if any(other.startswith(name + "/") for other in declared):
                continue
            if self.anywhere or is_inside(source, self.data):
                self._link(source, name)

    def _link(self, source: str, name: str) -> None:
        if "/" in name:
            self._make_folders(os.path.dirname(name))
        target = os.path.join(self.path, name)
        with suppress(FileExistsError):  # seen through a link to a folder above it
            os.symlink(source, target)
            self._links.append(target)

    def _make_folders(self, name: str) -> None:
        folder = self.path
        for part in name.split("/"):
            folder = os.path.join(folder, part)
            with suppress(FileExistsError):
                os.mkdir(folder)
                self._folders.append(folder)

    def check_inside(self, path: str, what: str) -> None:
        """Raise an AttemptError if links lead from a path out of the data directory."""
        if not is_inside(path, self.data):
            raise AttemptError(
                f"{what} is outside of the run's directory: a link leads to "
                f"{os.path.realpath(path)}; allow it with absolute paths"
            )

    def clear(self, leave: bool = False) -> bool:
        """Remove all that is in it, and the directory too unless it is to be left; if it was."""
        try:
            for link in self._links:
                os.unlink(link)
            for folder in reversed(self._folders):
                os.rmdir(folder)
            if leave and not os.listdir(self.path):
                return True
            os.rmdir(self.path)
        except OSError:  # there is more than was put there
            remove(self.path)
        return False


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is in a folder, wherever links lead."""
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    return os.path.join(inner, "").startswith(os.path.join(outer, ""))


class Workspace:
    """A directory, two log files beside it, and the file with the notes on what is done.

    To make and remove them for every attempt would take longer than a short command, most of all
    on file systems that pass over what was removed in the last minutes one by one.
    """

    def __init__(self, path: str, notes: str, log: str | None = None) -> None:
        self.path = path
        self._log = log  # all logs, from the start; None: only those that hold something are kept
        self._is_empty = False  # the directory is there, and nothing is in it
        self._notes_path = notes
        self._files: dict[str, int] = {}
        self._used: Scratch | None = None

    def _open(self, path: str, mode: int) -> int:
        if path not in self._files:
            self._files[path] = os.open(path, mode, 0o600)
        return self._files[path]

    def open_streams(self) -> tuple[int, int, int]:
        """Descriptors for stdin, stdout and stderr."""
        for end in LOG_ENDS:
            if end not in self._files:
                self._files[end] = open_log((self._log or self.path) + end)
        nothing = self._open(os.devnull, os.O_RDONLY)
        return nothing, self._files[LOG_ENDS[0]], self._files[LOG_ENDS[1]]

    def keep_logs(self, log: str) -> None:
        """Give the logs that hold something the name under which they are kept."""
        for end in LOG_ENDS if self._log is None else ():
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
        if self._notes_path not in self._files:
            self._files[self._notes_path] = open_file(self._notes_path, mode)
        os.write(self._files[self._notes_path], line)

    def close_files(self) -> None:
        """Close what is open; it is opened again when it is needed."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()

    def close(self) -> None:
        """Remove the directory and the logs, but not the notes, nor what is to be kept."""
        self.close_files()
        if self.take() or self._log is None:
            remove(self.path)
        for end in LOG_ENDS if self._log is None else ():
            with suppress(OSError):
                os.unlink(self.path + end)


def open_log(path: str) -> int:
    """A new log file, for its owner only."""
    return open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)


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
                file.seek(max(0, size - _TAIL_BYTES))
                text = file.read(_TAIL_BYTES).decode("utf-8", "replace").rstrip()
        except OSError:
            continue
        if text:
            return "\n".join(text.splitlines()[-_TAIL_LINES:]), path
    return "", None


def remove(path: str) -> None:
    """Remove a directory tree, folders that may not be written to as well; errors are passed by."""
    shutil.rmtree(path, ignore_errors=True)
    if not os.path.lexists(path):
        return
    with suppress(OSError):
        os.chmod(path, 0o700)
        for folder, inner, _ in os.walk(path):
            for name in inner:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
    shutil.rmtree(path, ignore_errors=True)


def protect(path: str, folders: bool = False) -> None:
    """Have nobody write to a file any more, or to all files in a folder; to folders if asked."""
    inner = os.walk(path, topdown=False) if os.path.isdir(path) else ()
    for place in [os.path.join(f, n) for f, d, files in inner for n in (d if folders else files)]:
        if not os.path.islink(place):
            os.chmod(place, stat.S_IMODE(os.stat(place).st_mode) & ~0o222)
    if folders or not os.path.isdir(path):
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & ~0o222)


def last_change(*paths: str) -> float:
    """When these files and folders, and all in them, were last changed; 0 if there are none."""
    times = [0.0]
    for path in paths:
        inner = (os.path.join(folder, f) for folder, d, files in os.walk(path) for f in d + files)
        for file in (path, *inner):
            with suppress(OSError):
                times.append(os.lstat(file).st_mtime)
    return min(max(times), time.time())


def done_line(task: str, attempt: int, seconds: float, outputs: Mapping[str, Status]) -> bytes:
    """A note that an attempt is done, to be written down before anybody hears of it."""
    note = {"task": task, "attempt": attempt, "seconds": seconds, "outputs": outputs}
    return b"\n" + json.dumps(note).encode()  # the line before may have been cut short


def read_done(path: str) -> dict[tuple[str, int], tuple[float, dict[str, int]]]:
    """The attempts of tasks that are done: their seconds, and the sizes of their outputs."""
    done: dict[tuple[str, int], tuple[float, dict[str, int]]] = {}
    try:
        lines = read_file(path).splitlines()
    except OSError:
        return done
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # cut short
            note = json.loads(line)
            sizes = {str(name): int(size) for name, (size, _) in note["outputs"].items()}
            done[note["task"], note["attempt"]] = float(note["seconds"]), sizes
    return done


def still_there(data: str, sizes: Mapping[str, int]) -> bool:
    """Whether the files are there and have these sizes."""
    try:
        return all(os.stat(os.path.join(data, n)).st_size == size for n, size in sizes.items())
    except OSError:
        return False


def read_marker(path: str, data: str) -> tuple[float, dict[str, int]] | None:
    """The seconds and sizes of the attempt of a file's last line, if its outputs are there."""
    done = list(read_done(path).values())
    return done[-1] if done and still_there(data, done[-1][1]) else None
