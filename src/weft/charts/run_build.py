"""From a run to its chart: the first plan above, what happened below."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.charts.build import rows_in_order
from weft.charts.chart import OUTSIDE, Bars, Chart, Inputs, Lane, Row, unit_for
from weft.charts.colours import LOST, PALETTE, categories_of
from weft.charts.critical import Spans, chain
from weft.charts.transfers import Arrivals
from weft.model import ENDS, Platform, Run
from weft.model.events import EventKind

LANES = (Lane("planned", 0.0, 0.3, meant=True), Lane("actual", 0.35, 0.65))
FINISHED = tuple(ENDS.index(end) for end in ("finished", "rewound"))


def run_chart_of(run: Run) -> Chart:
    """The chart of a run: bar i is task i as first planned; then come the attempts."""
    plan, log = run.plans[0], run.attempts
    n, end = run.workflow.n_tasks, max(run.plans[0].makespan, run.makespan)
    order = rows_in_order(run.platform)
    row_of = np.empty(len(order), dtype=np.int32)
    row_of[order] = np.arange(len(order), dtype=np.int32)
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
        lanes=LANES,
        categories=names,
        colours=colours,
        bars=Bars(
            name=run.workflow.task_names
            + tuple(run.workflow.task_names[task] for task in log.task.tolist()),
            row=row_of[np.concatenate([plan.processor, log.processor])],
            lane=np.repeat(np.array([0, 1], dtype=np.int32), [n, len(log.task)]),
            start=np.concatenate([plan.start, log.start]),
            finish=np.concatenate([plan.finish, log.finish]),
            category=category,
        ),
        inputs=read.inputs(run, n),
        critical=tuple(n + step.task for step in steps),
        bound=tuple(step.bound.value for step in steps),
        moments=tuple(e.time for e in run.evaluations if e.taken),
    )


def _categories(run: Run) -> tuple[tuple[str, ...], tuple[str, ...], IntArray]:
    """Names, colours, and each bar's; attempts that came to nothing have categories of their own."""
    plan, log = run.plans[0], run.attempts
    names, of_task = categories_of(run.workflow, plan.finish - plan.start)
    colours = PALETTE[: len(names)]
    of_attempt = of_task[log.task]
    ends = [end for end in LOST if np.any(log.end == ENDS.index(end))]
    if ends and names == ("",):
        names = ("finished",)
    for end in ends:
        of_attempt[log.end == ENDS.index(end)] = len(names)
        names, colours = (*names, end), (*colours, LOST[end])
    return names, colours, np.concatenate([of_task, of_attempt])


def _facts(run: Run) -> tuple[str, ...]:
    planned, actual = run.plans[0].makespan, run.makespan
    unit = unit_for(max(planned, actual))
    change = f", {actual / planned - 1:+.1%}" if planned > 0 else ""
    lost = int(np.count_nonzero(run.attempts.end == ENDS.index("failed")))
    facts = [
        f"makespan {unit.format(actual)} (planned {unit.format(planned)}{change})",
        f"cost {run.cost:.6g}",
        f"{run.replans} new plans of {run.considered} considered",
        f"{run.workflow.n_tasks:,} tasks on {run.platform.n_processors:,} processors",
    ]
    facts += [f"{lost} attempts failed"] if lost else []
    return (*facts, *([f"{run.rewound} tasks computed again"] if run.rewound else []))


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
    busy = np.bincount(log.processor, weights=log.finish - log.start, minlength=n)
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
        away=tuple((a[1], b[0]) for a, b in zip(there[:-1], there[1:], strict=True)),
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
        columns = [
            np.array(column, dtype=np.int32)[made]
            for column in (self.item, self.source, self.target)
        ]
        times: list[FloatArray] = [
            np.array(column, dtype=np.float64)[made] for column in (self.sent, self.arrival)
        ]
        return Arrivals(*columns, *times, np.array(self.shown, dtype=np.bool_)[made])

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
