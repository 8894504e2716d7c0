"""The lock of a run: one process drives it, and the system lets go when that process dies.

A lock is two: `flock`, and a lock on the file's bytes that belongs to the open file as well (OFD).
Network file systems take one or the other to other hosts, most take both.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from weft.journal.durable import FILE_MODE, JournalError, reason, write_all
from weft.journal.places import RunHome
from weft.journal.system import CAN_RUN, check_system

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
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or say who has it."""
        if self._descriptor is not None:
            raise ValueError("this process holds the lock already")
        try:
            descriptor = _open(self.home.lock)
        except OSError as error:
            raise _cannot_lock(self.home.lock, error) from None
        try:
            if not _take(descriptor):
                raise JournalError(_refusal(self.home, descriptor))
            _sign(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _cannot_lock(self.home.lock, error) from None
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot_lock(home.lock, error) from None
    try:
        return not _try(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        raise _cannot_lock(home.lock, error) from None
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock for a moment, once those who hold it have had theirs."""
    try:
        descriptor = _open(path)
    except OSError as error:
        raise _cannot_lock(path, error) from None
    try:
        _wait(path, descriptor)
        try:
            yield
        finally:
            _let_go(descriptor)  # closing does not, if somebody has forked meanwhile
    finally:
        os.close(descriptor)


def _wait(path: Path, descriptor: int) -> None:
    limit = time.monotonic() + _LIMIT
    try:
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > limit:
                raise JournalError(
                    f"{path}: another process has held this lock for {_LIMIT:g} s, which should "
                    "take it milliseconds: is it stopped? End it, and try again"
                )
            time.sleep(random.uniform(0.001, 0.01))
    except OSError as error:
        raise _cannot_lock(path, error) from None


def _open(path: Path) -> int:
    check_system()
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)


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
    """Write who holds the lock, for others' messages; a full disk does not stop the run here."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since})
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        write_all(descriptor, text.encode() + b"\n")


def driver(home: RunHome) -> tuple[int, str] | None:
    """The process that drives a run, and it in words; None if it has not signed, or could not."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _signature(descriptor)
    finally:
        os.close(descriptor)


def _signature(descriptor: int) -> tuple[int, str] | None:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
        pid, host = int(found["pid"]), str(found["host"])
        return pid, f"process {pid} on host {host} since {found['since']}"
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _refusal(home: RunHome, descriptor: int) -> str:
    found = _signature(descriptor)
    if found is None:
        return f"run {home.id} is being driven by another process: wait for its end"
    pid, who = found
    return (
        f"run {home.id} is being driven by {who}: wait for its end, or stop it with "
        f"`kill -INT {pid}` there; then `weft resume {home.id}` goes on"
    )


def _cannot_lock(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"{path}: cannot lock the run: {reason(error)}; two processes must not drive one "
        "run, so the data directory must be writable and its file system know locks"
    )
