"""Min-Min as a planner: Ibarra, Kim, on the tasks whose parents are placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import MIN_MIN
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class MinMin:
    """Of the tasks whose parents are placed, the one that can finish first goes first."""

    name: ClassVar[str] = "min-min"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by Min-Min."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return MIN_MIN
