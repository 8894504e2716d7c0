"""GTP: Hernandez, Cole, "Reactive Scheduling of DAG Applications ... (GTP)", section 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.decisions import GTP
from weft.kernels.listing import mean_cost
from weft.kernels.positioning import position
from weft.kernels.ranks import upward_rank
from weft.model import Freedom, Schedule, Situation
from weft.planning import Planning, planning_of


@dataclass(frozen=True)
class Gtp:
    """Highest upward rank first, each task where it finishes earliest, running ones included."""

    name: ClassVar[str] = "gtp"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by global task positioning, from what has really been done."""
        planning = planning_of(situation, freedom)
        runs_on = _runs_on(planning)
        order = planning.by_rank(_rank(planning))
        return planning.schedule(self, position(planning.problem, order, runs_on))

    def in_kernels(self) -> int:
        """Which of the kernels' planners it is."""
        return GTP


def _rank(planning: Planning) -> FloatArray:
    """Equations 1 and 2: means of the costs at full availability, and of the transfer times."""
    cost = np.ascontiguousarray(planning.situation.estimates.cost[:, planning.usable])
    mean = mean_cost(cost.reshape(-1), *cost.shape)
    return upward_rank(planning.problem, mean, *planning.mean_link)


def _runs_on(planning: Planning) -> IntArray:
    """The processor, by its number among the usable ones, of each task that may go on there."""
    problem, attempts = planning.problem, planning.situation.attempts
    runs_on = np.full(problem.n_tasks, -1, dtype=np.int32)
    free_to_move = attempts.task[problem.movable[attempts.task]]
    runs_on[free_to_move] = problem.settled_on[free_to_move]
    return runs_on
