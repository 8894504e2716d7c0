"""The best affordable schedule: all variants of LOSS and GAIN, and a search around their best."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from foreplan.contracts import Planner
from foreplan.errors import UnaffordableError
from foreplan.model import Freedom, Schedule, Situation, affordable
from foreplan.scheduling.planners._ladder import LEAST, Climbs, Ladder, on_rungs
from foreplan.scheduling.planners._reassigning import BudgetTable
from foreplan.scheduling.planners._search import (
    FoundPlan,
    Keeper,
    Limits,
    Search,
    faster_within,
    plans_of,
)
from foreplan.scheduling.planners.hbmct import Hbmct
from foreplan.scheduling.planners.heft import Heft
from foreplan.scheduling.planners.loss_gain import check_amount, renamed
from foreplan.scheduling.search_progress import SearchClock

MOST_FOR_HBMCT = 3_000  # tasks: its time grows with their square


@dataclass(frozen=True)
class BestAffordable:
    """The fastest that is found within the budget, from the plan of `start` and from HBMCT's.

    Of large workflows HBMCT and the variants 2, whose time grows with the square, are left out.
    `quick`: so they are of new plans in the middle of a run, which must not wait. `seconds` bounds
    the search: what is found by then depends on how fast the machine is.
    """

    name: ClassVar[str] = "best-affordable"
    budget: float = math.inf
    start: Planner = field(default=Heft())
    quick: bool = False
    seconds: float = math.inf

    def __post_init__(self) -> None:
        check_amount(self.name, "budget", self.budget)
        check_amount(self.name, "seconds", self.seconds)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The best of all that is looked at."""
        return self._plan(situation, freedom, {})

    def for_budgets(self, situation: Situation) -> Callable[[float], Schedule]:
        """Its plans for one budget after another, which share what they have in common."""
        climbs: Climbs = {}
        return lambda budget: self._plan(
            replace(situation, budget=budget), Freedom.NOT_STARTED, climbs
        )

    def _plan(self, situation: Situation, freedom: Freedom, climbs: Climbs) -> Schedule:
        clock = SearchClock(self.seconds)
        table = BudgetTable.of(situation, freedom, self.budget)
        budget, quick = table.budget, self.quick and len(situation.attempts.task) > 0
        from_here = [self.start] if quick else starts(self.start, len(table.tasks))
        plans, keeper = plans_of(from_here, situation, freedom), Keeper(faster_within(budget))
        if on_rungs(table):
            ladder = Ladder(table, plans, self, clock, keeper.see, climbs)
            ladder.show_exactly(budget)
            if table.exact:
                _check(keeper.best, budget)
            ladder.answer(budget)
        else:
            search = Search(table, keeper.better, self, clock, quick, keeper.see)
            search.begin(plans)
            if table.exact:
                _check(keeper.best, budget)
            search.gain()
            search.descend(lambda found, worth: Limits(LEAST * worth, budget - found.cost))
        # where costs do not add up, the search may find what is cheaper than the cheapest by task
        _check(keeper.best, budget)
        return renamed(keeper.best.schedule, self, keeper.best.by)


def _check(best: FoundPlan, budget: float) -> None:
    if not affordable(best.cost, budget):
        raise UnaffordableError(budget, best.cost, best.makespan, best.schedule)


def starts(first: Planner, n_tasks: int) -> list[Planner]:
    """The planners to start from."""
    other: list[Planner] = [Hbmct()] if n_tasks <= MOST_FOR_HBMCT else []
    return [first, *(planner for planner in other if planner != first)]
