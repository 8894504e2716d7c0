"""Min-Min and Max-Min over the tasks whose parents are all placed."""

from __future__ import annotations

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, rank_u


def min_min(situation: Situation) -> dict[int, Placement]:
    """First the task that can be completed first."""
    return _by_completion(situation, sign=1)


def max_min(situation: Situation) -> dict[int, Placement]:
    """First the task whose best completion is last."""
    return _by_completion(situation, sign=-1)


def _by_completion(situation: Situation, sign: int) -> dict[int, Placement]:
    partial = PartialSchedule(situation)
    order = by_rank(partial, rank_u(situation))
    while ready := set(partial.ready()):
        completion = {
            task: min(partial.finish(task, p, insertion=False) for p in partial.usable)
            for task in order
            if task in ready
        }
        task = min(completion, key=lambda t: sign * completion[t])
        partial.place_earliest(task, partial.usable, insertion=False)
    return partial.placed
