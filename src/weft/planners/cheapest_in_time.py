"""The cheapest schedule that ends by a deadline, from the paths of LOSS and GAIN."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from weft.contracts import Planner
from weft.errors import InputError, TooLateError, UnaffordableError
from weft.model import Freedom, Schedule, Situation
from weft.planners._budgeted import renamed
from weft.planners._reassigning import Table
from weft.planners._search import Found, Limits, Search
from weft.planners.best_affordable import BestAffordable, starts
from weft.planners.heft import Heft

MOST = 1e3  # of what time is worth: it counts where money is nearly equal
HALVINGS = 8
MOST_ASKED = 200_000  # steps of one look at all single changes: else it takes too long
ROUNDING = 1e-9  # of the deadline: what is later by less is in time


@dataclass(frozen=True)
class CheapestInTime:
    """The cheapest that is found by the deadline, from the plan of `start` and from HBMCT's."""

    name: ClassVar[str] = "cheapest-in-time"
    deadline: float = math.inf
    start: Planner = field(default=Heft())

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            place = f"{self.name}[deadline]"
            raise InputError(f"must be a number above 0, not {self.deadline:g}", place=place)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The best of all that is looked at."""
        table = Table(situation, freedom, math.inf)
        latest = self.deadline * (1 + ROUNDING)

        def better(one: Found, other: Found) -> bool:
            mine, its = one.makespan <= latest, other.makespan <= latest
            if mine and its:
                return (one.cost, one.makespan) < (other.cost, other.makespan)
            return mine or (not its and one.makespan < other.makespan)

        search = Search(table, better, self)
        search.begin(starts(self.start, len(table.tasks)), situation, freedom)
        search.gain()

        search.descend(lambda found, worth: Limits(MOST * worth, latest=latest))
        best = search.best
        if best.makespan > latest:
            raise TooLateError(self.deadline, best.makespan, best.cost, best.schedule)
        if search.work <= MOST_ASKED:
            self._ask_for_less(search, situation, freedom, latest)
        return renamed(search.best.schedule, self, search.best.by)

    def _ask_for_less(
        self, search: Search, situation: Situation, freedom: Freedom, latest: float
    ) -> None:
        """Halve the money that the other question is asked with: it now and then knows better."""
        low, high = search.best_by["cheapest"].cost, search.best.cost
        for _ in range(HALVINGS):
            budget = (low + high) / 2
            try:
                plan = BestAffordable(budget, self.start).plan(situation, freedom)
            except UnaffordableError:
                low = budget
                continue
            if plan.makespan > latest:
                low = budget
            else:
                high = min(budget, search.look_at(plan, plan.by).cost)
