"""The cheapest schedule that ends by a deadline, from the paths of LOSS and GAIN."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from foreplan.contracts import Planner
from foreplan.errors import InputError, TooLateError, UnaffordableError
from foreplan.model import Freedom, Schedule, Situation
from foreplan.scheduling.planners._ladder import Ladder, on_rungs
from foreplan.scheduling.planners._reassigning import BudgetTable
from foreplan.scheduling.planners._search import Keeper, Limits, Search, cheaper_by, plans_of
from foreplan.scheduling.planners.best_affordable import BestAffordable, starts
from foreplan.scheduling.planners.heft import Heft
from foreplan.scheduling.planners.loss_gain import check_amount, renamed
from foreplan.scheduling.search_progress import SearchClock, part

MOST = 1e3  # of what time is worth: it counts where money is nearly equal
HALVINGS = 8
MOST_ASKED = 200_000  # steps of one look at all single changes: else it takes too long
ROUNDING = 1e-9  # of the deadline: what is later by less is in time
OF_ITS_OWN = 0.1  # of the work, roughly: the rest is asking for less and less money


@dataclass(frozen=True)
class CheapestInTime:
    """The cheapest that is found by the deadline, from the plan of `start` and from HBMCT's.

    Before anything has begun, and if the workflow is not large, it also looks at every plan that
    `best-affordable` gives for any budget. `seconds` bounds the search: what is found by then
    depends on how fast the machine is.
    """

    name: ClassVar[str] = "cheapest-in-time"
    deadline: float = math.inf
    start: Planner = field(default=Heft())
    seconds: float = math.inf

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            place = f"{self.name}[deadline]"
            raise InputError(f"must be a number above 0, not {self.deadline:g}", place=place)
        check_amount(self.name, "seconds", self.seconds)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The best of all that is looked at."""
        clock = SearchClock(self.seconds)
        table = BudgetTable.of(situation, freedom, math.inf)
        latest = self.deadline * (1 + ROUNDING)
        keeper = Keeper(cheaper_by(latest))
        plans = plans_of(starts(self.start, len(table.tasks)), situation, freedom)
        ladder = Ladder(table, plans, self, clock, keeper.see, {}) if on_rungs(table) else None
        search = Search(table, keeper.better, self, clock, see=keeper.see)
        with part(0.0, OF_ITS_OWN):
            search.begin(plans)
            search.gain()
            search.descend(lambda found, worth: Limits(MOST * worth, latest=latest))
        with part(OF_ITS_OWN, 1.0):
            if ladder is not None:
                ladder.answer_all(latest)
                search.improve(keeper.best, lambda worth: Limits(MOST * worth, latest=latest))
            else:
                self._ask_for_less(search, situation, freedom, latest)
        best = keeper.best
        if best.makespan > latest:
            raise TooLateError(self.deadline, best.makespan, best.cost, best.schedule)
        return renamed(best.schedule, self, best.by)

    def _ask_for_less(
        self, search: Search, situation: Situation, freedom: Freedom, latest: float
    ) -> None:
        """Halve the money that the other question is asked with: it now and then knows better.

        In a large workflow that takes long, and is done only if nothing is in time yet.
        """

        def ask(budget: float) -> float:
            """What the plan for this budget costs; infinite if there is none in time."""
            try:
                plan = BestAffordable(budget, self.start).plan(situation, freedom)
            except UnaffordableError:
                return math.inf
            cost = search.look_at(plan, plan.by).cost
            return cost if plan.makespan <= latest else math.inf

        best = search.best
        if search.work > MOST_ASKED and best.makespan <= latest:
            return
        low, high = search.best_by["cheapest"].cost, best.cost
        if best.makespan > latest:
            high = max(high, ask(math.inf))
        for _ in range(HALVINGS):
            if search.clock.is_up:
                return
            budget = (low + high) / 2
            cost = ask(budget)
            low, high = (low, min(budget, cost)) if cost < math.inf else (budget, high)
