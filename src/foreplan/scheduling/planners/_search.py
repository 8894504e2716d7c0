"""All variants of LOSS and GAIN in one pass over shared work, and descents from what they find.

Figure 2 stops where the budget is kept. Here a path of LOSS is walked to its end, the cheapest
assignment: what comes later is cheaper, and now and then faster too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.contracts import Planner
from foreplan.errors import PlanningError, TooLateError, UnaffordableError
from foreplan.model import Freedom, Schedule, Situation, affordable
from foreplan.scheduling.kernels.ranks import upward_rank
from foreplan.scheduling.planners._reassigning import BudgetTable
from foreplan.scheduling.planners.loss_gain import (
    after,
    costs_along,
    gain_path,
    gained,
    loss_path,
    losses,
)
from foreplan.scheduling.search_progress import SearchClock, tell

POINTS = 24  # of a path that are looked at, evenly spaced, besides the first affordable one
MOST_ALONG = 5_000_000  # steps of a look at all points of a path
MOST_WORK = 300_000_000  # steps of a kernel for one look at all single changes, as variant 2 takes
ALL_WORK = 1_000_000_000  # steps for all descents, some seconds
QUICK_WORK, QUICK_POINTS = 5_000_000, 6  # the same where time is short
SWEEPS = 20  # over all tasks, of one descent
BEGUN, WALKED = 0.3, 0.7  # of a search, roughly: the paths, and the descents from each
PRICES_OF_TIME = (0.5, 1.0, 2.0)  # of what the fastest plan pays for it on average


@dataclass(frozen=True, eq=False)
class FoundPlan:
    """A schedule that was looked at: when it ends, what everything costs then, and by what."""

    makespan: float
    cost: float
    on: IntArray
    schedule: Schedule
    by: str


Starts = dict[str, Schedule]


@dataclass(frozen=True)
class Limits:
    """Of a descent: the seconds that money counts, the money to spare, and the latest end."""

    rate: float
    spare: float = math.inf
    latest: float = math.inf


class Ends(NamedTuple):
    """When a schedule ends, and what it costs then."""

    makespan: float
    cost: float


Better = Callable[
    [Ends | FoundPlan, Ends | FoundPlan], bool
]  # whether the one is wanted, not the other


def faster_within(budget: float) -> Better:
    """What is affordable is better, then what ends earlier; else what is cheaper."""

    def better(one: Ends | FoundPlan, other: Ends | FoundPlan) -> bool:
        mine, its = affordable(one.cost, budget), affordable(other.cost, budget)
        if mine and its:
            return (one.makespan, one.cost) < (other.makespan, other.cost)
        return mine or (not its and _cheaper(one, other))

    return better


def cheaper_by(latest: float) -> Better:
    """What is in time is better, then what is cheaper; else what ends earlier."""

    def better(one: Ends | FoundPlan, other: Ends | FoundPlan) -> bool:
        mine, its = one.makespan <= latest, other.makespan <= latest
        if mine and its:
            return (one.cost, one.makespan) < (other.cost, other.makespan)
        return mine or (not its and one.makespan < other.makespan)

    return better


def _cheaper(one: Ends | FoundPlan, other: Ends | FoundPlan) -> bool:
    """Of what costs the same, but for rounding, the faster."""
    if affordable(one.cost, other.cost) and affordable(other.cost, one.cost):
        return one.makespan < other.makespan
    return one.cost < other.cost


class Keeper:
    """Keeps the best of what it sees."""

    def __init__(self, better: Better) -> None:
        self.better = better
        self.kept: FoundPlan | None = None

    def see(self, found: FoundPlan) -> None:
        """Look at one more."""
        if self.kept is None or self.better(found, self.kept):
            self.kept = found

    @property
    def best(self) -> FoundPlan:
        """The best so far; there is one."""
        assert self.kept is not None
        return self.kept


class Search:
    """Looks at schedules of one situation; `better` says which of two is wanted.

    Whatever it looks at is shown to `see`, too. It ends early when its time is up.
    """

    def __init__(
        self,
        table: BudgetTable,
        better: Better,
        planner: Any,
        clock: SearchClock,
        quick: bool = False,
        see: Callable[[FoundPlan], None] | None = None,
    ) -> None:
        self.table, self.better, self.planner, self.quick = table, better, planner, quick
        self.clock, self.see = clock, see
        self.best_by: dict[str, FoundPlan] = {}
        self.fastest: FoundPlan | None = None
        self.work = work_of(table)
        self.looks_around = self.work <= MOST_WORK and not quick
        self.sweeps = (QUICK_WORK if quick else ALL_WORK) // max(1, self.work)  # that are left
        self.points = QUICK_POINTS if quick else POINTS

    @property
    def best(self) -> FoundPlan:
        """The best of all."""
        found = list(self.best_by.values())
        best = found[0]
        for other in found[1:]:
            best = other if self.better(other, best) else best
        return best

    def look(self, on: IntArray, by: str) -> FoundPlan:
        """Look at an assignment."""
        return self.look_at(self.table.schedule(on, self.planner), by, on)

    def look_at(self, schedule: Schedule, by: str, on: IntArray | None = None) -> FoundPlan:
        """Look at a schedule, and keep it if it is the best by what it was found."""
        on = self.table.place_of(schedule) if on is None else on
        found = FoundPlan(schedule.makespan, self.table.cost(schedule), on, schedule, by)
        if by not in self.best_by or self.better(found, self.best_by[by]):
            self.best_by[by] = found
        if self.fastest is None or found.makespan < self.fastest.makespan:
            self.fastest = found
        if self.see is not None:
            self.see(found)
        return found

    def begin(self, starts: Starts) -> None:
        """The plans of the starts, and all paths of LOSS from there."""
        self.look_at(self.table.cheapest(self.planner), "cheapest")
        for name, first in starts.items():
            self.look_at(first, name)
        for k, (name, first) in enumerate(starts.items()):
            on = self.table.place_of(first)
            for variant in self._variants():
                if self.clock.is_up:
                    return
                tell(BEGUN * (k + variant / 3) / len(starts))
                by = f"loss{variant} from {name}"
                moves = loss_path(self.table, on, first.makespan, variant, True, -math.inf)
                self._walk(on, moves, by)
                # where costs do not add up, LOSS may stop between the points of a walk
                for careful in (False,) if self.table.exact else (True, False):
                    lost = losses(self.table, on, first.makespan, variant, careful, self.planner)
                    for schedule in lost:
                        self.look_at(schedule, by)

    def gain(self) -> None:
        """All paths of GAIN within the budget."""
        table, on = self.table, self.table.cheapest_assignment
        makespan = self.look(on, "cheapest").makespan
        for variant in self._variants():
            if self.clock.is_up:
                return
            by = f"gain{variant}"
            self._walk(on, gain_path(table, on, makespan, variant, True, table.limit), by)
            for careful in (True, False):
                cheapest = self.best_by["cheapest"].schedule
                self.look_at(gained(table, variant, careful, self.planner, cheapest), by)

    def _variants(self) -> tuple[int, ...]:
        return (1, 2, 3) if self.looks_around else (1, 3)

    def _walk(self, on: IntArray, moves: IntArray, by: str) -> None:
        """Look at the best point of a path, and the fastest; if it is long, at some of them."""
        costs = costs_along(self.table, on, moves)
        if self.table.exact and len(costs) * self.table.steps <= MOST_ALONG:
            ends = self.table.makespans_along(on, moves)
            points = [Ends(*point) for point in zip(ends, costs + self.table.settled, strict=True)]
            best = 0
            for k, point in enumerate(points):
                best = k if self.better(point, points[best]) else best
            wanted = {best, int(ends.argmin())}
        else:
            wanted = self._spread(costs)
        current, done = on.copy(), 0
        for count in sorted(wanted):
            current, done = after(self.table, current, moves[done:count]), count
            self.look(current, by)

    def _spread(self, costs: FloatArray) -> set[int]:
        """Points of a path: those where the budget is just kept, and some of all others."""
        wanted = set(np.linspace(0, len(costs) - 1, self.points).round().astype(int).tolist())
        fits = np.flatnonzero(costs <= self.table.limit)
        if len(fits):  # the first from above, the last from below
            rest = np.linspace(fits[0], fits[-1], self.points).round().astype(int)
            wanted.update([int(fits[0]), int(fits[-1]), *rest.tolist()])
        return wanted

    def descend(self, limits: Callable[[FoundPlan, float], Limits]) -> None:
        """From the best of every path, best first, to where no single change helps."""
        table, worth = self.table, self._worth()
        if table.may_restart:
            return
        self._descend_from(self.best, limits(self.best, worth), "improved")
        if self.quick:
            return
        paths = list(self.best_by.values())
        for k, found in enumerate(paths):
            tell(BEGUN + (WALKED - BEGUN) * k / len(paths))
            self._descend_from(found, limits(found, worth), "improved")
        tell(WALKED)
        for factor in PRICES_OF_TIME if worth > 0 else ():
            traded = self._descend_from(self.best, Limits(factor * worth), "traded")
            self._descend_from(traded, limits(traded, worth), "improved")
        for _ in range(2):
            before, best = table.order, self.best
            self._reorder(best)
            self._descend_from(best, limits(best, worth), "reordered")
            if self.best is best:
                table.order = before

    def improve(self, found: FoundPlan, limits: Callable[[float], Limits]) -> None:
        """From there to where no single change helps."""
        if not self.table.may_restart:
            self._descend_from(found, limits(self._worth()), "improved")

    def _descend_from(self, found: FoundPlan, limits: Limits, how: str) -> FoundPlan:
        sweeps = min(SWEEPS, self.sweeps)
        if sweeps < 1 or self.clock.is_up:
            return found
        on, spare, changed = found.on, limits.spare, True
        once = 1 if self.clock.bounded else sweeps  # one by one, so that it can end in between
        while sweeps > 0 and changed and not self.clock.is_up:
            before = on
            on, count = self.table.descent(before, limits.rate, once, spare, limits.latest)
            spare -= self.table.spent_on(on) - self.table.spent_on(before)
            self.sweeps -= count
            sweeps -= count if once == 1 else sweeps
            changed = bool((on != before).any())
        return self.look(on, f"{found.by.partition(',')[0]}, {how}")

    def _worth(self) -> float:
        """Seconds per money, from the cheapest plan to the fastest that was seen."""
        cheapest, fastest = self.best_by["cheapest"], self.fastest
        assert fastest is not None
        dearer, slower = fastest.cost - cheapest.cost, cheapest.makespan - fastest.makespan
        return slower / dearer if dearer > 0 and slower > 0 else 0.0

    def _reorder(self, best: FoundPlan) -> None:
        """Rank the tasks by what they take where they are, rather than on average."""
        table, n = self.table, len(best.on)
        takes = table.seconds[np.arange(n) * table.processors + np.maximum(best.on, 0)]
        rank = upward_rank(table.planning.problem, takes, *table.planning.mean_link)
        table.order = table.planning.by_rank(rank)


def work_of(table: BudgetTable) -> int:
    """The steps of a look at all single changes."""
    return len(table.tasks) * (table.processors - 1) * table.steps


def plans_of(starts: Sequence[Planner], situation: Situation, freedom: Freedom) -> Starts:
    """The plans to start from, by the names of their planners."""
    plans: Starts = {}
    for start in starts:
        try:
            plans[start.name] = start.plan(situation, freedom)
        except (UnaffordableError, TooLateError):  # the start has a limit of its own
            raise
        except PlanningError:  # it finds none before the machines leave, as others may
            continue
    return plans
