"""From a schedule to its chart."""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, row_of_each
from weft.charts.chart import Bars, Chart, Inputs, Lane, Row, unit_for
from weft.charts.colours import categories_of
from weft.charts.critical import critical_steps
from weft.charts.transfers import Arrivals, arrivals_of
from weft.model import Platform, Schedule
from weft.quantities import amount, duration


def chart_of(schedule: Schedule) -> Chart:
    """The chart of a schedule: bar i is task i; rows are processors, hosts kept together."""
    arrivals = arrivals_of(schedule)
    steps = critical_steps(schedule, arrivals)
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
        critical=tuple(step.task for step in steps),
        bound=tuple(step.bound.value for step in steps),
    )


def _presence(schedule: Schedule) -> FloatArray:
    """For how long each processor is there, until the makespan."""
    platform, end = schedule.platform, schedule.makespan
    there: FloatArray = np.minimum(platform.leaves, end) - np.minimum(platform.joins, end)
    return there


def _facts(schedule: Schedule) -> tuple[str, ...]:
    n, p = schedule.workflow.n_tasks, schedule.platform.n_processors
    tasks = f"{n:,} task{'s' if n != 1 else ''}"
    return (
        f"makespan {duration(schedule.makespan, 3)}",
        f"cost {amount(schedule.cost)}",
        f"mean utilisation {schedule.utilisation:.0%}",
        f"{tasks} on {p:,} processor{'s' if p != 1 else ''}",
    )


def rows_in_order(platform: Platform) -> IntArray:
    """The processors from top to bottom: hosts as the file first names them, then its order."""
    order: IntArray = np.argsort(platform.host, kind="stable").astype(np.int32)
    return order


def _rows(schedule: Schedule, order: IntArray) -> tuple[Row, ...]:
    platform, end = schedule.platform, schedule.makespan
    busy, there = schedule.busy, _presence(schedule)
    return tuple(
        Row(
            name=platform.processor_names[p],
            host=platform.host_names[platform.host[p]],
            begin=min(float(platform.joins[p]), end),
            end=min(float(platform.leaves[p]), end),
            utilisation=float(busy[p] / there[p]) if there[p] > 0 else 0.0,
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
