"""The lock of a run: one process drives it, and the system lets go when that process dies."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import socket
import time
from datetime import datetime
from types import TracebackType
from typing import Self

from weft.journal.durable import FILE_MODE, JournalError, reason, write_all
from weft.journal.places import RunHome

_TRIES = 100


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
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            descriptor = os.open(self.home.lock, flags, FILE_MODE)
        except OSError as error:
            raise _cannot_lock(self.home, error) from None
        try:
            if not _take(descriptor):
                raise JournalError(_who(self.home, descriptor))
            _sign(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise _cannot_lock(self.home, error) from None
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


os.register_at_fork(after_in_child=_after_fork)


def is_driven(home: RunHome) -> bool:
    """Whether some process drives the run now."""
    try:
        descriptor = os.open(home.lock, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _cannot_lock(home, error) from None
    try:
        return not _try(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        raise _cannot_lock(home, error) from None
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    """Get the lock alone; those who only look (`is_driven`) share it for a moment."""
    for _ in range(_TRIES):
        if _try(descriptor, fcntl.LOCK_EX):
            return True
        if not _try(descriptor, fcntl.LOCK_SH):
            return False  # somebody has it alone
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(random.uniform(0.001, 0.01))
    return False


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(descriptor: int) -> None:
    """Write who holds the lock, for others' messages; a full disk does not stop the run here."""
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    text = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since})
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        write_all(descriptor, text.encode() + b"\n")


def _who(home: RunHome, descriptor: int) -> str:
    try:
        found = json.loads(os.pread(descriptor, 4096, 0))
        pid, host = int(found["pid"]), str(found["host"])
        who = f"process {pid} on host {host} since {found['since']}"
    except (ValueError, TypeError, KeyError):  # it has not signed yet, or could not
        return f"run {home.id} is being driven by another process: wait for its end"
    return (
        f"run {home.id} is being driven by {who}: wait for its end, or stop it with "
        f"`kill -INT {pid}` there; then `weft resume {home.id}` goes on"
    )


def _cannot_lock(home: RunHome, error: OSError) -> JournalError:
    return JournalError(
        f"{home.lock}: cannot lock the run: {reason(error)}; two processes must not drive one "
        "run, so the data directory must be writable and its file system know locks"
    )
