"""FCP: Radulescu, van Gemund, "On the complexity of list scheduling algorithms"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import FCP
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Fcp:
    """Ready tasks by upward rank; only the processor free first and the enabling one are tried.

    The paper has equal processors and takes the earlier start; on unequal ones we read it as the
    earlier finish, also among several that are free first.
    """

    name: ClassVar[str] = "fcp"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by FCP."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return FCP
