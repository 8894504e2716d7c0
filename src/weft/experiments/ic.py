"""ICO against FIFO, LIFO and GREEDY (Hall, Rosenberg, Venkataramani), and beyond that paper.

A unit of work is one dag of one part, with all its plays. Its figures depend on nothing but the
settings and its number: not on who does it, nor when.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from weft.experiments import ic_plays, ic_units, ic_volunteers, workers
from weft.experiments.checkpoint import Checkpoint
from weft.experiments.ic_cases import instance_of
from weft.experiments.ic_plays import Columns
from weft.experiments.ic_units import AREA, EVERY, PHASES, Settings, Unit, units

SAMPLE, FULL = ic_units.SAMPLE, ic_units.FULL


def order(settings: Settings) -> list[int]:
    """In which order to do the units: mixed, so that the time left can be told from the done."""
    count = len(units(settings))
    mixed: list[int] = np.random.default_rng(count).permutation(count).tolist()
    return mixed


def perform(settings: Settings, number: int) -> tuple[Columns, float]:
    """The figures of one unit, and the processor time they took."""
    warm_up()
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


def warm_up() -> None:
    """Compile, or load, everything; once per process."""
    ic_plays.warm_up()
    ic_volunteers.warm_up()


def complete(
    settings: Settings,
    checkpoint: Checkpoint,
    processes: int,
    progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Do all units that are not done yet; each is in the checkpoint as soon as it is."""
    todo = [number for number in order(settings) if number not in checkpoint.done]
    if not todo:
        return
    begun = time.perf_counter()
    warm_up()  # before the processes part, so that they share it
    try:
        workers.in_order(
            lambda k: perform(settings, todo[k]),
            len(todo),
            processes,
            progress,
            heard=lambda k, result: checkpoint.add(todo[k], *result),
            largest=1,
        )
    finally:
        checkpoint.rise(time.perf_counter() - begun, processes)
