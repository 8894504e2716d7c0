"""A world as a file gives it: how a simulated run departs from the estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foreplan.model.workflow import Workflow

Trace = tuple[tuple[float, float], ...]  # (time, value): the value from that time on


@dataclass(frozen=True)
class WorldFile:
    """Names, not indices: they are looked up when the workflow and the platform are known.

    The times of a processor's failures alternate: it dies, is back, dies again. Where a processor
    is named, a host may be: that means all of its cores.
    """

    durations: Mapping[str, float] = field(default_factory=dict)  # actual = factor x estimate
    availability: Mapping[str, Trace] = field(default_factory=dict)  # by processor, 0 to 1
    bandwidth: Mapping[tuple[str, str], Trace] = field(default_factory=dict)  # factors, both ways
    failures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    leaving: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # announced, gone
    expansions: Mapping[str, Workflow] = field(default_factory=dict)  # by task, what it adds
