"""The simulated world's truth. Only the simulated executor may look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.arrays import FloatArray, frozen
from weft.errors import InputError, unknown_name
from weft.model import Estimates, Platform, Workflow
from weft.model.events import MORE_TO_COME, Event, EventKind
from weft.model.world import World

WORLD = 0x776F  # so that the seed of a graph does not draw the same numbers for its world

_LONGEST = 80  # of a name in a message


@dataclass(frozen=True, eq=False)
class Reality:
    """Actual work of every task on every processor, and what will happen to the machines."""

    work: FloatArray
    changes: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", frozen(self.work, np.float64))
        object.__setattr__(self, "changes", sorted(self.changes, key=lambda e: e.time))


def draw(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    qoi: float = 0.0,
    seed: int = 0,
    per_processor: bool = False,
) -> Reality:
    """Durations within +-QoI of the estimate, uniform per task (or per task and processor)."""
    if not 0 <= qoi < 1:
        raise InputError(f"the QoI error must be from 0 to below 1, not {qoi:g}")
    if seed < 0:
        raise InputError(f"the seed must not be negative, but is {seed}")
    rng = np.random.default_rng([seed, WORLD])
    shape = estimates.cost.shape if per_processor else (workflow.n_tasks, 1)
    factor = rng.uniform(1 - qoi, 1 + qoi, shape) if qoi > 0 else np.ones(shape)
    return Reality(estimates.cost * factor, platform_changes(platform))


def platform_changes(platform: Platform) -> list[Event]:
    """Joins and leaves as the platform declares them."""
    joining = [(p, t) for p, t in enumerate(platform.joins.tolist()) if t > 0]
    last = {t: p for p, t in joining}  # it speaks for all that join at the same moment
    joins = [
        Event(EventKind.JOINED, p, t, 0.0 if last[t] == p else MORE_TO_COME) for p, t in joining
    ]
    leaves = [
        Event(EventKind.GONE, p, float(t)) for p, t in enumerate(platform.leaves) if np.isfinite(t)
    ]
    return joins + leaves


def from_world(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    world: World,
    qoi: float = 0.0,
    seed: int = 0,
    per_processor: bool = False,
) -> Reality:
    """What a world file says; durations may be drawn where it gives none at all."""
    if world.durations and qoi > 0:
        problem = "the world gives durations, so none can be drawn: leave them out, or the QoI"
        raise InputError(problem, place="durations")
    drawn = draw(workflow, platform, estimates, qoi, seed, per_processor)
    changes = _presence(platform, world, drawn.changes)
    changes += _availability(platform, world) + _bandwidth(platform, world)
    return Reality(drawn.work * _factors(workflow, world)[:, None], changes)


def _factors(workflow: Workflow, world: World) -> FloatArray:
    index = {task: i for i, task in enumerate(workflow.task_names)}
    factors = np.ones(workflow.n_tasks)
    for task, factor in world.durations.items():
        factors[_found("task", task, index, "durations")] = factor
    return factors


def _availability(platform: Platform, world: World) -> list[Event]:
    index = {processor: i for i, processor in enumerate(platform.processor_names)}
    events = []
    for name, trace in world.availability.items():
        p = _found("processor", name, index, "availability")
        events += [Event(EventKind.AVAILABILITY, p, time, value) for time, value in trace]
    return events


def _bandwidth(platform: Platform, world: World) -> list[Event]:
    """Both directions of a link change together."""
    n = platform.n_hosts
    index = {host: i for i, host in enumerate(platform.host_names)}
    events = []
    for i, (pair, trace) in enumerate(world.bandwidth.items()):
        a, b = (_found("host", host, index, f"bandwidth[{i}]", whole=True) for host in pair)
        for time, factor in trace:
            events.append(Event(EventKind.BANDWIDTH, a * n + b, time, factor))
            events.append(Event(EventKind.BANDWIDTH, b * n + a, time, factor))
    return events


def _presence(platform: Platform, world: World, declared: list[Event]) -> list[Event]:
    """Joins and leaves of the platform, deaths and returns of the world."""
    index = {processor: i for i, processor in enumerate(platform.processor_names)}
    events: list[Event] = []
    dead: set[int] = set()  # for good: their leaving is no news
    for name, times in world.failures.items():
        p = _found("processor", name, index, "failures")
        _check_failures(name, times, float(platform.joins[p]), float(platform.leaves[p]))
        for k, time in enumerate(times):
            events.append(Event(EventKind.JOINED if k % 2 else EventKind.GONE, p, time))
        if len(times) % 2:
            dead.add(p)
    for name, (announced, gone) in world.leaving.items():
        p = _found("processor", name, index, "leaving")
        _check_leaving(platform, world, name, p, announced)
        events.append(Event(EventKind.LEAVING, p, announced, gone))
        events.append(Event(EventKind.GONE, p, gone))
    kept = [e for e in declared if e.kind != EventKind.GONE or e.which not in dead]
    return kept + events


def _check_leaving(platform: Platform, world: World, name: str, p: int, announced: float) -> None:
    """A processor announces its leave once, while it is there."""
    problem = ""
    if announced <= platform.joins[p] and platform.joins[p] > 0:
        problem = f"it joins only at {platform.joins[p]:g}"
    elif np.isfinite(platform.leaves[p]):
        problem = f"the platform says already that it leaves at {platform.leaves[p]:g}"
    elif name in world.failures:
        problem = "it fails, too: give one or the other"
    if problem:
        raise InputError(problem, place=_place("leaving", name))


def _check_failures(name: str, times: Sequence[float], joins: float, leaves: float) -> None:
    """A processor can die only while it is there, and be back only before it leaves."""
    problem = ""
    if times[0] < joins or times[0] == joins > 0:
        problem = f"it dies at {times[0]:g}, but joins only at {joins:g}"
    elif times[-1] >= leaves:
        what = "dies" if len(times) % 2 else "is back"
        problem = f"it {what} at {times[-1]:g}, but leaves for good at {leaves:g}"
    if problem:
        raise InputError(problem, place=_place("failures", name))


def _found(kind: str, name: str, index: dict[str, int], section: str, whole: bool = False) -> int:
    if name in index:
        return index[name]
    place = section if whole else _place(section, name)
    raise InputError(unknown_name(kind, name[:_LONGEST], index), place=place)


def _place(section: str, name: str) -> str:
    """A place in the world's file, on one line and not too long."""
    plain = name if name.isprintable() else repr(name)[1:-1]
    return f"{section}.{plain if len(plain) <= _LONGEST else plain[: _LONGEST - 3] + '...'}"
