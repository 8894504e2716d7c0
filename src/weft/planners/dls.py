"""DLS: Sih, Lee, "A compile-time scheduling heuristic for interconnection-constrained ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import DLS
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
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return DLS
