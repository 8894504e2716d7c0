"""DLS: Sih, Lee, "A compile-time scheduling heuristic for interconnection-constrained ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.kernels.best_pair import place_best_pair
from weft.kernels.ranks import upward_rank
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Dls:
    """The ready task and processor with the greatest dynamic level first.

    DL(i,p) = SL(i) - max(data ready, processor free) + (E*(i) - E(i,p)), E* the median over
    processors, SL the longest path of E* without communication. That is SL + E* less the finish,
    so a task's best processor is always the one on which it finishes first.
    """

    name: ClassVar[str] = "dls"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by DLS."""
        planning = planning_of(situation)
        median = np.median(planning.cost, axis=1)
        static_level = upward_rank(planning.problem, median, 0.0, 0.0)
        line = planning.line(planning.by_rank(planning.upward_rank))
        placement = place_best_pair(planning.problem, static_level + median, line, False)
        return planning.schedule(self, placement)
