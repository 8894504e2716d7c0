"""The simulated world's truth. Only the simulated executor may look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from foreplan.arrays import FloatArray, FrozenArrays
from foreplan.errors import InputError
from foreplan.formats.fields import unknown, wrong
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.events import (
    Event,
    LinkChanged,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    SpeedChanged,
)
from foreplan.model.resources import Needs
from foreplan.model.world import WorldFile

Given = TypeVar("Given")  # what a section of a world file says of one processor, or host
ADDED = 1  # likewise, of tasks that are added
WORLD = 0x776F  # so that the seed of a graph does not draw the same numbers for its world


@dataclass(frozen=True, eq=False)
class Reality(FrozenArrays):
    """Actual work of every task on every processor, and what will happen to the machines."""

    work: FloatArray  # with the fewest cores that a task takes
    changes: Sequence[Event] = ()
    needs: Needs | None = None  # what more cores are good for; None: every task takes one
    expansions: Mapping[str, Workflow] = field(default_factory=dict)  # by task, what it adds
    added_factors: Mapping[str, float] = field(default_factory=dict)  # of what is estimated of that

    def __post_init__(self) -> None:
        super().__post_init__()
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
    return Reality(estimates.cost * factor, platform_changes(platform), estimates.needs)


def platform_changes(platform: Platform) -> list[ProcessorJoined | ProcessorGone]:
    """Joins and leaves as the platform declares them."""
    if platform.fixed:
        return []
    joining = [(p, t) for p, t in enumerate(platform.joins.tolist()) if t > 0]
    last = {t: p for p, t in joining}  # it speaks for all that join at the same moment
    joins = [ProcessorJoined(p, t, last[t] != p) for p, t in joining]
    leaves = [ProcessorGone(p, float(t)) for p, t in enumerate(platform.leaves) if np.isfinite(t)]
    return [*joins, *leaves]


def from_world(
    workflow: Workflow,
    platform: Platform,
    estimates: Estimates,
    world: WorldFile,
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
    added = _added(workflow, world)
    given = {task: factor for task, factor in world.durations.items() if task not in added}
    work = drawn.work * _factors(workflow, given)[:, None]
    factors = {task: world.durations.get(task, factor) for task, factor in added.items()}
    if qoi > 0:
        rng = np.random.default_rng([seed, WORLD, ADDED])
        factors = {task: float(rng.uniform(1 - qoi, 1 + qoi)) for task in added}
    return Reality(work, changes, estimates.needs, world.expansions, factors)


def _added(workflow: Workflow, world: WorldFile) -> dict[str, float]:
    """The tasks that are added in a world; whoever adds some must be known, and say so."""
    added = {task: 1.0 for more in world.expansions.values() for task in more.task_names}
    expand = {workflow.task_names[t] for t, spec in workflow.specs.items() if spec.expand}
    for more in world.expansions.values():
        expand |= {more.task_names[t] for t, spec in more.specs.items() if spec.expand}
    for task in world.expansions:
        if task not in expand and task in {*workflow.task_names, *added}:
            raise wrong("the task does not say `expand: true`", "expansions", task)
        if task not in expand:
            raise unknown("task", task, expand, "expansions", task)
    return added


def _factors(workflow: Workflow, durations: Mapping[str, float]) -> FloatArray:
    index = {task: i for i, task in enumerate(workflow.task_names)}
    factors = np.ones(workflow.n_tasks)
    for task, factor in durations.items():
        factors[_found("task", task, index, "durations", task)] = factor
    return factors


def _availability(platform: Platform, world: WorldFile) -> list[Event]:
    events = list[Event]()
    for p, (_, trace) in _by_processor(platform, world.availability, "availability").items():
        events += [SpeedChanged(p, time, value) for time, value in trace]
    return events


def _by_processor(
    platform: Platform, section: Mapping[str, Given], place: str
) -> dict[int, tuple[str, Given]]:
    """What a section says of each processor, and under which name: its own, or that of its host."""
    index = {processor: i for i, processor in enumerate(platform.processor_names)}
    hosts = {host: h for h, host in enumerate(platform.host_names) if host not in index}
    found = dict[int, tuple[str, Given]]()
    for name, given in section.items():
        meant = np.flatnonzero(platform.host == hosts[name]).tolist() if name in hosts else []
        for p in meant or [_found("processor", name, index, place, name)]:
            if p in found:
                core = platform.processor_names[p]
                raise wrong(f"{found[p][0]!r} and {name!r} both speak of {core!r}", place, name)
            found[p] = name, given
    return found


def _bandwidth(platform: Platform, world: WorldFile) -> list[Event]:
    """Both directions of a link change together."""
    n = platform.n_hosts
    index = {host: i for i, host in enumerate(platform.host_names)}
    events = list[Event]()
    for i, (pair, trace) in enumerate(world.bandwidth.items()):
        a, b = (_found("host", host, index, "bandwidth", i) for host in pair)
        for time, factor in trace:
            events.append(LinkChanged(a * n + b, time, factor))
            events.append(LinkChanged(b * n + a, time, factor))
    return events


def _presence(platform: Platform, world: WorldFile, declared: Sequence[Event]) -> list[Event]:
    """Joins and leaves of the platform, deaths and returns of the world."""
    events: list[Event] = []
    dead: set[int] = set()  # for good: their leaving is no news
    failing = _by_processor(platform, world.failures, "failures")
    last = {name: p for p, (name, _) in failing.items()}  # it speaks for all of its host
    for p, (name, times) in failing.items():
        _check_failures(name, times, float(platform.joins[p]), float(platform.leaves[p]))
        for k, time in enumerate(times):
            back = ProcessorJoined(p, time, last[name] != p)
            events.append(back if k % 2 else ProcessorGone(p, time))
        if len(times) % 2:
            dead.add(p)
    for p, (name, (announced, gone)) in _by_processor(platform, world.leaving, "leaving").items():
        _check_leaving(platform, name, p, announced, fails=p in failing)
        events.append(ProcessorLeaving(p, announced, gone))
        events.append(ProcessorGone(p, gone))
    kept = [e for e in declared if not isinstance(e, ProcessorGone) or e.processor not in dead]
    return kept + events


def _check_leaving(platform: Platform, name: str, p: int, announced: float, fails: bool) -> None:
    """A processor announces its leave once, while it is there."""
    problem = ""
    if announced <= platform.joins[p] and platform.joins[p] > 0:
        problem = f"it joins only at {platform.joins[p]:g}"
    elif np.isfinite(platform.leaves[p]):
        problem = f"the platform says already that it leaves at {platform.leaves[p]:g}"
    elif fails:
        problem = "it fails, too: give one or the other"
    if problem:
        raise wrong(problem, "leaving", name)


def _check_failures(name: str, times: Sequence[float], joins: float, leaves: float) -> None:
    """A processor can die only while it is there, and be back only before it leaves."""
    problem = ""
    if times[0] < joins or times[0] == joins > 0:
        problem = f"it dies at {times[0]:g}, but joins only at {joins:g}"
    elif times[-1] >= leaves:
        what = "dies" if len(times) % 2 else "is back"
        problem = f"it {what} at {times[-1]:g}, but leaves for good at {leaves:g}"
    if problem:
        raise wrong(problem, "failures", name)


def _found(kind: str, name: str, index: dict[str, int], *place: str | int) -> int:
    if name not in index:
        raise unknown(kind, name, index, *place)
    return index[name]
