"""CPOP (Topcuoglu, Hariri, Wu, figure 4)."""

from __future__ import annotations

from math import inf

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, mean_comm, rank_d, rank_u


def cpop(situation: Situation) -> dict[int, Placement]:
    """The critical path on one processor, the rest where it finishes first."""
    partial = PartialSchedule(situation)
    up, down = rank_u(situation), rank_d(situation)
    order = by_rank(partial, {task: up[task] + down[task] for task in partial.todo})
    path = critical_path(partial, order, up)
    path_cost = {p: sum(partial.cost[task][p] for task in path) for p in partial.usable}
    while ready := set(partial.ready()):
        task = next(t for t in order if t in ready)
        best = min(partial.usable, key=lambda p: path_cost[p])
        fits = task in path and partial.finish(task, best, insertion=True) < inf
        partial.place_earliest(task, [best] if fits else partial.usable, insertion=True)
    return partial.placed


def critical_path(partial: PartialSchedule, order: list[int], up: dict[int, float]) -> list[int]:
    """From the first entry task on, always the successor with the longest way down."""
    entries = [t for t in order if not any(producer in up for _, producer in partial.inputs[t])]
    path = entries[:1]
    while path:
        way: dict[int, float] = {}
        for item, c in partial.uses[path[-1]]:
            if c in up:
                way[c] = max(way.get(c, 0.0), mean_comm(partial, item) + up[c])
        if not way:
            break
        path.append(by_rank(partial, way)[0])
    return path
