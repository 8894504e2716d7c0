"""What careful variants never do, and what best-affordable and cheapest-in-time promise."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import PlanningError, TooLateError, UnaffordableError
from foreplan.model import Freedom, Schedule, Situation, affordable, forecast
from foreplan.scheduling.planners import _search
from twins.budget import Shop
from twins.priced import any_priced, between, priced, with_prices
from twins.troubles import troubled_situation

pytestmark = pytest.mark.usefixtures("light_searches")

VARIANTS = ["loss1", "loss2", "loss3", "gain1", "gain2", "gain3"]
shares = st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0])
starts = st.sampled_from(["heft", "hbmct"])


def planned(spec: str, situation: Situation) -> Schedule:
    schedule = registry.planner(spec).plan(situation)
    check_schedule(schedule, situation)
    return schedule


def started(start: str, situation: Situation) -> Schedule:
    try:
        return planned(start, situation)
    except PlanningError:
        assume(False)
        raise


def budget_of(situation: Situation, start: str, k: float) -> float:
    shop = Shop(situation)
    return between(shop.bill(shop.cheapest()), started(start, situation).cost, k)


def projected(schedule: Schedule, situation: Situation) -> float:
    return forecast(schedule, situation).projected


@settings(max_examples=50, deadline=None)
@given(
    name=st.sampled_from(["loss1", "loss2", "loss3"]), start=starts, k=shares, situation=priced()
)
def test_careful_loss_moves_no_task_where_it_is_not_cheaper(
    name: str, start: str, k: float, situation: Situation
) -> None:
    shop, first = Shop(situation), started(start, situation)
    budget = budget_of(situation, start, k)
    plan = planned(f"{name}[start={start},budget={budget!r}]", situation)
    cheapest = {t: p for t, (p, _, _) in shop.cheapest().items()}
    if plan.processor.tolist() == [cheapest[t] for t in range(len(plan.processor))]:
        return  # the last resort, which may put a task on another machine of the same cost
    for task in shop.order:
        old, new = int(first.processor[task]), int(plan.processor[task])
        assert new == old or shop.charge(task, new) < shop.charge(task, old)


@settings(max_examples=50, deadline=None)
@given(name=st.sampled_from(["gain1", "gain3"]), start=starts, k=shares, situation=priced())
def test_careful_gain_moves_no_task_where_it_is_not_faster(
    name: str, start: str, k: float, situation: Situation
) -> None:
    """Variant 2 may: what counts there is the makespan."""
    shop, first = Shop(situation), started(start, situation)
    plan = planned(f"{name}[start={start},budget={budget_of(situation, start, k)!r}]", situation)
    if plan.finish.tolist() == first.finish.tolist():
        return
    cheapest = shop.cheapest()
    for task in shop.order:
        old, new = cheapest[task][0], int(plan.processor[task])
        assert new == old or shop.time[task][new] < shop.time[task][old]


@settings(max_examples=50, deadline=None)
@given(name=st.sampled_from(VARIANTS), start=starts, k=shares, situation=priced())
def test_a_careful_plan_is_no_slower_than_the_cheapest(
    name: str, start: str, k: float, situation: Situation
) -> None:
    budget = budget_of(situation, start, k)
    shop = Shop(situation)
    plan = planned(f"{name}[start={start},budget={budget!r}]", situation)
    assert plan.makespan <= max(finish for _, _, finish in shop.cheapest().values())


@settings(max_examples=30, deadline=None)
@given(k=shares, situation=any_priced())
def test_best_affordable_is_as_good_as_every_variant(k: float, situation: Situation) -> None:
    high = projected(started("heft", situation), situation)
    try:
        planned("best-affordable[budget=0]", situation)
        low = 0.0
    except UnaffordableError as error:
        low = error.cost
    budget = between(low, high, k) if low < high else low
    best = planned(f"best-affordable[budget={budget!r}]", situation)
    assert affordable(projected(best, situation), budget)
    adds_up = situation.platform.adds_up and situation.platform.leaves.min() == inf
    for name in VARIANTS:
        for start in ("heft", "hbmct"):
            try:
                other = planned(f"{name}[start={start},budget={budget!r}]", situation)
            except UnaffordableError:
                assert not adds_up
                continue
            assert best.makespan <= other.makespan * (1 + 1e-9)


def test_best_affordable_sees_where_loss_stops_between_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By billing units costs do not add up, and a walk along LOSS's path looks at few points."""
    monkeypatch.setattr(_search, "POINTS", 2)
    monkeypatch.setattr(_search, "SWEEPS", 0)
    rng = np.random.default_rng(287)
    situation = with_prices(troubled_situation(rng), rng, exact=False, units=True, links=False)
    high = projected(started("heft", situation), situation)
    with pytest.raises(UnaffordableError) as error:
        planned("best-affordable[budget=0]", situation)
    budget = between(error.value.cost, high, 0.5)
    best = planned(f"best-affordable[budget={budget!r}]", situation)
    loss = planned(f"loss1[budget={budget!r}]", situation)
    assert best.makespan <= loss.makespan


@settings(max_examples=15, deadline=None)
@given(
    situation=any_priced(),
    share=st.sampled_from([0.25, 0.75, 1.0, 1.0, 1.25, 2.0, 100.0]),
    freedom=st.sampled_from(Freedom),
)
def test_cheapest_in_time_is_in_time_and_no_dearer_than_heft(
    situation: Situation, share: float, freedom: Freedom
) -> None:
    first = started("heft", situation)
    deadline = first.makespan * share
    assume(deadline > 0)
    plan = in_time(deadline, situation, freedom)
    if isinstance(plan, TooLateError):
        assert share < 1
        assert plan.deadline == deadline
        assert plan.fastest.makespan == plan.makespan > deadline
        assert plan.makespan <= first.makespan
        check_schedule(plan.fastest, situation, freedom)
        deadline = plan.makespan
        plan = in_time(deadline, situation, freedom)
    assert isinstance(plan, Schedule)
    check_schedule(plan, situation, freedom)
    assert plan.makespan <= deadline * (1 + 1e-9)
    if share >= 1:
        assert projected(plan, situation) <= projected(first, situation) * (1 + 1e-9)


def in_time(deadline: float, situation: Situation, freedom: Freedom) -> Schedule | TooLateError:
    """A plan, or why there is none."""
    try:
        planner = registry.planner(f"cheapest-in-time[deadline={deadline!r}]")
        return planner.plan(situation, freedom)
    except TooLateError as error:
        return error


@settings(max_examples=30, deadline=None)
@given(situation=priced(), deadline=st.sampled_from([1e9, inf]))
def test_with_all_the_time_it_is_the_cheapest(situation: Situation, deadline: float) -> None:
    shop = Shop(situation)
    plan = planned(f"cheapest-in-time[deadline={deadline}]", situation)
    assert plan.cost == pytest.approx(shop.bill(shop.cheapest()), rel=1e-12)
