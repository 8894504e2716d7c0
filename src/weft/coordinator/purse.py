"""A run's budget: what the plan may still cost more than planned before it must be looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from weft.coordinator.experience import still_expected
from weft.errors import InputError
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model import Money, Schedule, Situation, affordable, forecast
from weft.model.money import ROUNDING
from weft.projection import project

if TYPE_CHECKING:
    from weft.coordinator.coordinator import Coordinator

OVER_BUDGET = "the plan costs more than the budget"
ENOUGH_AGAIN = "the money will do again"
RELIEF = 0.05  # of the budget: if so much more is left again, a faster plan may be had for it
CONTINUE, STOP, CUT = "continue", "stop", "cut"
NEVER_MIND = 1e300  # an allowance that no task uses up: changes of speed are still looked at


class Purse:
    """The budget of a run, and what to do when even the cheapest way to finish is over it.

    Plans leave a share (`reserve`) of what is not yet spent or committed for surprises.
    """

    def __init__(
        self,
        budget: float = float("inf"),
        over_budget: str = CONTINUE,
        reserve: float = 0.0,
        timeout: float | None = None,
        learns: bool = False,
    ) -> None:
        if not budget >= 0:
            raise InputError(f"the budget must be a number from 0 on, not {budget:g}")
        if not 0 <= reserve < 1:
            raise InputError(f"the reserve must be a share from 0 to below 1, not {reserve:g}")
        self.budget, self.reserve = budget, reserve
        self.timeout = timeout  # of tasks that say nothing themselves
        self.learns = learns  # plans reckon with what the run has taught of its tasks, too
        self.set_over_budget(over_budget)
        self.over_at = float("nan")  # when it was first known that the budget will not do
        self.needed = float("nan")  # the least that it was expected to cost, the last time
        self.holds = False  # whether the run is held back for it
        self.dear = -1  # the task whose time-out, or billing unit, it was held back for
        self.renewed = False  # whether there is more money than before
        self.tight = False  # whether the plan was made because money was short
        self.left = float("inf")  # of the budget, as the plan was expected to go on the last time
        self.left_then = float("inf")  # when the plan was made

    def set_over_budget(self, over_budget: str) -> None:
        """What to do from now on: `stop` begins nothing more, `cut` also ends what runs."""
        if over_budget not in (CONTINUE, STOP, CUT):
            raise InputError(
                f"over budget a run can `{CONTINUE}`, `{STOP}` or `{CUT}`, not {over_budget!r}"
            )
        self.stops, self.cuts = over_budget in (STOP, CUT), over_budget == CUT

    @property
    def kept(self) -> bool:
        """Whether there is a budget to keep."""
        return self.budget < np.inf

    def in_view_of(self, situation: Situation, ratio: float = 1.0) -> Situation:
        """The situation with the money that a plan may cost, all in all.

        If tasks take so many times as long as expected, plans may cost so much less.
        """
        if not self.kept or (self.reserve == 0 and ratio == 1):
            return replace(situation, budget=self.budget)
        attempts, now = situation.attempts, situation.now
        runs = np.isnan(attempts.finish)
        ends, begun = situation.expected_finish()[runs], np.full(int(runs.sum()), now)
        sunk = situation.used.and_then(attempts.processor[runs], begun, ends)
        left = max(0.0, self.budget - sunk.cost(situation.platform))
        return replace(situation, budget=self.budget - left + (1 - self.reserve) * left / ratio)

    def affords(self, plan: Schedule, situation: Situation) -> bool:
        """Whether a plan of this situation is within the budget."""
        return not self.kept or self._is_enough(forecast(plan, situation))

    def reserves_for(self, plan: Schedule) -> bool:
        """Whether a plan for the whole run leaves the reserve."""
        return not self.kept or affordable(plan.cost, (1 - self.reserve) * self.budget)

    def _is_enough(self, money: Money) -> bool:
        """Whether there is money for this; what is cut off a moment late is spent all the same."""
        limit = max(self.budget, money.spent) if self.cuts else self.budget
        return affordable(money.projected, limit)

    def take(self, plan: Schedule, situation: Situation, board: Board) -> None:
        """This plan is going to be followed."""
        self.allow(plan, situation, board)
        self.left_then = self.left

    def exceeded(self, plan: Schedule, situation: Situation, board: Board) -> bool:
        """Whether the plan, from now on, costs more than there is; else what is left is noted.

        A plan that cannot be followed any more is another matter.
        """
        projection = project(plan, situation)
        if projection is None:
            return False
        return not self.allow(projection, situation, board)

    def allow(self, plan: Schedule, situation: Situation, board: Board) -> bool:
        """Note what tasks may cost beyond their estimates; False: the plan is too dear as it is."""
        if not self.kept:
            return True
        money = forecast(plan, situation)
        self.left = self.budget - money.projected
        if not self._is_enough(money):
            board.allowance[0] = NEVER_MIND
            return False
        # where costs do not add up, every finished task is looked at
        left = max(0.0, self.budget * (1 + ROUNDING) - money.projected)
        board.allowance[0] = left if situation.platform.adds_up else -np.inf
        return True

    def relieved(self) -> bool:
        """Whether money was short, and much more is left now than when the plan was made."""
        if not self.tight or self.left - self.left_then < RELIEF * self.budget:
            return False
        self.tight = False
        return True

    def renew(self, budget: float) -> None:
        """Another budget: whether that will do is not known yet."""
        self.renewed, self.dear = budget > self.budget, -1
        self.budget, self.over_at, self.needed = budget, float("nan"), float("nan")

    def overrun(self, needed: float, now: float) -> None:
        """Even the cheapest way to finish is over the budget."""
        if np.isnan(self.over_at):
            self.over_at = now
        self.needed = needed


def money_of(plan: Schedule | None, situation: Situation) -> Money:
    """Spent by now, committed to what runs, and planned, as the plan is expected to go on."""
    if plan is not None:
        return forecast(project(plan, situation) or plan, situation)
    attempts, platform = situation.attempts, situation.platform
    runs = np.isnan(attempts.finish)
    begun, ends = np.full(int(runs.sum()), situation.now), situation.expected_finish()[runs]
    committed = situation.used.and_then(attempts.processor[runs], begun, ends).cost(platform)
    spent = situation.used.cost(platform)
    return Money(spent, committed - spent, float("nan"))


def advised(coordinator: Coordinator) -> float:
    """A budget that is enough for all of it, in nine of ten cases, as the run has gone so far.

    What is left may take as much longer than expected as what was seen; and a task that was cut off
    while it was overdue takes longer than that.
    """
    purse, board, money = coordinator.purse, coordinator.board, coordinator.money()
    left = float(np.fmax(purse.needed, money.projected)) - money.spent
    if not purse.learns:
        return money.spent + left
    waits, place = board.status == b.WAITING, np.zeros(board.n_tasks, dtype=np.intp)
    if coordinator.plan is not None:
        place = coordinator.plan.processor.astype(np.intp)
    price = coordinator.platform.price[place]
    cost = board.estimate[np.arange(board.n_tasks) * board.n_processors + place] * price
    ratio = coordinator.prudence()
    more = np.maximum(0.0, still_expected(board) * price - ratio * cost)[waits].sum()
    return money.spent + (left * ratio + float(more)) / (1 - purse.reserve) * (1 + ROUNDING)
