"""The situation: everything known at one moment (Hernandez, Cole: the situated task graph)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, FrozenArrays, IntArray
from foreplan.ends import STANDS_STILL, expected_ends
from foreplan.files import one_line
from foreplan.model.estimates import Estimates
from foreplan.model.money import Usage
from foreplan.model.platform import Platform
from foreplan.model.resources import Cores, Demand, held
from foreplan.model.workflow import Workflow
from foreplan.quantities import duration


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
class Attempts(FrozenArrays):
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
    cores: Cores | None = None  # None: each holds its processor

    def __post_init__(self) -> None:
        if self.worked is None:
            object.__setattr__(self, "worked", np.zeros(len(self.start)))
        if self.since is None:
            object.__setattr__(self, "since", self.start)
        super().__post_init__()


@dataclass(frozen=True, eq=False)
class Copies(FrozenArrays):
    """Items that are complete on a host other than their producer's."""

    item: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    host: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))


@dataclass(frozen=True, eq=False)
class Transfers(FrozenArrays):
    """Items on their way to a host, and when each is expected there."""

    item: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    host: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    arrival: FloatArray = field(default_factory=lambda: np.empty(0))


_NO_ATTEMPTS, _NO_COPIES, _NO_TRANSFERS = Attempts(), Copies(), Transfers()


@dataclass(frozen=True, eq=False)
class Situation(FrozenArrays):
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

    def __repr__(self) -> str:
        running = int(np.isnan(self.attempts.finish).sum())
        said = [f"{len(self.attempts.task) - running:,} done", f"{running:,} running"]
        said.append(f"{int(self.waiting().sum()):,} waiting")
        where = f"{one_line(self.workflow.name) or 'a workflow'} at {duration(self.now)}"
        return f"<Situation of {where}: tasks {', '.join(said)}; {self.platform!r}>"

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
        everyone = np.ones(len(until), dtype=np.bool_)
        return self._with(Usage.none(self.platform.n_processors), everyone, attempts.start, until)

    def _with(self, usage: Usage, which: BoolArray, start: FloatArray, finish: FloatArray) -> Usage:
        """A usage and that of these attempts, on all of their cores, from then to then."""
        attempts, demand = self.attempts, self.demand
        rows, first = np.flatnonzero(which).astype(np.int32), attempts.processor[which]
        cores = attempts.cores and attempts.cores.take(rows)
        each, processors = held(first, cores)
        shares = 0.0
        if demand is not None and demand.paid.any():
            width = 1 if cores is None else cores.width
            beyond = demand.beyond(attempts.task[which], self.platform.host[first], width)
            shares = float(np.dot(beyond * self.platform.price[first], finish - start))
        return usage.and_then(processors, start[each], finish[each], shares)

    @cached_property
    def demand(self) -> Demand | None:
        """What the tasks need beside what the hosts have; None: one core each, nothing else."""
        needs = self.estimates.needs
        return None if needs is None else Demand.of(self.workflow, self.platform, needs)

    def committed(self, which: BoolArray | None = None) -> Usage:
        """The use of machines once all that runs now has ended as expected, or these attempts."""
        attempts = self.attempts
        which = np.isnan(attempts.finish) if which is None else which
        ends = self.expected_finish()[which]
        return self._with(self.used, which, np.full(len(ends), float(self.now)), ends)

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
        cost, ends = self.estimates.cost[a.task, a.processor], np.empty(len(a.task))
        if self.estimates.needs is not None and a.cores is not None:
            cost = cost * self.estimates.needs.factor_of(a.task, a.cores.width)
        speed = self.availability
        rate = np.ones(len(a.task)) if speed is None else speed[a.processor]
        expected_ends(cost, a.worked, a.since, rate, self.now, ends)
        return np.where(np.isnan(a.finish), ends, a.finish)

    def free_from(self) -> FloatArray:
        """When each processor is free: now, or at the expected end of what it runs."""
        attempts, free = self.attempts, np.full(self.platform.n_processors, float(self.now))
        if len(attempts.task):
            running = np.isnan(attempts.finish)
            rows, processors = held(attempts.processor, attempts.cores)
            of_running = running[rows]
            ends = self.expected_finish()[rows[of_running]]
            np.maximum.at(free, processors[of_running], ends)
        return free

    def waiting(self) -> BoolArray:
        """The tasks that have not begun, and are not given up."""
        waiting = np.ones(self.workflow.n_tasks, dtype=np.bool_)
        waiting[self.attempts.task] = False
        if self.given_up is not None:
            waiting &= ~self.given_up
        return waiting

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
