"""A plan within limits: of money, of time, or of both."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from foreplan import registry
from foreplan.contracts import Planner
from foreplan.errors import InputError, TooLateError, in_seconds, rounded_up
from foreplan.model import Schedule, Situation
from foreplan.quantities import amount, duration
from foreplan.scheduling.planners.heft import (
    Heft,  # loaded ahead: a first plan takes no longer than the next
)
from foreplan.scheduling.projection import ends_earlier


def check_limits(budget: float | None, deadline: float | None, reserve: float = 0.0) -> None:
    """Whether these can be asked for at all."""
    if not 0 <= reserve < 1:
        raise InputError(f"the reserve must be a share from 0 to below 1, not {reserve:g}")
    if reserve and budget is None:
        raise InputError("a reserve is a share of a budget: give one")
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise InputError(f"the budget must be a number of at least 0, not {budget:g}")
    if deadline is not None and not (math.isfinite(deadline) and deadline > 0):
        raise InputError(f"the deadline must be a number above 0, not {deadline:g}")


def plan_within(
    situation: Situation,
    planner: str | Planner | None,
    budget: float | None,
    deadline: float | None,
) -> Schedule:
    """The plan of a planner, or of the one that answers the question, if it keeps the limits."""
    default = Heft.name if deadline is None else "cheapest-in-time"
    default = default if budget is None else "best-affordable"
    chosen = registry.planner(default if planner is None else planner)
    if deadline is not None:
        chosen = registry.at_latest(chosen, deadline)
    if budget is not None:
        chosen, situation = registry.within_budget(chosen), replace(situation, budget=budget)
    schedule = chosen.plan(situation)
    if deadline is not None and ends_earlier(deadline, schedule.makespan):
        raise _too_late(schedule, situation, deadline)
    return schedule


def _too_late(schedule: Schedule, situation: Situation, deadline: float) -> TooLateError:
    """What is possible under the one limit, and under the other."""
    chosen: Any = registry.planner_class("cheapest-in-time")
    try:
        other = chosen(deadline=deadline).plan(replace(situation, budget=math.inf))
        beside = f"the cheapest found that ends by then costs {rounded_up(other.cost)}"
    except TooLateError as none_at_all:
        beside = str(none_at_all)
    budget = situation.budget
    within = f" within the budget of {amount(budget)}" if math.isfinite(budget) else ""
    error = TooLateError(deadline, schedule.makespan, schedule.cost, schedule)
    error.args = (
        f"the plan by {schedule.planner}{within} ends at {in_seconds(schedule.makespan)}, "
        f"after the deadline of {duration(deadline, 3)} (and costs {amount(schedule.cost)}); "
        f"{beside}",
    )
    return error
