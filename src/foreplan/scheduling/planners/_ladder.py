"""A search at fixed amounts of money, the rungs, so that budgets and deadlines find the same plans.

What a search finds depends on the money that it may spend, and not evenly: a little more now and
then gives a slower plan. So who knows only when a plan ends could not find it again. Therefore a
budget is answered from the rungs below and above it: with what is found there, on the way from each
to the next, and by LOSS and GAIN with exactly that budget, of which there are only so many. Whoever
looks at all rungs, and at all that LOSS and GAIN may give, has seen the plans of all budgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from foreplan.arrays import IntArray
from foreplan.model import Schedule
from foreplan.scheduling.planners._reassigning import BudgetTable
from foreplan.scheduling.planners._search import (
    FoundPlan,
    Limits,
    Search,
    Starts,
    faster_within,
    work_of,
)
from foreplan.scheduling.planners.loss_gain import (
    after,
    costs_along,
    gain_paths,
    gained,
    loss_path,
    losses,
)
from foreplan.scheduling.search_progress import SearchClock, part

RUNGS = 16
MOST_WORK = 1_000_000  # steps of a look at all single changes: else there is one search, no rungs
LEAST = 1e-6  # of what time is worth: money counts where time is equal
HELPS = 1e-12  # of the makespan: less is no help
SAME = 1e-9  # of the least cost: what is dearer by less is rounding
LESS = 1e-12  # of an amount of money: what GAIN spends is less than that

See = Callable[[FoundPlan], None]
Climbs = dict[tuple[Any, ...], list[FoundPlan]]  # what was found on the way from a rung to the next


def on_rungs(table: BudgetTable) -> bool:
    """Whether there are rungs: before anything has begun, in workflows that are not large."""
    return len(table.situation.attempts.task) == 0 and work_of(table) <= MOST_WORK


class Ladder:
    """The rungs lie evenly between the cheapest plan and the dearest that is started from.

    What is found on them does not depend on the budget that is asked for, so ladders of the same
    situation may share their climbs.
    """

    def __init__(
        self,
        table: BudgetTable,
        starts: Starts,
        planner: Any,
        clock: SearchClock,
        see: See,
        climbs: Climbs,
    ) -> None:
        self.table, self.starts, self.planner = table, starts, planner
        self.clock, self.see, self.order, self.climbs = clock, see, table.order, climbs
        self.cheapest = table.cheapest(planner)
        costs = [table.cost(plan) for plan in starts.values()]
        low = table.cost(self.cheapest)
        width = max([low, *costs]) - low
        evenly = [low + k * width / RUNGS for k in range(RUNGS + 1)]
        self.rungs = [*(evenly if width > SAME * abs(low) else [low]), math.inf]

    def answer(self, budget: float) -> None:
        """Show what this budget gives: from the rung below it, and from the one above."""
        below = max([k for k, rung in enumerate(self.rungs) if rung <= budget], default=0)
        around = range(below, min(below + 2, len(self.rungs)))
        for done, k in enumerate(around):
            with part(done / len(around), (done + 1) / len(around)):
                self.climb(k)

    def answer_all(self, latest: float) -> None:
        """Show what all budgets give; of LOSS and GAIN alone only what ends by then."""
        self.show_all_of_loss(latest)
        for k in range(len(self.rungs)):
            if self.clock.is_up:
                return
            with part(k / len(self.rungs), (k + 1) / len(self.rungs)):
                self.climb(k)
        self.show_all_of_gain(latest)

    def climb(self, k: int) -> None:
        """Show what is found with the money of a rung, and the way from there to the next."""
        money, until = self.rungs[k], self.rungs[min(k + 1, len(self.rungs) - 1)]
        key = money, until, *((name, _bits(first)) for name, first in self.starts.items())
        found = self.climbs.get(key)
        if found is None:
            found = self._climb_anew(money, until)
            if not self.clock.is_up:
                self.climbs[key] = found
        for one in found:
            self.see(one)

    def _climb_anew(self, money: float, until: float) -> list[FoundPlan]:
        """All that is looked at: on the way up what gains most time per money is changed."""
        seen: list[FoundPlan] = []
        table, better = self._reset_table(money), faster_within(money)
        search = Search(table, better, self.planner, self.clock, see=seen.append)
        search.begin(self.starts)
        search.gain()
        search.descend(lambda found, worth: Limits(LEAST * worth, money - found.cost))
        found = search.best
        while not self.clock.is_up and (pair := self._step(found, until)) is not None:
            on = after(self.table, found.on, np.array([pair], dtype=np.int32))
            higher = search.look(on, f"{found.by.partition(',')[0]}, climbed")
            if higher.makespan >= found.makespan:
                break
            found = higher
        return seen

    def _step(self, found: FoundPlan, until: float) -> int | None:
        """The change that gains most time per money, and costs no more than until the next rung."""
        table = self.table
        pairs = table.pairs(found.on)
        now = pairs // table.processors
        extra = table.money[pairs] - table.money[now * table.processors + found.on[now]]
        gains = found.makespan - table.makespans_after(found.on, found.makespan)[pairs]
        room = until - table.settled - table.spent_on(found.on)
        pays = (gains > HELPS * found.makespan) & (extra <= room)
        if not pays.any():
            return None
        free = pays & (extra <= 0)
        if free.any():
            return int(pairs[np.where(free, gains, -np.inf).argmax()])
        return int(pairs[np.where(pays, gains / np.where(pays, extra, 1.0), -np.inf).argmax()])

    def show_exactly(self, budget: float) -> None:
        """Show what LOSS and GAIN give for exactly this budget, and what they start from."""
        table, planner = self._reset_table(budget), self.planner
        search = self._begin_search()
        for careful in (True, False):
            for variant in (1, 2, 3):
                for name, first in self.starts.items():
                    on, ends = table.place_of(first), first.makespan
                    for lost in losses(table, on, ends, variant, careful, planner):
                        search.look_at(lost, f"loss{variant} from {name}")
                search.look_at(
                    gained(table, variant, careful, planner, self.cheapest), f"gain{variant}"
                )

    def show_all_of_loss(self, latest: float) -> None:
        """Show the points of all paths of LOSS that end in time."""
        table = self._reset_table(math.inf)
        search = self._begin_search()
        for name, first in self.starts.items():
            on = table.place_of(first)
            for variant in (1, 2, 3):
                for careful in (True, False):
                    if self.clock.is_up:
                        return
                    moves = loss_path(table, on, first.makespan, variant, careful, -math.inf)
                    in_time = table.makespans_along(on, moves) <= latest
                    points = np.flatnonzero(in_time)
                    if table.exact and len(points):
                        cheapest = costs_along(table, on, moves)[points].argmin()
                        points = points[cheapest : cheapest + 1]
                    for count in points.tolist():
                        search.look(after(table, on, moves[:count]), f"loss{variant} from {name}")

    def show_all_of_gain(self, latest: float) -> None:
        """Show what all variants of GAIN give by then, for any money that they may spend."""
        table = self._reset_table(math.inf)
        search, known = self._begin_search(), set[bytes]()
        for variant in (1, 2, 3):
            for careful in (True, False):
                for on in self._gains(table, variant, careful):
                    if self.clock.is_up:
                        return
                    if on.tobytes() not in known and table.ends(on) <= latest:
                        search.look(on, f"gain{variant}")
                    known.add(on.tobytes())

    def _gains(self, table: BudgetTable, variant: int, careful: bool) -> Iterator[IntArray]:
        """The assignments by GAIN for all limits: what it does changes where less is affordable."""
        on, limit = table.cheapest_assignment, math.inf
        makespan = table.schedule(on, self.planner).makespan
        path = gain_paths(table, on, makespan, variant, careful)
        while True:
            moves = path(limit)
            yield after(table, on, moves)
            most = float(costs_along(table, on, moves).max())
            if len(moves) == 0 or most >= limit:
                return
            limit = most - LESS * abs(most)

    def _begin_search(self) -> Search:
        """Only to look at what is found."""
        search = Search(self.table, faster_within(math.inf), self.planner, self.clock, see=self.see)
        search.look_at(self.cheapest, "cheapest")
        for name, first in self.starts.items():
            search.look_at(first, name)
        return search

    def _reset_table(self, budget: float) -> BudgetTable:
        """The table with this budget, as if nothing had been looked for yet."""
        self.table.budget, self.table.order = budget, self.order
        return self.table


def _bits(plan: Schedule) -> bytes:
    """What tells a plan from others."""
    return plan.processor.tobytes() + plan.start.tobytes() + plan.finish.tobytes()
