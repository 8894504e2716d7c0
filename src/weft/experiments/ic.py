"""ICO against FIFO, LIFO and GREEDY (Hall, Rosenberg, Venkataramani), and beyond that paper.

A unit of work is one dag of one part, with all its plays. Its figures depend on nothing but the
settings and its number: not on who does it, nor when.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from weft.experiments import ic_plays, ic_units, ic_volunteers
from weft.experiments import units as work
from weft.experiments.checkpoint import Checkpoint
from weft.experiments.ic_cases import instance_of
from weft.experiments.ic_plays import Columns
from weft.experiments.ic_units import AREA, EVERY, PHASES, Settings, Unit, units

SAMPLE, FULL = ic_units.SAMPLE, ic_units.FULL


def perform(settings: Settings, number: int) -> tuple[Columns, float]:
    """The figures of one unit, and the processor time they took."""
    begun = time.process_time()
    columns = measured(settings, units(settings)[number])
    return columns, time.process_time() - begun


def measured(settings: Settings, unit: Unit) -> Columns:
    """All plays, or all runs, of a unit."""
    if unit.volunteers is not None:
        return ic_volunteers.measured(unit.volunteers, settings.workflows, unit.strategies)
    if unit.part == EVERY:
        return ic_plays.every_size(unit.cases, settings.plays)
    instance = instance_of(unit.case, settings.workflows)
    if unit.part == AREA:
        return ic_plays.areas(unit.case, instance, settings.plays)
    batched = ic_plays.phases(unit.case, instance, settings.plays)
    if unit.part == PHASES:
        return batched
    return {**batched, **ic_plays.areas(unit.case, instance, settings.plays)}


def complete(
    settings: Settings,
    checkpoint: Checkpoint,
    processes: int,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Do all units that are not done yet."""
    do = partial(perform, settings)
    work.complete(len(units(settings)), do, checkpoint, processes, progress)
