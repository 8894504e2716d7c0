"""HBMCT: Sakellariou, Zhao, "A hybrid heuristic for DAG scheduling on heterogeneous systems"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import HBMCT
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Hbmct:
    """Groups of independent tasks in rank order, each balanced by minimum completion time."""

    name: ClassVar[str] = "hbmct"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by HBMCT."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return HBMCT
