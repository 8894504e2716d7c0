"""The best affordable schedule: all variants of LOSS and GAIN, and a search around their best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from weft.contracts import Planner
from weft.errors import UnaffordableError
from weft.model import Freedom, Schedule, Situation, affordable
from weft.planners._budgeted import check_amount, renamed
from weft.planners._reassigning import Table
from weft.planners._search import ROUNDING, Found, Search, around
from weft.planners.hbmct import Hbmct
from weft.planners.heft import Heft

MOST_FOR_HBMCT = 3_000  # tasks: its time grows with their square
TRIES = 8  # changes that are looked at for one that is affordable, where costs do not add up


@dataclass(frozen=True)
class BestAffordable:
    """The fastest that is found within the budget, from the plan of `start` and from HBMCT's."""

    name: ClassVar[str] = "best-affordable"
    budget: float = math.inf
    start: Planner = field(default=Heft())

    def __post_init__(self) -> None:
        check_amount(self.name, "budget", self.budget)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The best of all that is looked at."""
        table = Table(situation, freedom, self.budget)

        def better(one: Found, other: Found) -> bool:
            mine, its = affordable(one.cost, table.budget), affordable(other.cost, table.budget)
            if mine and its:
                return (one.makespan, one.cost) < (other.makespan, other.cost)
            return mine or (not its and one.cost < other.cost)

        search = Search(table, better, self)
        search.begin(starts(self.start, len(table.tasks)), situation, freedom)
        best = search.best
        assert best is not None
        if not affordable(best.cost, table.budget):
            raise UnaffordableError(table.budget, best.cost, best.makespan, best.schedule)
        search.gain()
        for _ in range(2):
            search.improve(lambda best: _improvements(search, best))
            search.reorder()
        assert search.best is not None
        return renamed(search.best.schedule, self)


def starts(first: Planner, n_tasks: int) -> list[Planner]:
    """The planners to start from."""
    other: list[Planner] = [Hbmct()] if n_tasks <= MOST_FOR_HBMCT else []
    return [first, *(planner for planner in other if planner != first)]


def _improvements(search: Search, best: Found) -> Iterator[int]:
    """Single changes that end earlier and are affordable, or else save money at no loss of time."""
    earlier, saved, pairs = around(search, best)
    rounding, left = ROUNDING * best.makespan, search.table.budget - best.cost
    gains = np.flatnonzero((earlier > rounding) & (saved >= -left))
    yield from pairs[gains[np.lexsort((-saved[gains], -earlier[gains]))]][:TRIES].tolist()
    free = np.flatnonzero((np.abs(earlier) <= rounding) & (saved > 0))
    yield from pairs[free[np.argsort(-saved[free], kind="stable")]][:TRIES].tolist()
