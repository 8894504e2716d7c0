"""Selective rescheduling by spare time (Zhao, Sakellariou, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Watch
from weft.model import Schedule, Situation
from weft.policies._late_starts import LateStarts
from weft.robustness import ROUNDING, slack_and_spare


@dataclass(frozen=True)
class Spare(LateStarts):
    """Replans when a task starts later than planned by more than its minimal spare time."""

    name: ClassVar[str] = "spare"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The planned start and the minimal spare time."""
        _, spare = slack_and_spare(plan, situation)
        return Watch(plan.start + spare + ROUNDING * plan.makespan)
