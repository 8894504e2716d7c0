"""The tables of the selective rescheduling experiment, with the published figures beside ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.arrays import FloatArray
from weft_reproductions.selective.runs import (
    EVENTS,
    FIGURE4_TASKS,
    INFORMED,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    SHAPES,
    STRATEGIES,
    Outcome,
)
from weft_reproductions.selective.units import Settings

# Table 1 of the paper: running time (no unit given) and number of reschedulings.
PUBLISHED = {
    ("fcp", "always"): (345.77, 49.0),
    ("fcp", "slack"): (66.87, 6.82),
    ("fcp", "spare"): (74.28, 7.83),
    ("dls", "always"): (699.33, 49.0),
    ("dls", "slack"): (122.18, 7.35),
    ("dls", "spare"): (126.23, 7.95),
    ("lmt", "always"): (528.23, 49.0),
    ("lmt", "slack"): (77.93, 6.51),
    ("lmt", "spare"): (97.15, 8.41),
    ("heft", "always"): (357.40, 49.0),
    ("heft", "slack"): (73.01, 7.51),
    ("heft", "spare"): (86.20, 8.86),
}


@dataclass(frozen=True)
class Table1Row:
    """Running time, per run and relative to always, and number of reschedulings."""

    planner: str
    strategy: str
    dags: int
    replans: float
    sequential_replans: float
    published_replans: float
    milliseconds: float  # processor time of the whole call
    time_of_always: float
    published_time: float
    published_time_of_always: float


@dataclass(frozen=True)
class Figure3Row:
    """Average makespan, and relative to that of always; the margin is the 95% interval's half."""

    planner: str
    qoi: float
    strategy: str
    dags: int
    makespan: float
    of_always: float
    margin: float
    replans: float
    sequential_makespan: float
    sequential_of_always: float
    sequential_margin: float
    sequential_replans: float


@dataclass(frozen=True)
class Figure4Row:
    """Average running time by number of tasks."""

    planner: str
    tasks: int
    strategy: str
    dags: int
    replans: float
    milliseconds: float


@dataclass(frozen=True)
class ReadingRow:
    """What decides the figures: one thing changed at a time."""

    reading: str
    planner: str
    strategy: str
    dags: int
    makespan: float
    replans: float


@dataclass(frozen=True)
class Tables:
    """Everything that was measured."""

    table1: list[Table1Row]
    figure3: list[Figure3Row]
    figure4: list[Figure4Row]
    readings: list[ReadingRow]


Group = dict[Any, list[Outcome]]


def tables(settings: Settings, done: Mapping[int, list[Outcome]]) -> Tables:
    """The averages over the DAGs."""
    parts: dict[str, list[Outcome]] = defaultdict(list)
    for number in sorted(done):
        for outcome in done[number]:
            parts[outcome.job.part].append(outcome)
    return Tables(
        _table1(parts["table1"]),
        _figure3(parts["figure3"]),
        _figure4(parts["figure4"]),
        _readings(parts["readings"]),
    )


def _table1(outcomes: list[Outcome]) -> list[Table1Row]:
    groups: Group = defaultdict(list)
    for o in outcomes:
        groups[o.job.planner, o.strategy, o.simulator].append(o)
    rows = []
    for planner in PLANNERS:
        always = _mean(groups[planner, "always", EVENTS], "seconds")
        for strategy in RESCHEDULING:
            ours = groups[planner, strategy, EVENTS]
            published_time, published_replans = PUBLISHED[planner, strategy]
            rows.append(
                Table1Row(
                    planner=planner,
                    strategy=strategy,
                    dags=len(ours),
                    replans=_mean(ours, "replans"),
                    sequential_replans=_mean(groups[planner, strategy, SEQUENTIAL], "replans"),
                    published_replans=published_replans,
                    milliseconds=1000 * _mean(ours, "seconds"),
                    time_of_always=_mean(ours, "seconds") / always,
                    published_time=published_time,
                    published_time_of_always=published_time / PUBLISHED[planner, "always"][0],
                )
            )
    return rows


def _figure3(outcomes: list[Outcome]) -> list[Figure3Row]:
    groups: Group = defaultdict(list)
    for o in outcomes:
        groups[o.job.planner, o.job.qoi, o.strategy, o.simulator].append(o)
    rows = []
    for planner in PLANNERS:
        for qoi in QOIS:
            for strategy in STRATEGIES:
                ours = groups[planner, qoi, strategy, EVENTS]
                theirs = groups[planner, qoi, strategy, SEQUENTIAL]
                ratio, margin = _ratio(ours, groups[planner, qoi, "always", EVENTS])
                ratio_theirs, margin_theirs = _ratio(
                    theirs, groups[planner, qoi, "always", SEQUENTIAL]
                )
                rows.append(
                    Figure3Row(
                        planner=planner,
                        qoi=qoi,
                        strategy=strategy,
                        dags=len(ours),
                        makespan=_mean(ours, "makespan"),
                        of_always=ratio,
                        margin=margin,
                        replans=_mean(ours, "replans"),
                        sequential_makespan=_mean(theirs, "makespan"),
                        sequential_of_always=ratio_theirs,
                        sequential_margin=margin_theirs,
                        sequential_replans=_mean(theirs, "replans"),
                    )
                )
    return rows


def _figure4(outcomes: list[Outcome]) -> list[Figure4Row]:
    groups: Group = defaultdict(list)
    for o in outcomes:
        groups[o.job.planner, o.job.tasks, o.strategy].append(o)
    return [
        Figure4Row(
            planner=planner,
            tasks=tasks,
            strategy=strategy,
            dags=len(ours := groups[planner, tasks, strategy]),
            replans=_mean(ours, "replans"),
            milliseconds=1000 * _mean(ours, "seconds"),
        )
        for planner in PLANNERS
        for tasks in FIGURE4_TASKS
        for strategy in RESCHEDULING
    ]


def shape_name(alpha: float) -> str:
    """The reading of weft's run on DAGs of this shape."""
    return f"events, alpha {alpha:g}"


KNOWN, LOOP = "durations known at the start", "the paper's loop"
EXACT, EXACT_LOOP = "no error", "no error, the paper's loop"
READINGS = (*(shape_name(alpha) for alpha in SHAPES), KNOWN, LOOP, EXACT, EXACT_LOOP)


def _reading(o: Outcome) -> str:
    if o.job.qoi == 0:
        return EXACT if o.simulator == EVENTS else EXACT_LOOP
    if o.simulator == EVENTS:
        return shape_name(o.alpha)
    return KNOWN if o.simulator == INFORMED else LOOP


def _readings(outcomes: list[Outcome]) -> list[ReadingRow]:
    groups: Group = defaultdict(list)
    for o in outcomes:
        groups[_reading(o), o.job.planner, o.strategy].append(o)
    order = {name: k for k, name in enumerate((*READINGS, *PLANNERS, *STRATEGIES))}
    return [
        ReadingRow(
            reading, planner, strategy, len(ours), _mean(ours, "makespan"), _mean(ours, "replans")
        )
        for (reading, planner, strategy), ours in sorted(
            groups.items(), key=lambda group: [order[part] for part in group[0]]
        )
    ]


def _values(outcomes: Sequence[Outcome], field: str) -> FloatArray:
    return np.array([getattr(o, field) for o in outcomes], dtype=np.float64)


def _mean(outcomes: Sequence[Outcome], field: str) -> float:
    return float(_values(outcomes, field).mean())


def _ratio(ours: Sequence[Outcome], always: Sequence[Outcome]) -> tuple[float, float]:
    """Mean makespan relative to always, and the half of its 95% interval, paired by DAG."""
    mine, base = _values(ours, "makespan"), _values(always, "makespan")
    ratio = mine.mean() / base.mean()
    if len(mine) < 2:
        return float(ratio), float("nan")
    spread = (mine - ratio * base).std(ddof=1) / np.sqrt(len(mine)) / base.mean()
    return float(ratio), float(1.96 * spread)
