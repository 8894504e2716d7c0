"""The frontier of money and time: by hand, against a planner that is known, and by asking again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreplan
from foreplan.api import pareto
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError, UnaffordableError
from foreplan.generators import generate, generate_platform
from foreplan.model import (
    Estimates,
    Freedom,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    Workflow,
    affordable,
    forecast,
)
from foreplan.scheduling.frontier import FINEST, Frontier, Point, frontier, knee
from foreplan.scheduling.planners._ladder import RUNGS, Ladder
from foreplan.scheduling.planners._search import FoundPlan
from foreplan.whatif.answer import knee as knee_of_counts

SMALL: dict[str, Any] = {
    "tasks": {
        "prepare": {"cost": 4},
        "left": {"cost": {"fast": 2, "slow": 6}},
        "right": {"cost": 3},
    },
    "edges": [["prepare", "left", 1], ["prepare", "right", 10]],
}
MACHINES: dict[str, Any] = {"processors": {"fast": {"speed": 2, "price": 3}, "slow": {}}}


def figures(points: Sequence[Point]) -> list[tuple[float, float]]:
    return [(point.cost, point.makespan) for point in points]


def same(one: Schedule, other: Schedule) -> bool:
    """The same plan, to the last bit."""
    names = ("processor", "start", "finish")
    return all(bool((getattr(one, name) == getattr(other, name)).all()) for name in names)


def check_frontier(found: Frontier) -> None:
    """What holds of every frontier."""
    assert found.points
    for point in found.points:
        assert 0 <= point.cost <= point.budget * (1 + 1e-9)
        assert math.isfinite(point.budget)
        check_schedule(point.schedule)
    for before, point in zip(found.points, found.points[1:], strict=False):
        assert point.cost > before.cost
        assert point.makespan < before.makespan
    assert found.knee is None or 0 < found.knee < len(found.points) - 1


# By hand -----------------------------------------------------------------------------------


def test_by_hand() -> None:
    # all on slow for nothing; left on fast while right is on slow; all on fast
    found = pareto(foreplan.load(SMALL), foreplan.load_platform(MACHINES))
    check_frontier(found)
    assert figures(found.points) == [(0, 13), (6, 7), (16.5, 5.5)]
    assert [point.budget for point in found.points] == [0, 6, 16.5]
    assert found.knee == 1
    assert [found.buys(k) for k in range(3)] == [None, 1.0, 1.5 / 10.5]
    assert [found.within(b) for b in (0, 5.9, 6, 16.4, 17)] == [0, 0, 1, 1, 2]
    assert found.to_dict() == {
        "points": [
            {"budget": b, "cost": c, "makespan": m, "planner": "best-affordable"}
            for b, c, m in ((0, 0, 13), (6, 6, 7), (16.5, 16.5, 5.5))
        ],
        "knee": 1,
    }
    assert not found.free


def test_of_a_named_planner() -> None:
    workflow, platform = foreplan.load(SMALL), foreplan.load_platform(MACHINES)
    found = pareto(workflow, platform, "peft")
    check_frontier(found)
    assert {point.schedule.planner for point in found.points} == {
        "best-affordable[start=peft,quick=true]"
    }
    for point in found.points:
        assert same(point.schedule, foreplan.plan(workflow, platform, "peft", point.budget))


def test_nothing_has_a_price() -> None:
    free = {"processors": {"fast": {"speed": 2}, "slow": {}}}
    found = pareto(foreplan.load(SMALL), foreplan.load_platform(free))
    assert found.free
    assert figures(found.points) == [(0, 5.5)]
    assert (found.points[0].budget, found.knee, found.within(0)) == (0, None, 0)


def test_the_cheapest_is_the_fastest() -> None:
    machines = {"processors": {"good": {"speed": 2, "price": 1}, "bad": {"price": 9}}}
    workflow = foreplan.load({"tasks": {"a": {"cost": 4}}})
    found = pareto(workflow, foreplan.load_platform(machines))
    assert not found.free
    assert figures(found.points) == [(2, 2)]
    assert found.points[0].budget == 2
    assert found.within(1.9) is None


def test_too_few_points() -> None:
    with pytest.raises(InputError, match="at least 2 points, not 1"):
        pareto(foreplan.load(SMALL), foreplan.load_platform(MACHINES), points=1)


def test_a_budget_that_cannot_be() -> None:
    with pytest.raises(InputError, match="the budget must be"):
        pareto(foreplan.load(SMALL), foreplan.load_platform(MACHINES), budget=-1)


def test_progress_only_grows_and_ends() -> None:
    seen: list[float] = []
    pareto(foreplan.load(SMALL), foreplan.load_platform(MACHINES), points=9, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[0] > 0
    assert seen[-1] == 1


# Against a planner that is known -----------------------------------------------------------


@dataclass(frozen=True)
class OneTask:
    """One task on the fastest processor that is affordable; but not where `gap` says."""

    name: ClassVar[str] = "one-task"
    budget: float = math.inf
    gap: tuple[float, float] = (math.inf, math.inf)  # budgets that make it give the cheapest

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        takes = situation.estimates.cost[0]
        cost = takes * situation.platform.price
        plans = sorted(
            (float(takes[p]), p) for p in range(len(takes)) if affordable(cost[p], situation.budget)
        )
        if not plans:
            least = int(cost.argmin())
            cheapest = self._on(situation, least, float(takes[least]))
            raise UnaffordableError(situation.budget, cheapest.cost, cheapest.makespan, cheapest)
        if self.gap[0] <= situation.budget < self.gap[1]:
            plans = plans[-1:]
        return self._on(situation, plans[0][1], plans[0][0])

    def _on(self, situation: Situation, p: int, takes: float) -> Schedule:
        on, start, finish = np.array([p], dtype=np.int32), np.zeros(1), np.array([takes])
        return Schedule(self.name, situation.workflow, situation.platform, on, start, finish)


def one_task(*steps: tuple[float, float]) -> Situation:
    """A task that may cost so much and take so long."""
    takes = {f"p{k}": makespan for k, (_, makespan) in enumerate(steps)}
    processors = [Processor(f"p{k}", price=c / m) for k, (c, m) in enumerate(steps)]
    workflow = foreplan.load({"tasks": {"t": {"cost": takes}}})
    return Situation.at_start(workflow, Platform.build(processors))


def test_every_step_is_found_where_they_crowd() -> None:
    steps = [(10, 100), (10.5, 80), (11, 70), (11.5, 62), (12, 55), (60, 50), (110, 10)]
    found = frontier(one_task(*steps, (50, 56)), OneTask(), points=25)
    check_frontier(found)
    assert np.array(figures(found.points)) == pytest.approx(np.array(steps))
    assert found.knee == 4  # (12, 55); the chord falls by 90 over 100


def test_few_points_find_what_differs_most() -> None:
    steps = [(10, 100), (10.2, 99), (60, 90), (62, 20), (110, 10)]
    found = frontier(one_task(*steps), OneTask(), points=10)
    assert (62, 20) in [(round(c, 6), round(m, 6)) for c, m in figures(found.points)]
    assert found.knee is not None
    assert found.points[found.knee].makespan == pytest.approx(20)


def test_costs_that_differ_only_far_behind_the_point() -> None:
    base = 1_000_000.0
    steps = [(base + 0.123456, 30), (base + 0.2, 20), (base + 0.223456, 10)]
    found = frontier(one_task(*steps), OneTask(), points=15)
    assert np.array(figures(found.points)) == pytest.approx(np.array(steps), rel=1e-12)
    for point in found.points:
        assert same(point.schedule, OneTask().plan(replace(one_task(*steps), budget=point.budget)))


def test_budgets_have_few_digits() -> None:
    steps = [(10 / 3, 100), (20 / 3, 50), (100 / 3, 10)]
    found = frontier(one_task(*steps), OneTask())
    assert np.array(figures(found.points)) == pytest.approx(np.array(steps))
    assert [len(f"{point.budget:.15g}") for point in found.points] <= [6, 6, 6]
    for point in found.points:
        assert point.cost <= point.budget <= point.cost + FINEST * 30


def test_a_planner_that_more_money_confuses() -> None:
    # from 40 to 45 it gives the cheapest, else the fastest that is affordable
    situation = one_task((10, 100), (41, 50), (110, 10))
    planner = OneTask(gap=(40, 45))
    found = frontier(situation, planner)
    check_frontier(found)
    assert np.array(figures(found.points)) == pytest.approx(
        np.array([(10, 100), (41, 50), (110, 10)])
    )
    assert found.points[1].budget >= 45  # for 41 it is not given, though it costs no more
    for point in found.points:
        assert same(point.schedule, planner.plan(replace(situation, budget=point.budget)))


def test_a_budget_that_is_given_is_tried() -> None:
    steps = [(10, 100), (10.4, 99), (110, 10)]
    without = frontier(one_task(*steps), OneTask(), points=2)
    assert len(without.points) == 2  # the ends
    found = frontier(one_task(*steps), OneTask(), points=2, budget=10.5)
    assert np.array(figures(found.points)) == pytest.approx(np.array(steps))
    assert found.within(10.5) == 1
    for budget in (0, 5, 1000):  # out of the range: there is nothing to be learnt
        assert len(frontier(one_task(*steps), OneTask(), 2, budget=budget).points) == 2


# By asking again ---------------------------------------------------------------------------


@st.composite
def priced(draw: st.DrawFn) -> tuple[Workflow, Platform]:
    """A small workflow on machines with prices, with or without billing units and link prices."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n = draw(st.integers(1, 7), label="tasks")
    m = draw(st.integers(1, 3), label="processors")
    billing = draw(st.sampled_from([0.0, 0.0, 10.0]), label="billing")
    link = draw(st.sampled_from([0.0, 0.5]), label="link price")
    names = [f"p{p}" for p in range(m)]
    tasks = {
        f"t{k}": {"cost": {name: float(rng.uniform(1, 20)) for name in names}} for k in range(n)
    }
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.4]
    edges = [[f"t{a}", f"t{b}", float(rng.uniform(0, 5))] for a, b in pairs]
    processors = [
        Processor(name, price=float(rng.uniform(0, 3)), billing=billing) for name in names
    ]
    platform = Platform.build(processors, Link(price=link))
    return foreplan.load({"tasks": tasks, "edges": edges}), platform


@settings(max_examples=12, deadline=None)
@given(priced())
def test_every_point_is_given_when_asked_for(instance: tuple[Workflow, Platform]) -> None:
    workflow, platform = instance
    found = pareto(workflow, platform, points=7)
    check_frontier(found)
    for point in found.points:
        again = foreplan.plan(workflow, platform, budget=point.budget)
        assert same(point.schedule, again)
        assert again.cost == pytest.approx(point.cost)
        assert again.planner == point.schedule.planner
    fastest = foreplan.plan(workflow, platform)
    assert found.points[-1].makespan <= fastest.makespan * (1 + 1e-9)
    if found.points[0].cost > 0 and platform.adds_up:  # else a path may lead below the cheapest
        with pytest.raises(UnaffordableError):
            foreplan.plan(workflow, platform, budget=found.points[0].cost * 0.999)


def test_a_plan_that_costs_less_than_the_cheapest_by_task_is_no_reason_to_give_up() -> None:
    """Sending costs too, so a path leads below what is known without it."""
    costs = {
        "p0": [10.68385289, 8.01227824, 9.7293826, 17.97538837, 17.90441806, 18.8841065, 6.769026],
        "p1": [4.94611472, 11.56843209, 2.53701698, 14.95420596, 17.6299153, 11.0575654, 6.453905],
    }
    tasks = {f"t{k}": {"cost": {p: costs[p][k] for p in costs}} for k in range(7)}
    sizes = {"02": 3.996, "05": 0.904, "06": 2.082, "34": 1.372, "35": 4.073, "45": 1.176}
    edges = [[f"t{pair[0]}", f"t{pair[1]}", size] for pair, size in sizes.items()]
    processors = [Processor("p0", price=1.29332911), Processor("p1", price=1.37425995)]
    platform = Platform.build(processors, Link(price=0.5))
    found = pareto(foreplan.load({"tasks": tasks, "edges": edges}), platform, points=7)
    check_frontier(found)


def test_a_budget_below_the_cheapest_by_task_is_kept_if_the_search_finds_such_a_plan() -> None:
    """With billing units: before, `pareto` was refused a budget that it had chosen itself."""
    rng = np.random.default_rng(71)
    n, names = int(rng.integers(3, 8)), [f"p{k}" for k in range(int(rng.integers(2, 4)))]
    tasks = {f"t{k}": {"cost": {p: float(rng.uniform(1, 20)) for p in names}} for k in range(n)}
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = [[f"t{i}", f"t{j}", rng.uniform(0, 5)] for i, j in pairs if rng.random() < 0.4]
    processors = [Processor(p, price=float(rng.uniform(0, 3)), billing=10.0) for p in names]
    workflow = foreplan.load({"tasks": tasks, "edges": edges})
    platform = Platform.build(processors)
    found = pareto(workflow, platform, points=7)
    check_frontier(found)
    budget = (found.points[0].cost + found.points[1].cost) / 2
    assert foreplan.plan(workflow, platform, budget=budget).cost <= budget


@pytest.mark.parametrize("spec", ["best-affordable", "best-affordable[start=loss1]"])
def test_no_rung_is_climbed_twice_from_the_same_starts(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What LOSS starts with depends on the budget: then other plans are started from."""
    climbed, climb = [], Ladder._climb_anew

    def counted(ladder: Ladder, money: float, until: float) -> list[FoundPlan]:
        starts = tuple(plan.finish.tobytes() for plan in ladder.starts.values())
        climbed.append((money, until, starts))
        return climb(ladder, money, until)

    monkeypatch.setattr(Ladder, "_climb_anew", counted)
    workflow = generate("random_layered", seed=4, tasks=14, processors=3, beta=1.0)
    platform = generate_platform(3, heterogeneity=1.0, price_noise=0.5, seed=4)
    found = pareto(workflow, platform, spec, points=12)
    assert len(climbed) == len(set(climbed))
    if spec == "best-affordable":
        assert len(climbed) <= RUNGS + 2
    assert len(found.points) > 3
    for point in found.points:
        alone = foreplan.plan(workflow, platform, spec, budget=point.budget)
        assert same(point.schedule, alone)
        assert point.schedule.by == alone.by


def test_in_the_middle_of_a_run_what_is_spent_counts() -> None:
    from foreplan.model import Attempts

    workflow, platform = foreplan.load(SMALL), foreplan.load_platform(MACHINES)
    done = Attempts(
        np.array([workflow.task_names.index("prepare")]),
        np.array([0]),
        np.zeros(1),
        np.array([2.0]),
    )
    situation = Situation(
        workflow, platform, Estimates.declared(workflow, platform), now=2.0, attempts=done
    )
    found = frontier(situation, points=5)
    assert found.points[0].cost == 6  # what was spent on fast, the rest on slow
    for point in found.points:
        assert point.cost == pytest.approx(forecast(point.schedule, situation).projected)
        check_schedule(point.schedule, situation)


# The knee ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 5))
def test_one_definition_of_a_knee(makespans: list[int], first: int) -> None:
    counts = list(range(first, first + len(makespans)))
    at = knee(counts, makespans)
    assert knee_of_counts(counts, makespans) == (None if at is None else counts[at])


def test_a_knee_is_farthest_from_the_chord_whatever_the_units() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        x = np.sort(rng.uniform(0, 1, 6))
        y = np.sort(rng.uniform(1, 2, 6))[::-1]
        at = knee(x.tolist(), y.tolist())
        assert knee((1e6 * x).tolist(), (60 * y).tolist()) == at
        u, v = (x - x[0]) / (x[-1] - x[0]), (y - y[-1]) / (y[0] - y[-1])
        distance = (1 - u - v) / math.sqrt(2)  # to the line from (0, 1) to (1, 0), from below
        assert at == (int(distance.argmax()) if distance.max() > 1e-6 else None)


def test_no_knee() -> None:
    assert knee([], []) is None
    assert knee([1, 2], [9, 1]) is None
    assert knee([1, 2, 3], [3, 2, 1]) is None
    assert knee([1, 2, 3], [1, 0, 1]) is None
    assert knee([1, 2, 3], [9, math.inf, 1]) is None
