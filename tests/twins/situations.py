"""Random workflows, platforms and consistent situations in the middle of a run.

With `exact=True` every number is a small multiple of UNIT. Sums, means over up to 6 processors
and over their ordered pairs, medians and halves are then exact in floating point: ties are many,
and two correct planners must agree to the last bit however they associate their sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np
from hypothesis import strategies as st

from foreplan.arrays import FloatArray
from foreplan.model import (
    Attempts,
    Copies,
    Estimates,
    Item,
    Link,
    Platform,
    Processor,
    Situation,
    Transfers,
    Workflow,
)

UNIT = 225.0  # 3600 / 16: with P = 2..6, a multiple of it stays exact over P (P - 1) and over P
EXACT_PROCESSORS = 6


def random_instance(
    rng: np.random.Generator,
    n_tasks: int | None = None,
    n_processors: int | None = None,
    exact: bool | None = None,
    changes: bool = True,
) -> tuple[Workflow, Platform]:
    """A workflow and a platform; `changes` lets processors join and leave.

    The first processor is there from the start and stays, so that every task fits somewhere.
    """
    exact = bool(rng.random() < 0.5) if exact is None else exact
    n = int(rng.integers(1, 25)) if n_tasks is None else n_tasks
    count = int(rng.integers(1, EXACT_PROCESSORS + 1)) if n_processors is None else n_processors
    platform = _platform(rng, count, exact, changes, horizon=2.5 * n * UNIT / count)
    return _workflow(rng, n, platform, exact), platform


def random_situation(
    rng: np.random.Generator,
    n_tasks: int | None = None,
    n_processors: int | None = None,
    exact: bool | None = None,
    changes: bool = True,
    at_start: bool = False,
) -> Situation:
    """A moment in a run that did not go as estimated; `at_start` gives the empty one."""
    exact = bool(rng.random() < 0.5) if exact is None else exact
    workflow, platform = random_instance(rng, n_tasks, n_processors, exact, changes)
    situation = Situation.at_start(workflow, platform)
    if rng.random() < 0.3:  # the estimates are better informed than the files
        factor = _values(rng, situation.estimates.cost.shape, exact, top=2, unit=1.0)
        situation = replace(situation, estimates=Estimates(situation.estimates.cost * factor))
    if at_start:
        return situation
    past = _execute(rng, situation, exact)
    return _cut(rng, situation, past, _moment(rng, past, exact), exact)


@st.composite
def situations(
    draw: st.DrawFn,
    max_tasks: int = 25,
    max_processors: int = EXACT_PROCESSORS,
    exact: bool | None = None,
    changes: bool = True,
    at_start: bool | None = None,
) -> Situation:
    """Situations for Hypothesis; the sizes shrink, the rest is drawn from a seed."""
    n_tasks = draw(st.integers(1, max_tasks), label="tasks")
    n_processors = draw(st.integers(1, max_processors), label="processors")
    empty = draw(st.booleans(), label="at start") if at_start is None else at_start
    tied = draw(st.booleans(), label="exact") if exact is None else exact
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    rng = np.random.default_rng(seed)
    return random_situation(rng, n_tasks, n_processors, tied, changes, at_start=empty)


# Instances ---------------------------------------------------------------------------------


def _values(
    rng: np.random.Generator,
    shape: int | tuple[int, ...],
    exact: bool,
    top: int = 5,
    low: int = 0,
    unit: float = UNIT,
) -> FloatArray:
    """Whole multiples of the unit from low to top, or real numbers of that range."""
    drawn = rng.integers(low, top + 1, shape) if exact else rng.uniform(low, top, shape)
    return np.asarray(drawn * unit, dtype=np.float64)


def _platform(
    rng: np.random.Generator, count: int, exact: bool, changes: bool, horizon: float
) -> Platform:
    shared = rng.random() < 0.5
    processors = []
    for p in range(count):
        joins, leaves = 0.0, inf
        if changes and p > 0 and rng.random() < 0.3:
            joins = _time(rng, horizon, exact)
        if changes and p > 0 and rng.random() < 0.3:
            leaves = joins + UNIT + _time(rng, horizon, exact)
        host = f"h{rng.integers(0, 1 + count // 2)}" if shared else None
        speed = float(rng.choice([0.5, 1.0, 2.0])) if exact else float(rng.uniform(0.5, 2))
        processors.append(Processor(f"p{p}", host, speed, joins=joins, leaves=leaves))
    top = int(rng.integers(1, 4))
    late = bool(rng.random() < 0.5)
    names = list(dict.fromkeys(p.host or p.name for p in processors))
    links = {
        (a, b): _link(rng, exact, top, late)
        for i, a in enumerate(names)
        for b in names[i + 1 :]
        if rng.random() < 0.7
    }
    return Platform.build(processors, _link(rng, exact, top, late), links)


def _link(rng: np.random.Generator, exact: bool, top: int, late: bool) -> Link:
    per_unit = float(_values(rng, 1, exact, top, low=1)[0])
    return Link(per_unit, float(_values(rng, 1, exact, 2)[0]) if late else 0.0)


def _time(rng: np.random.Generator, horizon: float, exact: bool) -> float:
    time = float(rng.uniform(0, horizon))
    return round(time * 2 / UNIT) * UNIT / 2 if exact else time


def _workflow(rng: np.random.Generator, n: int, platform: Platform, exact: bool) -> Workflow:
    in_order = rng.random() < 0.4
    rows = np.arange(n) if in_order else rng.permutation(n)  # place in the graph -> task
    items = _items(rng, n, rows.tolist(), exact)
    base = np.full(n, nan)
    columns: dict[str, FloatArray] = {}
    if rng.random() < 0.3:  # seconds at speed 1
        base = _values(rng, n, exact, int(rng.integers(1, 7)))
        base[rng.random(n) < 0.1] = 0.0
    else:
        top, free = int(rng.integers(1, 9)), rng.random(n) < 0.1
        for name in platform.processor_names:
            columns[name] = np.where(free, 0.0, _values(rng, n, exact, top))
    return Workflow.from_items("random", [f"t{i}" for i in range(n)], base, items, columns)


def _items(rng: np.random.Generator, n: int, rows: list[int], exact: bool) -> list[Item]:
    """Plain edges, items with many consumers, outside inputs, and results nobody reads."""
    reach = int(rng.integers(1, n + 1))  # how far ahead a consumer may be: chains to wide graphs
    density = float(rng.uniform(0, 2.5))
    items: list[Item] = []
    for at in range(n):
        later = rows[at + 1 : at + 1 + reach]
        for _ in range(int(rng.poisson(density))):
            most = int(rng.integers(1, 6)) if rng.random() < 0.3 else 1
            consumers = rng.permutation(later)[:most].tolist() if later else []
            items.append(Item(_size(rng, exact), rows[at], consumers))
    for _ in range(int(rng.integers(0, 3))):
        consumers = rng.permutation(rows)[: int(rng.integers(1, 4))].tolist()
        items.append(Item(_size(rng, exact), None, consumers))
    return [items[i] for i in rng.permutation(len(items))]


def _size(rng: np.random.Generator, exact: bool) -> float:
    return 0.0 if rng.random() < 0.15 else float(_values(rng, 1, exact, 3, unit=1.0)[0])


# Runs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Past:
    """What really happens: who runs where and when, and when items reach other hosts."""

    processor: list[int]
    start: list[float]
    finish: list[float]
    arrival: dict[tuple[int, int], float]  # (item, host) -> time


def _execute(rng: np.random.Generator, situation: Situation, exact: bool) -> _Past:
    """A random list schedule, with durations and transfers off the estimate by some factor."""
    workflow, platform = situation.workflow, situation.platform
    n, cost = workflow.n_tasks, situation.estimates.cost
    past = _Past([-1] * n, [inf] * n, [inf] * n, {})
    free: list[float] = platform.joins.tolist()
    idle = bool(rng.random() < 0.3)
    for task in _random_order(rng, workflow):
        inputs = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]].tolist()
        made = [item for item in inputs if workflow.item_producer[item] >= 0]
        for p in rng.permutation(platform.n_processors).tolist():  # the first one never leaves
            came = {i: _came(rng, situation, past, i, p, exact) for i in made}
            start = max([free[p], *came.values()])
            start += _time(rng, UNIT, exact) if idle else 0.0
            finish = start + float(cost[task, p]) * _factor(rng, exact)
            if finish <= platform.leaves[p]:
                break
        past.processor[task], past.start[task], past.finish[task] = p, start, finish
        free[p] = finish
        for item, time in came.items():
            if platform.host[past.processor[workflow.item_producer[item]]] != platform.host[p]:
                past.arrival[item, int(platform.host[p])] = time
    return past


def _random_order(rng: np.random.Generator, workflow: Workflow) -> list[int]:
    """Any topological order."""
    _, producers, consumers = (column.tolist() for column in workflow.dependencies())
    waiting = dict.fromkeys(range(workflow.n_tasks), 0)
    for consumer in consumers:
        waiting[consumer] += 1
    order: list[int] = []
    while waiting:
        task = int(rng.choice([t for t, count in waiting.items() if count == 0]))
        order.append(task)
        del waiting[task]
        for producer, consumer in zip(producers, consumers, strict=True):
            if producer == task:
                waiting[consumer] -= 1
    return order


def _came(
    rng: np.random.Generator, situation: Situation, past: _Past, item: int, p: int, exact: bool
) -> float:
    """When the item, pushed as soon as it was made, really is on the host of processor p."""
    workflow, platform = situation.workflow, situation.platform
    producer = int(workflow.item_producer[item])
    source, target = platform.host[past.processor[producer]], int(platform.host[p])
    if source == target:
        return past.finish[producer]
    if (item, target) in past.arrival:
        return past.arrival[item, target]
    size, per_unit = workflow.item_size[item], platform.time_per_unit[source, target]
    taken = platform.startup[source, target] + size * per_unit
    return past.finish[producer] + float(taken) * _factor(rng, exact)


def _factor(rng: np.random.Generator, exact: bool) -> float:
    return float(rng.choice([0.5, 1.0, 1.0, 1.5, 2.0]) if exact else rng.uniform(0.5, 2))


def _moment(rng: np.random.Generator, past: _Past, exact: bool) -> float:
    """A time of the run, often just when something happens."""
    if rng.random() < 0.3:
        return float(rng.choice([*past.start, *past.finish, *past.arrival.values()]))
    return _time(rng, 1.1 * max(past.finish), exact)


def _cut(
    rng: np.random.Generator, situation: Situation, past: _Past, now: float, exact: bool
) -> Situation:
    """What is known of the run at one moment."""
    workflow, platform = situation.workflow, situation.platform
    begun = [task for task in range(workflow.n_tasks) if past.start[task] <= now]
    begun = [begun[i] for i in rng.permutation(len(begun))]
    finished = {task for task in begun if past.finish[task] <= now}
    there: dict[tuple[int, int], None] = {}
    moving: dict[tuple[int, int], float] = {}
    for item in range(workflow.n_items):
        producer = int(workflow.item_producer[item])
        if producer not in finished:
            continue
        for host in range(platform.n_hosts):
            time = past.arrival.get((item, host), inf)
            if time == inf and rng.random() < 0.1:  # an earlier plan had sent it there
                time = now + _time(rng, 3 * UNIT, exact) - UNIT
            if host == platform.host[past.processor[producer]] or time == inf:
                continue
            if time <= now:
                there[item, host] = None
            else:
                moving[item, host] = time
    return replace(
        situation,
        now=now,
        attempts=Attempts(
            np.array(begun, dtype=np.int32),
            np.array([past.processor[t] for t in begun], dtype=np.int32),
            np.array([past.start[t] for t in begun]),
            np.array([past.finish[t] if t in finished else nan for t in begun]),
        ),
        copies=Copies(
            np.array([i for i, _ in there], dtype=np.int32),
            np.array([h for _, h in there], dtype=np.int32),
        ),
        transfers=Transfers(
            np.array([i for i, _ in moving], dtype=np.int32),
            np.array([h for _, h in moving], dtype=np.int32),
            np.array(list(moving.values())),
        ),
    )
