"""DLS, dynamic level scheduling (Sih, Lee)."""

from __future__ import annotations

from math import inf
from statistics import median

from foreplan.errors import PlanningError
from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, rank_u


def dls(situation: Situation) -> dict[int, Placement]:
    """Of all pairs of a ready task and a processor, the one with the greatest dynamic level."""
    partial = PartialSchedule(situation)
    order = by_rank(partial, rank_u(situation))
    usual = {t: median(partial.cost[t][p] for p in partial.usable) for t in partial.todo}
    static = static_levels(partial, usual)
    while ready := set(partial.ready()):
        best, choice = -inf, None
        for task in [t for t in order if t in ready]:
            for p in partial.usable:
                if partial.finish(task, p, insertion=False) == inf:
                    continue
                start = partial.start(task, p, insertion=False)
                level = static[task] - start + (usual[task] - partial.cost[task][p])
                if level > best:
                    best, choice = level, (task, p)
        if choice is None:
            raise PlanningError("no ready task fits on any processor before it leaves")
        partial.place(*choice, insertion=False)
    return partial.placed


def static_levels(partial: PartialSchedule, usual: dict[int, float]) -> dict[int, float]:
    """The longest way down from each task, itself included, without communication."""
    level: dict[int, float] = {}
    for task in reversed(partial.todo):
        below = [level[c] for _, c in partial.uses[task] if c in level]
        level[task] = usual[task] + max(below, default=0.0)
    return level
