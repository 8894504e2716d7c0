"""The best affordable schedule: all variants of LOSS and GAIN, and a search around their best."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from weft.contracts import Planner
from weft.errors import UnaffordableError
from weft.model import Freedom, Schedule, Situation, affordable
from weft.planners._budgeted import check_amount, renamed
from weft.planners._reassigning import Table
from weft.planners._search import Found, Limits, Search
from weft.planners.hbmct import Hbmct
from weft.planners.heft import Heft

MOST_FOR_HBMCT = 3_000  # tasks: its time grows with their square
LEAST = 1e-6  # of what time is worth: money counts where time is equal


@dataclass(frozen=True)
class BestAffordable:
    """The fastest that is found within the budget, from the plan of `start` and from HBMCT's.

    Of large workflows HBMCT and the variants 2, whose time grows with the square, are left out.
    `quick`: so they are of new plans in the middle of a run, which must not wait.
    """

    name: ClassVar[str] = "best-affordable"
    budget: float = math.inf
    start: Planner = field(default=Heft())
    quick: bool = False

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

        quick = self.quick and len(situation.attempts.task) > 0
        search = Search(table, better, self, quick)
        first = [self.start] if quick else starts(self.start, len(table.tasks))
        search.begin(first, situation, freedom)
        best = search.best
        if not affordable(best.cost, table.budget):
            raise UnaffordableError(table.budget, best.cost, best.makespan, best.schedule)
        search.gain()

        search.descend(lambda found, worth: Limits(LEAST * worth, table.budget - found.cost))
        return renamed(search.best.schedule, self, search.best.by)


def starts(first: Planner, n_tasks: int) -> list[Planner]:
    """The planners to start from."""
    other: list[Planner] = [Hbmct()] if n_tasks <= MOST_FOR_HBMCT else []
    return [first, *(planner for planner in other if planner != first)]
