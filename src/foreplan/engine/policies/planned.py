"""Strategies that follow a plan, and ask for another when something is off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from foreplan.contracts import TAKEN, Notice, Planner, Verdict, Watch
from foreplan.engine.kernels.decisions import EVERY_START, NO_START, SLACK, SPARE, Conduct
from foreplan.errors import InputError
from foreplan.model import Freedom, Reuse, Schedule, Situation
from foreplan.model.events import (
    NewEstimates,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    TaskFinished,
)
from foreplan.scheduling.projection import ends_earlier, project, projected_makespan
from foreplan.scheduling.slack import ROUNDING, slack_and_spare

NEVER = float("inf")
WAKING = (ProcessorJoined, ProcessorLeaving, ProcessorGone, TaskFinished)


@dataclass(frozen=True)
class Static:
    """Never replans; what a lost processor leaves undone is planned elsewhere."""

    name: ClassVar[str] = "static"
    learn: ClassVar[bool] = False
    freedom: ClassVar[Freedom] = Freedom.NOT_STARTED
    reuse: ClassVar[Reuse] = Reuse.IN_PLACE
    stays: ClassVar[bool] = False
    planner: str | Planner = "heft"

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
        return _late_starts(NO_START)


@dataclass(frozen=True)
class Ideal(Static):
    """Planned with the true durations: a plan by the same heuristic, not a lower bound.

    Post mortem (Zhao, Sakellariou, section 4.2).
    """

    name: ClassVar[str] = "ideal"


@dataclass(frozen=True)
class _LateStarts:
    """Replans before every start that is later than the watch allows, and takes what comes."""

    learn: ClassVar[bool] = False
    freedom: ClassVar[Freedom] = Freedom.NOT_STARTED
    reuse: ClassVar[Reuse] = Reuse.IN_PLACE
    stays: ClassVar[bool] = False
    planner: str | Planner = "heft"

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """Before a start that is late."""
        return notice.late_task is not None

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """Always."""
        return TAKEN


def _late_starts(watches: int) -> Conduct:
    """A policy that is woken by these late starts and nothing else, as numbers."""
    return Conduct(watches, NEVER, NEVER, NEVER, 0.0, compares=False, margin=0.0, rewatches=False)


@dataclass(frozen=True)
class Always(_LateStarts):
    """Replans before every task start but the first.

    Zhao, Sakellariou, section 4.2.
    """

    name: ClassVar[str] = "always"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """Every start is late."""
        return Watch(np.full(plan.workflow.n_tasks, -np.inf))

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        return _late_starts(EVERY_START)


@dataclass(frozen=True)
class Slack(_LateStarts):
    """Replans when a task starts later than planned by more than its slack.

    Selective rescheduling (Zhao, Sakellariou, section 3).
    """

    name: ClassVar[str] = "slack"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The planned start and the slack."""
        slack, _ = slack_and_spare(plan, situation)
        return Watch(plan.start + slack + ROUNDING * plan.makespan)

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        return _late_starts(SLACK)


@dataclass(frozen=True)
class Spare(_LateStarts):
    """Replans when a task starts later than planned by more than its minimal spare time.

    Selective rescheduling (Zhao, Sakellariou, section 3).
    """

    name: ClassVar[str] = "spare"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The planned start and the minimal spare time."""
        _, spare = slack_and_spare(plan, situation)
        return Watch(plan.start + spare + ROUNDING * plan.makespan)

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        return _late_starts(SPARE)


@dataclass(frozen=True)
class DlsSr(Spare):
    """DLS, and a new plan when a task starts later than its minimal spare time allows.

    GTP's competitor (Hernandez, Cole, section 6).
    """

    name: ClassVar[str] = "dls/sr"
    planner: str | Planner = "dls"
    conduct = Spare.conduct


@dataclass(frozen=True)
class Aheft:
    """Replans when machines join, leave, fail or are off their estimates; takes what ends earlier.

    AHEFT (Yu, Shi, Figure 2).
    `threshold` is the relative deviation of a task's duration, or of a processor's speed, that is
    looked at. `learn`: in a simulation, finished tasks change the estimates of their category.
    `second`: a second plan, made as if nothing had been sent yet, is taken if it ends earlier.
    """

    name: ClassVar[str] = "aheft"
    freedom: ClassVar[Freedom] = Freedom.NOT_STARTED
    reuse: ClassVar[Reuse] = Reuse.IN_PLACE
    stays: ClassVar[bool] = False
    planner: str | Planner = "heft"
    threshold: float = 0.2
    learn: bool = True
    second: bool = True

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
        return Conduct(
            NO_START, self.threshold, NEVER, NEVER, 0.0, compares=True, margin=0.0, rewatches=False
        )


@dataclass(frozen=True)
class Adaptive(Slack):
    """Replans when starts are late, tasks early, and processors come or go; takes what pays.

    The default of real runs: slack's eye for late starts (Zhao, Sakellariou), AHEFT's for all else,
    and a new plan must pay (Yu, Shi).
    `margin` is the share of the time left that a new plan must save: moving has its price. A task
    is early if it saves as much by itself.
    No task changes between equal processors of one host without need.
    """

    name: ClassVar[str] = "adaptive"
    stays: ClassVar[bool] = True
    margin: float = 0.002

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
        return isinstance(event, WAKING)

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
        return Conduct(
            SLACK, NEVER, self.margin, NEVER, 0.0,
            compares=True, margin=self.margin, rewatches=True,
        )  # fmt: skip
