"""A run's budget: what it may still cost, when the money is gone, and what the run has taught."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from foreplan.engine.kernels import arrays as a
from foreplan.engine.state import RunState
from foreplan.errors import InputError
from foreplan.model import Money, Schedule, Situation, affordable, forecast
from foreplan.model.money import ROUNDING
from foreplan.scheduling.projection import project

if TYPE_CHECKING:
    from foreplan.engine.coordinator import Coordinator


OVER_BUDGET = "the plan costs more than the budget"
ENOUGH_AGAIN = "the money is enough again"
RELIEF = 0.05  # of the budget: if so much more is left again, a faster plan may be had for it
CONTINUE, STOP, CUT = "continue", "stop", "cut"
NEVER_MIND = 1e300  # an allowance that no task uses up: changes of speed are still looked at


class BudgetTracker:
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
        self.kept = budget < math.inf  # whether there is a budget to keep
        self.timeout = timeout  # of tasks that say nothing themselves
        self.learns = learns  # plans reckon with what the run has taught of its tasks, too
        self.set_over_budget(over_budget)
        self.over_at = float("nan")  # when it was first known that the budget is not enough
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

    def in_view_of(self, situation: Situation, ratio: float = 1.0) -> Situation:
        """The situation with the money that a plan may cost, all in all.

        If tasks take so many times as long as expected, plans may cost so much less.
        """
        if not self.kept or (self.reserve == 0 and ratio == 1):
            return replace(situation, budget=self.budget)
        left = max(0.0, self.budget - situation.committed().cost(situation.platform))
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

    def take(self, plan: Schedule, situation: Situation, state: RunState) -> None:
        """This plan is going to be followed."""
        self.allow(plan, situation, state)
        self.left_then = self.left

    def look(self, plan: Schedule, situation: Situation, state: RunState) -> bool:
        """Note what is left by the plan, from now on; False: it costs more than there is.

        A plan that cannot be followed any more is another matter.
        """
        projection = project(plan, situation)
        if projection is None:
            return True
        return self.allow(projection, situation, state)

    def allow(self, plan: Schedule, situation: Situation, state: RunState) -> bool:
        """Note what tasks may cost beyond their estimates; False: the plan is too dear as it is."""
        if not self.kept:
            return True
        money = forecast(plan, situation)
        self.left = self.budget - money.projected
        if not self._is_enough(money):
            state.arrays.allowance[0] = NEVER_MIND
            return False
        # where costs do not add up, every finished task is looked at
        left = max(0.0, self.budget * (1 + ROUNDING) - money.projected)
        state.arrays.allowance[0] = left if situation.platform.adds_up else -np.inf
        return True

    def take_relief(self) -> bool:
        """Whether money was short, and much more is left now than when the plan was made."""
        if not self.tight or self.left - self.left_then < RELIEF * self.budget:
            return False
        self.tight = False
        return True

    def renew(self, budget: float) -> None:
        """Another budget: whether that is enough is not known yet."""
        self.renewed, self.dear = budget > self.budget, -1
        self.budget, self.over_at, self.needed = budget, float("nan"), float("nan")
        self.kept = budget < math.inf

    def note_overrun(self, needed: float, now: float) -> None:
        """Even the cheapest way to finish is over the budget."""
        if np.isnan(self.over_at):
            self.over_at = now
        self.needed = needed


def money_of(plan: Schedule | None, situation: Situation) -> Money:
    """Spent by now, committed to what runs, and planned, as the plan is expected to go on."""
    if plan is not None:
        return forecast(project(plan, situation) or plan, situation)
    return Money.of(situation.platform, situation.used, situation.committed())


def advised(coordinator: Coordinator) -> float:
    """A budget that is enough for all of it, in nine of ten cases, as the run has gone so far.

    What is left may take as much longer than expected as what was seen; and a task that was cut off
    while it was overdue takes longer than that.
    """
    tracker, arrays, money = coordinator.tracker, coordinator.state.arrays, coordinator.money()
    left = float(np.fmax(tracker.needed, money.projected)) - money.spent
    if not tracker.learns:
        return money.spent + left
    waits, place = arrays.status == a.WAITING, np.zeros(arrays.n_tasks, dtype=np.intp)
    if coordinator.plan is not None:
        place = coordinator.plan.processor.astype(np.intp)
    tasks = np.arange(arrays.n_tasks, dtype=np.int32)
    price, share = coordinator.platform.price[place], np.ones(len(tasks))
    needs = coordinator.estimates.needs
    if needs is not None and coordinator.plan is not None and coordinator.plan.cores is not None:
        width = coordinator.plan.cores.width
        least = arrays.paid[tasks * arrays.n_hosts + coordinator.platform.host[place]]
        price, share = price * np.maximum(width, least), needs.factor_of(tasks, width)
    cost = arrays.estimate[tasks * arrays.n_processors + place] * share * price
    ratio = coordinator.prudence()
    more = np.maximum(0.0, still_expected(coordinator.state) * price - ratio * cost)[waits].sum()
    return money.spent + (left * ratio + float(more)) / (1 - tracker.reserve) * (1 + ROUNDING)


STEP = 0.1  # seconds between two looks for the sake of overdue tasks, at least
WHERE_NOT_ADDED = 1.0  # the same where costs do not add up, and nobody can say when it matters


def overdue_at(coordinator: Coordinator, looked: float) -> float:
    """When overdue tasks will have cost more than is left for that; infinite without a budget.

    What was overdue when it was last looked at has been reckoned with until then.
    """
    state, tracker = coordinator.state, coordinator.tracker
    left = float(state.arrays.allowance[0])
    if not tracker.kept or left >= NEVER_MIND or tracker.holds:
        return math.inf
    busy, ends = state.expected_ends(looked)
    if not len(busy):
        return math.inf
    order = np.argsort(ends, kind="stable")
    if left < 0:
        return max(float(ends[order[0]]), looked + WHERE_NOT_ADDED)
    per_second = coordinator.platform.price[busy] * state.cores_paid(busy)
    rates = np.cumsum(per_second[order])
    spent = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(ends[order]))])
    k = int(np.searchsorted(spent, left, side="right")) - 1
    if rates[k] <= 0:  # what is overdue by then costs nothing
        return math.inf
    when = float(ends[order[k]]) + (left - float(spent[k])) / float(rates[k])
    return max(when, looked + STEP)


CERTAINTY = 2.0  # standard deviations: what is expected to be enough in more than 9 of 10 cases
RESIDUAL = 0.5  # of the time that an overdue task has run: so much more is expected of it
UNSEEN = 0.3  # the relative deviation of tasks of which none has ended yet
DOUBT = 2.0  # so many tasks count as that
TINY = 1e-9


@dataclass(frozen=True)
class Experience:
    """The ratio of actual to expected time in this run, its deviation, and of how many tasks."""

    ratio: float = 1.0
    spread: float = UNSEEN
    tasks: float = 0.0

    def prudent(self, left: float) -> float:
        """A ratio that is enough for the sum of so many tasks more, as good as surely.

        The ratio of those to come is as unsure as that of those seen, and varies around it.
        """
        if self.tasks == 0 or left <= 0:
            return 1.0
        unsure = self.spread * math.sqrt(1 / left + 1 / self.tasks)
        return max(1.0, self.ratio + CERTAINTY * unsure)


def experience_of(state: RunState) -> Experience:
    """All finished attempts count, and those that are or were overdue, by what they may yet take.

    The ratio is to what is expected by now: where estimates have learned, it has come down to 1.
    """
    ratios, weights = _ratios(state)
    if not len(ratios):
        return Experience()
    ratio = float(np.average(ratios, weights=weights))
    n = float(weights.sum() ** 2 / np.square(weights).sum())  # as many equal ones
    variance = float(np.average(np.square(ratios - ratio), weights=weights))
    unseen = (UNSEEN * ratio) ** 2
    return Experience(ratio, math.sqrt((n * variance + DOUBT * unseen) / (n + DOUBT - 1)), n)


def _ratios(state: RunState) -> tuple[np.ndarray, np.ndarray]:
    """Actual to expected time of attempts, and how much each was expected to take."""
    arrays = state.arrays
    k = np.arange(int(arrays.counts[a.N_ATTEMPTS]), dtype=np.int32)
    expected = state.expected_seconds(k)
    end, p = arrays.attempt_end[k], arrays.attempt_on[k]
    runs = end == a.OPEN
    worked = arrays.worked[k] + np.where(
        runs, (arrays.clock[0] - arrays.since[k]) * arrays.availability[p], 0.0
    )
    ratio = worked / np.maximum(expected, TINY)
    overdue = (runs | (end == a.CANCELLED)) & (ratio > 1)
    ratio = np.where(overdue, ratio * (1 + RESIDUAL), ratio)
    counts = ((end == a.FINISHED) | overdue) & (expected > TINY)
    return ratio[counts], expected[counts]


def still_expected(state: RunState) -> np.ndarray:
    """By task, the time that a cancelled attempt shows it may need, of overdue ones; else 0."""
    arrays = state.arrays
    k = np.arange(int(arrays.counts[a.N_ATTEMPTS]))
    cut = (arrays.attempt_end[k] == a.CANCELLED) & (
        arrays.status[arrays.attempt_task[k]] == a.WAITING
    )
    floor = np.zeros(arrays.n_tasks)
    np.maximum.at(floor, arrays.attempt_task[k][cut], arrays.worked[k][cut] * (1 + RESIDUAL))
    return floor
