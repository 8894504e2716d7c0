"""Max-Min as a planner: Ibarra, Kim, on the tasks whose parents are placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import MAX_MIN
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class MaxMin:
    """Of the tasks whose parents are placed, the one whose earliest finish is latest goes first."""

    name: ClassVar[str] = "max-min"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by Max-Min."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return MAX_MIN
