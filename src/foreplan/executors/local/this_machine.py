"""This machine as a platform: one host with the cores, memory and GPUs that a run may use here."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from foreplan.errors import InputError
from foreplan.executors.control_groups import granted_memory, granted_processors
from foreplan.executors.gpus import visible_gpus
from foreplan.model.platform import Platform, Processor
from foreplan.model.resources import GPUS, MEMORY, Host


def platform_of(
    processors: int | None, known: Platform | None, asked: Mapping[str, float] | None = None
) -> tuple[Platform, int]:
    """The processors that are known, and those that are new; how many of them may be used.

    What is `asked` of the host counts more than what was known or is found.
    """
    n = processors
    if n is None:
        n = available_processors() if known is None else known.n_processors
    if n < 1:
        raise InputError(f"a machine has at least 1 processor, not {n}")
    if known is None:
        host = socket.gethostname()
        cores = [Processor(f"local-{k}", host=host) for k in range(1, n + 1)]
        return Platform.build(cores, has={host: this_host(asked or {})}), n
    if asked and known.hosts:
        first = replace(known.hosts[0], amounts={**known.hosts[0].amounts, **asked})
        known = replace(known, hosts=(first, *known.hosts[1:]))
    return (known if n <= known.n_processors else _extended(known, n)), n


def _extended(known: Platform, n: int) -> Platform:
    """So many processors, of the host that they are all of."""
    places = [known.host_names[h] for h in known.host.tolist()]
    old = [Processor(p, h) for p, h in zip(known.processor_names, places, strict=True)]
    new = [Processor(f"local-{k}", host=places[0]) for k in range(len(old) + 1, n + 1)]
    has = {host.name: host for host in known.hosts}
    return Platform.build([*old, *new], has=has, pools=known.pools)


def this_machine(
    processors: int | None, asked: Mapping[str, float] | None = None
) -> tuple[Platform, tuple[str, ...]]:
    """The processors that a run here would have, and the machine of each."""
    platform, n = platform_of(processors, None, asked)
    return platform, (socket.gethostname(),) * n


def this_host(asked: Mapping[str, float]) -> Host:
    """What there is beside processors, by what is asked for and by what is found."""
    found = {MEMORY: available_memory(), GPUS: float(len(visible_gpus()))}
    told = {kind: value for kind, value in found.items() if 0 < value < math.inf}
    return Host(socket.gethostname(), {**told, **asked})


def available_processors(root: Path = Path("/")) -> int:
    """How many processors this process may use: by affinity, and by the quota of its groups."""
    n, quota = len(usable_cpus()), granted_processors(root)
    return n if math.isinf(quota) else max(1, min(n, math.ceil(quota)))


def usable_cpus() -> list[int]:
    """The processors that this process may run on, by the system's numbers."""
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return list(range(os.cpu_count() or 1))


def available_memory(root: Path = Path("/")) -> float:
    """Return the bytes that this process and its children may use; foreplan needs few of them.

    What the machine has, or what a group of this process grants, whichever is less.
    """
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not on every system
        physical = math.inf
    return min(physical, granted_memory(root))
