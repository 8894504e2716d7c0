"""Processes and their groups: waiting for them, ending them, finding those left behind."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from foreplan.executors.kept import ENDING

GRACE = 2.0  # seconds between the request to end and the end
HURRY = 0.2  # the same where every second costs
OF_RUN = "FOREPLAN_RUN"  # every process of a run has it, so that a later one finds what was left
OF_ATTEMPT = "FOREPLAN_ATTEMPT"
_LONGEST_WAIT = 1e6  # seconds; poll takes an int of milliseconds
_WAITID = getattr(os, "waitid", None)  # not on every system


@dataclass(eq=False)
class Stop:
    """Lets another thread end the group of a process that a thread waits for."""

    asked: bool = False
    group: int | None = None  # that can be ended now
    memory: int = 0  # bytes that its processes had, at most, whenever somebody looked
    _grace: float = GRACE
    _timer: threading.Timer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, grace: float = GRACE) -> None:
        """Ask for the end, gently at first; nothing happens if it has already come."""
        with self._lock:
            self.asked, self._grace = True, grace
            self._begin()

    def note_memory(self, seen: int) -> None:
        """Its processes have so much memory now."""
        self.memory = max(self.memory, seen)

    def _begin(self) -> None:
        if self.group is not None and self._timer is None:
            signal_group(self.group, signal.SIGTERM)
            self._timer = threading.Timer(self._grace, self._finish)
            self._timer.daemon = True
            self._timer.start()

    def _finish(self) -> None:
        with self._lock:
            if self.group is not None:
                signal_group(self.group, signal.SIGKILL)

    @contextlib.contextmanager
    def aim_at(self, group: int) -> Iterator[None]:
        """Let the group be ended while this lasts; its leader must not be reaped in it."""
        with self._lock:
            self.group = group
            if self.asked:
                self._begin()
        try:
            yield
        finally:
            with self._lock:
                self.group = None
                timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
                timer.join()


def signal_group(group: int, number: int) -> None:
    """Signal a group, of which nobody may be left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def wait_exit(process: subprocess.Popen[bytes], timeout: float | None) -> bool:
    """Wait for a process's exit without reaping it, so that its group's number stays its own."""
    if timeout is None:
        if _WAITID is None:
            process.wait()
        else:
            _WAITID(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return True
    fd = exit_descriptor(process.pid)
    if fd is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        return process.returncode is not None
    try:
        return bool(wait_readable((fd,), timeout))
    finally:
        os.close(fd)


def exit_descriptor(pid: int) -> int | None:
    """What can be read once a process has exited; None where there is no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def wait_readable(descriptors: Sequence[int], timeout: float | None) -> list[int]:
    """Wait until some of these can be read, and say which; none if the time is up."""
    limit = math.inf if timeout is None else time.monotonic() + timeout
    poll = select.poll()
    for fd in descriptors:
        poll.register(fd, select.POLLIN)
    while True:
        left = limit - time.monotonic()
        ready = poll.poll(math.ceil(1000 * max(0.0, min(left, _LONGEST_WAIT))))
        if ready or left <= 0:
            return [fd for fd, _ in ready]


def end_group(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a process and all of its group, gently if there is a grace; it is not reaped."""
    if grace > 0:
        signal_group(process.pid, signal.SIGTERM)
        wait_exit(process, grace)
    signal_group(process.pid, signal.SIGKILL)


def kill_left_behind(home: str) -> list[int]:
    """Kill all processes of a run whose coordinator is gone; of each, the attempt it was part of.

    One that says none is of -1.

    They are known by their environment or by their directory, which cannot go stale as a number
    that was written down can. Where there is no /proc, none is found.
    """
    killed = list[int]()
    spared = _ancestors()
    for _ in range(10):  # what is killed may just have started another
        found = [pid for pid in _processes() if pid not in spared and _belongs(pid, home)]
        if not found:
            break
        attempts = [(pid, _attempt_of(pid)) for pid in found]
        killed += [attempt for pid, attempt in attempts if _kill(pid, home)]
    return killed


def has_left_behind(home: str) -> bool:
    """Whether processes of a run still run, though nobody drives it; False where nobody can say."""
    spared = _ancestors()
    return any(pid not in spared and _belongs(pid, home) for pid in _processes())


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _ancestors() -> set[int]:
    """This process and those above it, which may be part of the run by the environment only."""
    found = {os.getpid()}
    parent = os.getppid()
    while parent > 0 and parent not in found:
        found.add(parent)
        try:
            with open(f"/proc/{parent}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def _environment(pid: int) -> dict[bytes, bytes]:
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(v.partition(b"=")[::2] for v in file.read().split(b"\0"))


def _attempt_of(pid: int) -> int:
    try:
        return int(_environment(pid).get(OF_ATTEMPT.encode(), b"-1"))
    except (OSError, ValueError):
        return -1


def _belongs(pid: int, home: str) -> bool:
    try:
        if _environment(pid).get(OF_RUN.encode()) == os.fsencode(home):
            return True
        attempts = os.path.join(home, "attempts", "")
        within = os.readlink(f"/proc/{pid}/cwd").removeprefix(attempts)
        # in a directory that was kept somebody may look around
        return not (within.startswith("/") or within.partition("/")[0].endswith(ENDING))
    except OSError:  # gone, a zombie, or another user's
        return False


def _kill(pid: int, home: str) -> bool:
    fd = exit_descriptor(pid)
    if fd is None:
        return False
    try:
        if not _belongs(pid, home):  # the number is another's by now
            return False
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        return bool(wait_readable((fd,), 5.0))
    except OSError:
        return False
    finally:
        os.close(fd)
