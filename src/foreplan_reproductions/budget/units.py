"""The units of the budget experiment: one DAG of one part, with all its plans or runs.

The times of its plans alone differ from call to call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from foreplan.version import __version__
from foreplan_reproductions.budget import runs
from foreplan_reproductions.budget.cases import FAMILIES, MAIN, PRICES, UNRELATED, Dag
from foreplan_reproductions.budget.runs import FAITHFUL, GAINS, LOSSES, Columns

FIGURES, BESIDE, SWEEP, RUNS = "figures", "unrelated", "sweep", "runs"
SWEEP_KS = (0.1, 0.5, 0.9)
READINGS = {
    "related, as in the figures": MAIN,
    **{f"speeds 1..{most:g}": replace(MAIN, speeds=most) for most in (1.0, 1.5, 2.0, 6.0)},
    **{f"prices {kind}": replace(MAIN, prices=kind) for kind in PRICES if kind != MAIN.prices},
    **{f"CCR {ccr:g}": replace(MAIN, ccr=ccr) for ccr in (0.1, 1.0, 2.0, 5.0)},
    **{f"costs ±{beta / 2:.0%}": replace(MAIN, beta=beta) for beta in (0.2, 1.0)},
    "tasks differ": replace(MAIN, spread=2.0),
    "tasks differ, CCR 1": replace(MAIN, spread=2.0, ccr=1.0),
    "unrelated, as beside the figures": UNRELATED,
}


@dataclass(frozen=True)
class Settings:
    """What the figures depend on: how many DAGs for each part."""

    full: bool
    seed: int = 0
    dags: int = 20  # per type
    beside: int = 20  # per type, on unrelated machines
    sweep: int = 5  # per type and reading
    runs: int = 60

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        return {**asdict(self), "foreplan": __version__}


FULL = Settings(full=True, dags=100, beside=100, sweep=20, runs=200)
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
    found = [*_figures(settings), *_beside(settings), *_sweep(settings), *_runs(settings)]
    return tuple(Unit(number, *unit) for number, unit in enumerate(found))


def _figures(settings: Settings) -> Iterator[tuple[str, Dag, str]]:
    for family in FAMILIES:
        for number in range(settings.dags):
            yield FIGURES, Dag(family, number, settings.seed), ""


def _beside(settings: Settings) -> Iterator[tuple[str, Dag, str]]:
    for family in FAMILIES:
        for number in range(settings.beside):
            yield BESIDE, Dag(family, number, settings.seed, UNRELATED), ""


def _sweep(settings: Settings) -> Iterator[tuple[str, Dag, str]]:
    """What the paper leaves open, on the first DAGs of the figures."""
    for name, reading in READINGS.items():
        for family in FAMILIES:
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
        return runs.measured_plans(unit.dag, repeats=runs.REPEATS)
    if unit.part == BESIDE:
        return runs.measured_plans(unit.dag, FAITHFUL)
    if unit.part == SWEEP:
        return runs.measured_plans(unit.dag, (*LOSSES, *GAINS), SWEEP_KS)
    return runs.measured_runs(unit.dag)
