"""The money of a run on real machines: looked at now and then, and told when it will not do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from weft import registry
from weft.coordinator import Coordinator, Purse
from weft.coordinator.purse import advised
from weft.errors import InputError, rounded_up
from weft.live.options import check_budget
from weft.live.prices import costs_money
from weft.live.switching import PLANNED
from weft.model import Money, Platform, Workflow
from weft.model.events import Event, EventKind
from weft.quantities import amount, duration
from weft.wiring import Progress

PAUSE = 1.0  # seconds between two looks at the money, for people
SHARE = 20.0  # times what a look took, before the next
FREE = "nothing costs anything here, so a budget means nothing"


class Spending:
    """What a run has spent, is committed to and is expected to cost; the driving thread looks."""

    def __init__(self, coordinator: Coordinator, warn: Callable[[str], None]) -> None:
        self._coordinator, self._warn = coordinator, warn
        self.money: Money | None = None  # None where nothing has a price
        self._next = 0.0
        self._told: float | None = None  # the budget that was said not to do
        self._looked_at: tuple[Platform, bool] | None = None  # whether anything there has a price
        self._known = self._overrun()

    def look(self) -> None:
        """Say at once that the budget will not do; look at the money, if it is time."""
        coordinator = self._coordinator
        if not self._matters():
            return
        self._say()
        begun = time.monotonic()
        if begun >= self._next:
            self.money = coordinator.money()
            now = time.monotonic()
            self._next = now + max(PAUSE, SHARE * (now - begun))

    def last(self) -> Money | None:
        """The money in the end."""
        if not self._matters():
            return None
        self._say()
        self.money = self._coordinator.money()
        return self.money

    def _matters(self) -> bool:
        """Whether anything costs anything; asked at every event, and worked out once."""
        platform = self._coordinator.platform
        if self._looked_at is None or self._looked_at[0] is not platform:
            self._looked_at = platform, costs_money(platform)
        return self._looked_at[1]

    def needed(self) -> float | None:
        """What all of it would cost, if the run was stopped for its budget."""
        if not self._coordinator.purse.holds or self.money is None:
            return None
        return advised(self._coordinator)

    def _overrun(self) -> tuple[float, float] | None:
        """When it was known that the budget will not do, and what is needed."""
        purse = self._coordinator.purse
        return None if math.isnan(purse.over_at) else (purse.over_at, purse.needed)

    def _say(self) -> None:
        purse, overrun = self._coordinator.purse, self._overrun()
        if overrun is None or self._told == purse.budget:
            return
        if overrun == self._known and not purse.holds:  # of a former sitting
            return
        self._told = purse.budget
        self._warn(over_budget(purse, self._coordinator.workflow))


def over_budget(purse: Purse, workflow: Workflow) -> str:
    """What to say when even the cheapest way is too dear."""
    if purse.dear >= 0:
        name = workflow.task_names[purse.dear]
        timeout = workflow.spec(purse.dear).timeout or purse.timeout
        what = "a billing unit" if timeout is None else f"the time-out of {duration(timeout)}"
        return (
            f"the budget of {amount(purse.budget)} will not do: {what} for {name!r} cannot be "
            f"paid, so it is not begun; {rounded_up(purse.needed)} would be enough"
        )
    if purse.cuts:
        then = "what runs is cancelled when the money is gone"
    elif purse.holds:
        then = "what runs is finished, then the run stops"
    elif purse.stops:
        then = "nothing is left that could be held back"
    else:
        then = "the run is finished the cheapest way"
    return (
        f"the budget of {amount(purse.budget)} will not do: the cheapest way found to finish is "
        f"expected to cost {rounded_up(purse.needed)} in all; {then}"
    )


def check_strategy(spec: str, budgeted: bool) -> None:
    """Refuse a strategy that cannot be meant, or cannot keep a budget."""
    policy, _ = registry.strategy(spec, budgeted)
    if policy.name == "ideal":
        raise InputError("`ideal` knows what tasks will really take: only a simulation can do that")


def check_payable(platform: Platform, blind: bool) -> None:
    """Refuse a budget where nobody can say what anything costs."""
    if not costs_money(platform):
        raise InputError(
            f"{FREE}: give a price (`--price 0.02`, or `--price 'NAME=0.02'`)", place="budget"
        )
    if blind:
        raise InputError(
            "no task has a history or a declared cost, so nobody knows what they will cost: "
            "declare costs (`cost:`, in seconds), or run it once without a budget",
            place="budget",
        )


def give_budget(progress: Progress, run: str, budget: float | None, then: str | None) -> None:
    """A run that is gone on with gets another budget, or does otherwise when that will not do."""
    coordinator, purse = progress.coordinator, progress.coordinator.purse
    if budget is None and then is None:
        return
    if coordinator.policy is None or progress.planner is None:
        raise InputError(
            f"run {run} makes no plan, so it cannot keep a budget: begin a new one with "
            f"`--strategy '{PLANNED}'`"
        )
    if not costs_money(coordinator.platform):
        raise InputError(f"{FREE}: prices are given when a run begins, with `--price`")
    if budget is not None:
        check_budget(budget)
    elif not purse.kept:
        raise InputError(f"run {run} has no budget: give one with `--budget`")
    if then is not None:
        coordinator.set_over_budget(then)
    # what was to be cheap by a deadline is to be fast within the budget now
    planner: Any = progress.planner
    is_cheap = hasattr(planner, "deadline") and hasattr(planner, "start")
    progress.planner = registry.within_budget(planner.start if is_cheap else planner)


def budget_event(coordinator: Coordinator, budget: float | None, now: float) -> Event | None:
    """What a run that is gone on with is told of its budget, if it has one."""
    if budget is None and coordinator.purse.kept:
        budget = coordinator.purse.budget
    if budget is None or coordinator.n_done == coordinator.workflow.n_tasks:
        return None
    return Event(EventKind.BUDGET, 0, now, budget)
