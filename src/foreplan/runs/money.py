"""The money and the time of a real run: prices, what is spent, and limits that are to be kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from foreplan import registry
from foreplan.contracts import Order, Planner, Policy
from foreplan.engine.budget import BudgetTracker, advised, overdue_at
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.errors import InputError, TooLateError, in_seconds, rounded_up
from foreplan.model import Money, Platform, Workflow
from foreplan.model.events import BudgetChanged, Command, Event, Heard, TasksOverdue, WakeAt
from foreplan.quantities import amount, duration
from foreplan.runs.options import PLANNED, check_budget, check_deadline
from foreplan.spec import spec_of

Rule = tuple[str, float, float]  # names as a pattern, money per second, billing unit (0: none)
EVERY = "*"
EXAMPLES = "`0.02` (per second), `NAME=0.02`, `fast*=0.02/3600` (paid per begun 3600 s)"


def read_price(text: str) -> Rule:
    """A price as the command line has it: `0.02`, `fast*=0.02`, `fast*=0.02/3600`."""
    pattern, equals, amount = text.rpartition("=")
    price, slash, billing = amount.partition("/")
    if equals and not pattern:
        raise InputError(f"{text!r} names no processor: {EXAMPLES}", place="--price")
    try:
        unit = float(billing) if slash else 0.0
        if slash and not unit > 0:
            raise ValueError
        return _checked(pattern or EVERY, float(price), unit)
    except ValueError:
        raise InputError(f"{text!r} is no price: {EXAMPLES}", place="--price") from None


def price_rules(price: Any) -> tuple[Rule, ...]:
    """A price as code has it: a number, or by pattern a number or a pair with a billing unit."""
    if price is None:
        return ()
    if isinstance(price, Mapping):
        return tuple(_rule(pattern, amount) for pattern, amount in price.items())
    if isinstance(price, Sequence) and not isinstance(price, str):
        return tuple(_rule(pattern, amount) for pattern, *amount in price)
    return (_rule(EVERY, price),)


def _rule(pattern: Any, amount: Any) -> Rule:
    numbers = list(amount) if isinstance(amount, tuple | list) else [amount]
    try:
        price, billing = map(float, numbers if len(numbers) > 1 else [*numbers, 0.0])
        return _checked(str(pattern), price, billing)
    except (TypeError, ValueError):
        raise InputError(
            f"{amount!r} is no price: give money per second, or a pair of that and a billing unit "
            "in seconds",
            place=f"price of {pattern}",
        ) from None


def _checked(pattern: str, price: float, billing: float) -> Rule:
    if not all(math.isfinite(number) and number >= 0 for number in (price, billing)):
        raise ValueError
    return pattern, price, billing


def priced(
    platform: Platform,
    machine: Callable[[int], str],
    rules: Sequence[Rule],
    transfer_price: float = 0.0,
    known: Platform | None = None,
) -> Platform:
    """The platform with these prices, the last that fits; what is known keeps what it has."""
    if not rules and not transfer_price:
        return platform
    price, billing = np.zeros(platform.n_processors), np.zeros(platform.n_processors)
    first = 0
    if known is not None:
        first = known.n_processors
        price[:first], billing[:first] = known.price, known.billing
    for p in range(first, platform.n_processors):
        names = names_of(platform, p, machine)
        for pattern, rate, unit in rules:
            if fits(pattern, names):
                price[p], billing[p] = rate, unit
    links = np.full((platform.n_hosts, platform.n_hosts), transfer_price)
    np.fill_diagonal(links, 0.0)
    network = replace(platform.network, price=transfer_price)
    return replace(platform, price=price, billing=billing, link_price=links, network=network)


def names_of(platform: Platform, p: int, machine: Callable[[int], str]) -> set[str]:
    """What a processor may be called: itself, its worker, its host, its machine."""
    name = platform.processor_names[p]
    return {name, name.partition("#")[0], platform.host_names[platform.host[p]], machine(p)}


def fits(pattern: str, names: set[str]) -> bool:
    """Whether a pattern means one of these names."""
    return pattern in names or any(fnmatchcase(name, pattern) for name in names)


def unused(platform: Platform, machine: Callable[[int], str], rules: Sequence[Rule]) -> list[str]:
    """Patterns that no processor fits, as far as they are known."""
    every = [names_of(platform, p, machine) for p in range(platform.n_processors)]
    return [rule[0] for rule in rules if not any(fits(rule[0], names) for names in every)]


def costs_money(platform: Platform) -> bool:
    """Whether anything there has a price."""
    return bool(platform.price.any() or platform.link_price.any())


def in_words(platform: Platform) -> str:
    """What the machines cost, in one line."""
    if not platform.price.any():
        return f"prices: processors are free, data {amount(platform.network.price)} per unit"
    least, most = float(platform.price.min()), float(platform.price.max())
    text = (
        f"prices: {amount(least)}" + (f" to {amount(most)}" if most > least else "") + " per second"
    )
    units = sorted(set(platform.billing[platform.billing > 0].tolist()))
    if units:
        some = "" if (platform.billing > 0).all() else "some "
        text += f", {some}paid per begun " + " or ".join(duration(u) for u in units)
    if platform.network.price:
        text += f"; data {amount(platform.network.price)} per unit"
    return text


PAUSE = 1.0  # seconds between two looks at the money, for people
SHARE = 20.0  # times what a look took, before the next
FREE = "nothing costs anything here, so a budget means nothing"


class Spending:
    """What a run has spent, is committed to and is expected to cost; the driving thread looks."""

    def __init__(self, coordinator: Coordinator, warn: Callable[[str], None]) -> None:
        self._coordinator, self._warn = coordinator, warn
        self.money: Money | None = None  # None where nothing has a price
        self._next = 0.0
        self._told: float | None = None  # the budget that was said not to be enough
        self._looked_at: tuple[Platform, bool] | None = None  # whether anything there has a price
        self._known = self._overrun()

    def look(self, final: bool = False) -> None:
        """Say at once that the budget is not enough; look at the money, if it is time."""
        if not self._matters():
            return
        self._say()
        begun = time.monotonic()
        if final or begun >= self._next:
            self.money = self._coordinator.money()
            now = time.monotonic()
            self._next = now + max(PAUSE, SHARE * (now - begun))

    def _matters(self) -> bool:
        """Whether anything costs anything; asked at every event, and worked out once."""
        platform = self._coordinator.platform
        if self._looked_at is None or self._looked_at[0] is not platform:
            self._looked_at = platform, costs_money(platform)
        return self._looked_at[1]

    def needed(self) -> float | None:
        """What all of it would cost, if the run was stopped for its budget."""
        if not self._coordinator.tracker.holds or self.money is None:
            return None
        return advised(self._coordinator)

    def _overrun(self) -> tuple[float, float] | None:
        """When it was known that the budget is not enough, and what is needed."""
        tracker = self._coordinator.tracker
        return None if math.isnan(tracker.over_at) else (tracker.over_at, tracker.needed)

    def _say(self) -> None:
        tracker, overrun = self._coordinator.tracker, self._overrun()
        if overrun is None or self._told == tracker.budget:
            return
        if overrun == self._known and not tracker.holds:  # of a former session
            return
        self._told = tracker.budget
        self._warn(over_budget(tracker, self._coordinator.workflow))


def over_budget(tracker: BudgetTracker, workflow: Workflow) -> str:
    """What to say when even the cheapest way is too dear."""
    if tracker.dear >= 0:
        name = workflow.task_names[tracker.dear]
        timeout = workflow.spec(tracker.dear).timeout or tracker.timeout
        what = "a billing unit" if timeout is None else f"the time-out of {duration(timeout)}"
        return (
            f"the budget of {amount(tracker.budget)} is not enough: {what} for {name!r} cannot be "
            f"paid, so it is not begun; {rounded_up(tracker.needed)} would be enough"
        )
    if tracker.cuts:
        then = "what runs is cancelled when the money is gone"
    elif tracker.holds:
        then = "what runs is finished, then the run stops"
    elif tracker.stops:
        then = "nothing is left that could be held back"
    else:
        then = "the run is finished the cheapest way"
    return (
        f"the budget of {amount(tracker.budget)} is not enough: the cheapest way found to finish "
        f"is expected to cost {rounded_up(tracker.needed)} in all; {then}"
    )


def check_strategy(spec: str | Policy | Order, budgeted: bool) -> None:
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
            "no task has a history or a declared cost, so it is not known what they will cost: "
            "declare costs (`cost:`, in seconds), or run it once without a budget",
            place="budget",
        )


def give_budget(driver: Driver, run: str, budget: float | None, then: str | None) -> None:
    """A resumed run gets another budget, or does otherwise when that is not enough."""
    coordinator, tracker = driver.coordinator, driver.coordinator.tracker
    if budget is None and then is None:
        return
    if coordinator.policy is None or driver.planner is None:
        raise InputError(
            f"run {run} makes no plan, so it cannot keep a budget: begin a new one with "
            f"`--strategy '{PLANNED}'`"
        )
    if not costs_money(coordinator.platform):
        raise InputError(f"{FREE}: prices are given when a run begins, with `--price`")
    if budget is not None:
        check_budget(budget)
    elif not tracker.kept:
        raise InputError(f"run {run} has no budget: give one with `--budget`")
    if then is not None:
        coordinator.set_over_budget(then)
    # what was to be cheap by a deadline is to be fast within the budget now
    planner: Any = driver.planner
    is_cheap = hasattr(planner, "deadline") and hasattr(planner, "start")
    driver.planner = registry.within_budget(planner.start if is_cheap else planner)


def budget_event(coordinator: Coordinator, budget: float | None, now: float) -> Event | None:
    """What a resumed run is told of its budget, if it has one."""
    if budget is None and coordinator.tracker.kept:
        budget = coordinator.tracker.budget
    if budget is None or coordinator.n_done == coordinator.workflow.n_tasks:
        return None
    return BudgetChanged(now, budget)


class Lateness:
    """Says once that a run is expected to be late, for each deadline."""

    def __init__(self, coordinator: Coordinator, warn: Callable[[str], None]) -> None:
        self._coordinator, self._warn = coordinator, warn
        self._told: float | None = None

    def look(self) -> None:
        """Say it, if it is known."""
        deadline = self._coordinator.deadline
        if deadline.late_at != deadline.late_at or self._told == deadline.at:
            return
        self._told = deadline.at
        self._warn(
            f"the deadline of {duration(deadline.at, 3)} will not be kept: the run is expected to "
            f"end at {in_seconds(deadline.projected)}, and continues"
        )


def within_limits(planner: Planner, coordinator: Coordinator) -> Planner:
    """The planner that keeps what the run is to keep: its budget, else its deadline, cheaply.

    Where nothing costs anything the cheapest way means nothing: the plan is made as always.
    """
    if coordinator.tracker.kept:
        return registry.within_budget(planner)
    if coordinator.deadline.kept and costs_money(coordinator.platform):
        return registry.in_time(planner, coordinator.deadline.at)
    return planner


def check_in_time(coordinator: Coordinator) -> None:
    """Refuse to begin if the first plan ends after the deadline."""
    plan, deadline = coordinator.plan, coordinator.deadline
    if plan is not None and deadline.is_passed_by(plan.makespan):
        raise TooLateError(deadline.at, plan.makespan, plan.cost, plan)


def check_foreseeable(strategy: str | Policy | Order, blind: bool) -> None:
    """Refuse a deadline where nobody can say when the run will end."""
    chosen, planner = registry.strategy(strategy)
    if planner is None:
        raise InputError(
            f"`{spec_of(chosen)}` makes no plan, so it is not known when it will end; take a "
            f"planned strategy, such as `{PLANNED}`",
            place="deadline",
        )
    if blind:
        raise InputError(
            "no task has a history or a declared cost, so it is not known how long they will take: "
            "declare costs (`cost:`, in seconds), or run it once without a deadline",
            place="deadline",
        )


def give_deadline(driver: Driver, run: str, deadline: float | None) -> None:
    """A resumed run gets another deadline."""
    if deadline is None:
        return
    check_deadline(deadline)
    if driver.coordinator.policy is None or driver.planner is None:
        raise InputError(
            f"run {run} makes no plan, so it cannot keep a deadline: begin a new one with "
            f"`--strategy '{PLANNED}'`"
        )
    driver.coordinator.deadline.set(deadline)
    driver.planner = within_limits(driver.planner, driver.coordinator)


class Overdue:
    """Has the coordinator look at its plan once overdue tasks may have used up what is left."""

    def __init__(self, coordinator: Coordinator, perform: Callable[[Command], None]) -> None:
        self._coordinator, self._perform = coordinator, perform
        self._looked = 0.0  # the run's time of the last such look
        self._asked = math.inf

    def watch(self) -> None:
        """Ask to be told when it is time to look; whatever was heard may have changed that."""
        kept = self._coordinator.tracker.kept
        due = overdue_at(self._coordinator, self._looked) if kept else math.inf
        if due != self._asked:
            self._asked = due
            self._perform(WakeAt(due, TasksOverdue))

    def take(self, event: TasksOverdue) -> list[Heard]:
        """What the coordinator is to hear of it: nothing, if all that was overdue has ended."""
        self._asked = math.inf
        if not self._coordinator.state.running():
            return []
        self._looked = event.time
        return [event]
