"""PEFT: Arabnejad, Barbosa, "List scheduling ... by an optimistic cost table"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.ranks import optimistic_cost, ready_order
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Peft:
    """Each task where its finish plus the optimistic rest of its path is smallest."""

    name: ClassVar[str] = "peft"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by PEFT."""
        planning = planning_of(situation)
        table = optimistic_cost(planning.problem, *planning.mean_link)
        rank = table.reshape(planning.cost.shape).mean(axis=1)
        order = ready_order(planning.problem, planning.by_rank(rank))
        return planning.schedule(self, planning.place(order, bias=table))
