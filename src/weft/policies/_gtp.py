"""What the strategies of the GTP family have in common (Hernandez, Cole)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.contracts import TAKEN, Notice, Verdict, Watch
from weft.kernels.decisions import NO_START, Conduct
from weft.model import Freedom, Reuse, Schedule, Situation
from weft.model.events import Event, EventKind

WAKING = (EventKind.WAKE, EventKind.JOINED, EventKind.GONE, EventKind.LEAVING)


class Period(str):
    """The time from one rescheduling point to the next: seconds, or a share of the makespan."""

    EXPECTED = "a number of seconds above 0, or a share of the makespan like 5%"

    def __new__(cls, text: str) -> Period:
        """A period from the text of an option; ValueError if it is none."""
        if not 0 < float(text.removesuffix("%")) < math.inf:
            raise ValueError(text)
        return super().__new__(cls, text)

    def seconds(self, makespan: float) -> float:
        """How long it is under a plan with this makespan."""
        if not self.endswith("%"):
            return float(self)
        share = float(self.removesuffix("%")) / 100 * makespan
        return share if share > 0 else math.inf


DEFAULT = Period("5%")  # shorter ones gain next to nothing more (docs/results/gtp)


@dataclass(frozen=True)
class GlobalPositioning:
    """Maps everything anew at every rescheduling point, and at once when machines come or go.

    `period` is the time between rescheduling points: seconds, or a share of the plan's makespan.
    """

    learn: ClassVar[bool] = False
    freedom: ClassVar[Freedom] = Freedom.RESTART
    reuse: ClassVar[Reuse] = Reuse.NEVER
    stays: ClassVar[bool] = False
    planner: str = "gtp"
    period: Period = DEFAULT

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The next rescheduling point."""
        never = np.full(plan.workflow.n_tasks, np.inf)
        return Watch(never, period=self.period.seconds(plan.makespan))

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """At rescheduling points, and when machines come or go; all else can wait."""
        return isinstance(notice.event, Event) and notice.event.kind in WAKING

    def accept(self, candidate: Schedule, current: Schedule, situation: Situation) -> Verdict:
        """Always."""
        return TAKEN

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        period, share = self.period.seconds(1.0), 0.0
        if self.period.endswith("%"):
            period, share = math.inf, float(self.period.removesuffix("%")) / 100
        return Conduct(
            NO_START, math.inf, math.inf, period, share, compares=False, margin=0.0, rewatches=False
        )
