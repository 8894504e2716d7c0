"""What an attempt has used: memory, processor time, bytes read and written, as the system tells.

What it does not tell is left out. Workers of functions load this, so it needs nothing else.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

try:
    import resource
except ImportError:  # not on every system
    resource = None  # type: ignore[assignment]

MEMORY, CPU, READ, WRITTEN = "memory", "cpu", "read", "written"
# bytes copied, and seconds, so that a function has arguments of its own and its result is kept
COPIED, COPYING = "copied", "copying"
AT_MOST = "at_most"  # the memory is not known better than that: it is no more
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
_HIGH_WATER = b"VmHWM:"
_OOM_KILLS = b"\noom_kill "
_RESET_HIGH_WATER = b"5"  # see proc(5), clear_refs

Used = dict[str, Any]


def reap(process: subprocess.Popen[bytes], seen: int = 0) -> Used:
    """Wait for a process, and say what it and all that it has waited for have used.

    `seen` is the memory that its whole tree had when somebody looked. The system's own figure is
    of the largest process, and never less than what this process had when it began that one.
    """
    used = _bytes(f"/proc/{process.pid}/io")  # of a process that has exited, too, until reaped
    if process.returncode is not None or not hasattr(os, "wait4"):
        process.wait()
        return used | ({MEMORY: seen} if seen else {})
    _, status, spent = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    used[CPU] = round(spent.ru_utime + spent.ru_stime, 6)
    return used | _known_memory(spent.ru_maxrss * _RSS_UNIT, seen)


def _known_memory(peak: int, seen: int) -> Used:
    """The memory of a child, whose `peak` says nothing below what this process had."""
    if seen >= peak or peak > _inherited():
        return {MEMORY: max(peak, seen)}
    return {MEMORY: seen} if seen else {MEMORY: peak, AT_MOST: True}


def _inherited() -> int:
    """What a process that is begun now starts with: the most memory that this one had.

    The figure that costs nothing is in turn inherited, as long as this process has had less.
    """
    peak = _own_peak()
    if not _KNOWN_AS_OWN and (real := _high_water()):
        if real < peak - _INEXACT:
            return real
        _KNOWN_AS_OWN.append(True)
    return peak


_KNOWN_AS_OWN = list[bool]()  # not empty: this process has had more than it inherited
_INEXACT = 4 << 20  # bytes by which the system's figures differ, as they are gathered by thread


def _own_peak() -> int:
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


class UsageMeter:
    """Measures what this process, its threads and what it waits for use while a call lasts."""

    def __init__(self) -> None:
        self._reset = _reset_high_water()
        self._before = 0 if self._reset else _own_peak()
        self._cpu, self._children = _spent()
        self._io = _bytes("/proc/self/io")

    def read(self) -> Used:
        """What was used since."""
        cpu, children = _spent()
        used = _difference(self._io, _bytes("/proc/self/io"))
        if cpu is not None and self._cpu is not None:
            used[CPU] = round(cpu - self._cpu, 6)
        if self._reset and (peak := _high_water()):
            used[MEMORY] = peak
        elif (peak := _own_peak()) > 0:
            used |= {MEMORY: peak} | ({} if peak > self._before else {AT_MOST: True})
        if children > self._children:  # one of those that have ended since is the largest ever
            used[MEMORY] = max(used.get(MEMORY, 0), children)
        return used


def _spent() -> tuple[float | None, int]:
    """Seconds of this process and those it has waited for; the memory of the largest of these."""
    if resource is None:
        return time.process_time(), 0
    own = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return seconds, others.ru_maxrss * _RSS_UNIT


class ThreadMeter:
    """Measures what this thread uses; memory is shared with others, so nothing is said of it."""

    def __init__(self) -> None:
        self._io, self._cpu = _bytes(_THREAD_IO.path), time.thread_time()

    def read(self) -> Used:
        """What was used since."""
        cpu = time.thread_time() - self._cpu
        return _difference(self._io, _bytes(_THREAD_IO.path)) | {CPU: round(cpu, 6)}


class _ThreadIo(threading.local):
    """Where the system tells what this thread has read and written."""

    def __init__(self) -> None:
        self.path = f"/proc/self/task/{threading.get_native_id()}/io"


_THREAD_IO = _ThreadIo()


def _difference(before: Used, after: Used) -> Used:
    return {key: value - before[key] for key, value in after.items() if key in before}


def _bytes(path: str) -> Used:
    """Bytes read and written by system calls, whether from a disk or not."""
    try:
        lines = _content(path).split(b"\n", 2)
        return {READ: int(lines[0][7:]), WRITTEN: int(lines[1][7:])}  # rchar: and wchar:
    except (OSError, ValueError, IndexError):
        return {}


def _reset_high_water() -> bool:
    try:
        fd = os.open("/proc/self/clear_refs", os.O_WRONLY)
        try:
            return os.write(fd, _RESET_HIGH_WATER) > 0
        finally:
            os.close(fd)
    except OSError:
        return False


def _high_water() -> int:
    """The most memory that this process had since that was reset; 0 if nobody knows."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        kilobytes = _content("/proc/self/status").split(_HIGH_WATER, 1)[1].split(None, 1)[0]
        return 1024 * int(kilobytes)
    return 0


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def oom_kills() -> int:
    """How many processes of this one's control group the system has killed for want of memory."""
    counter = _oom_counter()
    if counter is not None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(os.pread(counter, 4096, 0).split(_OOM_KILLS, 1)[1].split(None, 1)[0])
    return 0


@cache
def _oom_counter() -> int | None:
    """The file of the count, which stays open: it is read for every attempt."""
    path = next(_counters(), None)
    return None if path is None else os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _counters() -> Iterator[str]:
    """The files that count for this process's control group, of either version.

    In a container the group may be mounted as the root of all.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in _content("/proc/self/cgroup").decode().splitlines():
            _, controllers, place = line.split(":", 2)
            for at in (place, ""):
                if "memory" in controllers.split(","):
                    path = f"/sys/fs/cgroup/memory{at}/memory.oom_control"
                else:
                    path = f"/sys/fs/cgroup{at}/memory.events"
                with contextlib.suppress(OSError):
                    if _OOM_KILLS in _content(path):
                        yield path


def plain(used: Mapping[str, Any] | None) -> Used:
    """What was used as the journal has it; what is not a number of that kind is left out."""
    found: Used = {}
    for key in (MEMORY, CPU, READ, WRITTEN, COPIED, COPYING):
        value = (used or {}).get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e30:
            found[key] = value
    if MEMORY in found and (used or {}).get(AT_MOST):
        found[AT_MOST] = True
    return found
