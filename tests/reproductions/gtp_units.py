"""Checkpoints of the GTP experiment in which all but a few small units are made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foreplan_reproductions.experiment import Checkpoint
from foreplan_reproductions.gtp.runs import METRICS
from foreplan_reproductions.gtp.units import CALM, FAILURE, SAMPLE, Columns, Settings, Unit, units


def small(settings: Settings = SAMPLE) -> list[int]:
    """Some units that take no time: one calm, one with a failure."""
    some = [u for u in units(settings) if u.graph.size == 50 and u.graph.ccr == 0.5]
    parts = {part: [u.number for u in some if u.part == part] for part in (CALM, FAILURE)}
    return [parts[CALM][0], parts[FAILURE][1]]


def made_up(unit: Unit) -> Columns:
    """Figures that could be those of a unit; the strategies differ by up to 10%."""
    rng = np.random.default_rng([1, unit.number])
    makespan = rng.uniform(100, 200, len(unit.points))
    found: Columns = {"path": [80.0], "work": [1000.0]}
    for name in unit.points[0].specs:
        for metric in METRICS:
            values = rng.integers(1, 50, len(unit.points)).astype(np.float64)
            if metric == "makespan":
                values = makespan * rng.uniform(0.9, 1.0, len(unit.points))
            found[f"{name}|{metric}"] = values.tolist()
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
