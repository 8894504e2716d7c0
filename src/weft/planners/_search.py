"""All variants of LOSS and GAIN in one pass over shared work, and a search around what they find.

Figure 2 stops where the budget is kept. Here a path of LOSS is walked to its end, the cheapest
assignment: what comes later is cheaper, and now and then faster too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.contracts import Planner
from weft.kernels.ranks import upward_rank
from weft.model import Freedom, Schedule, Situation, affordable
from weft.planners._paths import after, gain_path, loss_path
from weft.planners._reassigning import Table

POINTS = 24  # of a path that are looked at, evenly spaced, besides the first affordable one
HALVINGS = 12  # of the money that GAIN may spend, where costs do not add up
MOST_WORK = 1_000_000_000  # steps of a kernel that one look at all single changes may take
ROUNDS = 200  # of changes around the best one found
ROUNDING = 1e-12  # of a makespan: what differs by less is the same


@dataclass(frozen=True, eq=False)
class Found:
    """A schedule that was looked at: when it ends, what everything costs then, and by what."""

    makespan: float
    cost: float
    on: IntArray | None  # None: it was not made from an assignment
    schedule: Schedule
    by: str


class Search:
    """Looks at schedules of one situation; `better` says which of two is wanted."""

    def __init__(self, table: Table, better: Callable[[Found, Found], bool], planner: Any) -> None:
        self.table, self.better, self.planner = table, better, planner
        self.best: Found | None = None
        n, edges = len(table.tasks), len(table.planning.problem.in_item)
        self.looks_around = n * (table.processors - 1) * (n + edges) <= MOST_WORK

    def look(self, on: IntArray, by: str) -> Found:
        """Look at an assignment."""
        return self.look_at(self.table.schedule(on, self.planner), by, on)

    def look_at(self, schedule: Schedule, by: str, on: IntArray | None = None) -> Found:
        """Look at a schedule, and keep it if it is the best."""
        found = Found(schedule.makespan, self.table.cost(schedule), on, schedule, by)
        if self.best is None or self.better(found, self.best):
            self.best = found
        return found

    def begin(self, starts: Sequence[Planner], situation: Situation, freedom: Freedom) -> None:
        """The plans of the starts, and all paths of LOSS from there."""
        self.look_at(self.table.cheapest(self.planner), "cheapest")
        for start in starts:
            first = start.plan(situation, freedom)
            self.look_at(first, start.name)
            on = self.table.place_of(first)
            for variant in self._variants():
                moves = loss_path(self.table, on, first.makespan, variant, True, -math.inf)
                self._walk(on, moves, f"loss{variant} from {start.name}")

    def gain(self) -> None:
        """All paths of GAIN within the budget."""
        table, on = self.table, self.table.cheapest_assignment
        makespan, least = self.look(on, "cheapest").makespan, table.spent_on(on)
        for variant in self._variants():
            limit = table.limit
            for _ in range(HALVINGS):
                moves = gain_path(table, on, makespan, variant, True, limit)
                last = self.look(after(table, on, moves), f"gain{variant}")
                if table.exact or affordable(last.cost, table.budget):
                    break
                limit = (least + limit) / 2
            self._walk(on, moves, f"gain{variant}")

    def _variants(self) -> tuple[int, ...]:
        return (1, 2, 3) if self.looks_around else (1, 3)

    def _walk(self, on: IntArray, moves: IntArray, by: str) -> None:
        """Look at points of a path: those where the budget is just kept, and some of all others."""
        costs = _costs_along(self.table, on, moves)
        wanted = set(np.linspace(0, len(moves), POINTS).round().astype(int).tolist())
        fits = np.flatnonzero(costs <= self.table.limit)
        if len(fits):  # the first from above, the last from below
            rest = np.linspace(fits[0], fits[-1], POINTS).round().astype(int)
            wanted.update([int(fits[0]), int(fits[-1]), *rest.tolist()])
        current, done = on.copy(), 0
        for count in sorted(wanted):
            current, done = after(self.table, current, moves[done:count]), count
            self.look(current, by)

    def improve(self, wanted: Callable[[Found], Iterator[int]]) -> None:
        """Change one task after another for the better, until nothing helps."""
        for _ in range(ROUNDS if self.looks_around else 0):
            best = self.best
            assert best is not None
            if best.on is None:
                self.look(self.table.place_of(best.schedule), best.by)
                if self.best is best:
                    return
                continue
            for pair in wanted(best):
                changed = after(self.table, best.on, np.array([pair]))
                self.look(changed, best.by)
                if self.best is not best:
                    break
            else:
                return

    def reorder(self) -> None:
        """Rank the tasks by what they take where they are, rather than on average."""
        best, table = self.best, self.table
        assert best is not None
        if best.on is None:
            return
        planning, n = table.planning, len(best.on)
        takes = table.seconds[np.arange(n) * table.processors + np.maximum(best.on, 0)]
        rank = planning.run(upward_rank, takes, *planning.mean_link)
        before, table.order = table.order, planning.by_rank(rank)
        if self.look(best.on, best.by) is not self.best:
            table.order = before


def around(search: Search, best: Found) -> tuple[FloatArray, FloatArray, IntArray]:
    """Every single change of an assignment: how much earlier it ends and what it saves."""
    table = search.table
    assert best.on is not None
    pairs = table.pairs(best.on)
    tasks = pairs // table.processors
    now = table.money[tasks * table.processors + best.on[tasks]]
    earlier = best.makespan - table.makespans_after(best.on)[pairs]
    return earlier, now - table.money[pairs], pairs


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
