"""The plan made at the start, followed to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.contracts import TAKEN, Notice, Verdict, Watch
from weft.kernels.decisions import NO_START, Conduct
from weft.model import Freedom, Reuse, Schedule, Situation


@dataclass(frozen=True)
class Static:
    """Never replans; what a lost processor leaves undone is planned elsewhere."""

    name: ClassVar[str] = "static"
    learn: ClassVar[bool] = False
    freedom: ClassVar[Freedom] = Freedom.NOT_STARTED
    reuse: ClassVar[Reuse] = Reuse.IN_PLACE
    stays: ClassVar[bool] = False
    planner: str = "heft"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """Nothing is late enough."""
        return Watch(np.full(plan.workflow.n_tasks, np.inf))

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """No new plan."""
        return False

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """A plan that had to be made is taken."""
        return TAKEN

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        return Conduct(
            NO_START, np.inf, np.inf, np.inf, 0.0, compares=False, margin=0.0, rewatches=False
        )
