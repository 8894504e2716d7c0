"""Schedules to draw: hand-made ones, and random DAGs placed by a tiny greedy scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.checks.schedules import check_schedule
from foreplan.model import Estimates, Link, Platform, Processor, Schedule, TaskSpec, Workflow


def workflow(
    costs: Sequence[float],
    edges: Sequence[tuple[int, int, float]] = (),
    names: Sequence[str] | None = None,
    categories: Sequence[str | None] | None = None,
) -> Workflow:
    return Workflow.from_edges(
        name="example",
        task_names=names or [f"n{i}" for i in range(len(costs))],
        producers=np.array([e[0] for e in edges], dtype=np.int32),
        consumers=np.array([e[1] for e in edges], dtype=np.int32),
        volumes=np.array([e[2] for e in edges], dtype=np.float64),
        base_cost=np.array(costs, dtype=np.float64),
        specs={i: TaskSpec(category=c) for i, c in enumerate(categories or ())},
    )


def platform(processors: int, per_host: int = 1, seconds_per_unit: float = 1.0) -> Platform:
    listed = [
        Processor(f"r{i}", host=f"host{i // per_host}", speed=1 + i % 3 / 2, price=0.1 * (i % 3))
        for i in range(processors)
    ]
    return Platform.build(listed, Link(time_per_unit=seconds_per_unit))


def even(processors: int) -> Platform:
    return Platform.build([Processor(f"r{i}") for i in range(processors)])


def placed(
    wf: Workflow, pf: Platform, on: Sequence[int], start: Sequence[float], check: bool = True
) -> Schedule:
    cost = Estimates.declared(wf, pf).cost[np.arange(wf.n_tasks), np.array(on, dtype=np.int32)]
    begin: FloatArray = np.array(start, dtype=np.float64)
    schedule = Schedule("by hand", wf, pf, np.array(on, dtype=np.int32), begin, begin + cost)
    if check:
        check_schedule(schedule)
    return schedule


def chain(tasks: int, processors: int = 1) -> Schedule:
    """Tasks of one second, each on the next processor when the one before it has ended."""
    edges = [(k, k + 1, 0.0) for k in range(tasks - 1)]
    wf = workflow([1.0] * tasks, edges)
    on = [k % processors for k in range(tasks)]
    return placed(wf, even(processors), on, [*map(float, range(tasks))])


def greedy(wf: Workflow, pf: Platform) -> Schedule:
    """Each task in topological order where it finishes first, after all that is there."""
    cost = Estimates.declared(wf, pf).cost
    free = pf.joins.copy()
    processor = np.zeros(wf.n_tasks, dtype=np.int32)
    start, finish = np.zeros(wf.n_tasks), np.zeros(wf.n_tasks)
    for task in wf.order.tolist():
        begin = free.copy()
        for item in wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]].tolist():
            producer = int(wf.item_producer[item])
            if producer >= 0:
                host = pf.host[processor[producer]]
                takes = pf.startup[host] + wf.item_size[item] * pf.time_per_unit[host]
                begin = np.maximum(begin, finish[producer] + takes[pf.host])
        best = int(np.argmin(begin + cost[task]))
        processor[task], start[task] = best, begin[best]
        finish[task] = free[best] = begin[best] + cost[task, best]
    schedule = Schedule("greedy", wf, pf, processor, start, finish)
    check_schedule(schedule)
    return schedule


def random_schedule(
    tasks: int, processors: int, per_host: int = 1, seed: int = 0, scale: float = 1.0
) -> Schedule:
    """A layered DAG with about two inputs per task, in four categories."""
    rng = np.random.default_rng(seed)
    reach = max(2, tasks // 12)
    edges: set[tuple[int, int]] = set()
    for task in range(1, tasks):
        low = max(0, task - reach)
        for producer in rng.integers(low, task, size=rng.integers(0, 4)).tolist():
            edges.add((producer, task))
    kinds = ("align", "split", "merge", "report")
    kind = [kinds[i] for i in rng.choice(4, size=tasks, p=(0.5, 0.2, 0.2, 0.1)).tolist()]
    wf = workflow(
        (rng.gamma(2.0, 10.0, size=tasks) * scale).tolist(),
        [(a, b, float(rng.gamma(2.0, 4.0))) for a, b in sorted(edges)],
        names=[f"{k}_{i}" for i, k in enumerate(kind)],
        categories=kind,
    )
    return greedy(wf, platform(processors, per_host, seconds_per_unit=scale))


HOSTILE = (
    "</script><img src=x onerror=window.hacked=1>",
    "$x_1$",
    "\\frac",
    "<!--<script>",
    "&amp;&#x41;",
    "工作流程",
    "naïve 😀 شبكة",
    "x" * 500,
    "line\nbreak\ttab\x00null",
    "\ud800 alone",
    "/*DATA*//*SCRIPT*/",
    "__proto__",
)


def hostile_schedule() -> Schedule:
    """Every name that ought to do harm, as task, category, processor and workflow."""
    n = len(HOSTILE)
    wf = workflow(
        [10.0] * n,
        [(i, i + 1, 1.0) for i in range(n - 1)],
        names=HOSTILE,
        categories=[HOSTILE[i % 5] for i in range(n)],
    )
    pf = Platform.build([Processor(HOSTILE[i], host=HOSTILE[i // 2]) for i in range(6)])
    schedule = greedy(wf, pf)
    named = replace(wf, name=HOSTILE[0])
    return replace(schedule, workflow=named, planner=HOSTILE[1] + HOSTILE[8])
