"""The tables of the selective rescheduling experiment, with the published figures beside ours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreplan.arrays import FloatArray
from foreplan_reproductions.reports import mean_of
from foreplan_reproductions.selective.runs import (
    EVENTS,
    EXACT,
    EXACT_FITTED,
    EXACT_LOOP,
    FIGURE4_TASKS,
    FITTED,
    FITTED_SEQUENTIAL,
    KNOWN,
    LOOP,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    SHAPES,
    STRATEGIES,
    Outcome,
)
from foreplan_reproductions.selective.units import Settings

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


WAYS = (EVENTS, SEQUENTIAL, FITTED, FITTED_SEQUENTIAL)  # of Table 1
DRAWN = (EVENTS, SEQUENTIAL, FITTED)  # of Figure 3
TIMED = (EVENTS, FITTED)  # of Figure 4


@dataclass(frozen=True)
class Table1Row:
    """Number of reschedulings, and running time, per run and relative to always."""

    way: str
    planner: str
    strategy: str
    dags: int
    replans: float
    margin: float  # half the 95% interval
    published_replans: float
    milliseconds: float  # processor time of the whole call
    time_of_always: float
    added_time_of_always: float  # both without what static takes
    published_time: float
    published_time_of_always: float


@dataclass(frozen=True)
class Figure3Row:
    """Average makespan, and relative to that of always; the margin is the 95% interval's half."""

    way: str
    planner: str
    qoi: float
    strategy: str
    dags: int
    makespan: float
    of_always: float
    margin: float
    replans: float


@dataclass(frozen=True)
class Figure4Row:
    """Average running time by number of tasks."""

    way: str
    planner: str
    tasks: int
    strategy: str
    dags: int
    replans: float
    milliseconds: float


@dataclass(frozen=True)
class ReadingRow:
    """What the figures hang on: one thing changed at a time."""

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
    groups = _grouped(outcomes, lambda o: (o.way, o.job.planner, o.strategy))
    rows = []
    for way in WAYS:
        for planner in PLANNERS:
            always = _mean(groups[way, planner, "always"], "seconds")
            static = _mean(groups[way, planner, "static"], "seconds") if way in TIMED else np.nan
            for strategy in RESCHEDULING:
                ours = groups[way, planner, strategy]
                replans, seconds = mean_of(_values(ours, "replans")), _mean(ours, "seconds")
                time, published = PUBLISHED[planner, strategy]
                rows.append(
                    Table1Row(
                        way, planner, strategy, len(ours), replans.value, replans.margin, published,
                        1000 * seconds, seconds / always, (seconds - static) / (always - static),
                        time,
                        time / PUBLISHED[planner, "always"][0],
                    )
                )  # fmt: skip
    return rows


def _figure3(outcomes: list[Outcome]) -> list[Figure3Row]:
    groups = _grouped(outcomes, lambda o: (o.way, o.job.planner, o.job.qoi, o.strategy))
    rows = []
    for way in DRAWN:
        for planner in PLANNERS:
            for qoi in QOIS:
                for strategy in STRATEGIES:
                    ours = groups[way, planner, qoi, strategy]
                    ratio = _ratio(ours, groups[way, planner, qoi, "always"])
                    makespan, replans = _mean(ours, "makespan"), _mean(ours, "replans")
                    rows.append(
                        Figure3Row(
                            way, planner, qoi, strategy, len(ours), makespan, *ratio, replans
                        )
                    )
    return rows


def _figure4(outcomes: list[Outcome]) -> list[Figure4Row]:
    groups = _grouped(outcomes, lambda o: (o.way, o.job.planner, o.job.tasks, o.strategy))
    return [
        Figure4Row(
            way=way,
            planner=planner,
            tasks=tasks,
            strategy=strategy,
            dags=len(ours := groups[way, planner, tasks, strategy]),
            replans=_mean(ours, "replans"),
            milliseconds=1000 * _mean(ours, "seconds"),
        )
        for way in TIMED
        for planner in PLANNERS
        for tasks in FIGURE4_TASKS
        for strategy in RESCHEDULING
    ]


READINGS = (*SHAPES, KNOWN, LOOP, EXACT, EXACT_LOOP, EXACT_FITTED)


def _readings(outcomes: list[Outcome]) -> list[ReadingRow]:
    groups = _grouped(outcomes, lambda o: (o.way, o.job.planner, o.strategy))
    order = {name: k for k, name in enumerate((*READINGS, *PLANNERS, *STRATEGIES))}
    return [
        ReadingRow(
            reading, planner, strategy, len(ours), _mean(ours, "makespan"), _mean(ours, "replans")
        )
        for (reading, planner, strategy), ours in sorted(
            groups.items(), key=lambda group: [order[part] for part in group[0]]
        )
    ]


def _grouped(outcomes: Sequence[Outcome], key: Callable[[Outcome], Any]) -> Group:
    groups: Group = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    return groups


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
