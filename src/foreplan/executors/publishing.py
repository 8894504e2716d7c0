"""The outputs of an attempt: checked in its directory, and brought to the data directory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from foreplan.executors.trees import (
    TreeError,
    bytes_in,
    copy_regular,
    make_own,
    put_tree,
    temporary_beside,
)
from foreplan.executors.undeclared import UndeclaredFiles, near_misses
from foreplan.executors.workspace import AttemptError, Scratch, Status, protect, remove
from foreplan.model.causes import MISSING_OUTPUT
from foreplan.model.filenames import find_matches, is_pattern, is_tree, matching_files
from foreplan.quantities import first_few


class _Move(NamedTuple):
    """An output that is whole, and the rename that puts it into its place."""

    name: str
    source: str  # the same as the target: the command has written it there itself
    target: str


class Publication:
    """The publication of one attempt's outputs.

    Whatever can fail comes first: all outputs are looked at, and what must be copied is copied
    beside its place. Then come only renames, so a failed attempt publishes nothing.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self.path = scratch.path
        self.data = scratch.data
        self._temporaries: list[str] = []
        self.undeclared: dict[str, Any] | None = None  # see `UndeclaredFiles.report`

    def publish(
        self,
        outputs: Iterable[str],
        note: Callable[[Mapping[str, list[str]]], None] = lambda matched: None,
        protected: Container[str] = (),
        former: Iterable[str] = (),
    ) -> dict[str, Status]:
        """Publish all outputs if all are there; return the size and time of change of each.

        `note` writes down what is about to be published, once nothing speaks against it; it gets
        the files that match patterns. Protected outputs are read-only from the moment they appear.
        `former` files matched such patterns before, and are removed if they were not made again.
        """
        outputs = list(outputs)
        matched = {name: self._matching(name) for name in outputs if is_pattern(name)}
        names = [file for name in outputs for file in matched.get(name, [name])]
        found = {name: _look(os.path.join(self.path, name)) for name in names}
        missing = [name for name, status in found.items() if status is None]
        if missing:
            raise AttemptError(
                _missing(missing, len(found)) + self._near(missing, found), MISSING_OUTPUT
            )
        for name, status in found.items():
            if status is not None:
                self._check(name, status)
        try:
            moves = [self._stage(name) for name in found]
            note(matched)
            shielded = {f for n in outputs if n in protected for f in matched.get(n, [n])}
            stale = [name for name in former if matched and name not in found]
            # before the renames: one puts a former directory where the new one was
            self.undeclared = UndeclaredFiles(self.path, found).report(self.data)
            done = self._move(moves, shielded, stale)
        finally:
            for temporary in self._temporaries:
                _remove_temporary(temporary)
        whole = {n: (sum(done[f][0] for f in files), 0) for n, files in matched.items()}
        return {name: whole.get(name) or done[name] for name in outputs}

    def _matching(self, pattern: str) -> list[str]:
        """The files that a command has made and that match a pattern of its outputs."""
        files = matching_files(self.path, pattern)
        if not files:
            problem = f"no file matches its output {pattern!r}{self._near([pattern])}"
            raise AttemptError(problem, MISSING_OUTPUT)
        if "**" not in pattern:
            found = find_matches(self.path, pattern)
            for name in (n for n in found if os.path.isdir(os.path.join(self.path, n))):
                raise AttemptError(
                    f"the folder {name!r} matches its output {pattern!r}, which is of files: "
                    f"write `{pattern}/**/*` for those below, or another pattern",
                    MISSING_OUTPUT,
                )
        return files

    def _near(self, missing: Iterable[str], known: Container[str] = ()) -> str:
        """Return the words about files that may have been meant by missing outputs."""
        near = near_misses(missing, UndeclaredFiles(self.path, known).sizes)
        return f"; it made {first_few(map(repr, near))}" if near else ""

    def _check(self, name: str, status: os.stat_result) -> None:
        """Raise an AttemptError if an output is not a file, or if its place is taken."""
        target = os.path.join(self.data, name.rstrip("/"))
        if is_tree(name):
            if os.path.isabs(name):
                raise AttemptError(f"its output {name!r} is outside of the run's directory")
            if os.path.lexists(target) and (os.path.islink(target) or not os.path.isdir(target)):
                raise AttemptError(
                    f"its output {name!r} cannot be published: what is there is no directory"
                )
            return
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            try:
                mode = os.stat(os.path.join(self.path, name)).st_mode
            except OSError:
                problem = f"its output {name!r} is a link to nothing"
                raise AttemptError(problem, MISSING_OUTPUT) from None
        if stat.S_ISDIR(mode):
            problem = f"its output {name!r} is a directory: if it is meant, write {name + '/'!r}"
            raise AttemptError(problem, MISSING_OUTPUT)
        if not stat.S_ISREG(mode):
            raise AttemptError(f"its output {name!r} is not a regular file", MISSING_OUTPUT)
        if os.path.isdir(target) and not os.path.islink(target):
            raise AttemptError(
                f"its output {name!r} cannot be published: a directory of that name is there"
            )

    def _stage(self, name: str) -> _Move:
        """Make an output ready to be renamed, on the file system of its place.

        A link would lead elsewhere from its new place, and its target may be an input or another
        output: so what it leads to is copied.
        """
        plain = name.rstrip("/")
        source = os.path.join(self.path, plain)
        target = os.path.join(self.data, plain)
        if os.path.isabs(name):
            return _Move(name, target, target)
        folder = os.path.dirname(target)
        if "/" in plain:
            if not self._scratch.anywhere:
                self._scratch.check_inside(folder, f"the place of its output {plain!r}")
            os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise AttemptError(
                f"its output {name!r} cannot be published: its folder is not writable"
            )
        is_own = "/" not in plain or os.path.realpath(os.path.dirname(source)) == os.path.join(
            os.path.realpath(self.path), os.path.dirname(plain)
        )
        try:
            if is_tree(name) and is_own:
                make_own(source)
            status = os.lstat(source)
            if is_own and not stat.S_ISLNK(status.st_mode) and _is_on(folder, status):
                return _Move(name, source, target)
            temporary = self._name_temporary(target)
            copy_regular(source, temporary, links=is_tree(name) and is_own)
        except TreeError as error:
            file = os.path.relpath(error.path, self.path)
            raise AttemptError(
                f"its output {name!r} {error.problem}: {file!r}", MISSING_OUTPUT
            ) from None
        return _Move(name, temporary, target)

    def _name_temporary(self, target: str) -> str:
        temporary = temporary_beside(target)
        self._temporaries.append(temporary)
        return temporary

    def _move(
        self, moves: Iterable[_Move], shielded: Container[str], stale: Iterable[str]
    ) -> dict[str, Status]:
        """Put outputs into their places, read-only those that are shielded; remove stale files."""
        done: dict[str, Status] = {}
        moves = list(moves)
        for move in moves:
            if move.name in shielded:
                protect(move.source)
        for name in stale:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.data, name))
        for move in moves:
            try:
                done[move.name] = _put(move)
            except OSError as error:
                problem = f"its output {move.name!r} cannot be published: {error.strerror or error}"
                if done:
                    problem += f"; already published: {first_few(map(repr, done))}"
                raise AttemptError(problem) from None
        for move in moves:  # a folder that nobody may write to cannot be moved
            if move.name in shielded and is_tree(move.name):
                protect(move.target, folders=True)
        return done


def _put(move: _Move) -> Status:
    """Rename an output to its place; return its size and time of change."""
    if is_tree(move.name):
        put_tree(move.source, move.target)
        return bytes_in(move.target), os.stat(move.target).st_mtime_ns
    if move.source != move.target:
        try:
            os.replace(move.source, move.target)
        except OSError as error:
            if error.errno != errno.EXDEV:  # two mounts of one file system
                raise
            temporary = temporary_beside(move.target)
            try:
                copy_regular(move.source, temporary)
                os.replace(temporary, move.target)
            finally:
                _remove_temporary(temporary)
    status = os.stat(move.target)
    return status.st_size, status.st_mtime_ns


def _is_on(folder: str, status: os.stat_result) -> bool:
    """Return whether a file is on the file system of a folder."""
    return os.stat(folder).st_dev == status.st_dev


def _remove_temporary(path: str) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            remove(path)
        else:
            os.unlink(path)


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
