"""Min-Min as a planner: Ibarra, Kim, on the tasks whose parents are placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.kernels.best_pair import place_best_pair
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class MinMin:
    """Of the tasks whose parents are placed, the one that can finish first goes first."""

    name: ClassVar[str] = "min-min"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by Min-Min."""
        planning = planning_of(situation)
        line = planning.line(planning.by_rank(planning.upward_rank))
        none = np.zeros(planning.problem.n_tasks)
        return planning.schedule(self, place_best_pair(planning.problem, none, line, False))
