"""CPOP: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import CPOP
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Cpop:
    """The critical path on the processor that runs it fastest, the rest by earliest finish."""

    name: ClassVar[str] = "cpop"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by CPOP."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return CPOP
