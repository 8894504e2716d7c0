"""The outputs of an attempt: checked in its directory, and brought to the data directory."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress

from foreplan.executors.trees import bytes_in, make_own, put_tree
from foreplan.executors.workspace import AttemptError, Scratch, Status, is_inside, protect
from foreplan.model.causes import MISSING_OUTPUT
from foreplan.model.filenames import is_pattern, is_tree, matching_files
from foreplan.quantities import first_few

_Mover = Callable[[str, str], None]


class Publication:
    """The publication of one attempt's outputs."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.path = scratch.path
        self.data = scratch.data
        self.anywhere = scratch.anywhere

    def publish(
        self,
        outputs: Iterable[str],
        note: Callable[[Mapping[str, list[str]]], None] = lambda matched: None,
        protected: Container[str] = (),
        former: Iterable[str] = (),
    ) -> dict[str, Status]:
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
        own = not link and ("/" not in name or is_inside(source, self.path))
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
            self._scratch.check_inside(folder, f"the place of its output {name!r}")
        os.makedirs(folder, exist_ok=True)

    def _publish_one(self, name: str, move: _Mover) -> Status:
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
