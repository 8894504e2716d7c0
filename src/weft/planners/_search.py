"""All variants of LOSS and GAIN in one pass over shared work, and descents from what they find.

Figure 2 stops where the budget is kept. Here a path of LOSS is walked to its end, the cheapest
assignment: what comes later is cheaper, and now and then faster too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.contracts import Planner
from weft.errors import PlanningError, TooLateError, UnaffordableError
from weft.kernels.ranks import upward_rank
from weft.model import Freedom, Schedule, Situation
from weft.planners._budgeted import gained, losses
from weft.planners._paths import after, gain_path, loss_path
from weft.planners._reassigning import Table

POINTS = 24  # of a path that are looked at, evenly spaced, besides the first affordable one
MOST_WORK = 300_000_000  # steps of a kernel for one look at all single changes, as variant 2 takes
ALL_WORK = 1_000_000_000  # steps for all descents, some seconds
QUICK_WORK, QUICK_POINTS = 5_000_000, 6  # the same where time is short
SWEEPS = 20  # over all tasks, of one descent
PRICES_OF_TIME = (0.5, 1.0, 2.0)  # of what the fastest plan pays for it on average


@dataclass(frozen=True, eq=False)
class Found:
    """A schedule that was looked at: when it ends, what everything costs then, and by what."""

    makespan: float
    cost: float
    on: IntArray
    schedule: Schedule
    by: str


@dataclass(frozen=True)
class Limits:
    """Of a descent: the seconds that money counts, the money to spare, and the latest end."""

    rate: float
    spare: float = math.inf
    latest: float = math.inf


class Search:
    """Looks at schedules of one situation; `better` says which of two is wanted."""

    def __init__(
        self,
        table: Table,
        better: Callable[[Found, Found], bool],
        planner: Any,
        quick: bool = False,
    ) -> None:
        self.table, self.better, self.planner, self.quick = table, better, planner, quick
        self.best_by: dict[str, Found] = {}
        self.fastest: Found | None = None
        n, edges = len(table.tasks), len(table.planning.problem.in_item)
        self.work = n * (table.processors - 1) * (n + edges)  # of a look at all single changes
        self.looks_around = self.work <= MOST_WORK and not quick
        self.sweeps = (QUICK_WORK if quick else ALL_WORK) // max(1, self.work)  # that are left
        self.points = QUICK_POINTS if quick else POINTS

    @property
    def best(self) -> Found:
        """The best of all."""
        found = list(self.best_by.values())
        best = found[0]
        for other in found[1:]:
            best = other if self.better(other, best) else best
        return best

    def look(self, on: IntArray, by: str) -> Found:
        """Look at an assignment."""
        return self.look_at(self.table.schedule(on, self.planner), by, on)

    def look_at(self, schedule: Schedule, by: str, on: IntArray | None = None) -> Found:
        """Look at a schedule, and keep it if it is the best by what it was found."""
        on = self.table.place_of(schedule) if on is None else on
        found = Found(schedule.makespan, self.table.cost(schedule), on, schedule, by)
        if by not in self.best_by or self.better(found, self.best_by[by]):
            self.best_by[by] = found
        if self.fastest is None or found.makespan < self.fastest.makespan:
            self.fastest = found
        return found

    def begin(self, starts: Sequence[Planner], situation: Situation, freedom: Freedom) -> None:
        """The plans of the starts, and all paths of LOSS from there."""
        self.look_at(self.table.cheapest(self.planner), "cheapest")
        for start in starts:
            first = _planned(start, situation, freedom)
            if first is None:
                continue
            self.look_at(first, start.name)
            on = self.table.place_of(first)
            for variant in self._variants():
                by = f"loss{variant} from {start.name}"
                moves = loss_path(self.table, on, first.makespan, variant, True, -math.inf)
                self._walk(on, moves, by)
                for lost in losses(self.table, on, first.makespan, variant, False, self.planner):
                    self.look_at(lost, by)

    def gain(self) -> None:
        """All paths of GAIN within the budget."""
        table, on = self.table, self.table.cheapest_assignment
        makespan = self.look(on, "cheapest").makespan
        for variant in self._variants():
            by = f"gain{variant}"
            self._walk(on, gain_path(table, on, makespan, variant, True, table.limit), by)
            for careful in (True, False):
                cheapest = self.best_by["cheapest"].schedule
                self.look_at(gained(table, variant, careful, self.planner, cheapest), by)

    def _variants(self) -> tuple[int, ...]:
        return (1, 2, 3) if self.looks_around else (1, 3)

    def _walk(self, on: IntArray, moves: IntArray, by: str) -> None:
        """Look at points of a path: those where the budget is just kept, and some of all others."""
        costs = _costs_along(self.table, on, moves)
        wanted = set(np.linspace(0, len(moves), self.points).round().astype(int).tolist())
        fits = np.flatnonzero(costs <= self.table.limit)
        if len(fits):  # the first from above, the last from below
            rest = np.linspace(fits[0], fits[-1], self.points).round().astype(int)
            wanted.update([int(fits[0]), int(fits[-1]), *rest.tolist()])
        current, done = on.copy(), 0
        for count in sorted(wanted):
            current, done = after(self.table, current, moves[done:count]), count
            self.look(current, by)

    def descend(self, limits: Callable[[Found, float], Limits]) -> None:
        """From the best of every path, best first, to where no single change helps."""
        table, worth = self.table, self._worth()
        if table.may_restart:
            return
        self._down(self.best, limits(self.best, worth), "improved")
        if self.quick:
            return
        for found in list(self.best_by.values()):
            self._down(found, limits(found, worth), "improved")
        for factor in PRICES_OF_TIME if worth > 0 else ():
            traded = self._down(self.best, Limits(factor * worth), "traded")
            self._down(traded, limits(traded, worth), "improved")
        for _ in range(2):
            before, best = table.order, self.best
            self._reorder(best)
            self._down(best, limits(best, worth), "reordered")
            if self.best is best:
                table.order = before

    def _down(self, found: Found, limits: Limits, how: str) -> Found:
        sweeps = min(SWEEPS, self.sweeps)
        if sweeps < 1:
            return found
        on, count = self.table.descent(found.on, limits.rate, sweeps, limits.spare, limits.latest)
        self.sweeps -= count
        return self.look(on, f"{found.by.partition(',')[0]}, {how}")

    def _worth(self) -> float:
        """Seconds per money, from the cheapest plan to the fastest that was seen."""
        cheapest, fastest = self.best_by["cheapest"], self.fastest
        assert fastest is not None
        dearer, slower = fastest.cost - cheapest.cost, cheapest.makespan - fastest.makespan
        return slower / dearer if dearer > 0 and slower > 0 else 0.0

    def _reorder(self, best: Found) -> None:
        """Rank the tasks by what they take where they are, rather than on average."""
        table, n = self.table, len(best.on)
        takes = table.seconds[np.arange(n) * table.processors + np.maximum(best.on, 0)]
        rank = table.planning.run(upward_rank, takes, *table.planning.mean_link)
        table.order = table.planning.by_rank(rank)


def _planned(start: Planner, situation: Situation, freedom: Freedom) -> Schedule | None:
    """The plan of a start; None if it finds none before the machines leave, as others may."""
    try:
        return start.plan(situation, freedom)
    except (UnaffordableError, TooLateError):  # the start has a limit of its own
        raise
    except PlanningError:
        return None


def _costs_along(table: Table, on: IntArray, moves: IntArray) -> FloatArray:
    """What the tasks cost after each number of moves, from none to all."""
    costs, current = np.empty(len(moves) + 1), on.copy()
    costs[0] = table.spent_on(on)
    for k, pair in enumerate(moves.tolist()):
        task, p = divmod(pair, table.processors)
        before = table.money[task * table.processors + current[task]]
        costs[k + 1] = costs[k] + table.money[pair] - before
        current[task] = p
    return costs
