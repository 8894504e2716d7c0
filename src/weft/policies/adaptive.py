"""The default of real runs: slack's eye for late starts, AHEFT's for all else, no plan in vain.

Late starts as by Zhao, Sakellariou; a new plan must pay, as by Yu, Shi.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Notice, Verdict, Watch
from weft.errors import InputError
from weft.kernels.decisions import SLACK, Conduct
from weft.model import Schedule, Situation
from weft.model.events import EventKind, NewEstimates
from weft.policies.slack import Slack
from weft.projection import ends_earlier, project

WAKING = (EventKind.JOINED, EventKind.LEAVING, EventKind.GONE, EventKind.TASK_FINISHED)


@dataclass(frozen=True)
class Adaptive(Slack):
    """Replans when starts are late, tasks early, and processors come or go; takes what pays.

    `margin` is the share of the time left that a new plan must save: moving has its price. A task
    is early if it saves as much by itself.
    No task changes between equal processors of one host without need.
    """

    name: ClassVar[str] = "adaptive"
    stays: ClassVar[bool] = True
    margin: float = 0.005

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(
                f"the margin must be 0 or more and below 1, not {self.margin:g}",
                place="adaptive[margin]",
            )

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """As by slack, and who has ended early by the margin."""
        latest = super().watch(plan, situation).latest_start
        return Watch(latest, early=self.margin * (plan.makespan - situation.now))

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Before late starts, after early ends, when machines come or go or estimates change."""
        event = notice.event
        if notice.late_task is not None or isinstance(event, NewEstimates):
            return True
        return event is not None and event.kind in WAKING

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """If it saves the margin of what the current plan takes from now; else that goes on."""
        going_on = project(current, situation)
        if going_on is None:
            return Verdict(taken=True, projected=float("inf"))
        end = going_on.makespan
        enough = end - self.margin * (end - situation.now)
        return Verdict(ends_earlier(candidate.makespan, enough), end, going_on)

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        never = float("inf")
        return Conduct(
            SLACK, never, self.margin, never, 0.0,
            compares=True, margin=self.margin, rewatches=True,
        )  # fmt: skip
