"""Budgets at the edges: nothing to pay, nothing to choose, huge numbers, odd specs; and by hand."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError, TooLateError, UnaffordableError
from foreplan.model import Schedule, Situation, affordable
from foreplan.spec import spec_of
from foreplan_reproductions.budget.cases import Dag, Instance

GOLDENS = Path(__file__).parents[1] / "goldens"
VARIANTS = ["loss1", "loss2", "loss3", "gain1", "gain2", "gain3"]
every_variant = pytest.mark.parametrize("name", VARIANTS)
both_ways = pytest.mark.parametrize("faithful", ["true", "false"])
every_planner = pytest.mark.parametrize("name", [*VARIANTS, "best-affordable"])


def situation_of(
    costs: dict[str, list[float]],
    prices: dict[str, dict[str, float]],
    edges: list[list[Any]] | None = None,
) -> Situation:
    """Tasks t0, t1, ... by their costs on each machine."""
    n = len(next(iter(costs.values())))
    tasks = {f"t{i}": {"cost": {m: costs[m][i] for m in costs}} for i in range(n)}
    workflow = foreplan.load({"tasks": tasks, "edges": edges or []})
    return Situation.at_start(workflow, foreplan.load_platform({"processors": prices}))


def planned(spec: str, situation: Situation) -> Schedule:
    schedule = registry.planner(spec).plan(situation)
    check_schedule(schedule, situation)
    return schedule


def asked(spec: str, situation: Situation) -> Schedule | UnaffordableError:
    """A plan, or why there is none."""
    try:
        return planned(spec, situation)
    except UnaffordableError as error:
        return error


TWO = {"dear": [2.0, 2.0, 4.0], "cheap": [4.0, 6.0, 8.0]}
PRICES = {"dear": {"price": 4.0}, "cheap": {"price": 1.0}}
CHAIN: list[list[Any]] = [["t0", "t1", 0], ["t1", "t2", 0]]


@every_variant
@both_ways
def test_a_chain_by_hand(name: str, faithful: str) -> None:
    """To the cheap machine: 2 s for 4, 4 s for 2, 4 s for 8. So t0, t2, t1; and back t1, t0, t2."""
    situation = situation_of(TWO, PRICES, CHAIN)
    way = {"loss": {28.0: ([1, 0, 0], 28.0)}, "gain": {28.0: ([0, 0, 1], 24.0)}}[name[:4]]
    way |= {32.0: ([0, 0, 0], 32.0), 20.0: ([1, 0, 1], 20.0), 18.0: ([1, 1, 1], 18.0)}
    spec = f"{name}[faithful={faithful}"
    for budget, result in way.items():
        plan = planned(f"{spec},budget={budget}]", situation)
        assert (plan.processor.tolist(), plan.cost) == result
    with pytest.raises(UnaffordableError, match="cheapest found costs 18 ") as caught:
        planned(f"{spec},budget=17.9]", situation)
    assert (caught.value.cost, caught.value.cheapest.cost) == (18.0, 18.0)


def test_to_the_letter_savings_that_cost_no_time_are_passed_over() -> None:
    """t0 is as fast on either machine: weight 0, so that t1 must pay."""
    costs = {"dear": [2.0, 2.0], "cheap": [2.0, 6.0]}
    situation = situation_of(costs, PRICES, CHAIN[:1])
    assert planned("loss1[budget=14]", situation).makespan == 4.0
    letter = planned("loss1[budget=14,faithful=true]", situation)
    assert (letter.processor.tolist(), letter.makespan) == ([0, 1], 8.0)


EQUALLY_CHEAP = {"slow": [8.0, 8.0], "fast": [2.0, 2.0], "middle": [4.0, 4.0]}
BY_SPEED = {"slow": {"price": 0.1}, "fast": {"price": 0.4}, "middle": {"price": 0.2}}


@every_variant
@both_ways
def test_of_equally_cheap_machines_the_cheapest_plan_takes_the_fastest(
    name: str, faithful: str
) -> None:
    """Prices go by speed: 0.8 a task everywhere, but for rounding."""
    situation = situation_of(EQUALLY_CHEAP, BY_SPEED, CHAIN[:1])
    plan = planned(f"{name}[budget=1.6,faithful={faithful}]", situation)
    assert (plan.processor.tolist(), plan.makespan) == ([1, 1], 4.0)
    with pytest.raises(UnaffordableError, match=r"costs 1.6 \(and ends at 4 s\)"):
        planned(f"{name}[budget=1.5,faithful={faithful}]", situation)
    with pytest.raises(UnaffordableError, match=r"costs 1.6 \(and ends at 4 s\)"):
        planned("best-affordable[budget=1.5]", situation)
    first = foreplan.api.pareto(situation.workflow, situation.platform).points[0]
    assert first.makespan == 4.0


def test_gain2_undoes_what_does_not_shorten_the_makespan() -> None:
    """Each of two equal tasks on the cheap machine gains 4 s alone; both together gain nothing."""
    costs = {"cheap": [4.0, 4.0], "dear": [4.0, 4.0]}
    situation = situation_of(costs, PRICES)
    careful = planned("gain2[budget=32,start=gain2[faithful=true]]", situation)
    assert (sorted(careful.processor.tolist()), careful.cost) == ([0, 1], 20.0)
    letter = planned("gain2[budget=32,faithful=true]", situation)
    assert (letter.makespan, letter.cost) == (8.0, 32.0)


def test_gain2_goes_most_of_the_way_to_the_start() -> None:
    """It went .25 of it at half of the money, when moves that did not help were kept."""
    shares = []
    for family in ("fft", "fork_join", "laplace"):
        instance = Instance(Dag(family))
        ends = instance.ends("heft")
        plan = planned(f"gain2[budget={ends.budget(0.5)!r}]", instance.situation())
        shares.append(float(ends.normalised(np.array(plan.makespan))))
    assert min(shares) > 0.55


@every_planner
@pytest.mark.parametrize("budget", [0.0, 1.0, inf])
def test_all_is_free(name: str, budget: float) -> None:
    situation = situation_of(TWO, {"dear": {}, "cheap": {}}, CHAIN)
    plan = planned(f"{name}[budget={budget}]", situation)
    assert (plan.cost, plan.makespan) == (0.0, 8.0)


@every_planner
def test_all_costs_the_same(name: str) -> None:
    """Per second the same: faster is cheaper, and there is nothing to weigh."""
    situation = situation_of(TWO, {"dear": {"price": 1.0}, "cheap": {"price": 1.0}}, CHAIN)
    plan = planned(f"{name}[budget=8]", situation)
    assert (plan.cost, plan.makespan) == (8.0, 8.0)
    with pytest.raises(UnaffordableError):
        planned(f"{name}[budget=7.99]", situation)


@every_planner
def test_one_processor_and_one_task(name: str) -> None:
    one = situation_of({"p": [3.0, 4.0]}, {"p": {"price": 2.0}})
    assert planned(f"{name}[budget=14]", one).makespan == 7.0
    with pytest.raises(UnaffordableError):
        planned(f"{name}[budget=13]", one)
    single = situation_of({"dear": [1.0], "cheap": [3.0]}, PRICES)
    assert planned(f"{name}[budget=4]", single).processor.tolist() == [0]
    assert planned(f"{name}[budget=3.5]", single).processor.tolist() == [1]


@every_planner
@pytest.mark.parametrize("budget", [0.0, 5.0])
def test_tasks_that_take_no_time_cost_nothing(name: str, budget: float) -> None:
    situation = situation_of({"dear": [0.0, 0.0], "cheap": [0.0, 0.0]}, PRICES, CHAIN[:1])
    assert planned(f"{name}[budget={budget}]", situation).makespan == 0.0


@every_planner
@both_ways
@pytest.mark.parametrize("scale", [1e-20, 1e-9, 1e9, 1e20])
def test_huge_and_tiny_numbers(name: str, faithful: str, scale: float) -> None:
    """Of times, or of prices."""
    words = "" if name == "best-affordable" else f",faithful={faithful}"
    rng = np.random.default_rng(3)
    costs = {m: rng.integers(1, 20, 8).astype(float).tolist() for m in "abc"}
    edges: list[list[Any]] = [[f"t{i}", f"t{j}", 0] for i in range(4) for j in (i + 2, i + 4)]
    prices = {"a": 1.0, "b": 2.0, "c": 5.0}
    for times, money in ((1.0, scale), (scale, 1.0)):
        situation = situation_of(
            {m: [cost * times for cost in column] for m, column in costs.items()},
            {m: {"price": price * money} for m, price in prices.items()},
            edges,
        )
        top = planned("heft", situation).cost
        with pytest.raises(UnaffordableError) as caught:
            planned(f"{name}[budget=0{words}]", situation)
        low = caught.value.cost
        for k in (0.0, 0.4, 1.0):
            budget = low + k * (top - low)
            plan = planned(f"{name}[budget={budget!r}{words}]", situation)
            assert affordable(plan.cost, budget)
            assert plan.cost >= low * (1 - 1e-9)


@every_planner
def test_prices_far_apart(name: str) -> None:
    """Sums in which the small ones vanish must not hide that something is not affordable."""
    prices = {"dear": {"price": 1e17}, "cheap": {"price": 1.0}}
    situation = situation_of({"dear": [1.0] * 6, "cheap": [3.0] * 6}, prices)
    for budget in (18.0, 19.0, 1e17, 1.5e17, 2.5e17, 1e18):
        plan = planned(f"{name}[budget={budget}]", situation)
        assert affordable(plan.cost, budget)
    with pytest.raises(UnaffordableError) as caught:
        planned(f"{name}[budget=17]", situation)
    assert caught.value.cost == 18.0


BILLED = {
    "a": [4.0, 100.0, 4.0, 9.5],
    "b": [5.0, 5.0, 100.0, 200.0],
    "c": [100.0, 100.0, 1.0, 200.0],
    "d": [100.0, 100.0, 100.0, 9.6],
}
BY_THE_UNIT = {
    "a": {"price": 1.25},
    "b": {"price": 1.0, "billing": 10.0},
    "c": {"price": 10.0},
    "d": {"price": 1.0},
}


@every_variant
@both_ways
def test_the_cheapest_by_task_may_be_over_the_budget_by_the_unit(name: str, faithful: str) -> None:
    """t0 costs the same on a and b, task by task; b's unit is paid for anyhow."""
    situation = situation_of(BILLED, BY_THE_UNIT)
    assert planned("heft", situation).cost == 31.875
    for budget in (25.0, 26.0, 29.0, 29.6, 30.0, 31.875, 32.0):
        plan = asked(f"{name}[budget={budget},faithful={faithful}]", situation)
        if isinstance(plan, Schedule):
            assert affordable(plan.cost, budget)
        else:
            assert plan.cost > budget
            assert budget < 29.6
            assert name.startswith("gain") or faithful == "true"


@every_planner
def test_a_start_that_is_cheaper_than_the_cheapest_by_task(name: str) -> None:
    """Task by task a is cheaper for t0; but b's unit is begun, and t0 fits into it."""
    costs = {"a": [10.0, 10.0, 1.0], "b": [9.5, 0.5, 100.0]}
    prices = {"a": {"price": 1.0}, "b": {"price": 1.1, "billing": 10.0}}
    situation = situation_of(costs, prices)
    first = planned("heft", situation)
    assert first.cost == pytest.approx(12.0)
    plan = planned(f"{name}[budget=12.5]", situation)
    assert plan.makespan <= first.makespan
    with pytest.raises(UnaffordableError) as caught:
        planned(f"{name}[budget=11.5]", situation)
    assert caught.value.cost == pytest.approx(12.0)


@every_variant
def test_of_equally_fast_plans_the_cheaper_one(name: str) -> None:
    situation = situation_of({"dear": [5.0], "cheap": [5.0]}, PRICES)
    if name.startswith("gain"):  # LOSS gives the start's plan as it is
        assert planned(f"{name}[budget=100]", situation).cost == 5.0
    assert planned(f"{name}[budget=19]", situation).cost == 5.0
    assert planned("best-affordable[budget=100]", situation).cost == 5.0


@every_planner
@both_ways
def test_the_cheapest_may_not_fit_before_machines_leave(name: str, faithful: str) -> None:
    """t0 takes too long on the cheap machine, wherever t1 is then."""
    words = "" if name == "best-affordable" else f",faithful={faithful}"
    costs = {"dear": [2.0, 5.0], "cheap": [8.0, 5.0]}
    prices = {"dear": {"price": 4.0, "leaves": 10.0}, "cheap": {"price": 0.5, "leaves": 10.0}}
    situation = situation_of(costs, prices, CHAIN[:1])
    for budget in (inf, 28.0, 27.0, 10.5):
        assert planned(f"{name}[budget={budget}{words}]", situation).cost <= budget
    with pytest.raises(UnaffordableError) as caught:
        planned(f"{name}[budget=10{words}]", situation)
    assert caught.value.cost == 10.5
    assert planned("cheapest-in-time", situation).cost == 10.5


def test_cheapest_in_time_by_hand() -> None:
    situation = situation_of(TWO, PRICES, CHAIN)
    for deadline, cost in ((8.0, 32.0), (10.0, 28.0), (12.0, 24.0), (14.0, 20.0), (18.0, 18.0)):
        plan = planned(f"cheapest-in-time[deadline={deadline}]", situation)
        assert (plan.cost, plan.makespan <= deadline) == (cost, True)
    with pytest.raises(TooLateError, match="ends at 8 s") as caught:
        planned("cheapest-in-time[deadline=7.9]", situation)
    assert (caught.value.deadline, caught.value.makespan) == (7.9, 8.0)
    check_schedule(caught.value.fastest, situation)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("loss3[start=hbmct,budget=40]", "loss3[budget=40,start=hbmct]"),
        ("loss1[budget=inf]", "loss1"),
        ("loss1[budget=0.1]", "loss1[budget=0.1]"),
        ("gain2[faithful=true,budget=1e22]", "gain2[budget=1e+22,faithful=true]"),
        ("loss2[start=heft[insertion=no],budget=7]", "loss2[budget=7,start=heft[insertion=false]]"),
        ("loss2[start=heft]", "loss2"),
        (
            "gain3[start=loss1[start=peft,budget=3],budget=4.5]",
            "gain3[budget=4.5,start=loss1[budget=3,start=peft]]",
        ),
        ("best-affordable[budget=40]", "best-affordable[budget=40]"),
        ("cheapest-in-time[deadline=60]", "cheapest-in-time[deadline=60]"),
    ],
)
def test_specs_round_trip(spec: str, shown: str) -> None:
    made = registry.planner(spec)
    assert spec_of(made) == shown
    assert registry.planner(shown) == made


@pytest.mark.parametrize(
    "spec",
    ["loss1[budget=-1]", "gain1[budget=nan]", "loss2[budget=much]", "best-affordable[budget=-3]",
     "cheapest-in-time[deadline=0]", "cheapest-in-time[deadline=nan]", "loss1[start=hetf]",
     "loss1[faithful=2]"],
)  # fmt: skip
def test_what_cannot_be_asked_for(spec: str) -> None:
    with pytest.raises(InputError):
        registry.planner(spec)


@every_planner
def test_a_plan_says_who_made_it(name: str) -> None:
    situation = situation_of(TWO, PRICES, CHAIN)
    for budget in ("18", "25", "1000"):
        assert planned(f"{name}[budget={budget}]", situation).planner == f"{name}[budget={budget}]"


@every_variant
def test_from_the_paper_s_figure_1(name: str) -> None:
    """HEFT's printed schedule is the start, and is given where it can be paid for."""
    workflow = foreplan.load(GOLDENS / "budget-figure1.workflow.yaml")
    content = json.loads((GOLDENS / "budget-figure1.expected.json").read_text())
    prices = {"m0": {"price": 3.0}, "m1": {"price": 2.0}, "m2": {"price": 1.0}}
    links = [
        ["m0", "m1", {"time_per_unit": 1.607}],
        ["m0", "m2", {"time_per_unit": 3}],
        ["m1", "m2", {"time_per_unit": 0.9}],
    ]
    platform = foreplan.load_platform({"processors": prices, "links": links})
    situation = Situation.at_start(workflow, platform)
    first = planned("heft", situation)
    assert first.makespan == pytest.approx(content["heft"]["makespan"])
    plan = planned(f"{name}[budget={first.cost!r}]", situation)
    assert plan.makespan <= first.makespan
    assert planned(f"{name}[budget={first.cost - 1!r}]", situation).cost <= first.cost - 1
