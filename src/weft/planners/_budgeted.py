"""LOSS and GAIN as planners: a path of reassignments, cut where the budget is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from weft.arrays import IntArray
from weft.contracts import Planner
from weft.errors import InputError
from weft.model import Freedom, Schedule, Situation
from weft.planners._paths import after, gain_path, loss_path
from weft.planners._reassigning import Table
from weft.planners.heft import Heft
from weft.spec import spec_of

HALVINGS = 20  # of the money tried for, where costs do not add up


def check_amount(name: str, option: str, value: float) -> None:
    """An amount of money or time that can be asked for."""
    if math.isnan(value) or value < 0:
        raise InputError(f"must be a number from 0 on, not {value:g}", place=f"{name}[{option}]")


@dataclass(frozen=True)
class Budgeted:
    """What LOSS and GAIN have in common.

    `budget` is for all of it, `start` the planner whose plan is the best if it is affordable. The
    default is careful: what costs nothing is taken first, no task is moved the wrong way (by GAIN2:
    if that does not shorten the makespan); it also looks at the cheapest plan and at that to the
    letter, and takes the fastest. `faithful` is the letter of Figure 2 alone.
    """

    name: ClassVar[str]
    variant: ClassVar[int]
    budget: float = math.inf
    start: Planner = field(default=Heft())
    faithful: bool = False

    def __post_init__(self) -> None:
        check_amount(self.name, "budget", self.budget)


class Loss(Budgeted):
    """From a fast plan to one that is affordable, by what loses least time per money saved."""

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The start's plan if it is affordable, else LOSS from there."""
        first = self.start.plan(situation, freedom)
        table = Table(situation, freedom, self.budget)
        if table.affords(first):
            first = renamed(first, self)
            return first if self.faithful else table.best_of(first, table.cheapest(self))
        on = table.place_of(first)
        found = [
            lost
            for careful in ((False,) if self.faithful else (True, False))
            for lost in losses(table, on, first.makespan, self.variant, careful, self)
        ]
        if not found:
            found = [table.cheapest_affordable(self, renamed(first, self))]
        return found[0] if self.faithful else table.best_of(*found, table.cheapest(self))


class Gain(Budgeted):
    """From the cheapest assignment to a faster one, by what gains most time per money spent."""

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """GAIN from the cheapest assignment; carefully, the start's plan if that is better."""
        table = Table(situation, freedom, self.budget)
        if self.faithful:
            return gained(table, self.variant, False, self, table.cheapest_affordable(self))
        first = renamed(self.start.plan(situation, freedom), self)
        cheapest = table.cheapest_affordable(self, first)
        found = [gained(table, self.variant, careful, self, cheapest) for careful in (True, False)]
        return table.best_of(first, *found, cheapest, table.cheapest(self))


def losses(
    table: Table, on: IntArray, makespan: float, variant: int, careful: bool, planner: Any
) -> list[Schedule]:
    """What LOSS makes of the budget, from an assignment; nothing if it cannot be kept so."""
    limit = table.limit if table.exact else -math.inf
    moves = loss_path(table, on, makespan, variant, careful, limit)
    found = first_affordable(table, on, moves, planner)
    return [] if found is None else [found]


def first_affordable(table: Table, on: IntArray, moves: IntArray, planner: Any) -> Schedule | None:
    """The schedule after the fewest moves that is affordable; found by halving if need be."""
    last = table.schedule(after(table, on, moves), planner)
    if table.exact or not table.affords(last):
        return last if table.affords(last) else None
    low, high, best = 0, len(moves), last  # after `high` moves it is affordable
    while low < high:
        middle = (low + high) // 2
        schedule = table.schedule(after(table, on, moves[:middle]), planner)
        if table.affords(schedule):
            high, best = middle, schedule
        else:
            low = middle + 1
    return best


def gained(table: Table, variant: int, careful: bool, planner: Any, cheapest: Schedule) -> Schedule:
    """What GAIN makes of the budget; where costs do not add up, of as much as is affordable."""
    on = table.cheapest_assignment
    base = table.schedule(on, planner)
    least, limit = table.spent_on(on), table.limit
    best = cheapest
    for _ in range(1 if table.exact else HALVINGS):
        moves = gain_path(table, on, base.makespan, variant, careful, limit)
        schedule = table.schedule(after(table, on, moves), planner)
        if table.affords(schedule):
            better = schedule.makespan < best.makespan or table.exact
            return schedule if better else best
        limit = (least + limit) / 2
    return best


def renamed(schedule: Schedule, planner: Any, by: str = "") -> Schedule:
    """The schedule as another planner's."""
    return replace(schedule, planner=spec_of(planner), by=by)
