"""CPOP: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.arrays import IntArray
from weft.kernels.ranks import critical_path, downward_rank, ready_order
from weft.model import Freedom, Schedule, Situation
from weft.planning import Planning, planning_of


@dataclass(frozen=True)
class Cpop:
    """The critical path on the processor that runs it fastest, the rest by earliest finish."""

    name: ClassVar[str] = "cpop"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by CPOP."""
        planning = planning_of(situation)
        priority = planning.upward_rank + downward_rank(
            planning.problem, planning.mean_cost, *planning.mean_link
        )
        by_priority = planning.by_rank(priority)
        order = ready_order(planning.problem, by_priority)
        pins = _pin_critical_path(planning, by_priority)
        return planning.schedule(self, planning.place(order, pinned=pins))


def _pin_critical_path(planning: Planning, by_priority: IntArray) -> IntArray:
    """The critical path goes to the processor with the smallest sum of its costs."""
    pins = np.full(planning.problem.n_tasks, -1, dtype=np.int32)
    movable, problem = planning.problem.movable, planning.problem
    waits = np.zeros(problem.n_tasks, dtype=np.bool_)
    _, producers, consumers = planning.situation.workflow.dependencies()
    waits[consumers[movable[producers]]] = True
    entries = by_priority[~waits[by_priority]]
    if len(entries) == 0:
        return pins
    position = planning.situation.workflow.position
    path = critical_path(
        planning.problem, planning.upward_rank, position, int(entries[0]), *planning.mean_link
    )
    pins[path] = int(planning.cost[path].sum(axis=0).argmin())
    return pins
