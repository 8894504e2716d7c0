"""PEFT: Arabnejad, Barbosa, "List scheduling ... by an optimistic cost table"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import PEFT
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Peft:
    """Each task where its finish plus the optimistic rest of its path is smallest."""

    name: ClassVar[str] = "peft"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by PEFT."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return PEFT
