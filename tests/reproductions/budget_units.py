"""Checkpoints of the budget experiment in which all but a few units are made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foreplan_reproductions.budget.cases import KS
from foreplan_reproductions.budget.runs import FAITHFUL, GAINS, LOSSES, VARIANTS, WAYS, Columns
from foreplan_reproductions.budget.units import (
    BESIDE,
    FIGURES,
    RUNS,
    SAMPLE,
    SWEEP,
    SWEEP_KS,
    Settings,
    Unit,
    units,
)
from foreplan_reproductions.experiment import Checkpoint

TINY = Settings(full=False, dags=3, beside=3, sweep=2, runs=8)


def one_of_each(settings: Settings = SAMPLE) -> list[int]:
    """A unit of each part."""
    return [
        next(u.number for u in units(settings) if u.part == part)
        for part in (FIGURES, BESIDE, SWEEP, RUNS)
    ]


def made_up(unit: Unit) -> Columns:
    """Figures that could be those of a unit."""
    rng = np.random.default_rng([1, unit.number])
    if unit.part == RUNS:
        found: Columns = {"budget": [100.0], "cheapest": [200.0, 60.0]}
        for way in WAYS:
            found[f"{way.name}|cost"] = [float(rng.uniform(80, 130))]
            found[f"{way.name}|makespan"] = [float(rng.uniform(100, 200))]
            found[f"{way.name}|replans"] = [float(rng.integers(0, 9))]
        return found
    names = {FIGURES: tuple(VARIANTS), BESIDE: FAITHFUL, SWEEP: (*LOSSES, *GAINS)}[unit.part]
    ks = SWEEP_KS if unit.part == SWEEP else KS
    found = {"over": [0.0], "cheapest": [200.0, 60.0], "heft": [100.0, 140.0]}
    found["hbmct"] = [90.0, 160.0]
    for name in names:
        found[f"{name}|makespan"] = (200 - 90 * np.array(ks) + rng.uniform(-9, 9)).tolist()
        found[f"{name}|seconds"] = rng.uniform(0.001, 0.002, len(ks)).tolist()
        found[f"{name}|moved"] = rng.integers(1, 90, len(ks)).astype(np.float64).tolist()
    return found


def all_made_up(settings: Settings = SAMPLE) -> dict[int, Columns]:
    """Figures for all units."""
    return {unit.number: made_up(unit) for unit in units(settings)}


def nearly_done(path: Path, left: list[int], settings: Settings = SAMPLE) -> None:
    """A checkpoint in which only these units are left to do."""
    checkpoint = Checkpoint.open(path, settings.described())
    for unit in units(settings):
        if unit.number not in left:
            checkpoint.add(unit.number, made_up(unit), 0.01)
    checkpoint.close()
