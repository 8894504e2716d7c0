"""Attempts are held to what they ask for, as far as the system can.

By a control group each, if groups can be made. Else the memory of each process is held by
RLIMIT_DATA, which counts what it allocates for itself: what it only reserves does not count, as
it would by RLIMIT_AS, and which many programs do by the gigabyte. Cores are held by affinity.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from foreplan.executors.control_groups import Group, Groups, find_groups
from foreplan.executors.usage import AT_MOST, MEMORY, Used
from foreplan.quantities import data_size

# what programs say when they are refused memory, the last of it first
_REFUSED = re.compile(
    r"MemoryError|bad_alloc|OutOfMemoryError|[Cc]annot allocate|[Oo]ut of memory|"
    r"[Mm]emory exhausted|[Nn]ot enough memory|[Uu]nable to allocate|[Ff]ailed to allocate"
)
_LAST = 5  # lines that are looked at


@dataclass(frozen=True)
class Limit:
    """What an attempt is held to; None: to nothing."""

    memory: int | None = None  # bytes
    cores: int | None = None
    cpus: tuple[int, ...] = ()  # these, where no group counts the time on all of them

    def __bool__(self) -> bool:
        return self.memory is not None or self.cores is not None


@cache
def groups() -> Groups | None:
    """Where this process can make control groups; it does not try again."""
    return find_groups()


def in_words(here: Groups | None) -> str:
    """Which way tasks are held to what they ask for."""
    if here is None:
        return (
            "the memory of each process by RLIMIT_DATA, cores by CPU affinity (control groups "
            "cannot be made here)"
        )
    held = "memory and cores" if here.holds_cores else "memory"
    cores = "" if here.holds_cores else ", cores by CPU affinity"
    return f"{held} by control groups of version {here.version}{cores}"


@dataclass
class Fence:
    """What holds an attempt, or the worker process of a function."""

    limit: Limit
    group: Group | None = None
    _killed: int = field(default=0)

    @property
    def prefix(self) -> str:
        """What a shell does first, so that all that it begins is held."""
        if self.group is not None:
            return self.group.joining
        return "" if self.limit.memory is None else f"ulimit -d {self.limit.memory // 1024} || :; "

    @property
    def data_limit(self) -> int | None:
        """What a worker process is to hold itself to by RLIMIT_DATA."""
        return self.limit.memory if self.group is None else None

    @contextlib.contextmanager
    def pin(self) -> Iterator[None]:
        """While this lasts, what this thread begins is held to its processors."""
        if not self._pins:
            yield
            return
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.limit.cpus)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def pin_process(self, pid: int) -> None:
        """Hold a process that runs, and all of its threads, to its processors."""
        if self._pins:
            with contextlib.suppress(OSError, ValueError):  # a thread may just have ended
                for thread in os.listdir(f"/proc/{pid}/task"):
                    os.sched_setaffinity(int(thread), self.limit.cpus)

    @property
    def _pins(self) -> bool:
        here = groups() if self.group is not None else None
        return bool(self.limit.cpus) and not (here is not None and here.holds_cores)

    def change(self, limit: Limit) -> None:
        """Hold it to something else from now on."""
        self.limit = limit
        if self.group is not None:
            self._killed = self.group.oom_kills
            self.group.hold(limit.memory, limit.cores)

    @property
    def has_killed(self) -> bool:
        """Whether processes were killed since the last change, for their memory was used up."""
        return self.group is not None and self.group.oom_kills > self._killed

    def measure(self, used: Used) -> Used:
        """What was used, with the memory of all processes together where the group tells it."""
        peak = 0 if self.group is None or self.limit.memory is None else self.group.peak
        if not peak:
            return used
        return {key: value for key, value in used.items() if key != AT_MOST} | {MEMORY: peak}

    def explain(self, used: Used) -> str:
        """What was asked for, and used; nothing if no memory was."""
        if self.limit.memory is None:
            return ""
        had = f", had {data_size(used[MEMORY])} at most" if used.get(MEMORY) else ""
        asked = data_size(self.limit.memory)
        return f"out of memory: it asked for {asked}{had}, and is held to that (--limit)"

    def remove(self) -> None:
        """Let go of it."""
        if self.group is not None:
            self.group.remove()
            self.group = None


def make_fence(limit: Limit) -> Fence:
    """A fence: a group, or if none can be made what there is else."""
    fence = Fence(limit)
    if (here := groups()) is not None:
        with contextlib.suppress(OSError):  # the group of this process may be gone, or full
            fence.group = here.make()
            fence.group.hold(limit.memory, limit.cores)
    return fence


def allocated(pid: int) -> int:
    """The bytes that a process has allocated for itself, as RLIMIT_DATA counts; 0: not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def is_refused(tail: str) -> bool:
    """Whether a program that has failed says in its last lines that it was refused memory."""
    return any(_REFUSED.search(line) for line in tail.splitlines()[-_LAST:])


@contextlib.contextmanager
def fenced(limit: Limit | None) -> Iterator[Fence | None]:
    """While this lasts there is a fence, if there is something to be held to."""
    fence = None if limit is None else make_fence(limit)
    try:
        yield fence
    finally:
        if fence is not None:
            fence.remove()
