"""The lock of a run: one process drives it, and the system lets go when that process dies.

A lock is two: `flock`, and a lock on the file's bytes that belongs to the open file as well (OFD).
Network file systems take one or the other to other hosts, most take both. While a run is driven it
has claims on its outputs: of the runs that are under way, only one makes a file. What a killed run
has claimed is free at once.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from foreplan.durable import (
    IrregularFileError,
    open_file,
    read_file,
    reason,
    replace_file,
    write_all,
)
from foreplan.errors import InputError
from foreplan.executors.processes import LOCK, LockSignature
from foreplan.model.filenames import Holders
from foreplan.runs.home import CAN_RUN, RunHome, check_private, check_system
from foreplan.runs.journal import JournalError, resume_words

if CAN_RUN:
    import fcntl

_TRIES = 100
_LIMIT = 60.0  # seconds that a lock which is held for moments is waited for
_UNKNOWN = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)  # no such locks here


class RunLock:
    """Held while a process drives a run; a context manager.

    Children do not inherit it: it must be free as soon as this process is dead.
    """

    def __init__(self, home: RunHome) -> None:
        self.home = home
        self.former: LockSignature | None = None  # who was killed while it held the lock
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or say who has it."""
        if self._descriptor is not None:
            raise ValueError("this process holds the lock already")
        with _explained(self.home.lock):
            descriptor = _open(self.home.lock)
            try:
                if not _take(descriptor):
                    raise JournalError(_refusal(self.home, descriptor))
                self.former = _signature(descriptor)
                _sign(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Let others drive the run. The file stays: removing it could give two locks."""
        if self._descriptor is None:
            return
        _held.discard(self)
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)
        self._descriptor = None

    def _forget(self) -> None:
        """In a forked child: let go of the file, but not of the parent's lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


_held: set[RunLock] = set()


def _after_fork() -> None:
    # a child that only forks would keep the lock for as long as it lives
    for lock in _held:
        lock._forget()
    _held.clear()


if CAN_RUN:
    os.register_at_fork(after_in_child=_after_fork)


def is_driven(home: RunHome) -> bool:
    """Whether some process drives the run now."""
    check_system()
    with _explained(home.lock):
        try:
            descriptor = open_file(home.lock)
        except FileNotFoundError:
            return False
        try:
            return not _try(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)


def signed_runs(top: Path) -> list[RunHome]:
    """The runs of a `.foreplan` that are driven, or whose drivers were killed.

    Whoever ends a run takes its signature out of its lock, so no journal need be read.
    """
    found = list[RunHome]()
    for name in _names_of_homes(top):
        home = os.path.join(top, "runs", name)
        with suppress(OSError):
            state = os.lstat(os.path.join(home, LOCK))
            if state.st_size and stat.S_ISREG(state.st_mode):
                found.append(RunHome(Path(home)))
    return found


class DeadRun(NamedTuple):
    """A run whose driver was killed, and that driver, if its signature can be read."""

    home: RunHome
    driver: LockSignature | None


@contextlib.contextmanager
def hold_dead_runs(homes: Iterable[RunHome]) -> Iterator[list[DeadRun]]:
    """Hold the locks of those runs that nobody drives; nobody resumes them meanwhile.

    Afterwards their locks are not signed any more, unless an error is raised.
    """
    held = list[int]()
    dead = list[DeadRun]()
    try:
        for home in homes:
            with _explained(home.lock):
                descriptor = open_file(home.lock, os.O_RDWR | os.O_NOFOLLOW)
            held.append(descriptor)
            if _take(descriptor) and os.fstat(descriptor).st_size:
                dead.append(DeadRun(home, _signature(descriptor)))
            else:
                os.close(held.pop())
        yield dead
        for descriptor in held:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
    finally:
        for descriptor in held:
            with suppress(OSError):
                _let_go(descriptor)  # closing does not, if somebody has forked meanwhile
            os.close(descriptor)


@contextlib.contextmanager
def hold_alone(path: Path) -> Iterator[None]:
    """Hold a lock for a moment, once those who hold it have had theirs."""
    with _explained(path):
        descriptor = _open(path)
    try:
        with _explained(path):
            _wait(path, descriptor)
        try:
            yield
        finally:
            _let_go(descriptor)  # closing does not, if somebody has forked meanwhile
    finally:
        os.close(descriptor)


def _wait(path: Path, descriptor: int) -> None:
    limit = time.monotonic() + _LIMIT
    while not _try(descriptor, fcntl.LOCK_EX):
        if time.monotonic() > limit:
            raise JournalError(
                f"{path}: another process has held this lock for {_LIMIT:g} s, which should "
                "take it milliseconds: is it stopped? End it, and try again"
            )
        time.sleep(random.uniform(0.001, 0.01))


def _open(path: Path) -> int:
    check_system()
    return open_file(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)


def _take(descriptor: int) -> bool:
    """Get the lock alone; those who only look (`is_driven`) share it for a moment."""
    for _ in range(_TRIES):
        if _try(descriptor, fcntl.LOCK_EX):
            return True
        if not _try(descriptor, fcntl.LOCK_SH):
            return False  # somebody has it alone
        _let_go(descriptor)
        time.sleep(random.uniform(0.001, 0.01))
    return False


def _try(descriptor: int, kind: int) -> bool:
    """Take both locks, if both are free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        _lock_bytes(descriptor, fcntl.F_RDLCK if kind == fcntl.LOCK_SH else fcntl.F_WRLCK)
    except BlockingIOError:
        _let_go(descriptor)
        return False
    return True


def _let_go(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    _lock_bytes(descriptor, fcntl.F_UNLCK)


def _lock_bytes(descriptor: int, kind: int) -> None:
    """Lock all bytes of a file, where the system knows locks that belong to the open file."""
    if sys.platform == "linux":
        whole = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)  # struct flock
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, whole)
        except OSError as error:
            if error.errno not in _UNKNOWN:
                raise


def _sign(descriptor: int) -> None:
    """Write who holds the lock: while it is signed but free, that process was killed."""
    os.ftruncate(descriptor, 0)
    write_all(descriptor, LockSignature.this_process().sign())


def driver(home: RunHome) -> LockSignature | None:
    """The process that drives a run, or was killed while it did; None if nobody has signed."""
    try:
        descriptor = open_file(home.lock)
    except OSError:
        return None
    try:
        return _signature(descriptor)
    finally:
        os.close(descriptor)


def _signature(descriptor: int) -> LockSignature | None:
    try:
        return LockSignature.read(os.pread(descriptor, 1 << 16, 0))
    except OSError:
        return None


def _refusal(home: RunHome, descriptor: int) -> str:
    found = _signature(descriptor)
    if found is None:
        return f"run {home.id} is being driven by another process: wait for its end"
    return (
        f"run {home.id} is being driven by {found}: wait for its end, or stop it with "
        f"`kill -INT {found.pid}` there; then {resume_words(home.journal)} resumes it"
    )


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what it means that the system refuses a lock."""
    try:
        yield
    except OSError as error:
        raise JournalError(
            f"{path}: cannot lock the run: {reason(error)}; two processes must not drive one "
            "run, so the data directory must be writable and its file system know locks"
        ) from None


def claim(home: RunHome, outputs: Iterable[str]) -> None:
    """Claim the outputs of a run that this process drives; refuse what another run is making."""
    files = _places(os.path.realpath(home.data), outputs)
    if not files:
        return
    top = home.path.parents[1]
    with hold_alone(top / "claims.lock"):  # of two that begin at once, one is first
        theirs = dict(_claims_of(top, home))
        _check_apart(theirs, files)
        known = {other.id: claimed for other, claimed in theirs.items()}
        _write_claims(top, {**known, home.id: sorted(files)})
    # a directory above or below has another lock: there, of two at once both may be refused
    for other_top in _around(home, files):
        _check_apart(dict(_claims_of(other_top, home)), files)


def release(home: RunHome) -> None:
    """Forget the claims of a run that did not begin."""
    top = home.path.parents[1]
    if not (top / "claims.json").exists():
        return
    with hold_alone(top / "claims.lock"), suppress(OSError, ValueError, AttributeError):
        content: dict[str, Any] = json.loads(read_file(top / "claims.json"))
        if content.pop(home.id, None) is not None:
            _write_claims(top, content)


def _write_claims(top: Path, content: dict[str, list[str]]) -> None:
    path = top / "claims.json"
    try:
        replace_file(path, json.dumps(content).encode())
    except OSError as error:
        raise JournalError(
            f"{path}: cannot write which files the run makes: {reason(error)}"
        ) from None


def _places(data: str, outputs: Iterable[str]) -> dict[str, str]:
    """Where outputs will be, whatever links lead there, and what they are called."""
    folders: dict[str, str] = {}
    places = {}
    for name in outputs:
        if os.path.isabs(name):  # which the command opens itself, through a link too
            places[os.path.realpath(name)] = name
            continue
        folder, base = os.path.split(name)
        if folder not in folders:
            folders[folder] = os.path.realpath(os.path.join(data, folder))
        places[os.path.join(folders[folder], base)] = name
    return places


def _around(home: RunHome, files: Iterable[str]) -> Iterator[Path]:
    """Where runs of this user in other directories may have claimed one of these files."""
    folders = {Path(folder) for folder in {os.path.dirname(file) for file in files}}
    around = {place for folder in folders for place in (folder, *folder.parents)}
    around.discard(Path(os.path.realpath(home.data)))
    for place in sorted(around):
        with suppress(OSError, InputError):  # there is none, or it is not ours alone
            check_private(place / ".foreplan")
            yield place / ".foreplan"


def _claims_of(top: Path, home: RunHome) -> Iterator[tuple[RunHome, list[str]]]:
    """The other runs under way that have claims in a `.foreplan`, and what they claim.

    Claims that cannot be read, as a power failure may leave them, are none if no run is under way.
    """
    path = top / "claims.json"
    try:
        content: dict[str, Any] = json.loads(read_file(path))
        runs = [(RunHome(top / "runs" / name), list(files)) for name, files in content.items()]
    except FileNotFoundError:
        return
    except IrregularFileError as error:
        raise InputError(reason(error)) from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        live = next((r for r in _homes(top) if r != home and is_driven(r)), None)
        if live is None:
            return
        found = driver(live)
        who = "" if found is None else f" ({found})"
        raise InputError(
            f"it cannot be read ({error}), so nobody knows which files run {live.id}{who} makes: "
            "wait for its end",
            source=str(path),
        ) from None
    yield from ((other, files) for other, files in runs if other != home and is_driven(other))


def _homes(top: Path) -> list[RunHome]:
    """Every directory that may be a run's, whether or not it has begun its journal."""
    return [RunHome(top / "runs" / name) for name in _names_of_homes(top)]


def _names_of_homes(top: Path) -> list[str]:
    try:
        with os.scandir(top / "runs") as listing:
            return sorted(entry.name for entry in listing if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _check_apart(theirs: dict[RunHome, list[str]], files: dict[str, str]) -> None:
    ours = Holders(files)  # directories and patterns have files of others
    for other, claimed in theirs.items():
        both = [files[file] for file in claimed if file in files]
        for file in claimed if ours else ():
            both += [files[many] for many in ours.of(file.rstrip("/"))]
        if their := Holders(claimed):
            both += [name for file, name in files.items() if any(their.of(file.rstrip("/")))]
        both = list(dict.fromkeys(both))
        if both:
            raise InputError(_making(other, both))


def _making(other: RunHome, both: list[str]) -> str:
    found, who, how = driver(other), "", ""
    if found is not None:
        who, how = f" ({found})", f", or stop it with `kill -INT {found.pid}` there"
    more = f" and {len(both) - 1} more of these outputs" if both[1:] else ""
    return (
        f"run {other.id}{who} is making {both[0]!r}{more} now: wait for its end{how}; "
        "only runs with other outputs go side by side"
    )
