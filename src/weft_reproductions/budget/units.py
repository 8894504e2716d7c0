"""The units of the budget experiment: one DAG of one part, with all its plans or runs.

The times of its plans alone differ from call to call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from weft.version import __version__
from weft_reproductions.budget import runs
from weft_reproductions.budget.cases import (
    BY_SPEED,
    FAMILIES,
    HALF,
    MAIN,
    NARROW,
    SPEED_ONLY,
    STEPS,
    Dag,
    Reading,
)
from weft_reproductions.budget.runs import GAINS, LOSSES, Columns

FIGURES, SWEEP, RUNS = "figures", "sweep", "runs"
COMPARED = ("fft", "fork_join", "laplace")  # with independent figures
SWEEP_KS = (0.1, 0.5, 0.9)
READINGS = {
    "as in the figures": MAIN,
    **{f"prices {kind}": replace(MAIN, prices=kind) for kind in (NARROW, HALF, STEPS)},
    f"prices {BY_SPEED}": replace(MAIN, prices=BY_SPEED),
    f"prices {SPEED_ONLY}": replace(MAIN, prices=SPEED_ONLY),
    **{f"CCR {ccr:g}": replace(MAIN, ccr=ccr) for ccr in (0.1, 0.5, 2.0, 5.0)},
    **{f"beta {beta:g}": replace(MAIN, beta=beta) for beta in (0.25, 1.0, 1.5)},
    "tasks alike": replace(MAIN, spread=0.0),
    "tasks alike, CCR 0.1..1": Reading(ccr=0.0, spread=0.0),
}


@dataclass(frozen=True)
class Settings:
    """What the figures depend on: how many DAGs for each part."""

    full: bool
    seed: int = 0
    dags: int = 30  # per type
    sweep: int = 10  # per type and reading
    runs: int = 100

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        return {**asdict(self), "weft": __version__}


FULL = Settings(full=True, dags=100, sweep=40, runs=1000)
SAMPLE = Settings(full=False)


@dataclass(frozen=True)
class Unit:
    """One DAG of one part."""

    number: int
    part: str
    dag: Dag
    name: str  # of the reading, in the sweep


@lru_cache(maxsize=4)
def units(settings: Settings) -> tuple[Unit, ...]:
    """All units, by number."""
    found = [*_figures(settings), *_sweep(settings), *_runs(settings)]
    return tuple(Unit(number, *unit) for number, unit in enumerate(found))


def _figures(settings: Settings) -> Iterator[tuple[str, Dag, str]]:
    for family in FAMILIES:
        for number in range(settings.dags):
            yield FIGURES, Dag(family, number, settings.seed), ""


def _sweep(settings: Settings) -> Iterator[tuple[str, Dag, str]]:
    """What the paper leaves open, on the first DAGs of the figures."""
    for name, reading in READINGS.items():
        for family in COMPARED:
            for number in range(settings.sweep):
                yield SWEEP, Dag(family, number, settings.seed, reading), name


def _runs(settings: Settings) -> Iterator[tuple[str, Dag, str]]:
    """All types of DAGs in equal shares."""
    families = list(FAMILIES)
    for k in range(settings.runs):
        number, family = divmod(k, len(families))
        yield RUNS, Dag(families[family], number, settings.seed), ""


def measured(settings: Settings, unit: Unit) -> Columns:
    """All plans, or all runs, of a unit."""
    if unit.part == FIGURES:
        return runs.measured_plans(unit.dag)
    if unit.part == SWEEP:
        return runs.measured_plans(unit.dag, (*LOSSES, *GAINS), SWEEP_KS)
    return runs.measured_runs(unit.dag)
