"""Checkpoints of the AHEFT experiment in which all but a few small units are made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from foreplan_reproductions.aheft.cases import NO_LEVELS, RANDOM, SHAPES
from foreplan_reproductions.aheft.runs import LOOPS, Columns
from foreplan_reproductions.aheft.units import SAMPLE, Settings, Unit, units
from foreplan_reproductions.experiment import Checkpoint


def small(settings: Settings = SAMPLE) -> list[int]:
    """A few units that take no time."""
    random = [u for u in units(settings) if u.dag.kind == RANDOM and u.dag.size == 20]
    random = [u for u in random if u.dag.ccr <= 0.5]
    main = [u.number for u in random if u.part == "main"]
    readings = [u.number for u in random if u.part == "readings"]
    return [*main[:3], *readings[:1]]


def made_up(unit: Unit) -> Columns:
    """Figures that could be those of a unit: HEFT's, and what is better by 1% to 10%."""
    rng = np.random.default_rng(unit.number)
    n = len(unit.models)
    heft = rng.uniform(1000, 5000, n)

    def better() -> list[float]:
        saved: list[float] = (heft * rng.uniform(0.9, 0.99, n)).tolist()
        return saved

    if unit.part == "main":
        found = {"heft": heft.tolist(), "aheft": better(), "replans": [1.0] * n}
        return {**found, "minmin": (3 * heft).tolist()} if unit.dag.kind == RANDOM else found
    found = {}
    for shape in SHAPES if unit.dag.kind == RANDOM else (NO_LEVELS,):
        found |= {f"{shape}|{name}": heft.tolist() for name in ("heft", "heft append")}
        ours = ("aheft", "one plan", "best of five")
        found |= {f"{shape}|{name}": better() for name in (*ours, *LOOPS)}
        if unit.dag.kind == RANDOM:
            found[f"{shape}|minmin"] = (3 * heft).tolist()
    return found


def nearly_done(path: Path, left: list[int], settings: Settings = SAMPLE) -> None:
    """A checkpoint in which only these units are left to do."""
    checkpoint = Checkpoint.open(path, settings.described())
    for unit in units(settings):
        if unit.number not in left:
            checkpoint.add(unit.number, made_up(unit), 0.01)
    checkpoint.close()
