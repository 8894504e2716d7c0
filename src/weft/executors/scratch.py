"""The directory of an attempt: inputs are linked into it, outputs are published out of it."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from weft.model.shell import is_inner, named_files, named_patterns

_Mover = Callable[[str, str], None]
_Status = tuple[int, int]  # the size of a file, and when it was changed


class AttemptError(Exception):
    """Why an attempt fails, in a line for people."""


def there(command: str, data: str, ignores: Container[str] = ()) -> list[str]:
    """What a command names that is in the data directory, folders before what is in them.

    A pattern names all that it matches there, but for what the task ignores.
    """
    names = {*named_files(command)}
    for _, matched in matching(command, data, ignores):
        names.update(matched)
    return sorted(name for name in names if os.path.exists(os.path.join(data, name)))


def matching(
    command: str, data: str, ignores: Container[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """The patterns of a command, and what they match in the data directory."""
    for pattern in named_patterns(command):
        if pattern not in ignores and is_inner(pattern):
            found = glob.iglob(pattern, root_dir=data, recursive=True)
            yield pattern, [name for name in found if name not in ignores and is_inner(name)]


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
            if "/" in name and not os.path.isabs(name):
                self._make_folders(os.path.dirname(name))
        self._link_named(there(command, self.data, ignores), {*inputs, *outputs})

    def _link_input(self, name: str) -> None:
        source = os.path.join(self.data, name)
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
        for name in names:
            source = os.path.join(self.data, name)
            if name in declared:
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
        with contextlib.suppress(FileExistsError):  # seen through a link to a folder above it
            os.symlink(source, target)
            self._links.append(target)

    def _make_folders(self, name: str) -> None:
        folder = self.path
        for part in name.split("/"):
            folder = os.path.join(folder, part)
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
                self._folders.append(folder)

    def _check_inside(self, path: str, what: str) -> None:
        if not _is_inside(path, self.data):
            raise AttemptError(
                f"{what} is outside of the run's directory: a link leads to "
                f"{os.path.realpath(path)}; allow it with absolute paths"
            )

    def publish(self, outputs: Iterable[str]) -> dict[str, _Status]:
        """Publish all outputs if all are there; the size and time of change of each."""
        found = {name: _look(os.path.join(self.path, name)) for name in outputs}
        missing = [name for name, status in found.items() if status is None]
        if missing:
            raise AttemptError(_missing(missing, len(found)))
        moves = [(name, self._mover(name, status)) for name, status in found.items() if status]
        return {name: self._published(name, move) for name, move in moves}

    def _mover(self, name: str, status: os.stat_result) -> _Mover:
        """How an output is brought to its place; an error if it is no file."""
        source = os.path.join(self.path, name)
        link = stat.S_ISLNK(status.st_mode)
        try:
            mode = os.stat(source).st_mode if link else status.st_mode
        except OSError:
            raise AttemptError(f"its output {name!r} is a link to nothing") from None
        if not stat.S_ISREG(mode):
            raise AttemptError(f"its output {name!r} is not a file")
        if os.path.isabs(name):
            return _stay
        if "/" in name:
            self._make_place(name)
        # a link would lead to nothing from its new place, and what it leads to is not ours
        own = not link and ("/" not in name or _is_inside(source, self.path))
        return _move if own else _copy

    def _make_place(self, name: str) -> None:
        folder = os.path.join(self.data, os.path.dirname(name))
        if not self.anywhere:
            self._check_inside(folder, f"the place of its output {name!r}")
        os.makedirs(folder, exist_ok=True)

    def _published(self, name: str, move: _Mover) -> _Status:
        target = os.path.join(self.data, name)
        try:
            move(os.path.join(self.path, name), target)
            status = os.stat(target)
        except IsADirectoryError:
            raise AttemptError(
                f"its output {name!r} cannot be published: it is a directory"
            ) from None
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
    shown = ", ".join(repr(name) for name in names[:5]) + (", ..." if len(names) > 5 else "")
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
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def remove(path: str) -> None:
    """Remove a directory tree, folders that may not be written to as well; errors are passed by."""
    shutil.rmtree(path, ignore_errors=True)
    if not os.path.lexists(path):
        return
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for folder, inner, _ in os.walk(path):
            for name in inner:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
    shutil.rmtree(path, ignore_errors=True)


def last_change(*paths: str) -> float:
    """When these files and folders, and all in them, were last changed; 0 if there are none."""
    times = [0.0]
    for path in paths:
        inner = (os.path.join(folder, f) for folder, d, files in os.walk(path) for f in d + files)
        for file in (path, *inner):
            with contextlib.suppress(OSError):
                times.append(os.lstat(file).st_mtime)
    return min(max(times), time.time())


def done_line(task: str, attempt: int, seconds: float, outputs: Mapping[str, _Status]) -> bytes:
    """A note that an attempt is done, to be written down before anybody hears of it."""
    note = {"task": task, "attempt": attempt, "seconds": seconds, "outputs": outputs}
    return b"\n" + json.dumps(note).encode()  # the line before may have been cut short


def note_done(path: str, line: bytes) -> None:
    """Add a note to a file."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def read_done(path: str) -> dict[tuple[str, int], tuple[float, dict[str, int]]]:
    """The attempts of tasks that are done: their seconds, and the sizes of their outputs."""
    done: dict[tuple[str, int], tuple[float, dict[str, int]]] = {}
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return done
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # cut short
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
