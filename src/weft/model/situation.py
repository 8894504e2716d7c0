"""The situation: everything known at one moment (Hernandez, Cole: the situated task graph)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, frozen
from weft.model.estimates import Estimates
from weft.model.money import Usage
from weft.model.platform import Platform
from weft.model.workflow import Workflow

# What stands still is expected to go on at this share of its speed: far off, but not for ever.
STANDS_STILL = 0.01
# Of a task that is overdue where all stands still, this share is expected to be left: it may have
# stood still before that was noticed.
LEFT_THERE = 0.1


class Freedom(Enum):
    """What a planner may move."""

    NOT_STARTED = "not started"  # running tasks stay where they are
    RESTART = "restart"  # running tasks may be moved too, and then begin from scratch


class Reuse(IntEnum):
    """Which copies of an item may be used, besides the one on its producer's host."""

    NEVER = 0  # what a migrated task has gathered is left behind (Hernandez, Cole: GTP)
    IN_PLACE = 1  # those on the consumer's own host
    ANYWHERE = 2  # they are sources of transfers too (Hernandez, Cole: GTP/c)


@dataclass(frozen=True, eq=False)
class Attempts:
    """Facts that still hold: task t runs (finish is NaN) or has run on a processor.

    Attempts that failed, were cancelled or whose results are lost are not among them. `worked` is
    the work done by `since`, in seconds at full availability.
    """

    task: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    processor: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    start: FloatArray = field(default_factory=lambda: np.empty(0))
    finish: FloatArray = field(default_factory=lambda: np.empty(0))
    worked: FloatArray | None = None  # None: nothing is known but the start
    since: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("task", "processor"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32))
        for name in ("start", "finish"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float64))
        worked = np.zeros(len(self.start)) if self.worked is None else self.worked
        since = self.start if self.since is None else self.since
        object.__setattr__(self, "worked", frozen(worked, np.float64))
        object.__setattr__(self, "since", frozen(since, np.float64))


@dataclass(frozen=True, eq=False)
class Copies:
    """Items that are complete on a host other than their producer's."""

    item: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    host: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))

    def __post_init__(self) -> None:
        for name in ("item", "host"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32))


@dataclass(frozen=True, eq=False)
class Transfers:
    """Items on their way to a host, and when each is expected there."""

    item: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    host: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    arrival: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name in ("item", "host"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32))
        object.__setattr__(self, "arrival", frozen(self.arrival, np.float64))


_OPTIONAL = {
    "availability": np.float64,
    "bandwidth": np.float64,
    "present": np.bool_,
    "given_up": np.bool_,
    "astray": np.bool_,
}
_NO_ATTEMPTS, _NO_COPIES, _NO_TRANSFERS = Attempts(), Copies(), Transfers()


@dataclass(frozen=True, eq=False)
class Situation:
    """What a planner is asked from; at the start it is just empty."""

    workflow: Workflow
    platform: Platform
    estimates: Estimates
    now: float = 0.0
    attempts: Attempts = _NO_ATTEMPTS
    copies: Copies = _NO_COPIES
    transfers: Transfers = _NO_TRANSFERS
    availability: FloatArray | None = None  # by processor; None: all fully available
    bandwidth: FloatArray | None = None  # hosts x hosts, factors; None: all links at full speed
    present: BoolArray | None = None  # processors there now; None: as the platform says
    given_up: BoolArray | None = None  # tasks that will not run; None: all will
    astray: BoolArray | None = None  # items that their producers' hosts have lost; None: none
    reuse: Reuse = Reuse.IN_PLACE
    budget: float = float("inf")  # for all of it, what is spent included
    usage: Usage | None = None  # by now, also in vain; None: that of the attempts that hold

    def __post_init__(self) -> None:
        for name, dtype in _OPTIONAL.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), dtype))

    @staticmethod
    def at_start(
        workflow: Workflow, platform: Platform, estimates: Estimates | None = None
    ) -> Situation:
        """Nothing has happened yet; without estimates, the declared ones."""
        if estimates is None:
            estimates = Estimates.declared(workflow, platform)
        return Situation(workflow, platform, estimates)

    def usable(self) -> BoolArray:
        """The processors that may be used now: there, and not about to leave at once."""
        if self.present is None:
            return self.platform.present(self.now)
        usable: BoolArray = self.present & (self.platform.leaves > self.now)
        return usable

    @cached_property
    def used(self) -> Usage:
        """What machines have been used by now, and what transfers have cost."""
        if self.usage is not None:
            return self.usage
        attempts = self.attempts
        until = np.where(np.isnan(attempts.finish), self.now, attempts.finish)
        nothing = Usage.none(self.platform.n_processors)
        return nothing.and_then(attempts.processor, attempts.start, until)

    @cached_property
    def cost(self) -> FloatArray:
        """What a task that has yet to start takes on each processor, as that is available now."""
        full, availability = self.estimates.cost, self.availability
        if availability is None or bool((availability == 1.0).all()):
            return full
        return full / np.maximum(availability, STANDS_STILL)

    @cached_property
    def full_speed(self) -> bool:
        """Whether every link has its full bandwidth."""
        return self.bandwidth is None or bool((self.bandwidth == 1.0).all())

    @cached_property
    def time_per_unit(self) -> FloatArray:
        """What a unit of data takes between each two hosts, at the bandwidth known now."""
        full, factor = self.platform.time_per_unit, self.bandwidth
        if factor is None or self.full_speed:
            return full
        return full / np.maximum(factor, STANDS_STILL)

    def expected_finish(self) -> FloatArray:
        """When each attempt finished, or should: an overdue one is expected to finish now."""
        return self._expected_finish

    @cached_property
    def _expected_finish(self) -> FloatArray:
        a = self.attempts
        assert a.worked is not None
        assert a.since is not None
        cost = self.estimates.cost[a.task, a.processor]
        left, since = cost - a.worked, a.since
        if self.availability is not None:
            rate = self.availability[a.processor]
            still = rate < STANDS_STILL
            there = left - (self.now - since) * rate
            left = np.where(still, np.where(there > 0, there, LEFT_THERE * cost), left)
            since = np.where(still, self.now, since)
            left = left / np.maximum(rate, STANDS_STILL)
        expected = np.maximum(self.now, since + np.maximum(0.0, left))
        return np.where(np.isnan(a.finish), expected, a.finish)

    def known_arrivals(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Where items are or are going, as (item, host, time): copies are there now.

        To any other host an item must be sent, and not before now (Yu, Shi, section 4.1).
        """
        copies, moving = self.copies, self.transfers
        return (
            np.concatenate([copies.item, moving.item]),
            np.concatenate([copies.host, moving.host]),
            np.concatenate([np.full(len(copies.item), self.now), moving.arrival]),
        )
