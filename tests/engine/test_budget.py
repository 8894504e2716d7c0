"""Budgets in runs: kept while they can be, said at once when they cannot, in either gear."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from engine.priced import cheapest_cost, priced, run_with
from foreplan import api, registry
from foreplan.checks.runs import InvalidRunError, check_run
from foreplan.engine.budget import ENOUGH_AGAIN, OVER_BUDGET, STOP, BudgetTracker
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.errors import InputError, UnaffordableError
from foreplan.model import (
    ENDS,
    Estimates,
    Platform,
    Processor,
    Workflow,
    affordable,
    forecast,
)
from foreplan.model.events import (
    BudgetChanged,
    Event,
    NewPlan,
    ProcessorGone,
    ProcessorLeaving,
    Replan,
    SpeedChanged,
    StartTask,
    TaskFinished,
)
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from repeated import repetitions
from simulation.worlds import random_case, same_record

pytestmark = pytest.mark.usefixtures("light_searches")

STRATEGIES = [
    "static[planner=loss3]",
    "slack[planner=gain1]",
    "always[planner=loss1]",
    "aheft",
    "gtp/c/r",
    "gtp[planner=best-affordable]",
]


@pytest.mark.parametrize("spec", STRATEGIES)
@pytest.mark.parametrize("plain", [True, False])
def test_random_worlds(spec: str, plain: bool) -> None:
    known = 0
    for seed in repetitions(5, 0.5):
        case = priced(random_case(seed, stops=False), seed, plain)
        budget = 1.3 * cheapest_cost(case)
        native = run_with(case, spec, budget)
        same_record(native, run_with(case, spec, budget, by_events=True))
        last = native.final_attempts()
        assert (last >= 0).all()
        if not native.within_budget:
            assert native.over_budget_at <= native.makespan
            known += 1
    assert known  # else nothing was hard to keep


@pytest.mark.parametrize("spec", ["static[planner=loss3]", "gtp/c/r", "aheft"])
def test_stops_for_money(spec: str) -> None:
    stopped = 0
    for seed in repetitions(10):
        case = priced(random_case(seed, stops=False), seed)
        budget = 1.05 * cheapest_cost(case)
        native = run_with(case, spec, budget, STOP)
        same_record(native, run_with(case, spec, budget, STOP, by_events=True))
        done = (native.final_attempts() >= 0).all()
        if math.isnan(native.over_budget_at):
            assert done
            continue
        late = native.attempts.start > native.over_budget_at
        assert not late.any()
        stopped += not done
    assert stopped


def two_machines(n: int = 6, dear: float = 4.0) -> tuple[Workflow, Platform]:
    """Independent tasks of 10 seconds; the fast machine needs half of it and costs much more."""
    tasks = {f"t{k}": {"cost": 10} for k in range(n)}
    processors = {"fast": {"speed": 2, "price": dear}, "slow": {"price": 1}}
    return api.load({"tasks": tasks}), api.load_platform({"processors": processors})


def test_a_slow_down_that_is_too_dear() -> None:
    workflow, platform = two_machines()  # 20 for a task on the fast one, 10 on the slow one
    world = {"availability": {"fast": [[0, 1.0], [7, 0.5]]}}  # then it costs 40
    free = api.simulate(workflow, platform, "static[planner=loss3[budget=100]]", world)
    kept = api.simulate(workflow, platform, "static[planner=loss3]", world, budget=100)
    assert free.cost > 100
    assert kept.within_budget
    assert [(e.reason, e.forced, e.taken) for e in kept.evaluations] == [(OVER_BUDGET, True, True)]
    assert kept.evaluations[0].time == 7
    assert math.isnan(kept.over_budget_at)


def test_what_takes_longer_is_saved_elsewhere() -> None:
    workflow, platform = two_machines()
    world = {"durations": {f"t{k}": 1.5 for k in range(6)}}
    free = api.simulate(workflow, platform, "static[planner=loss3[budget=110]]", world)
    kept = api.simulate(workflow, platform, "static[planner=loss3]", world, budget=110)
    assert free.cost > kept.cost
    assert OVER_BUDGET in [e.reason for e in kept.evaluations]


def test_lost_work_is_spent() -> None:
    workflow, platform = two_machines()
    run = api.simulate(workflow, platform, "aheft", {"failures": {"fast": 8}}, budget=150)
    log = run.attempts
    each = (log.finish - log.start) * platform.price[log.processor]
    assert run.cost == pytest.approx(each.sum())
    assert (log.end == ENDS.index("failed")).sum() == 1
    assert run.cost > each[log.end == ENDS.index("finished")].sum()


def test_said_at_once_that_it_will_not_do() -> None:
    workflow, platform = two_machines()
    world = {"failures": {"slow": 25}}  # only the dear one is left
    run = api.simulate(workflow, platform, "slack[planner=loss3]", world, budget=75)
    assert not run.within_budget
    assert run.over_budget_at == 25
    content = run.to_dict()
    assert content["budget"] == 75
    assert content["within_budget"] is False
    assert content["over_budget_at"] == 25
    stopped = api.simulate(
        workflow, platform, "slack[planner=loss3]", world, budget=75, over_budget="stop"
    )
    assert stopped.over_budget_at == 25
    assert stopped.within_budget
    assert 0 < (stopped.final_attempts() >= 0).sum() < 6


def test_a_cheap_machine_that_joins_is_taken() -> None:
    workflow = api.load({"tasks": {f"t{k}": {"cost": 10} for k in range(6)}})
    platform = api.load_platform({"processors": {"a": {"price": 4}, "b": {"price": 1, "joins": 5}}})
    run = api.simulate(workflow, platform, "aheft", budget=240)
    assert run.cost < 240
    assert run.within_budget


def test_a_reserve_is_kept_for_surprises() -> None:
    workflow, platform = two_machines()
    plain = api.simulate(workflow, platform, "static[planner=loss3]", budget=100)
    careful = api.simulate(workflow, platform, "static[planner=loss3]", budget=100, reserve=0.2)
    assert careful.plans[0].cost <= 80 < plain.plans[0].cost
    # the cheapest costs 60: what is left is less than the reserve, and it sets out all the same
    tight = api.simulate(workflow, platform, "static[planner=loss3]", budget=62, reserve=0.5)
    assert tight.cost == 60


def test_an_unaffordable_run_does_not_begin() -> None:
    workflow, platform = two_machines()
    with pytest.raises(UnaffordableError, match="costs 60"):
        api.simulate(workflow, platform, "aheft", budget=59)


@pytest.mark.parametrize("spec", ["fifo", "min-min"])
def test_without_a_plan_no_budget(spec: str) -> None:
    workflow, platform = two_machines()
    with pytest.raises(InputError, match="makes no plan"):
        api.simulate(workflow, platform, spec, budget=100)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"budget": -1.0}, "budget"), ({"budget": math.nan}, "budget"), ({"reserve": 1.0}, "reserve")],
)
def test_amounts_that_make_no_sense(options: dict[str, float], says: str) -> None:
    workflow, platform = two_machines()
    with pytest.raises(InputError, match=says):
        api.simulate(workflow, platform, "aheft", **{"budget": 100.0, **options})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="continue"):
        api.simulate(workflow, platform, "aheft", budget=100, over_budget="perhaps")


def answered(driver: Driver, event: Event) -> list[object]:
    """The commands that an event leads to, new plans included."""
    return list(driver.hear(event))


def test_more_money_lets_it_go_on() -> None:
    workflow, platform = two_machines()
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("static[planner=loss3]", budgeted=True)
    coordinator = Coordinator(
        workflow, platform, estimates, policy, tracker=BudgetTracker(75, STOP)
    )
    driver = Driver(coordinator, planner)
    commands = driver.begin()
    assert [c.processor for c in commands if isinstance(c, StartTask)] == [0, 1]
    assert coordinator.money().projected <= 75
    answered(driver, ProcessorGone(1, 5.0))
    assert coordinator.tracker.over_at == 5
    for attempt in np.flatnonzero(coordinator.state.arrays.attempt_end[:2] == 0).tolist():
        assert not answered(driver, TaskFinished(attempt, 6.0))
    assert coordinator.halted
    assert not answered(driver, BudgetChanged(7.0, 76.0))  # not enough
    assert coordinator.halted
    again = answered(driver, BudgetChanged(8.0, 500.0))
    assert any(isinstance(c, StartTask) for c in again)
    assert not coordinator.halted


def test_a_plan_that_need_not_be_taken_must_be_affordable() -> None:
    workflow, platform = two_machines()
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("always[planner=loss3]", budgeted=True)
    coordinator = Coordinator(workflow, platform, estimates, policy, tracker=BudgetTracker(90))
    assert planner is not None
    asked = coordinator.begin()[-1]
    assert isinstance(asked, Replan)
    plan = planner.plan(coordinator.situation())
    replan = coordinator.handle(NewPlan(0.0, asked.version, plan))[-1]  # before the next start
    assert coordinator.plan is plan
    assert isinstance(replan, Replan)
    dear = registry.planner("heft").plan(coordinator.situation())
    assert not affordable(forecast(dear, coordinator.situation()).projected, 90)
    coordinator.handle(NewPlan(0.0, replan.version, dear))
    assert coordinator.plan is plan


def test_the_validator_sees_money() -> None:
    workflow, platform = two_machines()
    run = api.simulate(workflow, platform, "static[planner=loss3]", budget=100)
    check_run(run)
    with pytest.raises(InvalidRunError, match="first plan costs"):
        check_run(replace(run, budget=run.cost - 1))
    spent = simulate_run(
        workflow,
        platform,
        Estimates.declared(workflow, platform),
        *registry.strategy("static[planner=loss3]", budgeted=True),
        Reality(3 * Estimates.declared(workflow, platform).cost, []),
        tracker=BudgetTracker(100),
    )
    assert not spent.within_budget
    check_run(spent)
    with pytest.raises(InvalidRunError, match="never said so"):
        check_run(replace(spent, over_budget_at=math.nan))


def test_money_of_a_run_in_progress() -> None:
    platform = Platform.build([Processor("a", price=2.0, billing=10.0), Processor("b", price=1.0)])
    workflow = api.load({"tasks": {"x": {"cost": 12}, "y": {"cost": 4}}})
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("static")
    coordinator = Coordinator(workflow, platform, estimates, policy)
    driver = Driver(coordinator, planner)
    driver.begin()
    plan = coordinator.plan
    assert plan is not None
    assert coordinator.money().projected == plan.cost
    k = int(np.flatnonzero(coordinator.state.arrays.attempt_task[:2] == 1)[0])
    on = int(coordinator.state.arrays.attempt_on[k])
    driver.hear(TaskFinished(k, 4.0))
    money = coordinator.money()
    other = 1 - on
    unit = [20.0, 1.0]
    begun = unit[0] if other == 0 else 4.0
    assert money.spent == (unit[0] if on == 0 else 4.0) + begun
    assert money.projected == plan.cost
    assert money.planned == 0


def test_more_money_buys_a_faster_plan() -> None:
    workflow, platform = two_machines()
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("static[planner=loss3]", budgeted=True)
    coordinator = Coordinator(workflow, platform, estimates, policy, tracker=BudgetTracker(75))
    driver = Driver(coordinator, planner)
    driver.begin()
    first = coordinator.plan
    assert first is not None
    answered(driver, BudgetChanged(1.0, 75.0))  # no more than before
    assert coordinator.plan is first
    answered(driver, BudgetChanged(2.0, 200.0))
    assert coordinator.plan is not None
    assert coordinator.plan.makespan < first.makespan
    assert coordinator.evaluations[-1].reason == "more money"


def test_a_slow_down_that_passes() -> None:
    workflow, platform = two_machines(12)  # 20 for a task on the fast one, 10 on the slow one
    world = {"availability": {"fast": [[0, 1.0], [2, 0.1], [3, 1.0]]}}
    run = api.simulate(workflow, platform, "static[planner=loss3]", world, budget=200)
    assert [e.reason for e in run.evaluations] == [OVER_BUDGET, ENOUGH_AGAIN]
    assert [e.time for e in run.evaluations] == [2, 3]
    assert run.within_budget
    assert (run.attempts.processor == 0).sum() > 1  # the fast one is used again


def test_a_plan_that_is_not_taken_leaves_the_allowance_alone() -> None:
    workflow, platform = two_machines()
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("always[planner=loss3]", budgeted=True)
    coordinator = Coordinator(workflow, platform, estimates, policy, tracker=BudgetTracker(90))
    assert planner is not None
    asked = coordinator.begin()[-1]
    assert isinstance(asked, Replan)
    plan = planner.plan(coordinator.situation())
    replan = coordinator.handle(NewPlan(0.0, asked.version, plan))[-1]
    assert isinstance(replan, Replan)
    allowance = float(coordinator.state.arrays.allowance[0])
    assert 0 <= allowance <= 90
    dear = registry.planner("heft").plan(coordinator.situation())
    coordinator.handle(NewPlan(0.0, replan.version, dear))
    assert coordinator.state.arrays.allowance[0] == allowance


def test_a_look_at_the_money_does_not_drop_a_plan_that_must_be_made() -> None:
    """Tasks without a processor wait for a plan; a change of speed makes it out of date."""
    workflow, platform = two_machines()
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("static[planner=loss3]", budgeted=True)
    coordinator = Coordinator(workflow, platform, estimates, policy, tracker=BudgetTracker(2000))
    Driver(coordinator, planner).begin()
    assert coordinator.handle(ProcessorGone(1, 5.0))[-1] == coordinator.asked
    replan = coordinator.handle(SpeedChanged(0, 6.0, 0.5))[-1]
    assert isinstance(replan, Replan)
    assert replan.forced
    assert planner is not None
    plan = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(6.0, replan.version, plan))
    assert not coordinator.stranded()


def test_too_dear_before_machines_leave() -> None:
    """Nothing can be done before they leave; as if they stayed, nothing can be paid."""
    workflow, platform = two_machines()
    estimates = Estimates.declared(workflow, platform)
    policy, planner = registry.strategy("static[planner=loss3]", budgeted=True)
    coordinator = Coordinator(
        workflow, platform, estimates, policy, tracker=BudgetTracker(75, STOP)
    )
    driver = Driver(coordinator, planner)
    driver.begin()
    driver.hear(ProcessorLeaving(0, 4.0, 6.0))
    driver.hear(ProcessorGone(1, 5.0))
    assert coordinator.tracker.over_at == 5
    assert coordinator.tracker.holds
