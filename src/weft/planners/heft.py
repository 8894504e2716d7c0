"""HEFT: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity task scheduling"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import HEFT, HEFT_AT_THE_END
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
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return HEFT if self.insertion else HEFT_AT_THE_END
