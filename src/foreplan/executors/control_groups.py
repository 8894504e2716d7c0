"""Control groups, of either version: what they grant this process, and new ones for attempts.

`root` is `/`, or in tests a folder that looks like it. Workers of Dask load this, so it needs
little.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NOT_WANTED = "FOREPLAN_CGROUPS"  # `no` in the environment: none is made, and limits go another way
_PERIOD = 100_000  # microseconds: what a quota of processor time is counted in
_MEMORY, _CPU = "memory", "cpu"
_serial = itertools.count()


def granted_memory(root: Path = Path("/")) -> float:
    """The bytes that the groups of this process grant it, the least on the way; else no end."""
    new = _least(root, "", lambda group: _number(group / "memory.max"))
    return min(new, _least(root, _MEMORY, lambda group: _number(group / "memory.limit_in_bytes")))


def granted_processors(root: Path = Path("/")) -> float:
    """The processors' worth of time that they grant, the least on the way; else no end."""
    return min(_least(root, "", _quota), _least(root, _CPU, _old_quota))


def _least(root: Path, controller: str, read: Callable[[Path], float]) -> float:
    """The least that a group or one of those above it says."""
    return min((read(group) for group in _groups(root, controller)), default=math.inf)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The group of this process and those above it; no controller: version 2.

    In a container the group may be mounted as the root of all, whatever its path elsewhere.
    """
    if (place := _place(root, controller)) is None:
        return
    top = root / "sys/fs/cgroup" / controller
    path = Path(place.lstrip("/"))
    yield from (found for part in (path, *path.parents) if (found := top / part).is_dir())


def _place(root: Path, controller: str) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if controller in controllers.split(","):
                return place
    return None


def _number(path: Path) -> float:
    with contextlib.suppress(OSError, ValueError):
        return float(path.read_text().replace("max", "inf"))
    return math.inf


def _quota(group: Path) -> float:
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (group / "cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    return math.inf


def _old_quota(group: Path) -> float:
    quota, period = (_number(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return quota / period if quota > 0 and 0 < period < math.inf else math.inf


@dataclass(frozen=True)
class Group:
    """A group of processes that is held to something: folders of version 1, or one of version 2."""

    folders: tuple[Path, ...]

    def hold(self, memory: int | None, cores: int | None) -> None:
        """Hold it to so many bytes and cores; None: to none."""
        for folder in self.folders:
            _hold_memory(folder, memory)
            _hold_cores(folder, cores)

    @property
    def can_hold_memory(self) -> bool:
        """Whether the system lets it."""
        names = ("memory.max", "memory.limit_in_bytes")
        return any((folder / name).exists() for folder in self.folders for name in names)

    @property
    def joining(self) -> str:
        """What a shell does to be in it, with all that it begins."""
        names = [shlex.quote(str(folder / "cgroup.procs")) for folder in self.folders]
        failed = "{ echo 'foreplan: it cannot join its control group' >&2; exit 125; }"
        return "".join(f"echo 0 > {name} || {failed}; " for name in names)

    def take(self, pid: int) -> None:
        """Have a process in it; what that has begun before is not."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))

    @property
    def oom_kills(self) -> int:
        """How many of its processes were killed because its memory was used up."""
        found = 0
        for path in (
            f / name for f in self.folders for name in ("memory.events", "memory.oom_control")
        ):
            with contextlib.suppress(OSError, ValueError):
                lines = [line.split() for line in path.read_text().splitlines()]
                found += sum(int(line[1]) for line in lines if line[0] == "oom_kill")
        return found

    @property
    def peak(self) -> int:
        """The most bytes that it had at a time; 0 if the system does not tell."""
        names = ("memory.peak", "memory.max_usage_in_bytes")
        known = [_number(folder / name) for folder in self.folders for name in names]
        return int(max((number for number in known if number < math.inf), default=0))

    def remove(self) -> None:
        """Forget it; processes that have left their attempt's process group are ended with it."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
            with contextlib.suppress(OSError):
                folder.rmdir()


def _hold_memory(folder: Path, memory: int | None) -> None:
    new = (folder / "memory.max").exists()
    if not new and not (folder / "memory.limit_in_bytes").exists():
        return
    if not new:
        _hold_old_memory(folder, "-1" if memory is None else str(memory))
        return
    (folder / "memory.max").write_text("max" if memory is None else str(memory))
    more = {"memory.swap.max": "max" if memory is None else "0", "memory.oom.group": "1"}
    for name, text in more.items():
        with contextlib.suppress(OSError):  # where nothing is swapped, or this is not known
            if (folder / name).exists():
                (folder / name).write_text(text)


def _hold_old_memory(folder: Path, value: str) -> None:
    """With what is swapped there may never be less than without: to grant more it must go first."""
    alone, swapped = folder / "memory.limit_in_bytes", folder / "memory.memsw.limit_in_bytes"
    if not swapped.exists():
        alone.write_text(value)
        return
    with contextlib.suppress(OSError):
        swapped.write_text(value)
    alone.write_text(value)
    swapped.write_text(value)


def _hold_cores(folder: Path, cores: int | None) -> None:
    if (folder / "cpu.max").exists():
        quota = "max" if cores is None else str(cores * _PERIOD)
        (folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
    elif (folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_period_us").write_text(str(_PERIOD))
        (folder / "cpu.cfs_quota_us").write_text(str(-1 if cores is None else cores * _PERIOD))


@dataclass(frozen=True)
class Groups:
    """Where groups can be made, below that of this process."""

    version: int
    parents: tuple[Path, ...]  # of version 1, one for each controller
    holds_memory: bool
    holds_cores: bool
    _tag: str = field(default_factory=lambda: f"foreplan-{os.getpid()}")

    def make(self) -> Group:
        """A new group, which is held to nothing yet; an OSError if it cannot be."""
        name = f"{self._tag}-{next(_serial)}"
        group = Group(tuple(parent / name for parent in self.parents))
        try:
            for folder in group.folders:
                folder.mkdir()
        except OSError:
            group.remove()
            raise
        return group


def find_groups(root: Path = Path("/")) -> Groups | None:
    """Where groups can be made that hold memory at least; None: nowhere."""
    if os.environ.get(NOT_WANTED) == "no":
        return None
    for found in (_new_groups(root), _old_groups(root)):
        if found is not None and found.holds_memory:
            with contextlib.suppress(OSError):
                trial = found.make()
                try:
                    trial.hold(1 << 40, 1)
                    if trial.can_hold_memory:
                        return found
                finally:
                    trial.remove()
    return None


def _new_groups(root: Path) -> Groups | None:
    """Of version 2: children may have what their parent enables for them."""
    if (own := next(_groups(root, ""), None)) is None or not os.access(own, os.W_OK):
        return None
    enabled = _words(own / "cgroup.subtree_control")
    if _MEMORY not in enabled and _MEMORY in _words(own / "cgroup.controllers"):
        with contextlib.suppress(OSError):
            _make_room(own)
            wanted = [c for c in (_MEMORY, _CPU) if c in _words(own / "cgroup.controllers")]
            (own / "cgroup.subtree_control").write_text(" ".join(f"+{c}" for c in wanted))
            enabled = wanted
    return Groups(2, (own,), _MEMORY in enabled, _CPU in enabled)


def _make_room(own: Path) -> None:
    """A group with children that are held to something must not have processes of its own.

    If this one is alone there, it moves into a child; others are not moved about.
    """
    if _words(own / "cgroup.procs") == [str(os.getpid())]:
        leaf = own / f"foreplan-{os.getpid()}"
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text(str(os.getpid()))


def _old_groups(root: Path) -> Groups | None:
    """Of version 1: each controller has groups of its own."""
    own = {c: next(_groups(root, c), None) for c in (_MEMORY, _CPU)}
    may = {c: place for c, place in own.items() if place is not None and os.access(place, os.W_OK)}
    return Groups(1, tuple(may.values()), _MEMORY in may, _CPU in may) if may else None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
