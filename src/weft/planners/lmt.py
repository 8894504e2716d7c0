"""LMT: Iverson, Ozguner, Follen, "Parallelizing existing applications in a distributed ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.kernels.ranks import hop_levels
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Lmt:
    """Level by level, the costliest task first, each where it finishes earliest.

    The paper merges the tasks of a level until there are no more than processors; we read it
    after Topcuoglu et al., who leave the tasks apart.
    """

    name: ClassVar[str] = "lmt"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by LMT."""
        planning = planning_of(situation)
        level = hop_levels(planning.problem)
        by_cost = planning.by_rank(planning.mean_cost)
        order = by_cost[np.argsort(level[by_cost], kind="stable")]
        return planning.schedule(self, planning.place(order, insertion=False))
