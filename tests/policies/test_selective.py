"""Selective rescheduling: the paper's example, slack against its twin, and when it asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreplan
from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.model import (
    Attempts,
    Copies,
    Estimates,
    Item,
    Platform,
    Processor,
    Situation,
    Workflow,
)
from foreplan.model.events import ProcessorGone, ProcessorJoined
from foreplan.scheduling.slack import slack_and_spare
from foreplan.simulation.reality import Reality
from repeated import repetitions
from simulation.worlds import Case, random_case
from twins import slack as twin
from twins.situations import random_instance, random_situation

pytestmark = pytest.mark.usefixtures("light_searches")

GOLDENS = Path(__file__).parents[1] / "goldens"
MIN_SPARE = [0, 0, 6, 0, 5, 6, 7.5, 0, 0]
SLACK = [0, 0, 13.5, 7.5, 5, 6, 7.5, 0, 0]


def test_figure_1() -> None:
    workflow = foreplan.load(GOLDENS / "selective-figure1.workflow.yaml")
    platform = foreplan.load_platform(GOLDENS / "selective-figure1.platform.yaml")
    plan = foreplan.plan(workflow, platform, "heft")
    slack, spare = slack_and_spare(plan)
    assert slack.tolist() == SLACK
    assert spare.tolist() == MIN_SPARE
    assert twin.spare(plan, 4, 7) == 5
    assert twin.spare(plan, 3, 5) == 1.5
    assert [twin.slack(plan, i) for i in range(9)] == SLACK
    assert [twin.min_spare(plan, i) for i in range(9)] == MIN_SPARE


@pytest.mark.parametrize("planner", ["heft", "dls", "lmt"])
def test_against_the_twin(planner: str) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        workflow, platform = random_instance(rng, n_tasks=int(rng.integers(1, 10)), changes=False)
        plan = foreplan.plan(workflow, platform, planner)
        slack, spare = slack_and_spare(plan)
        rounding = 1e-12 * plan.makespan
        tasks = range(workflow.n_tasks)
        assert slack.tolist() == pytest.approx([twin.slack(plan, i) for i in tasks], abs=rounding)
        assert spare.tolist() == pytest.approx(
            [twin.min_spare(plan, i) for i in tasks], abs=rounding
        )
        assert (spare >= -1e-9 * plan.makespan).all()
        assert (slack >= spare - 1e-9 * plan.makespan).all()


def rewound_situation(rng: np.random.Generator) -> Situation:
    """A moment at which results are lost, of tasks whose readers may have begun or be done."""
    situation = random_situation(rng, n_tasks=int(rng.integers(2, 10)), changes=False)
    workflow, a, copies = situation.workflow, situation.attempts, situation.copies
    holds = np.isnan(a.finish) | (rng.random(len(a.task)) < 0.6)
    lost = np.zeros(workflow.n_tasks + 1, dtype=np.bool_)  # the last one: nobody's items
    lost[a.task[~holds]] = True
    kept = ~lost[workflow.item_producer[copies.item]]
    given_up = rng.random(workflow.n_tasks) < 0.1
    given_up[a.task[holds]] = False
    _, producers, consumers = workflow.dependencies()
    for task in workflow.order:  # with a producer goes all that has not read its results yet
        given_up[consumers[(producers == task) & given_up[task]]] = True
        given_up[a.task[holds]] = False
    return replace(
        situation,
        attempts=Attempts(a.task[holds], a.processor[holds], a.start[holds], a.finish[holds]),
        copies=Copies(copies.item[kept], copies.host[kept]),
        given_up=given_up if rng.random() < 0.3 else None,
    )


def test_against_the_twin_in_the_middle_of_a_run() -> None:
    """A plan that can be followed has spare time everywhere, or none, but never less."""
    for seed in range(60):
        situation = rewound_situation(np.random.default_rng(seed))
        plan = registry.planner("heft").plan(situation)
        check_schedule(plan, situation)
        slack, spare = slack_and_spare(plan, situation)
        n, rounding = situation.workflow.n_tasks, 1e-9 * plan.makespan
        assert slack.tolist() == pytest.approx(
            [twin.slack(plan, i, situation) for i in range(n)], abs=rounding
        )
        assert spare.tolist() == pytest.approx(
            [twin.min_spare(plan, i, situation) for i in range(n)], abs=rounding
        )
        waiting = np.ones(n, dtype=np.bool_)
        waiting[situation.attempts.task] = False
        assert (spare[waiting] >= -rounding).all()
        assert (slack[waiting] >= -rounding).all()


def one_death(seed: int) -> Case:
    """Estimates that are exact, and a processor that dies in the middle."""
    rng = np.random.default_rng(seed)
    workflow, platform = random_instance(rng, n_processors=int(rng.integers(2, 6)), changes=False)
    dies = float(rng.uniform(0.1, 0.9)) * foreplan.plan(workflow, platform, "heft").makespan
    changes = [ProcessorGone(platform.n_processors - 1, dies)]
    return Case(workflow, platform, Reality(Estimates.declared(workflow, platform).cost, changes))


@pytest.mark.parametrize("spec", ["slack", "spare", "slack[planner=dls]"])
def test_a_loss_makes_no_start_late(spec: str) -> None:
    runs = [one_death(seed).run(spec) for seed in range(60)]
    assert sum(run.considered for run in runs) > 0
    assert all(e.forced for run in runs for e in run.evaluations)


@pytest.mark.parametrize("spec", ["slack", "spare"])
def test_a_reader_that_is_done_needs_no_input(spec: str) -> None:
    """t1 is lost with p1 and made again for t3, after t4 which has read it is done."""
    names, cost = [f"t{i}" for i in range(5)], [6.0, 3.0, 6.0, 4.0, 8.0]
    items = [Item(3.0, 1, [3]), Item(0.0, 2, [3]), Item(0.0, 0, [4]), Item(3.0, 1, [4])]
    workflow = Workflow.from_items("w", names, cost, items)
    platform = Platform.build([Processor("p0"), Processor("p1")])
    work = Estimates.declared(workflow, platform).cost
    run = Case(workflow, platform, Reality(work, [ProcessorGone(1, 8.5)])).run(spec)
    assert [(e.time, e.reason) for e in run.evaluations] == [(8.5, "p1 gone")]
    assert run.plans[-1].start[1] == 20.0
    assert run.makespan == 27.0


def single_entry(seed: int, join: float | None = None) -> Case:
    """A chain with branches from one entry, on two processors and one that may join."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 15))
    items = [Item(float(rng.integers(0, 4)), int(rng.integers(0, i)), [i]) for i in range(1, n)]
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], rng.uniform(1, 9, n), items)
    joins = 0.0 if join is None else join
    platform = Platform.build([Processor("a"), Processor("b"), Processor("c", joins=joins)])
    cost = Estimates.declared(workflow, platform).cost
    changes = [] if join is None else [ProcessorJoined(2, join)]
    return Case(workflow, platform, Reality(cost * rng.uniform(0.5, 1.5, (n, 1)), changes))


@pytest.mark.parametrize("planner", registry.planner_names())
def test_always_asks_before_every_start_but_the_first(planner: str) -> None:
    for seed in repetitions(4):
        case = single_entry(seed)
        run = case.run(f"always[planner={planner}]")
        assert run.considered == run.replans == case.workflow.n_tasks - 1


def test_a_join_is_not_a_start_that_was_asked_about() -> None:
    for seed in range(20):
        case = single_entry(seed, join=3.0)
        assert case.run("always").considered == case.workflow.n_tasks - 1


@pytest.mark.parametrize("spec", ["slack", "spare"])
@given(seed=st.integers(0, 10**6))
@settings(deadline=None)  # a machine that is busy is slow
def test_exact_estimates_are_never_asked_about(spec: str, seed: int) -> None:
    workflow, platform = random_instance(np.random.default_rng(seed), changes=False)
    case = Case(workflow, platform, Reality(Estimates.declared(workflow, platform).cost))
    for planner in ("heft", "dls"):
        assert case.run(f"{spec}[planner={planner}]").considered == 0


def forked(extra: float) -> Case:
    """b, then f, on one processor, g on the other; b takes longer than estimated."""
    tasks = ["b", "f", "g"]
    workflow = Workflow.from_items("w", tasks, [10.0, 10.0, 25.0], [Item(0.0, 0, [1])])
    platform = Platform.build([Processor("p"), Processor("q")])
    cost = Estimates.declared(workflow, platform).cost.copy()
    work = cost.copy()
    work[0] += extra
    return Case(workflow, platform, Reality(work))


@pytest.mark.parametrize(
    ("extra", "asked"), [(0.0, 0), (4.9, 0), (5.0, 0), (5.0 + 1e-6, 1), (5.1, 1), (9.0, 1)]
)
@pytest.mark.parametrize("spec", ["slack", "spare"])
def test_just_less_and_just_more_than_the_slack(spec: str, extra: float, asked: int) -> None:
    """f starts at 10 by the plan and may start by 15: g, elsewhere, ends at 25."""
    run = forked(extra).run(spec)
    assert run.considered == asked
    if asked:
        assert run.evaluations[0].time == 10.0 + extra
        assert run.evaluations[0].reason == "late start of f"
        assert not run.evaluations[0].forced


def test_slack_is_a_sum_along_the_path_and_spare_is_not() -> None:
    """b may be late by 5 in all, but by nothing before f follows it."""
    workflow = Workflow.from_items(
        "w", ["a", "b", "f", "g"], [1.0, 9.0, 10.0, 25.0], [Item(0.0, 0, [1]), Item(0.0, 1, [2])]
    )
    platform = Platform.build([Processor("p"), Processor("q")])
    work = Estimates.declared(workflow, platform).cost.copy()
    work[0] += 3.0
    case = Case(workflow, platform, Reality(work))
    slack, spare = slack_and_spare(foreplan.plan(workflow, platform, "heft"))
    assert slack.tolist() == [5, 5, 5, 0]
    assert spare.tolist() == [0, 0, 5, 0]
    assert case.run("slack").considered == 0
    assert case.run("spare").considered == 1


def test_fewer_questions_than_always() -> None:
    asked = {"slack": 0, "spare": 0, "always": 0}
    for seed in range(30):
        case = random_case(seed, quiet=True)
        for spec in asked:
            asked[spec] += case.run(spec).considered
    assert 0 < asked["slack"] <= asked["spare"] < asked["always"]
