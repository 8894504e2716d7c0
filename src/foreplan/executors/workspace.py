"""The files of an attempt: its directory, its logs, and the note that it is done.

Inputs are linked into the directory, outputs are published out of it.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress

from foreplan.durable import open_file, read_file
from foreplan.executors.trees import bytes_in, make_own, put_tree
from foreplan.model.causes import MISSING_OUTPUT, SYSTEM
from foreplan.model.filenames import (
    covers,
    fixed_folder,
    is_many,
    is_pattern,
    is_tree,
    matching_files,
)
from foreplan.quantities import first_few
from foreplan.shell import there

LOG_ENDS = (".out", ".err")
_TAIL_BYTES, _TAIL_LINES = 4096, 20
_Mover = Callable[[str, str], None]
_Status = tuple[int, int]  # the size of a file, and when it was changed


class AttemptError(Exception):
    """Why an attempt fails, in a line for people; the cause in a word."""

    def __init__(self, problem: str, cause: str = SYSTEM) -> None:
        super().__init__(problem)
        self.cause = cause


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
    ) -> None:
        """Put links to the inputs and to the files that the command names into it."""
        for name in inputs:
            self._link_input(name)
        for name in outputs:
            if "/" in name and not os.path.isabs(name) and (folder := fixed_folder(name)):
                self._make_folders(folder)
        self._link_named(there(command, self.data, ignores), {*inputs, *outputs})

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
            self._check_inside(source, f"its input {name!r}")
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
            if self.anywhere or _is_inside(source, self.data):
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

    def _check_inside(self, path: str, what: str) -> None:
        if not _is_inside(path, self.data):
            raise AttemptError(
                f"{what} is outside of the run's directory: a link leads to "
                f"{os.path.realpath(path)}; allow it with absolute paths"
            )

    def publish(
        self,
        outputs: Iterable[str],
        note: Callable[[Mapping[str, list[str]]], None] = lambda matched: None,
        protected: Container[str] = (),
        former: Iterable[str] = (),
    ) -> dict[str, _Status]:
        """Publish all outputs if all are there; the size and time of change of each.

        `note` writes down what is about to be published, once nothing speaks against it; it hears
        which files patterns have. Who is protected may be written by nobody, from the moment that
        it is seen. What is `former` matched such patterns, and goes if it was not made again.
        """
        outputs = list(outputs)
        matched = {name: self._matching(name) for name in outputs if is_pattern(name)}
        names = [file for name in outputs for file in matched.get(name, [name])]
        found = {name: _look(os.path.join(self.path, name)) for name in names}
        missing = [name for name, status in found.items() if status is None]
        if missing:
            raise AttemptError(_missing(missing, len(found)), MISSING_OUTPUT)
        moves = [
            (name, self._prepare_move(name, status)) for name, status in found.items() if status
        ]
        note(matched)
        shielded = {f for n in outputs if n in protected for f in matched.get(n, [n])}
        for name in shielded:
            protect(os.path.join(self.path, name))
        for name in former:
            if matched and name not in found:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.data, name))
        done = {name: self._publish_one(name, move) for name, move in moves}
        for name in filter(is_tree, shielded):  # a folder that nobody may write to cannot be moved
            protect(os.path.join(self.data, name), folders=True)
        whole = {n: (sum(done[f][0] for f in files), 0) for n, files in matched.items()}
        return {name: whole.get(name) or done[name] for name in outputs}

    def _matching(self, pattern: str) -> list[str]:
        """The files that a command has made and that match a pattern of its outputs."""
        files = matching_files(self.path, pattern)
        if not files:
            raise AttemptError(f"no file matches its output {pattern!r}", MISSING_OUTPUT)
        if "**" not in pattern:
            found = glob.iglob(pattern, root_dir=self.path)
            for name in (n for n in found if os.path.isdir(os.path.join(self.path, n))):
                raise AttemptError(
                    f"the folder {name!r} matches its output {pattern!r}, which is of files: "
                    f"write `{pattern}/**/*` for those below, or another pattern",
                    MISSING_OUTPUT,
                )
        return files

    def _prepare_move(self, name: str, status: os.stat_result) -> _Mover:
        """How an output is brought to its place; an error if it is no file."""
        source = os.path.join(self.path, name)
        if is_tree(name):
            return self._prepare_tree(name)
        link = stat.S_ISLNK(status.st_mode)
        try:
            mode = os.stat(source).st_mode if link else status.st_mode
        except OSError:
            problem = f"its output {name!r} is a link to nothing"
            raise AttemptError(problem, MISSING_OUTPUT) from None
        if stat.S_ISDIR(mode):
            problem = f"its output {name!r} is a directory: if it is meant, write {name + '/'!r}"
            raise AttemptError(problem, MISSING_OUTPUT)
        if not stat.S_ISREG(mode):
            raise AttemptError(f"its output {name!r} is not a file", MISSING_OUTPUT)
        if os.path.isabs(name):
            return _stay
        if "/" in name:
            self._make_place(name)
        # a link would lead to nothing from its new place, and what it leads to is not ours
        own = not link and ("/" not in name or _is_inside(source, self.path))
        return _move if own else _copy

    def _prepare_tree(self, name: str) -> _Mover:
        """How a directory is brought to its place, with all that links in it lead to."""
        source = os.path.join(self.path, name.rstrip("/"))
        target = os.path.join(self.data, name.rstrip("/"))
        if os.path.isabs(name):
            raise AttemptError(f"its output {name!r} is outside of the run's directory")
        if os.path.lexists(target) and (os.path.islink(target) or not os.path.isdir(target)):
            raise AttemptError(
                f"its output {name!r} cannot be published: what is there is no directory"
            )
        try:
            make_own(source)
        except OSError as error:
            file = os.path.relpath(error.filename or source, self.path)
            raise AttemptError(
                f"its output {name!r} has something that cannot be read: {file!r}", MISSING_OUTPUT
            ) from None
        if "/" in name.rstrip("/"):
            self._make_place(name.rstrip("/"))
        return _move_tree

    def _make_place(self, name: str) -> None:
        folder = os.path.join(self.data, os.path.dirname(name))
        if not self.anywhere:
            self._check_inside(folder, f"the place of its output {name!r}")
        os.makedirs(folder, exist_ok=True)

    def _publish_one(self, name: str, move: _Mover) -> _Status:
        target = os.path.join(self.data, name)
        try:
            move(os.path.join(self.path, name), target)
            status = os.stat(target)
        except IsADirectoryError:
            raise AttemptError(
                f"its output {name!r} cannot be published: it is a directory"
            ) from None
        if is_tree(name):
            return bytes_in(target), status.st_mtime_ns
        return status.st_size, status.st_mtime_ns

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


def _missing(names: list[str], declared: int) -> str:
    shown = first_few(map(repr, names))
    if len(names) == 1:
        return f"its output {shown} is missing"
    return f"{'all' if len(names) == declared else 'some'} of its outputs are missing: {shown}"


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_inside(path: str, folder: str) -> bool:
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    return os.path.join(inner, "").startswith(os.path.join(outer, ""))


def _stay(source: str, target: str) -> None:
    """Where an absolute path was asked for, the command has written there itself."""


def _move(source: str, target: str) -> None:
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)


def _move_tree(source: str, target: str) -> None:
    put_tree(source.rstrip("/"), target.rstrip("/"))


def _copy(source: str, target: str) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:20]}.{secrets.token_hex(6)}.tmp")
    try:
        shutil.copyfile(source, temporary)
        shutil.copymode(source, temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


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


def done_line(task: str, attempt: int, seconds: float, outputs: Mapping[str, _Status]) -> bytes:
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
