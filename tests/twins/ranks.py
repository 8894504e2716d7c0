"""Means, ranks, and the order they give (Topcuoglu, Hariri, Wu, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from foreplan.model import Situation

from .partial_schedule import PartialSchedule


def mean_cost(partial: PartialSchedule, task: int) -> float:
    """The mean cost of the task over the usable processors."""
    return sum(partial.cost[task][p] for p in partial.usable) / len(partial.usable)


def mean_comm(partial: PartialSchedule, item: int) -> float:
    """The mean transfer time of the item over all ordered pairs of two usable processors."""
    pairs = [(p, q) for p in partial.usable for q in partial.usable if p != q]
    if not pairs:
        return 0.0
    return sum(partial.transfer_time(item, p, q) for p, q in pairs) / len(pairs)


def rank_u(situation: Situation) -> dict[int, float]:
    """The upward rank of every task without an attempt (Topcuoglu et al., eq. 8)."""
    partial = PartialSchedule(situation)
    rank: dict[int, float] = {}
    for task in reversed(partial.todo):
        below = [mean_comm(partial, item) + rank[c] for item, c in partial.uses[task] if c in rank]
        rank[task] = mean_cost(partial, task) + max(below, default=0.0)
    return rank


def rank_d(situation: Situation) -> dict[int, float]:
    """The downward rank of every task without an attempt (Topcuoglu et al., eq. 10)."""
    partial = PartialSchedule(situation)
    rank: dict[int, float] = {}
    for task in partial.todo:
        above = [
            rank[producer] + mean_cost(partial, producer) + mean_comm(partial, item)
            for item, producer in partial.inputs[task]
            if producer in rank
        ]
        rank[task] = max(above, default=0.0)
    return rank


def rounded(rank: Mapping[int, float]) -> dict[int, int]:
    """Ranks in units of 1e-12 of the largest one: equal up to rounding errors becomes equal."""
    unit = max(rank.values(), default=0.0) * 1e-12
    return {task: round(value / unit) if unit > 0 else 0 for task, value in rank.items()}


def by_rank(partial: PartialSchedule, rank: Mapping[int, float]) -> list[int]:
    """The tasks by falling rank; equal ones by position."""
    steps = rounded(rank)
    return sorted(rank, key=lambda task: (-steps[task], partial.position[task]))
