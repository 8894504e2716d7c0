"""From a run to its chart: the first plan above, what happened below."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from weft.arrays import IntArray
from weft.charts.build import rows_in_order
from weft.charts.chart import OUTSIDE, Bars, Chart, Inputs, Lane, Row, unit_for
from weft.charts.colours import LOST, PALETTE, categories_of
from weft.charts.critical import Spans, chain
from weft.charts.transfers import Arrivals
from weft.model import ENDS, Platform, Run
from weft.model.events import EventKind
from weft.quantities import amount, duration

LANES = (Lane("planned", 0.0, 0.3, meant=True), Lane("actual", 0.35, 0.65))
FINISHED = tuple(ENDS.index(end) for end in ("finished", "rewound"))


def run_chart_of(run: Run) -> Chart:
    """The chart of a run: each task as first planned, if it was; then the attempts."""
    log, planned = run.attempts, run.plans[:1]
    end = max(run.makespan, *(plan.makespan for plan in planned)) if planned else run.makespan
    first = run.workflow.n_tasks * len(planned)  # the bar of the first attempt
    order = rows_in_order(run.platform)
    names, colours, category = _categories(run)
    read = _reads(run)
    spans = Spans(log.processor, log.start, log.finish, np.arange(len(log.task), dtype=np.int32))
    steps = chain(spans, read.inner())
    return Chart(
        title=f"{run.workflow.name or 'workflow'}, run by {run.strategy}",
        facts=_facts(run),
        unit=unit_for(end),
        end=end,
        rows=_rows(run, order, end),
        lanes=LANES if planned else (Lane(),),
        categories=names,
        colours=colours,
        bars=_bars(run, order, category),
        inputs=read.inputs(run, first),
        critical=tuple(first + step.task for step in steps),
        bound=tuple(step.bound.value for step in steps),
        moments=tuple(e.time for e in run.evaluations if e.taken),
    )


def _bars(run: Run, order: IntArray, category: IntArray) -> Bars:
    log, planned, names = run.attempts, run.plans[:1], run.workflow.task_names
    row_of = np.empty(len(order), dtype=np.int32)
    row_of[order] = np.arange(len(order), dtype=np.int32)
    counts = [len(names)] * len(planned) + [len(log.task)]
    return Bars(
        name=names * len(planned) + tuple(names[task] for task in log.task.tolist()),
        row=row_of[np.concatenate([*(plan.processor for plan in planned), log.processor])],
        lane=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        start=np.concatenate([*(plan.start for plan in planned), log.start]),
        finish=np.concatenate([*(plan.finish for plan in planned), log.finish]),
        category=category,
    )


def _categories(run: Run) -> tuple[tuple[str, ...], tuple[str, ...], IntArray]:
    """Names, colours, and each bar's; attempts that came to nothing have their own."""
    log, n = run.attempts, run.workflow.n_tasks
    weight = np.bincount(log.task, weights=log.finish - log.start, minlength=n)
    names, of_task = categories_of(run.workflow, weight.astype(np.float64))
    colours = PALETTE[: len(names)]
    of_attempt = of_task[log.task]
    ends = [end for end in LOST if np.any(log.end == ENDS.index(end))]
    if ends and names == ("",):
        names = ("finished",)
    for end in ends:
        of_attempt[log.end == ENDS.index(end)] = len(names)
        names, colours = (*names, end), (*colours, LOST[end])
    return names, colours, np.concatenate([*(of_task for _ in run.plans[:1]), of_attempt])


def _facts(run: Run) -> tuple[str, ...]:
    against = ""
    for plan in run.plans[:1]:
        change = f", {run.makespan / plan.makespan - 1:+.1%}" if plan.makespan > 0 else ""
        against = f" (planned {duration(plan.makespan, 3)}{change})"
    lost = int(np.count_nonzero(run.attempts.end == ENDS.index("failed")))
    facts = [
        f"makespan {duration(run.makespan, 3)}{against}",
        f"cost {amount(run.cost)}",
        f"new plans: {run.replans} of {run.considered} considered",
        f"{run.workflow.n_tasks:,} tasks on {run.platform.n_processors:,} processors",
    ]
    facts += [f"failed attempts: {lost}"] if lost else []
    facts += [f"computed again: {run.rewound}"] if run.rewound else []
    return tuple(facts)


def presence(run: Run, until: float) -> list[list[tuple[float, float]]]:
    """For each processor the times it was there, as far as the run goes."""
    joins = run.platform.joins.tolist()
    since: list[float | None] = [0.0 if joined <= 0 else None for joined in joins]
    there: list[list[tuple[float, float]]] = [[] for _ in since]
    for event in run.changes:
        begun = since[event.which] if event.kind in (EventKind.JOINED, EventKind.GONE) else None
        if event.kind == EventKind.JOINED:
            since[event.which] = event.time
        elif event.kind == EventKind.GONE and begun is not None:
            there[event.which].append((begun, event.time))
            since[event.which] = None
    for p, begun in enumerate(since):
        if begun is not None:
            there[p].append((begun, max(begun, until)))
    return there


def _rows(run: Run, order: IntArray, end: float) -> tuple[Row, ...]:
    platform, log, there = run.platform, run.attempts, presence(run, end)
    n = platform.n_processors
    busy = np.bincount(log.processor, weights=run.task_seconds, minlength=n)
    return tuple(_row(platform, p, there[p], float(busy[p]), run.makespan, end) for p in order)


def _row(
    platform: Platform,
    p: int,
    there: list[tuple[float, float]],
    busy: float,
    makespan: float,
    end: float,
) -> Row:
    seconds = sum(max(0.0, min(b, makespan) - a) for a, b in there)
    return Row(
        name=platform.processor_names[p],
        host=platform.host_names[platform.host[p]],
        begin=min(there[0][0], end) if there else end,
        end=min(there[-1][1], end) if there else end,
        utilisation=busy / seconds if seconds > 0 else 0.0,
        away=tuple((a[1], b[0]) for a, b in pairwise(there)),
    )


class _Reads:
    """One entry per item that an attempt read: who made it, and by which transfer it came."""

    def __init__(self) -> None:
        self.item: list[int] = []
        self.source: list[int] = []  # an attempt, or OUTSIDE
        self.target: list[int] = []
        self.sent: list[float] = []
        self.arrival: list[float] = []
        self.shown: list[bool] = []  # the first to read what a transfer brought

    def add(
        self, item: int, source: int, target: int, sent: float, arrival: float, by: bool
    ) -> None:
        """One entry more."""
        self.item.append(item)
        self.source.append(source)
        self.target.append(target)
        self.sent.append(sent)
        self.arrival.append(arrival)
        self.shown.append(by)

    def inner(self) -> Arrivals:
        """Those that an attempt made, for the critical path."""
        made = np.flatnonzero(np.array(self.source, dtype=np.int32) != OUTSIDE)
        return Arrivals(
            item=np.array(self.item, dtype=np.int32)[made],
            producer=np.array(self.source, dtype=np.int32)[made],
            consumer=np.array(self.target, dtype=np.int32)[made],
            sent=np.array(self.sent, dtype=np.float64)[made],
            arrival=np.array(self.arrival, dtype=np.float64)[made],
            moves=np.array(self.shown, dtype=np.bool_)[made],
        )

    def inputs(self, run: Run, first: int) -> Inputs:
        """As the chart holds them; the attempts' bars begin at `first`."""
        names, item = run.workflow.item_names, np.array(self.item, dtype=np.int32)
        source = np.array(self.source, dtype=np.int32)
        return Inputs(
            item=tuple((names[i] or "") if names else "" for i in self.item),
            source=np.where(source == OUTSIDE, OUTSIDE, source + first).astype(np.int32),
            target=np.array(self.target, dtype=np.int32) + np.int32(first),
            sent=np.array(self.sent, dtype=np.float64),
            arrival=np.array(self.arrival, dtype=np.float64),
            size=run.workflow.item_size[item],
            shown=np.array(self.shown, dtype=np.bool_),
        )


def _reads(run: Run) -> _Reads:
    """What every attempt read: the latest complete copy on its host when it started."""
    wf, log, reads = run.workflow, run.attempts, _Reads()
    host = run.platform.host[log.processor].tolist()
    start, finish, tasks = log.start.tolist(), log.finish.tolist(), log.task.tolist()
    makers, moves = _makers(run), _moves(run)
    seen: set[tuple[int, int, float]] = set()
    for k, task in enumerate(tasks):
        for item in wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]].tolist():
            producer = int(wf.item_producer[item])
            if producer < 0:
                reads.add(item, OUTSIDE, k, 0.0, 0.0, False)
                continue
            made = _latest(makers[producer], start[k])
            if made is None:
                continue
            maker = int(made[1])
            moved = _latest(moves[item, host[k]], start[k])
            if moved is None or host[maker] == host[k]:
                reads.add(item, maker, k, finish[maker], finish[maker], False)
                continue
            arrival, sent = moved
            made = _latest(makers[producer], sent)  # what was moved, not what was made again later
            maker = maker if made is None else int(made[1])
            new = (item, host[k], arrival) not in seen
            seen.add((item, host[k], arrival))
            reads.add(item, maker, k, sent, arrival, new)
    return reads


def _makers(run: Run) -> dict[int, list[tuple[float, int]]]:
    """By task: when attempts at it finished, and which they were."""
    log = run.attempts
    result: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for k in np.flatnonzero(np.isin(log.end, FINISHED)).tolist():
        result[int(log.task[k])].append((float(log.finish[k]), k))
    for entries in result.values():
        entries.sort()
    return result


def _moves(run: Run) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """By item and host: when it arrived there, and when it was sent."""
    log = run.transfers
    result: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for k in np.flatnonzero(np.isfinite(log.arrival)).tolist():
        result[int(log.item[k]), int(log.target[k])].append(
            (float(log.arrival[k]), float(log.sent[k]))
        )
    for entries in result.values():
        entries.sort()
    return result


def _latest(entries: Sequence[tuple[float, float]], time: float) -> tuple[float, float] | None:
    """The last of the entries, which are in order, that is not after the time."""
    at = bisect_right(entries, (time, math.inf))
    return entries[at - 1] if at else None
