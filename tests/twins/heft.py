"""HEFT (Topcuoglu, Hariri, Wu, figure 2)."""

from __future__ import annotations

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, rank_u


def heft(situation: Situation, insertion: bool = True) -> dict[int, Placement]:
    """By falling upward rank, each task where it finishes first."""
    partial = PartialSchedule(situation)
    for task in by_rank(partial, rank_u(situation)):
        partial.place_earliest(task, partial.usable, insertion)
    return partial.placed
