"""Checkpoints of the IC experiments in which all but a few small units are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from foreplan_reproductions.experiment import Checkpoint
from foreplan_reproductions.ic.plays import (
    HEURISTICS,
    ICO,
    KNOWN,
    MEANS,
    MERGED,
    SINKS_LAST,
    Columns,
)
from foreplan_reproductions.ic.units import (
    AREA,
    EVERY,
    PHASES,
    READINGS,
    SAMPLE,
    VOLUNTEERS,
    Settings,
    Unit,
    units,
)

TINY = replace(
    SAMPLE,
    plays=4,
    mesh_step=30,
    tree_sizes=3,
    compositions=6,
    phase_sizes=(20, 40),
    most=60,
    tree_step=25,
    random_sizes=(30,),
    random_dags=2,
    volunteer_size=60,
    readings=2,
    worlds=2,
    slow_worlds=(2, 2),
    sweep_worlds=1,
    processors=20,
)


def made_up(unit: Unit) -> Columns:
    """Figures that could be those of a unit; heuristics differ by up to 20%."""
    rng = np.random.default_rng([1, unit.number])
    if unit.part == VOLUNTEERS:
        found: Columns = {"n": [60.0], "span": [9.0]}
        for name in unit.strategies:
            found |= {f"{name}|makespan": [rng.uniform(1, 2)], f"{name}|lost": [3.0]}
        return found
    if unit.part == EVERY:
        sizes = [float(case.size) for case in unit.cases]
        return {"n": sizes, "optimal": [1.0] * len(sizes), "ahead": [0.0] * len(sizes)}
    if unit.part == READINGS:
        heads = [f"{name}|{least}" for name in (*HEURISTICS, SINKS_LAST) for least in MERGED]
        found = {head: [rng.uniform(10, 90)] for head in heads}
        return found | {f"sources|{least}": [7.0] for least in MERGED}
    n = float(rng.integers(50, 5000))
    found = {"n": [n], "optimal": [1.0]}
    if unit.part != PHASES:
        found[ICO] = [n**2]
        found |= {name: (n**2 * rng.uniform(0.8, 0.99, 4)).tolist() for name in KNOWN}
    if unit.part != AREA:
        for mean in MEANS:
            polls = rng.integers(50, 60, 4).astype(np.float64)
            found[f"{ICO}|{mean}"] = polls.tolist()
            for name in KNOWN:
                found[f"{name}|{mean}"] = (polls * rng.uniform(1.0, 1.3)).tolist()
    return found


def all_made_up(settings: Settings = TINY) -> dict[int, Columns]:
    """Figures for all units."""
    return {unit.number: made_up(unit) for unit in units(settings)}


def one_of_each(settings: Settings = TINY) -> list[int]:
    """Units that take no time, one of each part."""
    firsts: dict[str, int] = {}
    for unit in units(settings):
        firsts.setdefault(unit.part, unit.number)
    return list(firsts.values())


def nearly_done(path: Path, left: list[int], settings: Settings = TINY) -> None:
    """A checkpoint in which only these units are left to do."""
    checkpoint = Checkpoint.open(path, settings.described())
    for unit in units(settings):
        if unit.number not in left:
            checkpoint.add(unit.number, made_up(unit), 0.01)
    checkpoint.close()
