"""Processes and their groups: waiting for them, ending them, finding those left behind."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from foreplan.durable import read_file
from foreplan.executors.kept import ENDING

GRACE = 2.0  # seconds between the request to end and the end
HURRY = 0.2  # the same where every second costs
OF_RUN = "FOREPLAN_RUN"  # every process of a run has it, so that a later one finds what was left
OF_ATTEMPT = "FOREPLAN_ATTEMPT"
LOCK = "lock"  # in a run's home: held and signed by the process that drives it
_LONGEST_WAIT = 1e6  # seconds; poll takes an int of milliseconds
_PATIENCE = 5.0  # seconds for a process to end that was killed
_LOADS_IN = 0.5  # seconds for a new process to load its program, on a busy machine
_NEW = 5.0  # seconds since its start
_ROUNDS = 10
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


class LockSignature(NamedTuple):
    """The process that drives a run, as it has signed the run's lock file."""

    pid: int
    host: str
    since: str
    started: int = 0  # see `start_time`
    # the home of the run that it is a task of; empty: of none, as a run that was detached
    part_of: str = ""

    @staticmethod
    def this_process() -> LockSignature:
        """Return what this process signs with."""
        since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        pid, outer = os.getpid(), os.environ.get(OF_RUN, "")
        return LockSignature(pid, socket.gethostname(), since, start_time(pid), outer)

    @staticmethod
    def read(content: bytes) -> LockSignature | None:
        """Return what a lock file says; None if it says nothing, or was written in part."""
        try:
            return LockSignature(**json.loads(content))
        except (ValueError, TypeError):
            return None

    def sign(self) -> bytes:
        """Return the line that a lock file has."""
        return json.dumps(self._asdict()).encode() + b"\n"

    @property
    def is_here(self) -> bool:
        """Return whether the process is, or was, one of this host."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Return whether the process still runs here, and its number is not another's by now."""
        return self.is_here and self.started == start_time(self.pid) > 0

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host} since {self.since}"


class LeftBehind(NamedTuple):
    """A process of a run whose driver is dead."""

    pid: int
    started: int  # see `start_time`: with the number it names one process for good
    home: str  # of the run
    attempt: int  # -1: not known


def start_time(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if there is none, or no /proc."""
    try:
        return int(_state(pid)[19])
    except (OSError, ValueError, IndexError):
        return 0


def kill_left_behind(home: str) -> list[int]:
    """Kill all processes of a run whose driver is dead; return the attempt of each, -1 if unknown.

    Where there is no /proc, none is found.
    """
    return [process.attempt for process in end_left_behind([home])]


def end_left_behind(homes: Iterable[str]) -> list[LeftBehind]:
    """Kill all processes that dead runs have left behind; return those that were killed.

    A run that a task of a dead run has started, and that still runs, is part of that task, unless
    it was detached: its driver is killed, and then what that leaves behind.
    """
    dead = {home: home for home in homes}  # with runs that their tasks have started
    ended = list[LeftBehind]()
    for _ in range(_ROUNDS):  # what is killed may just have started another
        found = _find(dead)
        if not found:
            break
        for process in found:
            inner = [home for home, _ in _driven_by(process.pid)]
            if _kill(process, dead):
                ended.append(process)
                dead |= dict.fromkeys(inner, process.home)
    return ended


def find_left_behind(homes: Iterable[str]) -> list[LeftBehind]:
    """Return the processes that dead runs have left behind; none where there is no /proc."""
    return _find({home: home for home in homes})


def _find(dead: Mapping[str, str]) -> list[LeftBehind]:
    spared = _ancestors()
    found = (_examine(pid, dead) for pid in _processes() if pid not in spared) if dead else ()
    return [process for process in found if process is not None]


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
            parent = int(_state(parent)[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def _state(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name, which may have spaces: state, parent, ..."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


def _examine(pid: int, dead: Mapping[str, str]) -> LeftBehind | None:
    """Return a process if one of these dead runs has left it behind."""
    try:
        started = start_time(pid)
        content = _first_environment(pid, started)
        variables = dict(v.partition(b"=")[::2] for v in content.split(b"\0"))
        mark = os.fsdecode(variables.get(OF_RUN.encode(), b""))
        home = _run_of(pid, mark, dead)
        if home is None or any(not driver.part_of for _, driver in _driven_by(pid)):
            return None
    except OSError:  # it has ended, or is another user's
        return None
    number = variables.get(OF_ATTEMPT.encode(), b"") if mark == home else b""
    return LeftBehind(pid, started, home, int(number) if number.isdigit() else -1)


def _first_environment(pid: int, started: int) -> bytes:
    """Return the environment that a process began with; wait a moment for that of a new one.

    While a program is being loaded, its process shows none. A kernel thread has no program.
    """
    limit = time.monotonic() + _LOADS_IN
    ticks = os.sysconf("SC_CLK_TCK")
    while True:
        content = Path(f"/proc/{pid}/environ").read_bytes()
        is_new = started > (time.clock_gettime(time.CLOCK_BOOTTIME) - _NEW) * ticks
        if content or not is_new or time.monotonic() > limit:
            return content
        os.readlink(f"/proc/{pid}/exe")
        time.sleep(0.001)


def _run_of(pid: int, mark: str, dead: Mapping[str, str]) -> str | None:
    """Return the dead run that a process with this mark is of: by the mark, or by its directory.

    A process without a mark counts if it has no terminal: in others somebody may look around.
    """
    if mark in dead:
        return dead[mark]
    if mark:  # of a run in the directory of an attempt
        inside = (dead[home] for home in dead if mark.startswith(_attempts(home)))
        home = next(inside, None)
        return None if home is None or _is_driven(mark) else home
    place = os.readlink(f"/proc/{pid}/cwd")
    for home in dead:
        within = place.removeprefix(_attempts(home))
        if within != place and not within.partition("/")[0].endswith(ENDING):
            return dead[home] if int(_state(pid)[4]) == 0 else None
    return None


def _attempts(home: str) -> str:
    return os.path.join(home, "attempts", "")


def _is_driven(home: str) -> bool:
    """Return whether a process of this host drives a run, by what it has signed."""
    try:
        driver = LockSignature.read(read_file(os.path.join(home, LOCK)))
    except OSError:
        return False
    return driver is not None and driver.is_alive


def _driven_by(pid: int) -> list[tuple[str, LockSignature]]:
    """The homes of the runs that a process drives: it has their lock files open, and signed."""
    found = list[tuple[str, LockSignature]]()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # it was just closed
                home, file = os.path.split(os.readlink(f"/proc/{pid}/fd/{name}"))
                if file == LOCK and "/.foreplan/" in home:
                    driver = LockSignature.read(read_file(os.path.join(home, file)))
                    if driver is not None and driver.pid == pid:
                        found.append((home, driver))
    return found


def _kill(process: LeftBehind, dead: Mapping[str, str]) -> bool:
    """Kill a process; False if it has ended before, or cannot be killed."""
    fd = exit_descriptor(process.pid)  # from here on its number cannot become another's unseen
    try:
        if _examine(process.pid, dead) != process:
            return False
        if fd is not None:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            return bool(wait_readable((fd,), _PATIENCE))
        os.kill(process.pid, signal.SIGKILL)
        return _wait_for_end(process, dead)
    except OSError:
        return False
    finally:
        if fd is not None:
            os.close(fd)


def _wait_for_end(process: LeftBehind, dead: Mapping[str, str]) -> bool:
    """Wait without a descriptor: a process that has ended has no environment any more."""
    limit = time.monotonic() + _PATIENCE
    while _examine(process.pid, dead) == process:
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True
