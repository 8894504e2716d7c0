"""What long reproductions share: units of work that are done once, and how their figures came.

A unit is known by its number. Its figures depend on nothing but the settings and that number: not
on who does it, nor when.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from weft.experiments import workers
from weft.experiments.checkpoint import Checkpoint

Settings = TypeVar("Settings")
Columns = dict[str, list[float]]  # the figures of a unit, by name
Perform = Callable[[int], tuple[Columns, float]]  # by a unit's number; with processor seconds


@dataclass(frozen=True)
class Circumstances(Generic[Settings]):
    """How the figures came about."""

    command: str
    settings: Settings
    where: str  # "2 processes", or the cluster
    seconds: float  # by the clock, in all sittings
    processor_seconds: float
    sittings: int

    def __str__(self) -> str:
        several = f" in {self.sittings} sittings that ended in order" if self.sittings > 1 else ""
        return (
            f"{self.seconds:.0f} s by the clock with {self.where}{several}, "
            f"{self.processor_seconds:.0f} s of processors"
        )


def circumstances(
    command: str, settings: Settings, where: str, checkpoint: Checkpoint
) -> Circumstances[Settings]:
    """How the units of a checkpoint came about."""
    return Circumstances(
        command=command,
        settings=settings,
        where=where,
        seconds=sum(seconds for seconds, _ in checkpoint.sittings),
        processor_seconds=checkpoint.seconds,
        sittings=len(checkpoint.sittings),
    )


def left_to_do(count: int, checkpoint: Checkpoint) -> list[int]:
    """The units that are not done yet: mixed, so that the time left can be told from the done."""
    mixed: list[int] = np.random.default_rng(count).permutation(count).tolist()
    return [number for number in mixed if number not in checkpoint.done]


def complete(
    count: int,
    perform: Perform,
    checkpoint: Checkpoint,
    processes: int,
    progress: Callable[[float], None] = lambda share: None,
    at_a_time: int = 1,
) -> None:
    """Do all units that are not done yet; each is in the checkpoint as soon as it is."""
    todo = left_to_do(count, checkpoint)
    if not todo:
        return
    begun = time.perf_counter()
    try:
        workers.in_order(
            lambda k: perform(todo[k]),
            len(todo),
            processes,
            progress,
            heard=lambda k, result: checkpoint.add(todo[k], *result),
            largest=at_a_time,
        )
    finally:
        checkpoint.rise(time.perf_counter() - begun, processes)
