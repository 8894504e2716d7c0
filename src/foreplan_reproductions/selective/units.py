"""The units of the selective rescheduling experiment: one DAG with one planner and one error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from foreplan.version import __version__
from foreplan_reproductions.selective.runs import (
    EVENTS,
    EXACT,
    EXACT_FITTED,
    EXACT_LOOP,
    FIGURE4_TASKS,
    FIT,
    FITTED,
    FITTED_SEQUENTIAL,
    LOOP,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    SHAPES,
    SQUARE,
    STRATEGIES,
    Job,
    Outcome,
    by_events,
    figure3_instance,
    in_order,
    informed,
    table_instance,
)


@dataclass(frozen=True)
class Settings:
    """How many DAGs; of Figure 4 per number of tasks."""

    table1: int
    figure3: int
    figure4: int
    readings: int
    seed: int = 0
    full: bool = False

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        return {**asdict(self), "foreplan": __version__}


FULL = Settings(table1=200, figure3=100, figure4=100, readings=50, full=True)
SAMPLE = Settings(table1=20, figure3=10, figure4=8, readings=12)


@lru_cache(maxsize=4)
def units(settings: Settings) -> tuple[Job, ...]:
    """All that is to be run, in the order of the results."""
    seed = settings.seed
    table1 = [Job("table1", k, p, seed) for p in PLANNERS for k in range(settings.table1)]
    figure3 = [
        Job("figure3", k, p, seed, qoi) for p in PLANNERS for qoi in QOIS
        for k in range(settings.figure3)
    ]  # fmt: skip
    figure4 = [
        Job("figure4", k, p, seed, tasks=n) for p in PLANNERS for n in FIGURE4_TASKS
        for k in range(settings.figure4)
    ]  # fmt: skip
    readings = [Job("readings", k, p, seed) for p in PLANNERS for k in range(settings.readings)]
    return (*table1, *figure3, *figure4, *readings)


def measured(settings: Settings, job: Job) -> list[Outcome]:
    """Run everything that is compared on one DAG with one planner."""
    return list(_PARTS[job.part](job))


def _table1(job: Job) -> Iterator[Outcome]:
    for way, loop, dags in ((EVENTS, SEQUENTIAL, SQUARE), (FITTED, FITTED_SEQUENTIAL, FIT)):
        instance = table_instance(job, dags)
        yield by_events(job, instance, "static", way)  # for its time
        for strategy in RESCHEDULING:
            yield by_events(job, instance, strategy, way)
            yield in_order(job, instance, strategy, loop)


def _figure3(job: Job) -> Iterator[Outcome]:
    square, fit = figure3_instance(job), figure3_instance(job, FIT)
    for strategy in STRATEGIES:
        yield by_events(job, square, strategy)
        yield in_order(job, square, strategy)
        yield by_events(job, fit, strategy, FITTED)


def _figure4(job: Job) -> Iterator[Outcome]:
    for way, dags in ((EVENTS, SQUARE), (FITTED, FIT)):
        instance = table_instance(job, dags)
        for strategy in RESCHEDULING:
            yield by_events(job, instance, strategy, way)


def _readings(job: Job) -> Iterator[Outcome]:
    """What the figures hang on: other DAGs, other knowledge, and replanning with no error."""
    for name, dags in SHAPES.items():
        instance = table_instance(job, dags)
        for strategy in ("slack", "spare"):
            yield by_events(job, instance, strategy, name)
    square, fit = table_instance(job), table_instance(job, FIT)
    for strategy in ("slack", "spare"):
        yield informed(job, square, strategy)
        yield in_order(job, square, strategy, LOOP)
    exact = replace(job, qoi=0.0)
    for strategy in ("static", "always"):
        yield by_events(exact, square, strategy, EXACT)
        yield in_order(exact, square, strategy, EXACT_LOOP)
        yield by_events(exact, fit, strategy, EXACT_FITTED)


_PARTS: dict[str, Callable[[Job], Iterator[Outcome]]] = {
    "table1": _table1,
    "figure3": _figure3,
    "figure4": _figure4,
    "readings": _readings,
}
