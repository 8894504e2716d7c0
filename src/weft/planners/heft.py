"""HEFT: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.decisions import HEFT
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Heft:
    """Highest upward rank first, each task where it finishes earliest, filling gaps."""

    name: ClassVar[str] = "heft"
    insertion: bool = True

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by HEFT."""
        planning = planning_of(situation)
        order = planning.by_rank(planning.upward_rank)
        placement = planning.place(order, insertion=self.insertion)
        return planning.schedule(self, placement)

    def in_kernels(self) -> tuple[int, bool]:
        """The same among the kernels: which it is, and whether it fills gaps."""
        return HEFT, self.insertion
