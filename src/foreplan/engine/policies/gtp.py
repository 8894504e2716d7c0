"""GTP and its variants: Hernandez, Cole, "Reactive Scheduling of DAG Applications"."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from foreplan.contracts import TAKEN, Notice, Planner, Verdict, Watch
from foreplan.engine.kernels.decisions import NO_START, Conduct
from foreplan.model import Freedom, Reuse, Schedule, Situation
from foreplan.model.events import ProcessorGone, ProcessorJoined, ProcessorLeaving, Woken

WAKING = (Woken, ProcessorJoined, ProcessorGone, ProcessorLeaving)


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
class _GlobalPositioning:
    """Maps everything anew at every rescheduling point, and at once when machines come or go.

    `period` is the time between rescheduling points: seconds, or a share of the plan's makespan.
    """

    learn: ClassVar[bool] = False
    freedom: ClassVar[Freedom] = Freedom.RESTART
    reuse: ClassVar[Reuse] = Reuse.NEVER
    stays: ClassVar[bool] = False
    planner: str | Planner = "gtp"
    period: Period = DEFAULT

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """The next rescheduling point."""
        never = np.full(plan.workflow.n_tasks, np.inf)
        return Watch(never, period=self.period.seconds(plan.makespan))

    def decide(self, notice: Notice, situation: Situation, plan: Schedule) -> bool:
        """At rescheduling points, and when machines come or go; all else can wait."""
        return isinstance(notice.event, WAKING)

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


@dataclass(frozen=True)
class GtpStrategy(_GlobalPositioning):
    """Replans at rescheduling points; what it migrates begins from scratch."""

    name: ClassVar[str] = "gtp"
    conduct = _GlobalPositioning.conduct


@dataclass(frozen=True)
class GtpR(_GlobalPositioning):
    """An alias of gtp: what a lost processor took with it is rewound by all strategies."""

    name: ClassVar[str] = "gtp/r"
    conduct = _GlobalPositioning.conduct


@dataclass(frozen=True)
class GtpC(_GlobalPositioning):
    """As gtp, and fetches data from the cheapest copy; on Dask, results of 1 MB and more.

    What is smaller travels there with the task that reads it, from where Dask takes it.
    """

    name: ClassVar[str] = "gtp/c"
    reuse: ClassVar[Reuse] = Reuse.ANYWHERE
    conduct = _GlobalPositioning.conduct


@dataclass(frozen=True)
class GtpCR(GtpC):
    """An alias of gtp/c: what a lost processor took with it is rewound by all strategies."""

    name: ClassVar[str] = "gtp/c/r"
    conduct = GtpC.conduct
