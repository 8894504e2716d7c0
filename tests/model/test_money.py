"""Money: per second, by billing unit, for transfers; of plans, of runs, at any moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreplan
from foreplan import registry
from foreplan.model import (
    Attempts,
    Copies,
    Freedom,
    Item,
    Platform,
    Schedule,
    Situation,
    Transfers,
    Usage,
    Workflow,
    affordable,
    forecast,
)
from twins.money import cost_of_schedule, cost_of_uses, forecast_of, past_uses
from twins.priced import any_priced, with_prices
from twins.situations import random_situation

NAN = float("nan")
some = settings(max_examples=150, deadline=None)


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-6)


def machines(network: dict[str, Any] | None = None, **processors: dict[str, Any]) -> Platform:
    return foreplan.load_platform({"processors": processors, "network": network or {}})


# By hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "units"),
    [(10.0, 1), (10.1, 1), (70.0, 1), (70.1, 2), (130.0, 2), (190.0 + 1e-10, 3), (191.0, 4)],
)
def test_every_begun_unit_is_paid_from_the_first_use_to_the_last(last: float, units: int) -> None:
    platform = machines(p={"price": 2, "billing": 60}, q={"price": 3}, idle={"billing": 60})
    on = np.array([0, 0, 1])
    usage = Usage.none(3).and_then(on, np.array([10.0, last, 5.0]), np.array([10.0, last, 9.0]))
    assert usage.by_processor(platform).tolist() == [units * 60 * 2, 4 * 3, 0]
    assert usage.cost(platform) == units * 120 + 12


def test_what_is_used_for_no_time_begins_a_unit_and_what_is_not_used_is_free() -> None:
    platform = machines(p={"price": 2, "billing": 60}, q={"price": 2, "billing": 60})
    usage = Usage.none(2).and_then(np.array([0]), np.array([7.0]), np.array([7.0]))
    assert usage.by_processor(platform).tolist() == [120, 0]
    assert Usage.none(2).cost(platform) == 0


def test_processors_that_come_later_were_not_used() -> None:
    usage = Usage.none(1).and_then(np.array([0]), np.array([0.0]), np.array([5.0]))
    assert usage.by_processor(machines(p={"price": 2}, q={"price": 9})).tolist() == [10]


def test_a_transfer_is_paid_once_to_each_host() -> None:
    work = Workflow.from_items("w", list("abcd"), [1.0] * 4, [Item(4.0, 0, (1, 2, 3))])
    hosts: dict[str, Any] = {"p": {}, "q": {"host": "h"}, "r": {"host": "h"}}
    platform = machines({"price": 0.5}, **hosts)
    made = Schedule(
        "by hand",
        work,
        platform,
        np.array([0, 0, 1, 2]),
        np.array([0.0, 1.0, 5.0, 5.0]),
        np.array([1.0, 2.0, 6.0, 6.0]),
    )
    foreplan.check_schedule(made)
    assert made.usage.transfers == made.cost == 4 * 0.5
    assert platform.adds_up is False
    assert machines(**hosts).adds_up is True
    assert machines(p={"billing": 60}).adds_up is True  # nothing is paid anyway
    assert machines(p={"billing": 60, "price": 1}).adds_up is False


def test_what_a_task_holds_of_a_host_is_on_the_bill_of_its_processor() -> None:
    h = {"cores": 4, "price": 4, "price_of": "host", "memory": "10GB"}
    platform = foreplan.load_platform(
        {"hosts": {"h": h, "k": {"cores": 1}}, "network": {"price": 0.1}}
    )
    a, b = {"cost": 10, "memory": "5GB", "on": "h"}, {"cost": 10, "on": "k"}
    workflow = foreplan.load({"tasks": {"a": a, "b": b}, "edges": [["a", "b", 20]]})
    run = foreplan.simulate(workflow, platform, strategy="static")
    for shown in (foreplan.plan(workflow, platform), run):
        assert shown.bill.processors.tolist() == [near(20), 0, 0, 0, 0]  # half of the host
        assert shown.bill.transfers == near(2)
        assert shown.cost == near(22)


def test_within_the_budget_but_for_rounding() -> None:
    assert affordable(40.0, 40.0)
    assert affordable(0.1 + 0.2, 0.3)
    assert not affordable(40.0001, 40.0)
    assert affordable(1e9, float("inf"))
    assert affordable(0.0, 0.0)


def halfway() -> tuple[Situation, Schedule]:
    """At 30: a is done, b runs on q, c has what it reads on its way to q; d needs a's on r."""
    work = foreplan.load(
        {
            "tasks": {"a": {"cost": 10}, "b": {"cost": 30}, "c": {"cost": 5}, "d": {"cost": 5}},
            "edges": [["a", "b", 2], ["a", "c", 3], ["a", "d", 4]],
        }
    )
    unit = {"price": 1, "billing": 25}
    platform = machines({"price": 10}, p={"price": 2}, q=unit, r=unit)
    start = Situation.at_start(work, platform)
    situation = replace(
        start,
        now=30.0,
        attempts=Attempts(
            np.array([0, 1]), np.array([0, 1]), np.array([0.0, 12.0]), np.array([10.0, NAN])
        ),
        copies=Copies(np.array([0]), np.array([1])),
        transfers=Transfers(np.array([1]), np.array([1]), np.array([31.0])),
    )
    plan = Schedule(
        "by hand",
        work,
        platform,
        np.array([0, 1, 1, 2]),
        np.array([0.0, 12.0, 60.0, 34.0]),
        np.array([10.0, 42.0, 65.0, 39.0]),
    )
    foreplan.check_schedule(plan, situation)
    return situation, plan


def test_spent_committed_and_planned_by_hand() -> None:
    situation, plan = halfway()
    money = forecast(plan, situation)
    assert money.spent == 10 * 2 + 25  # q: 12 to 30
    assert money.committed == 25  # q until 42: the second unit
    # q until 65: the third unit; r: one unit, and a's item to it
    assert money.planned == 25 + 25 + 4 * 10
    assert money.projected == 160
    assert money.to_dict() == {"spent": 45, "committed": 25, "planned": 90, "projected": 160}


def test_what_was_in_vain_and_what_was_sent_is_spent() -> None:
    situation, plan = halfway()
    # r was used from 2 to 4 in vain, and everything sent so far was paid for
    usage = situation.used.and_then(np.array([2]), np.array([2.0]), np.array([4.0]), 5 * 10.0)
    money = forecast(plan, replace(situation, usage=usage))
    assert money.spent == 45 + 25 + 50
    assert money.committed == 25
    assert money.planned == 25 + 25 + 40  # r from 2 to 39: two units


def test_a_running_task_that_is_moved_costs_what_it_cost_so_far() -> None:
    situation, plan = halfway()
    moved = replace(
        plan,
        processor=np.array([0, 2, 2, 2]),
        start=np.array([0.0, 32.0, 70.0, 62.0]),
        finish=np.array([10.0, 62.0, 75.0, 67.0]),
    )
    money = forecast(moved, situation)
    assert (money.spent, money.committed) == (45, 0)
    assert money.planned == 2 * 25 + (2 + 3 + 4) * 10  # r from 32 to 75; everything is sent again


def test_what_is_given_up_costs_nothing() -> None:
    situation, plan = halfway()
    without = replace(situation, given_up=np.array([False, False, True, True]))
    assert forecast(plan, without).planned == 0


# Against the twin ----------------------------------------------------------------------------


def any_plan(situation: Situation, rng: np.random.Generator) -> Schedule:
    """What has finished stays; what runs stays or moves; the rest is anywhere, from now on."""
    wf, now, a = situation.workflow, situation.now, situation.attempts
    processor = rng.integers(0, situation.platform.n_processors, wf.n_tasks).astype(np.int32)
    start = now + rng.uniform(0, 900, wf.n_tasks)
    finish = start + rng.uniform(0, 900, wf.n_tasks)
    stays = ~np.isnan(a.finish) | (rng.random(len(a.task)) < 0.5)
    stays |= processor[a.task] == a.processor  # it is not begun again where it runs
    tasks = a.task[stays]
    processor[tasks], start[tasks] = a.processor[stays], a.start[stays]
    finish[tasks] = situation.expected_finish()[stays]
    return Schedule("any", wf, situation.platform, processor, start, finish)


def check(plan: Schedule, situation: Situation, *past: Any) -> None:
    money, twin = forecast(plan, situation), forecast_of(plan, situation, *past)
    assert money.spent == near(twin.spent)
    assert money.committed == near(twin.committed)
    assert money.planned == near(twin.planned)
    assert money.projected == near(twin.spent + twin.committed + twin.planned)


@some
@given(situation=any_priced(), seed=st.integers(0, 2**32 - 1))
def test_forecasts_at_any_moment(situation: Situation, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if rng.random() < 0.3:
        gone = rng.random(situation.workflow.n_tasks) < 0.3
        gone[situation.attempts.task] = False
        situation = replace(situation, given_up=gone)
    past = past_uses(situation)
    plan = any_plan(situation, rng)
    check(plan, situation, past)
    # attempts in vain, which no plan knows of
    n = int(rng.integers(0, 4))
    on = rng.integers(0, situation.platform.n_processors, n).astype(np.int32)
    begin = rng.uniform(0, situation.now, n)
    end = begin + rng.uniform(0, 1, n) * (situation.now - begin)
    sent = float(rng.uniform(0, 100))
    usage = situation.used.and_then(on, begin, end, sent)
    past += list(zip(on.tolist(), begin.tolist(), end.tolist(), strict=True))
    check(plan, replace(situation, usage=usage), past, sent)


@some
@given(situation=any_priced(), planner=st.sampled_from(["heft", "dls", "min-min"]))
def test_plans_at_any_moment(situation: Situation, planner: str) -> None:
    for freedom in Freedom:
        plan = registry.planner(planner).plan(situation, freedom)
        check(plan, situation, past_uses(situation))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_at_the_start_the_projection_is_the_plans_cost(seed: int, units: bool, links: bool) -> None:
    rng = np.random.default_rng(seed)
    begin = random_situation(rng, exact=True, at_start=True, changes=False)
    situation = with_prices(begin, rng, units=units, links=links)
    plan = registry.planner("heft").plan(situation)
    money = forecast(plan, situation)
    assert (money.spent, money.committed) == (0, 0)
    assert money.projected == plan.cost == cost_of_schedule(plan)  # exact numbers
    assert plan.usage.by_processor(plan.platform).sum() + plan.usage.transfers == plan.cost
    by_task = (plan.finish - plan.start) * plan.platform.price[plan.processor]
    if plan.platform.adds_up:
        assert plan.cost == by_task.sum()
    assert plan.cost >= by_task.sum()  # a unit that is begun is never less than what is used of it


# Runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_where_all_goes_as_planned_the_run_costs_what_the_plan_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    begin = random_situation(rng, at_start=True, changes=False)
    platform = with_prices(begin, rng, units=seed % 2 > 0, links=seed % 3 > 0).platform
    run = foreplan.simulate(begin.workflow, platform, "static")
    assert run.cost == near(run.plans[0].cost)
    np.testing.assert_allclose(
        run.usage.by_processor(platform), run.plans[0].usage.by_processor(platform)
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_run_pays_for_every_attempt_and_every_transfer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    begin = random_situation(rng, n_processors=4, at_start=True, changes=False)
    platform = with_prices(begin, rng, units=True, links=True).platform
    fails = {"failures": {platform.processor_names[1]: float(rng.uniform(1, 900))}}
    run = foreplan.simulate(begin.workflow, platform, "aheft", fails, qoi=0.3, seed=seed)
    log, sent = run.attempts, run.transfers
    uses = zip(log.processor.tolist(), log.start.tolist(), log.finish.tolist(), strict=True)
    moved = zip(sent.item.tolist(), sent.source.tolist(), sent.target.tolist(), strict=True)
    sizes = begin.workflow.item_size
    transfers = sum(float(sizes[i]) * float(platform.link_price[a, b]) for i, a, b in moved)
    assert run.usage.transfers == near(transfers)
    assert run.cost == near(cost_of_uses(uses, platform) + transfers)
