"""LOSS and GAIN: tasks are reassigned one by one, from a start until the money is right.

Sakellariou, Zhao, Tsiakkouri, Dikaiakos, "Scheduling Workflows with Budget Constraints", Figure 2
and section 3.4. Readings: a pair that is tried once is a task and a machine; equal weights go by
task, then machine; variant 2 asks for the whole schedule rebuilt with the one change, once, before
anything is reassigned, against the start schedule as it is. With care, GAIN2 asks once more when a
reassignment's turn comes, and undoes it if it does not shorten the makespan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.contracts import Planner
from foreplan.errors import InputError
from foreplan.model import Freedom, Schedule, Situation
from foreplan.scheduling.kernels.reassignment import (
    money_along,
    reassign_again_and_again,
    reassign_in_order,
    reassigned,
)
from foreplan.scheduling.planners._reassigning import BudgetTable
from foreplan.scheduling.planners.heft import Heft
from foreplan.spec import spec_of

HALVINGS = 20  # of the money tried for, where costs do not add up


def check_amount(name: str, option: str, value: float) -> None:
    """An amount of money or time that can be asked for."""
    if math.isnan(value) or value < 0:
        raise InputError(f"must be a number from 0 on, not {value:g}", place=f"{name}[{option}]")


@dataclass(frozen=True)
class _Budgeted:
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


class _Loss(_Budgeted):
    """From a fast plan to one that is affordable, by what loses least time per money saved."""

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The start's plan if it is affordable, else LOSS from there."""
        first = self.start.plan(situation, freedom)
        table = BudgetTable.of(situation, freedom, self.budget)
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


class _Gain(_Budgeted):
    """From the cheapest assignment to a faster one, by what gains most time per money spent."""

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """GAIN from the cheapest assignment; carefully, the start's plan if that is better."""
        table = BudgetTable.of(situation, freedom, self.budget)
        if self.faithful:
            return gained(table, self.variant, False, self, table.cheapest_affordable(self))
        first = renamed(self.start.plan(situation, freedom), self)
        cheapest = table.cheapest_affordable(self, first)
        found = [gained(table, self.variant, careful, self, cheapest) for careful in (True, False)]
        return table.best_of(first, *found, cheapest, table.cheapest(self))


def losses(
    table: BudgetTable, on: IntArray, makespan: float, variant: int, careful: bool, planner: Any
) -> list[Schedule]:
    """What LOSS makes of the budget, from an assignment; nothing if it cannot be kept so.

    Where costs do not add up, the fewest moves that are enough are found by halving.
    """
    limit = table.limit if table.exact else -math.inf
    moves = loss_path(table, on, makespan, variant, careful, limit)
    best = table.schedule(after(table, on, moves), planner)
    if not table.affords(best):
        return []
    low, high = 0, 0 if table.exact else len(moves)  # after `high` moves it is affordable
    while low < high:
        middle = (low + high) // 2
        schedule = table.schedule(after(table, on, moves[:middle]), planner)
        if table.affords(schedule):
            high, best = middle, schedule
        else:
            low = middle + 1
    return [best]


def gained(
    table: BudgetTable, variant: int, careful: bool, planner: Any, cheapest: Schedule
) -> Schedule:
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


class Loss1(_Loss):
    """LOSS with weights of single tasks, worked out once."""

    name, variant = "loss1", 1


class Loss2(_Loss):
    """LOSS with weights of the whole schedule, worked out once."""

    name, variant = "loss2", 2


class Loss3(_Loss):
    """LOSS with weights of single tasks, worked out anew after every reassignment."""

    name, variant = "loss3", 3


class Gain1(_Gain):
    """GAIN with weights of single tasks, worked out once."""

    name, variant = "gain1", 1


class Gain2(_Gain):
    """GAIN with weights of the whole schedule, worked out once; what does not pay is undone."""

    name, variant = "gain2", 2


class Gain3(_Gain):
    """GAIN with weights of single tasks, worked out anew after every reassignment."""

    name, variant = "gain3", 3


def loss_path(
    table: BudgetTable, on: IntArray, makespan: float, variant: int, careful: bool, limit: float
) -> IntArray:
    """The reassignments of LOSS from an assignment until its tasks cost no more than the limit."""
    if variant == 3:
        return _again_and_again(table, on, limit, False, careful)
    pairs, longer, extra = _changes(table, on, makespan, variant)
    pays = extra < 0
    weight = np.divide(longer, -extra, out=np.zeros(len(pairs)), where=pays)
    ranked = _sorted(pairs, weight, pays if careful else pays & (weight != 0))
    return _in_order(table, ranked, on, limit, False, careful)


def gain_path(
    table: BudgetTable, on: IntArray, makespan: float, variant: int, careful: bool, limit: float
) -> IntArray:
    """The reassignments of GAIN from an assignment while its tasks cost no more than the limit."""
    return gain_paths(table, on, makespan, variant, careful)(limit)


def gain_paths(
    table: BudgetTable, on: IntArray, makespan: float, variant: int, careful: bool
) -> Callable[[float], IntArray]:
    """The same for one limit after another."""
    if variant == 3:
        return lambda limit: _again_and_again(table, on, limit, True, careful)
    pairs, longer, extra = _changes(table, on, makespan, variant)
    free = careful & (extra <= 0)
    counts = (longer < 0) & (free | (extra != 0))
    weight = np.divide(longer, extra, out=np.full(len(pairs), -np.inf), where=~free & (extra != 0))
    ranked = _sorted(pairs, weight, counts)
    if variant == 2 and careful:
        return table.shortening(on, ranked, makespan)
    return lambda limit: _in_order(table, ranked, on, limit, True, careful)


def after(table: BudgetTable, on: IntArray, moves: IntArray) -> IntArray:
    """The assignment that the moves lead to."""
    return reassigned(table.choices, on, moves)


def costs_along(table: BudgetTable, on: IntArray, moves: IntArray) -> FloatArray:
    """What the tasks cost after each number of moves, from none to all."""
    return money_along(table.choices, table.money, on, table.spent_on(on), moves)


def _changes(
    table: BudgetTable, on: IntArray, makespan: float, variant: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """All pairs with the time and the money that each adds.

    The time is that of the task itself, or with variant 2 of the whole schedule.
    """
    pairs = table.pairs(on)
    tasks = pairs // table.processors
    now = tasks * np.int32(table.processors) + on[tasks]
    extra: FloatArray = table.money[pairs] - table.money[now]
    if variant == 2:
        return pairs, table.makespans_after(on)[pairs] - makespan, extra
    return pairs, table.seconds[pairs] - table.seconds[now], extra


def _sorted(pairs: IntArray, weight: FloatArray, counts: BoolArray) -> IntArray:
    chosen = pairs[counts]
    return chosen[np.argsort(weight[counts], kind="stable")].astype(np.int32)


def _in_order(
    table: BudgetTable, pairs: IntArray, on: IntArray, limit: float, gains: bool, careful: bool
) -> IntArray:
    """Of the pairs, one after another, those that are reassigned."""
    moves, count = reassign_in_order(
        table.choices, pairs, table.seconds, table.money, on.copy(), table.spent_on(on),
        limit, gains, careful,
    )  # fmt: skip
    return moves[:count].astype(np.int32)


def _again_and_again(
    table: BudgetTable, on: IntArray, limit: float, gains: bool, careful: bool
) -> IntArray:
    """What is reassigned where weights are worked out anew each time."""
    moves, count = reassign_again_and_again(
        table.choices, table.tasks, table.seconds, table.money, on.copy(),
        table.spent_on(on), limit, gains, careful,
    )  # fmt: skip
    return moves[:count].astype(np.int32)
