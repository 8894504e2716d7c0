"""The processors of this machine: how many a run may use here, and as a platform."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from pathlib import Path

from weft.errors import InputError
from weft.model.platform import Platform, Processor


def platform_of(processors: int | None, known: Platform | None) -> tuple[Platform, int]:
    """The processors that are known, and those that are new; how many of them may be used."""
    n = processors
    if n is None:
        n = available_processors() if known is None else known.n_processors
    if n < 1:
        raise InputError(f"a machine has at least 1 processor, not {n}")
    if known is not None and n <= known.n_processors:
        return known, n
    host, old = socket.gethostname(), list[Processor]()
    if known is not None:
        hosts = [known.host_names[h] for h in known.host.tolist()]
        old = [Processor(p, h) for p, h in zip(known.processor_names, hosts, strict=True)]
    new = [Processor(f"local-{k}", host=host) for k in range(len(old) + 1, n + 1)]
    return Platform.build([*old, *new]), n


def this_machine(processors: int | None) -> tuple[Platform, tuple[str, ...]]:
    """The processors that a run here would have, and the machine of each."""
    platform, n = platform_of(processors, None)
    return platform, (socket.gethostname(),) * n


def available_processors() -> int:
    """How many processors this process may use: by affinity, and by the quota of its group."""
    try:
        n = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        n = os.cpu_count() or 1
    quota = _quota()
    return n if math.isinf(quota) else max(1, min(n, math.ceil(quota)))


def _quota() -> float:
    """The processors that the control group grants, of either version; no end if it says none."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text()
        period = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else math.inf
    return math.inf
