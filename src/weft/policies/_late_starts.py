"""What the policies have in common that are woken by late starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import TAKEN, Notice, Verdict
from weft.kernels.decisions import Conduct
from weft.model import Freedom, Reuse, Schedule, Situation


@dataclass(frozen=True)
class LateStarts:
    """Replans before every start that is later than the watch allows, and takes what comes."""

    learn: ClassVar[bool] = False
    freedom: ClassVar[Freedom] = Freedom.NOT_STARTED
    reuse: ClassVar[Reuse] = Reuse.IN_PLACE
    stays: ClassVar[bool] = False
    planner: str = "heft"

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Before a start that is late."""
        return notice.late_task is not None

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """Always."""
        return TAKEN


def late_starts(watches: int) -> Conduct:
    """Such a policy as numbers, for the kernels."""
    never = float("inf")
    return Conduct(watches, never, never, never, 0.0, compares=False, margin=0.0, rewatches=False)
