"""From a schedule to its chart, and from a run: the first plan above, what happened below."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, row_of_each
from foreplan.charts.chart import (
    LOST,
    OUTSIDE,
    PALETTE,
    Bars,
    Blocks,
    Chart,
    Gauge,
    HeldLevel,
    Inputs,
    Lane,
    Row,
    categories_of,
    unit_for,
)
from foreplan.model import ENDS, Platform, Run, Schedule
from foreplan.model.causes import USED
from foreplan.model.events import TaskFailed, TaskFinished
from foreplan.model.profiles import HeldProfile, amounts_held, host_profiles, kinds_held
from foreplan.model.resources import MEMORY, held
from foreplan.quantities import against, amount, duration, many
from foreplan.scheduling.attempts import reads_of
from foreplan.scheduling.critical import Arrivals, arrivals_of
from foreplan.scheduling.margins import Margins, margins, margins_of_attempts

LEAST_SHARE = 0.01  # of what a host has: of less, its gauge would show nothing


def chart_of(schedule: Schedule) -> Chart:
    """The chart of a schedule: bar i is task i; rows are processors, hosts kept together."""
    arrivals, late = arrivals_of(schedule), margins(schedule)
    order = rows_in_order(schedule.platform)
    row_of = np.empty(len(order), dtype=np.int32)
    row_of[order] = np.arange(len(order), dtype=np.int32)
    categories, category = categories_of(schedule.workflow, schedule.finish - schedule.start)
    bars = Bars(
        name=schedule.workflow.task_names,
        row=row_of[schedule.processor],
        lane=np.zeros(schedule.workflow.n_tasks, dtype=np.int32),
        start=schedule.start,
        finish=schedule.finish,
        category=category,
        blocks=_blocks(len(schedule.start), *held(schedule.processor, schedule.cores), row_of),
        slack=late.slack,
        spare=late.spare,
    )
    return Chart(
        title=f"{schedule.workflow.name or 'workflow'}, planned by {schedule.planner}",
        facts=_facts(schedule),
        unit=unit_for(schedule.makespan),
        end=schedule.makespan,
        rows=_rows(schedule, order),
        lanes=(Lane(),),
        categories=categories,
        bars=bars,
        inputs=_inputs(schedule, arrivals),
        critical=tuple(step.task for step in late.path),
        bound=tuple(step.bound.value for step in late.path),
        gauges=_gauges(order, schedule),
    )


def _facts(schedule: Schedule) -> tuple[str, ...]:
    tasks = many(schedule.workflow.n_tasks, "task")
    processors = many(schedule.platform.n_processors, "processor")
    return (
        f"makespan {duration(schedule.makespan, 3)}",
        f"cost {amount(schedule.cost)}",
        f"mean utilisation {schedule.utilisation:.0%}",
        f"{tasks} on {processors}",
    )


def rows_in_order(platform: Platform) -> IntArray:
    """The processors from top to bottom: hosts as the file first names them, then its order."""
    order: IntArray = np.argsort(platform.host, kind="stable").astype(np.int32)
    return order


def _blocks(n: int, bar: IntArray, processor: IntArray, row_of: IntArray) -> Blocks | None:
    """The blocks of n bars, from each with every processor that it takes; None if it takes one."""
    if len(bar) == n:
        return None
    order = np.lexsort((row_of[processor], bar))
    bar, row = bar[order], row_of[processor][order]
    opens = np.ones(len(bar), dtype=np.bool_)
    opens[1:] = (bar[1:] != bar[:-1]) | (row[1:] != row[:-1] + 1)
    bar, row, rows = bar[opens], row[opens], np.diff([*np.flatnonzero(opens), len(bar)])
    order = np.lexsort((row, -rows, bar))
    ptr = np.searchsorted(bar[order], np.arange(n + 1)).astype(np.int32)
    return Blocks(ptr, row[order], rows[order].astype(np.int32))


def _gauges(order: IntArray, *shown: Schedule | Run) -> tuple[Gauge, ...]:
    """What hosts have of the kinds that tasks hold, and what is held of it: planned, and last.

    A host has no gauge of what tasks hardly take of it: nothing could be seen there.
    """
    last = shown[-1]
    platform, kinds = last.platform, [*dict.fromkeys(k for s in shown for k in kinds_held(s))]
    profiles = dict[tuple[int, str], dict[str, HeldProfile]]()  # by host and kind
    for kind in kinds:
        for each in shown:
            for host, steps in enumerate(host_profiles(each, amounts_held(each, kind))):
                name = "held" if each is last else "planned"
                profiles.setdefault((host, kind), {})[name] = steps
    if MEMORY in kinds and isinstance(last, Run) and (used := _used(last)) is not None:
        for host, steps in enumerate(host_profiles(last, used)):
            profiles[host, MEMORY]["used at most"] = steps
    seen = [
        (host, kind, size)
        for host in dict.fromkeys(platform.host[order].tolist())
        for kind in kinds
        if 0 < (size := float(platform.host_amounts(kind)[host])) < math.inf
        and max(steps.most for steps in profiles[host, kind].values()) >= LEAST_SHARE * size
    ]
    held_kinds = [kind for kind in kinds if any(kind == k for _, k, _ in seen)]
    legends = {"held": f"{', '.join(held_kinds)} held", "planned": "planned to be held"}
    return tuple(
        Gauge(
            platform.host_names[host],
            kind,
            size,
            kind == MEMORY,
            tuple(
                HeldLevel(
                    name,
                    legends.get(name, name),
                    name == "planned",
                    steps.time,
                    steps.held,
                    name not in legends,
                )
                for name, steps in profiles[host, kind].items()
            ),
        )
        for host, kind, size in seen
    )


def _used(run: Run) -> FloatArray | None:
    """The most memory that each attempt used, as far as it was measured; None: of none it was."""
    used = np.zeros(len(run.attempts.task))
    for event in run.events or ():
        if isinstance(event, TaskFinished | TaskFailed):
            memory = ((event.detail or {}).get(USED) or {}).get(MEMORY)
            used[event.attempt] = memory if isinstance(memory, int | float) else 0.0
    return used if used.any() else None


def _rows(schedule: Schedule, order: IntArray) -> tuple[Row, ...]:
    platform, end = schedule.platform, schedule.makespan
    shares = schedule.processor_time.utilisations
    return tuple(
        Row(
            name=platform.processor_names[p],
            host=platform.host_names[platform.host[p]],
            begin=min(float(platform.joins[p]), end),
            end=min(float(platform.leaves[p]), end),
            busy=float(shares[p]),
        )
        for p in order.tolist()
    )


def _inputs(schedule: Schedule, arrivals: Arrivals) -> Inputs:
    """Every item a task reads; those from outside are there from the beginning."""
    workflow = schedule.workflow
    items = row_of_each(workflow.use_ptr)
    source = workflow.item_producer[items]
    inner = source >= 0
    sent, arrival = np.zeros(len(items)), np.zeros(len(items))
    shown: BoolArray = np.zeros(len(items), dtype=np.bool_)
    sent[inner], arrival[inner] = arrivals.sent, arrivals.arrival
    shown[inner] = arrivals.shown(schedule)
    names = workflow.item_names
    return Inputs(
        item=tuple((names[i] or "") if names else "" for i in items.tolist()),
        source=source,
        target=workflow.use_task,
        sent=sent,
        arrival=arrival,
        size=workflow.item_size[items],
        shown=shown,
    )


LANES = (Lane("planned", 0.0, 0.3, meant=True), Lane("actual", 0.35, 0.65))


def run_chart_of(run: Run) -> Chart:
    """The chart of a run: each task as first planned, if it was; then the attempts."""
    planned = run.plans[:1]
    end = max(run.makespan, *(plan.makespan for plan in planned)) if planned else run.makespan
    first = sum(plan.workflow.n_tasks for plan in planned)  # the bar of the first attempt
    order = rows_in_order(run.platform)
    names, colours, category = _categories(run)
    read = reads_of(run)
    late = margins_of_attempts(run, read)
    return Chart(
        title=f"{run.workflow.name or 'workflow'}, run by {run.strategy}",
        facts=_run_facts(run),
        unit=unit_for(end),
        end=end,
        rows=_run_rows(run, order, end),
        lanes=LANES if planned else (Lane(),),
        categories=names,
        colours=colours,
        bars=_bars(run, order, category, late),
        inputs=_run_inputs(run, read, first),
        critical=tuple(first + step.task for step in late.path),
        bound=tuple(step.bound.value for step in late.path),
        moments=tuple(e.time for e in run.evaluations if e.taken),
        gauges=_gauges(order, *planned, run),
    )


def _bars(run: Run, order: IntArray, category: IntArray, late: Margins) -> Bars:
    log, planned, names = run.attempts, run.plans[:1], run.workflow.task_names
    row_of = np.empty(len(order), dtype=np.int32)
    row_of[order] = np.arange(len(order), dtype=np.int32)
    known = sum(len(plan.processor) for plan in planned)  # tasks may have been added since
    counts = [*(len(plan.processor) for plan in planned), len(log.task)]
    parts = [*((0, *held(p.processor, p.cores)) for p in planned),
             (known, *held(log.processor, log.cores))]  # fmt: skip
    taken = np.concatenate([first + bar for first, bar, _ in parts])
    meant = np.zeros(sum(counts[:-1]))  # what was planned shows no time to spare
    over = run.n_done == len(names)  # until then nobody knows how late anything may be
    return Bars(
        name=names[:known] + tuple(names[task] for task in log.task.tolist()),
        row=row_of[np.concatenate([*(plan.processor for plan in planned), log.processor])],
        lane=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        start=np.concatenate([*(plan.start for plan in planned), log.start]),
        finish=np.concatenate([*(plan.finish for plan in planned), log.finish]),
        category=category,
        blocks=_blocks(sum(counts), taken, np.concatenate([p for *_, p in parts]), row_of),
        slack=np.concatenate([meant, late.slack]) if over else None,
        spare=np.concatenate([meant, late.spare]) if over else None,
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
    return (
        names,
        colours,
        np.concatenate([*(of_task[: len(plan.processor)] for plan in run.plans[:1]), of_attempt]),
    )


def _run_facts(run: Run) -> tuple[str, ...]:
    planned = ""
    if run.planned is not None:
        change = f", {against(run.makespan, run.planned)}" if run.planned > 0 else ""
        planned = f" (planned {duration(run.planned, 3)}{change})"
    lost = run.failed_attempts
    facts = [
        f"makespan {duration(run.makespan, 3)}{planned}",
        f"cost {amount(run.cost)}",
        f"new plans: {run.replans} of {run.considered} considered",
        f"{run.workflow.n_tasks:,} tasks on {run.platform.n_processors:,} processors",
    ]
    facts += [f"failed attempts: {lost}"] if lost else []
    facts += [f"computed again: {run.rewound}"] if run.rewound else []
    return tuple(facts)


def _run_rows(run: Run, order: IntArray, end: float) -> tuple[Row, ...]:
    platform, present, shares = run.platform, run.presence(end), run.processor_time.utilisations
    rows = []
    for p in order.tolist():
        there = present[p]
        rows.append(
            Row(
                name=platform.processor_names[p],
                host=platform.host_names[platform.host[p]],
                begin=min(there[0][0], end) if there else end,
                end=min(there[-1][1], end) if there else end,
                busy=float(shares[p]),
                away=tuple((a[1], b[0]) for a, b in pairwise(there)),
            )
        )
    return tuple(rows)


def _run_inputs(run: Run, reads: Any, first: int) -> Inputs:
    """As the chart holds them; the attempts' bars begin at `first`."""
    names, item, source = run.workflow.item_names, reads["item"], reads["source"]
    return Inputs(
        item=tuple((names[i] or "") if names else "" for i in item.tolist()),
        source=np.where(source == OUTSIDE, OUTSIDE, source + first).astype(np.int32),
        target=reads["target"] + np.int32(first),
        sent=reads["sent"],
        arrival=reads["arrival"],
        size=run.workflow.item_size[item],
        shown=reads["shown"],
    )
