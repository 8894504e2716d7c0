"""The cheapest schedule that ends by a deadline, from the paths of LOSS and GAIN."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from weft.contracts import Planner
from weft.errors import InputError, TooLateError
from weft.model import Freedom, Schedule, Situation
from weft.planners._budgeted import renamed
from weft.planners._reassigning import Table
from weft.planners._search import Found, Limits, Search
from weft.planners.best_affordable import starts
from weft.planners.heft import Heft

MOST = 1e3  # of what time is worth: it counts where money is nearly equal
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
        return renamed(best.schedule, self, best.by)
