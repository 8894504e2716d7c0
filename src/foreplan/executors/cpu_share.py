"""What share of the processor time that processes want they get, as the system's /proc tells.

Where there is none, nothing is known.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass

INTERVAL = 1.0  # seconds between measurements; what runs for less is not measured
LEAST = 0.1  # a smaller change of availability is not told
_MOST = 256  # processes of a task that are looked at
_STOPPED = (b"T", b"t")
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class CpuTimes:
    """For each thread, the nanoseconds that it ran and that it waited to run, since it began."""

    threads: dict[int, tuple[int, int]]
    at: float  # seconds
    is_stopped: bool = False  # some process is, by a signal or a debugger
    memory: int = 0  # bytes that all of them have; what several share is counted once

    def since(self, before: CpuTimes) -> tuple[int, int]:
        """The nanoseconds that all have run and waited since then."""
        ran = waited = 0
        for thread, (run, wait) in self.threads.items():
            old = before.threads.get(thread, (0, 0))
            ran, waited = ran + run - old[0], waited + wait - old[1]
        return ran, waited


def differs(new: float, old: float) -> bool:
    """Whether a change of availability matters: by its size, or because all stops or goes on."""
    return not abs(new - old) <= LEAST or (new == 0) != (old == 0)


def cpu_share(before: CpuTimes, after: CpuTimes, cores: float = math.inf) -> float:
    """The share of the time wanted that was given; 0 if all is stopped.

    What sleeps loses nothing: with little time wanted, little counts that it was not given at once.
    What is wanted beyond the `cores` that were asked for, if they were, is not missing either.
    """
    ran, waited = after.since(before)
    if after.is_stopped and ran <= 0:
        return 0.0
    seconds = after.at - before.at
    wanted = min(ran + waited, cores * seconds * 1e9)  # nanoseconds
    if seconds <= 0 or wanted <= 0:
        return 1.0
    missing = max(0, min(waited, wanted - ran))
    return 1.0 - missing / wanted * min(1.0, wanted / 1e9 / seconds)


def wanted_cores(before: CpuTimes, after: CpuTimes, cores: int = 1) -> float:
    """How many of its cores it would have kept busy, at least one; 0 if hardly any time of one."""
    seconds = after.at - before.at
    wanted = sum(after.since(before)) / 1e9
    return min(cores, max(1.0, wanted / seconds)) if wanted > 0.5 * seconds else 0.0


def times_of_tree(pid: int | None) -> CpuTimes | None:
    """Of a process and all that it has begun, which still run; None if nothing can be read."""
    threads: dict[int, tuple[int, int]] = {}
    own = shared = 0
    is_stopped, left, seen = False, [] if pid is None else [pid], 0
    while left and seen < _MOST:
        process, seen = left.pop(), seen + 1
        is_stopped |= _state(process) in _STOPPED
        pages = _numbers(f"/proc/{process}/statm")
        if len(pages) > 2:
            own, shared = own + pages[1] - pages[2], max(shared, pages[2])
        for thread in _threads(process):
            if (times := _times(f"/proc/{process}/task/{thread}/schedstat")) is not None:
                threads[thread] = times
            left += _numbers(f"/proc/{process}/task/{thread}/children")
    if not threads:
        return None
    return CpuTimes(threads, time.monotonic(), is_stopped, (own + shared) * _PAGE)


def times_of_thread(thread: int) -> CpuTimes | None:
    """Of a thread of this process."""
    times = _times(f"/proc/self/task/{thread}/schedstat")
    return None if times is None else CpuTimes({thread: times}, time.monotonic())


def _threads(process: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]
    except (OSError, ValueError):
        return []


def _times(path: str) -> tuple[int, int] | None:
    numbers = _numbers(path)
    return (numbers[0], numbers[1]) if len(numbers) > 1 else None


def _numbers(path: str) -> list[int]:
    try:
        return [int(word) for word in _read(path).split()]
    except (OSError, ValueError):
        return []


def _state(process: int) -> bytes:
    try:
        return _read(f"/proc/{process}/stat").rpartition(b") ")[2][:1]
    except OSError:
        return b""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)
