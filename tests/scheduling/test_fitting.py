"""Tasks of several cores, with memory, GPUs and pools: planners, their twins, the validator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError, InvalidScheduleError, PlanningError
from foreplan.model import (
    Attempts,
    Estimates,
    Freedom,
    Item,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    TaskSpec,
    Workflow,
    forecast,
)
from foreplan.model.amounts import Amount
from foreplan.model.resources import Cores, Host, Request, declared_needs
from foreplan.scheduling.fitting import needed
from foreplan.scheduling.planners._reassigning import BudgetTable
from foreplan.scheduling.projection import project
from foreplan.scheduling.slack import slack_and_spare, staying, steps_before
from repeated import FIRST, examples, repetitions
from twins import slack as slow_slack
from twins.demanding import demanding_situation, demanding_situations
from twins.fitting import WIDE_TWINS, Fits, Plan
from twins.situations import random_situation

pytestmark = pytest.mark.usefixtures("light_searches")

NAMES = registry.planner_names()
NARROW = {"fcp", "lmt", "hbmct"}
WIDE = Request(cores=(2,))
BUDGETED = {"loss1", "loss2", "loss3", "gain1", "gain2", "gain3", "best-affordable"}


def limited(name: str, situation: Situation, rng: np.random.Generator) -> str:
    """The planner with a limit that HEFT's plan keeps, just so or easily."""
    heft = registry.planner("heft").plan(situation)
    more = float(rng.choice([1.0, 1.3]))
    if name in BUDGETED:
        return f"{name}[budget={forecast(heft, situation).projected * more!r}]"
    if name == "cheapest-in-time":
        return f"{name}[deadline={max(1.0, heft.makespan) * more!r}]"
    return name


def demanding(seed: int, **options: Any) -> Situation:
    """The first situation from a seed on in which more than single cores matter."""
    rng = np.random.default_rng(seed)
    while True:
        situation = demanding_situation(rng, **options)
        if needed(situation) is not None:
            return situation


# Every planner, in any situation ------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*NAMES} - NARROW))
def test_every_planner_keeps_the_rules(name: str) -> None:
    rng = np.random.default_rng([FIRST, len(name)])
    slow = name in BUDGETED or name == "cheapest-in-time"
    for seed in repetitions(5 if slow else 30):
        situation = demanding(seed, n_tasks=6) if slow else demanding(seed)
        for freedom in Freedom:
            planned = limited(name, situation, rng)
            budget = getattr(registry.planner(planned), "budget", np.inf)
            schedule = registry.planner(planned).plan(situation, freedom)
            check_schedule(schedule, replace(situation, budget=budget), freedom)
            assert schedule.needs is situation.estimates.needs
            assert schedule.cores is not None


@pytest.mark.parametrize("name", sorted(NARROW))
def test_those_that_know_single_cores_only_say_so(name: str) -> None:
    situation = case(Request(), Request(cores=(3,)))
    with pytest.raises(
        PlanningError, match=rf"^{name} plans tasks .* 't1' takes 3 cores: use heft"
    ):
        registry.planner(name).plan(situation)
    for request, words in (
        (Request(memory=Amount("1GB")), "needs memory"),
        (Request(cores=(1, 2)), "may take several cores"),
        (Request(on=("h0",)), "may not run on every host"),
    ):
        with pytest.raises(PlanningError, match=words):
            registry.planner(name).plan(case(request))


@pytest.mark.parametrize("name", NAMES)
def test_hosts_and_pools_change_nothing_where_tasks_ask_for_nothing(name: str) -> None:
    """Nor does memory that no host declares: it is planned as if nothing were said."""
    for seed in repetitions(3):
        start = random_situation(np.random.default_rng(seed), at_start=True, changes=False)
        hosts = tuple(Host(h, {"memory": 1.0}, ("x",)) for h in start.platform.host_names)
        richer = replace(start.platform, hosts=hosts, pools={"seats": 1.0})
        plain = registry.planner(name).plan(start)
        same_machines = registry.planner(name).plan(replace(start, platform=richer))
        specs = {0: TaskSpec(request=Request(memory=Amount("9GB")))}
        needs = declared_needs(replace(start.workflow, specs=specs))
        asked = replace(start, estimates=Estimates(start.estimates.cost, needs))
        for other in (same_machines, registry.planner(name).plan(asked)):
            assert other.processor.tolist() == plain.processor.tolist()
            assert other.start.tobytes() == plain.start.tobytes()
            assert other.finish.tobytes() == plain.finish.tobytes()
            assert other.cores is None


@pytest.mark.parametrize("name", sorted({*NAMES} - NARROW))
def test_tasks_that_cost_nothing_take_nothing(name: str) -> None:
    for seed in repetitions(6):
        situation = demanding(seed, n_tasks=6, at_start=True)
        cost = situation.estimates.cost.copy()
        cost[::2] = 0.0
        free = replace(situation, estimates=replace(situation.estimates, cost=cost))
        check_schedule(registry.planner(name).plan(free), free)


# Twins --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(WIDE_TWINS))
def test_same_as_twin(name: str) -> None:
    for seed in repetitions(25, 4):
        compare(name, demanding(seed))


@given(situation=demanding_situations())
@settings(max_examples=examples(25), deadline=None)
@pytest.mark.parametrize("name", sorted(WIDE_TWINS))
def test_same_as_twin_on_what_hypothesis_finds(name: str, situation: Situation) -> None:
    if needed(situation) is not None:
        compare(name, situation)


def compare(name: str, situation: Situation) -> None:
    for freedom in Freedom if name == "gtp" else (Freedom.NOT_STARTED,):
        twin: Any = WIDE_TWINS[name]
        plan: Plan = twin(situation, freedom) if name == "gtp" else twin(situation)
        schedule = registry.planner(name).plan(situation, freedom)
        check_schedule(schedule, situation, freedom)
        begun = set(situation.attempts.task.tolist())  # those of GTP that stay keep their start
        for task, (cores, start, finish) in plan.items():
            assert held(schedule, task) == cores
            assert task in begun or schedule.start[task] == start
            assert task in begun or schedule.finish[task] == finish


def held(schedule: Schedule, task: int) -> tuple[int, ...]:
    assert schedule.cores is not None
    return tuple(schedule.cores.of(task).tolist())


def test_without_insertion_same_as_twin() -> None:
    for seed in repetitions(20):
        situation = demanding(seed)
        twin = WIDE_TWINS["heft"](situation, False)  # type: ignore[call-arg]
        schedule = registry.planner("heft[insertion=false]").plan(situation)
        assert {t: held(schedule, t) for t in twin} == {t: row[0] for t, row in twin.items()}
        assert {t: schedule.finish[t] for t in twin} == {t: row[2] for t, row in twin.items()}


def test_what_single_changes_lead_to_is_what_they_lead_to() -> None:
    """LOSS2, GAIN2 and descents ask when all is done; the schedule that is then made says it."""
    for seed in repetitions(8):
        situation = demanding(seed, n_tasks=6)
        table = BudgetTable.of(situation, Freedom.NOT_STARTED, np.inf)
        on = table.cheapest_assignment
        after, changed = table.makespans_after(on), on.copy()
        moves = np.ascontiguousarray(table.pairs(on)[::3])
        for pair in moves.tolist():
            task, option = divmod(pair, table.processors)
            changed[task] = option
            assert after[pair] == table.ends(changed)
            changed[task] = on[task]
        along = table.makespans_along(on, moves)
        for k, pair in enumerate(moves.tolist()):
            task, option = divmod(pair, table.processors)
            changed[task] = option
            assert along[k + 1] == table.ends(changed)
        best, _ = table.descent(on, 0.0, 3)
        assert table.ends(best) <= table.ends(on)
        if table.exact:
            cost = table.cost(table.schedule(on, registry.planner("heft")))
            assert cost == pytest.approx(table.spent_on(on) + table.settled)


def test_slack_and_steps_count_every_core() -> None:
    for seed in repetitions(12):
        situation = demanding(seed, n_tasks=8)
        plan = registry.planner("heft").plan(situation)
        slack, spare = slack_and_spare(plan, situation)
        for task in range(plan.workflow.n_tasks):
            if task in situation.attempts.task or plan.finish[task] == plan.makespan:
                continue
            assert spare[task] == pytest.approx(slow_slack.min_spare(plan, task, situation))
            assert slack[task] == pytest.approx(slow_slack.slack(plan, task, situation))
        before = steps_before(plan, situation)
        for task in range(plan.workflow.n_tasks):
            for later in slow_slack.follows(plan, task):
                done = ~np.isnan(situation.attempts.finish)
                if task not in situation.attempts.task[done]:
                    assert before[later] >= before[task] + 1


# Projection, and staying where it was -------------------------------------------------------


def test_a_plan_projected_at_once_is_no_later_and_keeps_its_cores() -> None:
    for seed in repetitions(40):
        situation = demanding(seed)
        plan = registry.planner("heft").plan(situation)
        projection = project(plan, situation)
        assert projection is not None
        check_schedule(projection, situation)
        assert projection.makespan <= plan.makespan * (1 + 1e-9)
        for task in range(plan.workflow.n_tasks):
            assert sorted(held(projection, task)) == sorted(held(plan, task))


def test_a_plan_on_cores_that_are_gone_cannot_be_followed() -> None:
    situation = case(Request(cores=(4,)))
    plan = registry.planner("heft").plan(situation)
    gone = np.ones(situation.platform.n_processors, dtype=np.bool_)
    gone[held(plan, 0)[-1]] = False
    assert project(plan, replace(situation, present=gone)) is None


def test_tasks_rather_stay_on_the_cores_of_the_plan_before() -> None:
    situation = case(Request(cores=(2,)), Request(cores=(2,)))
    plan = registry.planner("heft").plan(situation)
    assert plan.cores is not None
    swapped = replace(
        plan,
        processor=plan.processor[::-1].copy(),
        cores=Cores(plan.cores.ptr, np.roll(plan.cores.processor, 2)),
    )
    back = staying(swapped, plan, situation)
    check_schedule(back, situation)
    assert [held(back, t) for t in range(2)] == [held(plan, t) for t in range(2)]
    assert back.processor.tolist() == plan.processor.tolist()


def test_staying_breaks_no_rule() -> None:
    for seed in repetitions(20):
        situation = demanding(seed)
        current = registry.planner("min-min").plan(situation)
        candidate = registry.planner("heft").plan(situation)
        stays = staying(candidate, current, situation)
        check_schedule(stays, situation)
        assert stays.start.tolist() == candidate.start.tolist()


# Single cases -------------------------------------------------------------------------------


def case(*requests: Request, cost: float = 8.0, memory: float = 8e9) -> Situation:
    """Independent tasks on a host of four cores and 8 GB, and one of two cores, half as fast."""
    names = [f"t{t}" for t in range(len(requests))]
    specs = {t: TaskSpec(request=request) for t, request in enumerate(requests)}
    items: list[Item] = []
    workflow = Workflow.from_items("w", names, [cost] * len(names), items, specs=specs)
    processors = [Processor(f"h0-{c}", "h0", price=1.0) for c in range(1, 5)]
    processors += [Processor(f"h1-{c}", "h1", speed=0.5, price=0.25) for c in range(1, 3)]
    has = {"h0": Host("h0", {"memory": memory}), "h1": Host("h1", {"memory": 2e9})}
    return Situation.at_start(workflow, Platform.build(processors, Link(), has=has))


def test_memory_is_waited_for() -> None:
    """Two of three tasks fit beside each other; the small host has too little for any."""
    situation = case(*[Request(memory=Amount("4GB"))] * 3)
    for name in sorted({*NAMES} - NARROW):
        schedule = registry.planner(name).plan(situation)
        check_schedule(schedule, situation)
        assert sorted(schedule.start.tolist()) == [0.0, 0.0, 8.0]


def test_what_runs_holds_its_cores_and_its_memory() -> None:
    """A task that runs on two cores until 8, and takes 5 GB, is not disturbed."""
    situation = case(Request(cores=(2,), memory=Amount("5GB")), WIDE, Request(memory=Amount("4GB")))
    attempts = Attempts(
        np.array([0]), np.array([1]), np.array([0.0]), np.array([np.nan]),
        cores=Cores(np.array([0, 2]), np.array([1, 3])),
    )  # fmt: skip
    running = replace(situation, attempts=attempts, now=2.0)
    for name in sorted({*NAMES} - NARROW - {"cheapest-in-time"}):
        schedule = registry.planner(name).plan(running)
        check_schedule(schedule, running)
        assert held(schedule, 0) == (1, 3)
        assert (held(schedule, 1), schedule.start[1]) == ((0, 2), 2.0)
        assert schedule.start[2] == 8.0


def test_of_widths_the_one_that_ends_first_if_it_is_efficient() -> None:
    """On four cores it takes 4 rather than 8 seconds: with half of the efficiency."""
    request = Request(cores=(1, 2, 4), seconds=(8.0, 5.0, 4.0))
    for bound, width in ((0.0, 4), (0.5, 4), (0.51, 2), (0.9, 1)):
        plan = registry.planner(f"heft[efficiency={bound}]").plan(case(request))
        assert len(held(plan, 0)) == width
    with pytest.raises(InputError, match=r"must be a share from 0 to 1, not 2"):
        registry.planner("dls[efficiency=2]")


def test_with_little_money_a_task_takes_fewer_cores() -> None:
    """One core of the fast host for 8 seconds costs 8, four cores for 4 seconds 16."""
    request = Request(cores=(1, 4), seconds=(8.0, 4.0), on=("h0",))
    for budget, width in ((16.0, 4), (15.9, 1), (8.0, 1)):
        for name in ("loss1", "gain3", "best-affordable"):
            plan = registry.planner(f"{name}[budget={budget}]").plan(case(request))
            assert (len(held(plan, 0)), plan.cost) == (width, 16.0 if width == 4 else 8.0)


def test_the_cores_with_the_tightest_gaps_are_taken() -> None:
    fits = Fits(case(Request(cores=(2,))), True)
    assert fits.tightness(0, 0.0, 8.0) < fits.tightness(1, 0.0, 8.0)  # of equals the first


def test_what_fits_no_host_that_is_there_is_named() -> None:
    situation = case(Request(), Request(cores=(3,)))
    here = np.array([True, True, False, True, True, True])
    assert registry.planner("heft").plan(replace(situation, present=here))
    here[0] = False
    with pytest.raises(PlanningError, match=r"no host that can be used at time 0 .* 't1' needs"):
        registry.planner("heft").plan(replace(situation, present=here))


# The validator ------------------------------------------------------------------------------


def broken(change: Any, *requests: Request) -> str:
    """What the validator says of a plan by HEFT that is changed."""
    situation = case(*requests)
    plan = registry.planner("heft").plan(situation)
    check_schedule(plan, situation)
    with pytest.raises(InvalidScheduleError) as caught:
        check_schedule(change(plan), situation)
    return str(caught.value)


def moved(*cores: int) -> Any:
    """The first task on other cores."""

    def change(plan: Schedule) -> Schedule:
        assert plan.cores is not None
        rest = plan.cores.processor[plan.cores.ptr[1] :]
        ptr = plan.cores.ptr - plan.cores.ptr[1] + len(cores)
        ptr[0] = 0
        on = plan.processor.copy()
        on[0] = cores[0]
        row = np.array(cores, dtype=np.int32)
        return replace(plan, processor=on, cores=Cores(ptr, np.concatenate([row, rest])))

    return change


def test_what_the_validator_finds() -> None:
    assert "has a core twice" in broken(moved(0, 0), WIDE)
    assert "cores of several hosts" in broken(moved(3, 4), WIDE)
    assert "is given 1 core, and requests another number" in broken(moved(0), WIDE)
    assert "'t0' and 't1' overlap on 'h0-3'" in broken(moved(1, 2), WIDE, WIDE)

    def second_first(plan: Schedule) -> Schedule:
        return replace(plan, processor=plan.processor + 1)

    assert "the first core of task 't0' is not its processor" in broken(second_first, WIDE)

    def at_once(plan: Schedule) -> Schedule:
        return replace(plan, start=0 * plan.start, finish=plan.finish - plan.start)

    half = Request(memory=Amount("5GB"), cores=(2,))
    said = broken(at_once, half, half)
    assert "1e+10 is taken of memory of host 'h0', which has 8e+09" in said

    def elsewhere(plan: Schedule) -> Schedule:
        changed: Schedule = moved(4)(plan)
        return replace(changed, finish=2 * plan.finish)

    assert "may not run on the host of 'h1-1'" in broken(elsewhere, Request(memory=Amount("5GB")))


def test_a_slower_core_must_lead() -> None:
    situation = replace(case(WIDE), availability=np.array([0.5, 1.0, 0.5, 0.5, 1.0, 1.0]))
    plan = registry.planner("heft").plan(situation)
    assert held(plan, 0) == (0, 1)
    cores = Cores(np.array([0, 2]), np.array([1, 0]))
    wrong = replace(plan, processor=np.array([1]), cores=cores, finish=np.array([8.0]))
    with pytest.raises(InvalidScheduleError, match="has a slower core than its first"):
        check_schedule(wrong, situation)
