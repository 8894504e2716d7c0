"""Cases in which machines come, go and slow down at every kind of moment, and runs looked into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.model import (
    Item,
    Link,
    Platform,
    Processor,
    Run,
    Schedule,
    Situation,
    TaskSpec,
    Workflow,
)
from foreplan.model.events import (
    Event,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    SpeedChanged,
    TaskFinished,
)
from foreplan.simulation.reality import Reality, platform_changes
from foreplan.simulation.simulated import SimulatedExecutor
from simulation.worlds import Case, Checked, same_record
from twins.situations import random_instance

JOINED, GONE, LEAVING = ProcessorJoined, ProcessorGone, ProcessorLeaving
AVAILABILITY, FINISHED = SpeedChanged, TaskFinished


def watched(case: Case, spec: str, see: Callable[[Coordinator], None]) -> list[Event]:
    """Run event by event and look at the coordinator after each; the events."""
    policy, planner = registry.strategy(spec)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy)
    driver = Driver(coordinator, None if planner is None else Checked(planner))
    executor = SimulatedExecutor(case.workflow, case.platform, case.reality)
    commands, events = driver.begin(), list[Event]()
    while True:
        for command in commands:
            executor.perform(command)
        see(coordinator)
        event = None if coordinator.done else executor.next_event()
        if event is None:
            return events
        events.append(event)
        commands = driver.hear(event)


def made(
    costs: Sequence[float] | Mapping[str, Sequence[float]],
    edges: Iterable[tuple[int, int, float]] = (),
    categories: Iterable[str | None] = (),
) -> Workflow:
    """A workflow of tasks t0, t1, ... from costs at speed 1, or by processor."""
    items = [Item(size, producer, [consumer]) for producer, consumer, size in edges]
    specs = {k: TaskSpec(c) for k, c in enumerate(categories) if c is not None}
    columns: dict[str, FloatArray] = {}
    if isinstance(costs, Mapping):
        columns = {p: np.array(c, dtype=np.float64) for p, c in costs.items()}
        costs = [np.nan] * len(next(iter(columns.values())))
    names = [f"t{i}" for i in range(len(costs))]
    return Workflow.from_items("w", names, costs, items, columns, specs)


def plain(*speeds: float, joins: dict[int, float] | None = None) -> Platform:
    """Processors p0, p1, ... of these speeds, on hosts of their own; some join later."""
    late = joins or {}
    return Platform.build(
        [Processor(f"p{i}", speed=s, joins=late.get(i, 0.0)) for i, s in enumerate(speeds)]
    )


def case_of(
    workflow: Workflow,
    platform: Platform,
    changes: Iterable[Event] = (),
    factors: Iterable[float] | None = None,
) -> Case:
    """What really happens: these changes beside the platform's own, and durations by factors."""
    still = Case(workflow, platform, Reality(np.empty((0, 0))))
    work = still.estimates.cost
    if factors is not None:
        work = work * np.array(list(factors))[:, None]
    return Case(workflow, platform, Reality(work, platform_changes(platform) + list(changes)))


def exact_instance(rng: np.random.Generator, exact: bool | None = None) -> Case:
    """A random instance without changes in which everything goes as estimated."""
    n, p = int(rng.integers(3, 20)), int(rng.integers(2, 6))
    workflow, platform = random_instance(rng, n, p, exact, changes=False)
    return case_of(workflow, platform)


def moments_of(rng: np.random.Generator, plan: Schedule, n: int) -> list[float]:
    """Times at which something happens, in between, at once, and after the end."""
    known = np.unique(np.concatenate([plan.start, plan.finish]))
    inside = rng.uniform(0, max(plan.makespan, 1.0), n)
    drawn = np.where(rng.random(n) < 0.5, rng.choice(known, n), inside)
    drawn = np.where(rng.random(n) < 0.1, 1.1 * plan.makespan + 1.0, drawn)
    return [float(t) if t > 0 else 1e-3 for t in drawn]


def first_plan(case: Case) -> Schedule:
    """What HEFT plans at the start."""
    return registry.planner("heft").plan(Situation.at_start(case.workflow, case.platform))


def joining(seed: int, exact: bool | None = None) -> Case:
    """Some processors join, one by one or together; all else goes as estimated."""
    rng = np.random.default_rng(seed)
    case = exact_instance(rng, exact)
    n = case.platform.n_processors
    late = rng.permutation(np.arange(1, n))[: int(rng.integers(1, n))]
    joins = np.zeros(n)
    joins[late] = 1e9  # so that the first plan goes without them
    alone = replace(case.platform, joins=joins)
    times = moments_of(rng, first_plan(Case(case.workflow, alone, case.reality)), len(late))
    joins[late] = times if rng.random() < 0.6 else times[0]
    return case_of(case.workflow, replace(case.platform, joins=joins))


def leaving(seed: int, exact: bool = False) -> Case:
    """Some processors announce that they leave, now or later; the first one stays."""
    rng = np.random.default_rng(seed)
    case = exact_instance(rng, exact)
    plan, changes = first_plan(case), list[Event]()
    for p in range(1, case.platform.n_processors):
        if rng.random() < 0.6:
            announced = moments_of(rng, plan, 1)[0]
            wait = 0.0 if rng.random() < 0.2 else float(rng.uniform(0, 0.7 * plan.makespan))
            changes.append(LEAVING.of(p, announced, announced + wait))
            changes.append(GONE.of(p, announced + wait))
    return case_of(case.workflow, case.platform, changes)


def comes_to(run: Run) -> dict[str, list[tuple[str, float, float]]]:
    """By processor: what ran there, from when until when."""
    rows: dict[str, list[tuple[str, float, float]]] = {}
    log = run.attempts
    for task, p, start, finish in zip(log.task, log.processor, log.start, log.finish, strict=True):
        row = rows.setdefault(run.platform.processor_names[p], [])
        row.append((run.workflow.task_names[task], float(start), float(finish)))
    return rows


def check_evaluations(run: Run) -> int:
    """A plan is taken if, and only if, it must be or ends earlier; how many were compared."""
    compared = 0
    for e in run.evaluations:
        if e.forced:
            assert e.taken
            assert np.isnan(e.projected)
        elif np.isinf(e.makespan):
            assert not e.taken
        else:
            compared += 1
            assert e.projected > e.time or e.projected == pytest.approx(e.time)
            if e.taken:
                assert e.makespan < e.projected
            else:
                assert e.makespan >= e.projected * (1 - 1e-8)
    assert run.replans == sum(e.taken for e in run.evaluations)
    return compared


def checked_run(case: Case, spec: str = "aheft") -> tuple[Run, int]:
    """Both gears alike, every plan checked, no running task moved."""
    run, by_events = case.run(spec), case.run(spec, by_events=True)
    same_record(run, by_events)
    assert [n.time for n in run.new_estimates] == [n.time for n in by_events.new_estimates]
    assert run.restarts == 0
    return run, check_evaluations(run)


def figure_2(*more: Event) -> Case:
    """v3 is placed on p4, migrates to p2 at 40, and comes back at 60 (Hernandez, Cole)."""
    cost = np.full((4, 4), 200.0)
    cost[0, 2], cost[1, 0], cost[2, 2], cost[3, 3], cost[3, 1] = 10, 10, 35, 10, 12
    columns = {f"p{k + 1}": cost[:, k] for k in range(4)}
    items = [Item(1.0, 0, [1]), Item(1.0, 0, [2]), Item(10.0, 1, [3]), Item(10.0, 2, [3])]
    names = ["v0", "v1", "v2", "v3"]
    workflow = Workflow.from_items("figure 2", names, [np.nan] * 4, items, columns)
    slow = {("p1", "p2"): Link(3.0), ("p4", "p2"): Link(3.0)}
    platform = Platform.build([Processor(name) for name in columns], Link(1.0), slow)
    changes = [
        AVAILABILITY.of(3, 35.0, 0.2),
        AVAILABILITY.of(3, 57.0, 1.0),
        AVAILABILITY.of(1, 57.0, 0.1),
    ]
    return Case(workflow, platform, Reality(cost, [*changes, *more]))
