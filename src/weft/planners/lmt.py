"""LMT: Iverson, Ozguner, Follen, "Parallelizing existing applications in a distributed ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.kernels.list_planners import LMT
from weft.model import Freedom, Schedule, Situation
from weft.planning import planning_of


@dataclass(frozen=True)
class Lmt:
    """Level by level, the costliest task first, each where it finishes earliest.

    The paper merges the tasks of a level until there are no more than processors; we read it
    after Topcuoglu et al., who leave the tasks apart.
    """

    name: ClassVar[str] = "lmt"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by LMT."""
        planning = planning_of(situation)
        return planning.schedule(self, planning.listed(self.in_kernels()))

    def in_kernels(self) -> int:
        """Which of the kernels' list planners it is."""
        return LMT
