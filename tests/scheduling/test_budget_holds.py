"""No plan costs more than its budget, wherever it starts and however machines are paid."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import PlanningError, UnaffordableError
from foreplan.model import Freedom, Schedule, Situation, affordable, forecast
from twins.priced import any_priced, priced

pytestmark = pytest.mark.usefixtures("light_searches")

VARIANTS = ["loss1", "loss2", "loss3", "gain1", "gain2", "gain3"]
STARTS = ["heft", "hbmct", "gtp", "min-min", "peft"]
freedoms = st.sampled_from(Freedom)
shares = st.sampled_from([-0.5, 0.0, 0.01, 0.3, 0.5, 0.9, 1.0, 1.5])


@st.composite
def specs(draw: st.DrawFn) -> str:
    """Any budget planner but for its budget."""
    start = draw(st.sampled_from(STARTS))
    if draw(st.integers(0, 6)) == 0:
        return f"best-affordable[start={start}]"
    faithful = str(draw(st.booleans())).lower()
    return f"{draw(st.sampled_from(VARIANTS))}[start={start},faithful={faithful}]"


def started(situation: Situation, freedom: Freedom, spec: str) -> Schedule:
    """The plan of the planner that it starts from."""
    name = spec.partition("start=")[2].partition(",")[0].partition("]")[0]
    try:
        return registry.planner(name).plan(situation, freedom)
    except PlanningError:
        assume(False)
        raise


def planned(spec: str, budget: float, situation: Situation, freedom: Freedom) -> Schedule:
    """A plan that keeps the budget and all rules."""
    schedule = registry.planner(f"{spec[:-1]},budget={budget!r}]").plan(situation, freedom)
    check_schedule(schedule, situation, freedom)
    assert affordable(projected(schedule, situation), budget)
    return schedule


def projected(schedule: Schedule, situation: Situation) -> float:
    """What everything costs in the end; from the start on, what the schedule costs."""
    cost = forecast(schedule, situation).projected
    if len(situation.attempts.task) == 0:
        assert cost == pytest.approx(schedule.cost, rel=1e-9)
    return cost


def refused(
    spec: str, budget: float, situation: Situation, freedom: Freedom
) -> UnaffordableError | None:
    """Why there is no plan; None if there is one."""
    try:
        planned(spec, budget, situation, freedom)
    except UnaffordableError as error:
        return error
    return None


def least(spec: str, situation: Situation, freedom: Freedom) -> float:
    """What the cheapest plan costs that this planner finds."""
    error = refused(spec, 0.0, situation, freedom)
    if error is None:
        return 0.0
    check_schedule(error.cheapest, situation, freedom)
    assert error.cost == projected(error.cheapest, situation)
    assert error.budget == 0
    return error.cost


@settings(max_examples=100, deadline=None)
@given(spec=specs(), situation=any_priced(), freedom=freedoms, k=shares)
def test_no_plan_costs_more_than_its_budget(
    spec: str, situation: Situation, freedom: Freedom, k: float
) -> None:
    high = projected(started(situation, freedom, spec), situation)
    low = least(spec, situation, freedom)
    budget = max(0.0, low + k * abs(high - low))
    error = refused(spec, budget, situation, freedom)
    if affordable(low, budget):
        assert error is None
    if error is not None:
        assert error.budget == budget
        assert not affordable(error.cost, budget)
        assert error.cost == projected(error.cheapest, situation)


@settings(max_examples=100, deadline=None)
@given(spec=specs(), situation=any_priced(), freedom=freedoms)
def test_what_the_cheapest_is_said_to_cost_is_enough(
    spec: str, situation: Situation, freedom: Freedom
) -> None:
    started(situation, freedom, spec)
    planned(spec, least(spec, situation, freedom), situation, freedom)


@settings(max_examples=80, deadline=None)
@given(
    spec=specs(),
    situation=any_priced(),
    freedom=freedoms,
    more=st.sampled_from([1.0, 1.001, 2.0, inf]),
)
def test_who_can_pay_for_the_start_gets_it_or_a_better_one(
    spec: str, situation: Situation, freedom: Freedom, more: float
) -> None:
    """But for GAIN to the letter, which looks at no other plan than the cheapest."""
    first = started(situation, freedom, spec)
    cost = projected(first, situation)
    budget = cost * more if cost > 0 else 0.0
    if "gain" in spec and "faithful=true" in spec:
        assume(affordable(least(spec, situation, freedom), budget))
    plan = planned(spec, budget, situation, freedom)
    if "loss" in spec and "faithful=true" in spec:
        assert plan.processor.tolist() == first.processor.tolist()
        assert plan.finish.tolist() == first.finish.tolist()
    if "faithful=true" not in spec:
        assert plan.makespan <= first.makespan


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from([*VARIANTS, "best-affordable"]),
    situation=any_priced(),
    k=shares,
    later=st.sampled_from([1.0, 1.1, 1.5]),
)
def test_when_all_machines_leave_soon(
    name: str, situation: Situation, k: float, later: float
) -> None:
    """HEFT's plan fits; what is cheaper may not, and is then no plan."""
    spec, freedom = f"{name}[start=heft]", Freedom.NOT_STARTED
    first = started(situation, freedom, spec)
    leaves = np.minimum(situation.platform.leaves, max(first.makespan, situation.now + 1) * later)
    situation = replace(situation, platform=replace(situation.platform, leaves=leaves))
    high = projected(started(situation, freedom, spec), situation)
    low = least(spec, situation, freedom)
    assert low <= high * (1 + 1e-9)
    planned(spec, low + max(k, 0.0) * (high - low), situation, freedom)


@settings(max_examples=60, deadline=None)
@given(spec=specs(), situation=priced(at_start=False), k=shares)
def test_the_situation_s_budget_is_as_good(spec: str, situation: Situation, k: float) -> None:
    """The smaller of the two counts, and what was spent by now is part of it."""
    high = projected(started(situation, Freedom.NOT_STARTED, spec), situation)
    low = least(spec, situation, Freedom.NOT_STARTED)
    budget = max(0.0, low + k * (high - low))
    two = [(budget, inf), (inf, budget), (budget, 2 * budget), (2 * budget, budget)]
    results = [outcome(spec, option, replace(situation, budget=other)) for option, other in two]
    assert results == results[:1] * 4
    assert results[0][0] == budget


def outcome(spec: str, budget: float, situation: Situation) -> tuple[float, list[float]]:
    """The finish of every task; or the budget that is too small."""
    try:
        plan = registry.planner(f"{spec[:-1]},budget={budget!r}]").plan(situation)
        return min(budget, situation.budget), plan.finish.tolist()
    except UnaffordableError as error:
        return error.budget, [error.cost]
