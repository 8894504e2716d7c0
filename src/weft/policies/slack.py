"""Selective rescheduling by slack (Zhao, Sakellariou, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Watch
from weft.kernels.decisions import SLACK, Conduct
from weft.model import Schedule, Situation
from weft.policies._late_starts import LateStarts, late_starts
from weft.robustness import ROUNDING, slack_and_spare


@dataclass(frozen=True)
class Slack(LateStarts):
    """Replans when a task starts later than planned by more than its slack."""

    name: ClassVar[str] = "slack"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The planned start and the slack."""
        slack, _ = slack_and_spare(plan, situation)
        return Watch(plan.start + slack + ROUNDING * plan.makespan)

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        return late_starts(SLACK)
