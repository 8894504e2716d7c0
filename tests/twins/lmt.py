"""LMT, levelized min time (Iverson, Ozguner, Follen)."""

from __future__ import annotations

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, mean_cost


def lmt(situation: Situation) -> dict[int, Placement]:
    """Level by level, the costly tasks first, each where it finishes first."""
    partial = PartialSchedule(situation)
    level: dict[int, int] = {}
    for task in situation.workflow.order.tolist():
        above = [level[producer] for _, producer in partial.inputs[task] if producer in level]
        level[task] = 1 + max(above, default=-1)
    costly_first = by_rank(partial, {task: mean_cost(partial, task) for task in partial.todo})
    for task in sorted(costly_first, key=lambda t: level[t]):  # sorted() keeps equals in order
        partial.place_earliest(task, partial.usable, insertion=False)
    return partial.placed
