"""Adaptive rescheduling on events, if it pays (Yu, Shi: AHEFT, Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.contracts import Notice, Verdict, Watch
from weft.errors import InputError
from weft.kernels.decisions import NO_START, Conduct
from weft.model import Freedom, Reuse, Schedule, Situation
from weft.projection import ends_earlier, projected_makespan


@dataclass(frozen=True)
class Aheft:
    """Replans when machines join, leave, fail or are off their estimates; takes what ends earlier.

    `threshold` is the relative deviation of a task's duration, or of a processor's speed, that is
    looked at. `learn`: in a simulation, finished tasks change the estimates of their category.
    """

    name: ClassVar[str] = "aheft"
    freedom: ClassVar[Freedom] = Freedom.NOT_STARTED
    reuse: ClassVar[Reuse] = Reuse.IN_PLACE
    stays: ClassVar[bool] = False
    planner: str = "heft"
    threshold: float = 0.2
    learn: bool = True

    def __post_init__(self) -> None:
        if not self.threshold >= 0:
            raise InputError(
                f"the threshold must be 0 or more, not {self.threshold:g}", place="aheft[threshold]"
            )

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """No start is late, but what is off its estimate matters."""
        return Watch(np.full(plan.workflow.n_tasks, np.inf), self.threshold)

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Every event is evaluated."""
        return notice.event is not None

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """If it is expected to end earlier than the current plan does from now."""
        projected = projected_makespan(current, situation)
        return Verdict(ends_earlier(candidate.makespan, projected), projected)

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        never = float("inf")
        return Conduct(
            NO_START, self.threshold, never, never, 0.0, compares=True, margin=0.0, rewatches=False
        )
