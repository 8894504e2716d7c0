"""Late, by how much: a start counts as late from the dispatch delays on that a run measures."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.checks.runs import check_run
from foreplan.contracts import Order
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record
from foreplan.engine.state import RunState
from foreplan.model import Estimates, Item, Platform, Processor, Run, Situation, Workflow
from foreplan.model.events import Command, Event, NewPlan, Replan, StartTask, TaskFinished
from foreplan.scheduling.slack import steps_before
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from model.told import whom
from twins.situations import random_situation


class Dispatching:
    """Simulated machines on which every task takes its time and a delay, and the time is told."""

    def __init__(self, inner: SimulatedExecutor, seconds: FloatArray, tells: bool) -> None:
        self.inner, self.seconds, self.tells = inner, seconds, tells
        self.started: dict[int, StartTask] = {}

    def perform(self, command: Command) -> None:
        if isinstance(command, StartTask):
            self.started[command.attempt] = command
        self.inner.perform(command)

    def flush(self) -> None:
        self.inner.flush()

    def next_event(self, wait: bool = True) -> Event | None:
        event = self.inner.next_event(wait)
        if event is None or not isinstance(event, TaskFinished) or not self.tells:
            return event
        attempt = self.started[whom(event)]
        seconds = float(self.seconds[attempt.task, attempt.processor])
        return replace(event, detail={"seconds": seconds})


def dispatched(
    workflow: Workflow,
    strategy: str,
    *,
    processors: int,
    seed: int = 0,
    tells: bool = True,
    error: float = 0.05,
    longer: dict[int, float] | None = None,
) -> Run:
    """A run on equal processors: predictions with an error, delays of 2 to 20 ms."""
    rng = np.random.default_rng(seed)
    platform = Platform.build([Processor(f"p{i}", "host") for i in range(processors)])
    estimates = Estimates.declared(workflow, platform)
    seconds = estimates.cost * rng.uniform(1 - error, 1 + error, (workflow.n_tasks, 1))
    for task, factor in (longer or {}).items():
        seconds[task] *= factor
    delays = rng.uniform(0.002, 0.02, (workflow.n_tasks, 1))
    policy, planner = registry.strategy(strategy)
    assert not isinstance(policy, Order)
    inner = SimulatedExecutor(workflow, platform, Reality(seconds + delays))
    coordinator = Coordinator(workflow, platform, estimates, policy)
    driver = Driver(coordinator, planner, Dispatching(inner, seconds, tells), events=[])
    driver.drive()
    run = record(driver, strategy, inner.changes())
    check_run(run)
    return run


def independent(seed: int, n: int = 40) -> Workflow:
    cost = np.random.default_rng(seed).uniform(0.1, 0.5, n)
    return Workflow.from_items("w", [f"t{i}" for i in range(n)], cost, [])


def rows(width: int, length: int) -> Workflow:
    """Rows of short tasks, each of which needs two of the row before."""
    names = [f"t{r}-{i}" for r in range(length) for i in range(width)]
    items = []
    for r in range(1, length):
        for i in range(width):
            before = (r - 1) * width
            items += [Item(0.0, before + k, [r * width + i]) for k in {i, (i + 1) % width}]
    cost = np.random.default_rng(1).uniform(0.02, 0.12, len(names))
    return Workflow.from_items("rows", names, cost, items)


@pytest.mark.parametrize("processors", [2, 3, 4])
def test_few_plans_where_predictions_are_right(processors: int) -> None:
    """Under 20% of the tasks, as in the paper; without the delays most starts are late."""
    seeds = range(6)
    runs = [dispatched(independent(s), "slack", processors=processors, seed=s) for s in seeds]
    blunt = [
        dispatched(independent(s), "slack", processors=processors, seed=s, tells=False)
        for s in seeds
    ]
    assert np.mean([run.considered for run in runs]) < 0.1 * 40
    assert max(run.considered for run in runs) < 0.2 * 40
    assert np.mean([run.considered for run in blunt]) > 0.2 * 40


def test_all_is_read_only_where_a_plan_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plans are made; hundreds of starts are late while it rests, and nobody looks around."""
    reads, situation = 0, RunState.situation

    def read(*arguments: Any) -> Situation:
        nonlocal reads
        reads += 1
        return situation(*arguments)

    monkeypatch.setattr(RunState, "situation", read)
    n, platform = 300, Platform.build([Processor("p")])
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], [1.0] * n, [])
    policy, planner = registry.strategy("slack")
    assert planner is not None
    estimates = Estimates.declared(workflow, platform)
    coordinator = Coordinator(workflow, platform, estimates, policy, rest=1e6)
    (asked,) = coordinator.begin()
    assert isinstance(asked, Replan)
    first = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(0.0, asked.version, first, seconds=2e-6))
    *_, again = coordinator.handle(TaskFinished(0, 5.0))
    assert isinstance(again, Replan)
    plan = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(5.0, again.version, plan, seconds=1.0))
    until_then = reads
    for k in range(1, n):
        commands = coordinator.handle(TaskFinished(k, 5.0 + 2.0 * k))
        assert not any(isinstance(command, Replan) for command in commands)
        late = coordinator.now > coordinator.state.arrays.latest[k]
        assert late
    assert coordinator.done
    assert reads == until_then


@given(delays=st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 5.0, 8.0]), max_size=60))
def test_the_usual_delay_is_the_one_that_most_do_not_exceed(delays: list[float]) -> None:
    """As from all of them, sorted; and the arrays has it, however it rises and falls."""
    coordinator = begun("static", n=len(delays) + 1)
    for k, delay in enumerate(delays):
        at = coordinator.now + delay
        coordinator.handle(TaskFinished(k, at, detail={"seconds": 0.0}))
        usual = sorted(delays[: k + 1])[math.ceil(0.9 * (k + 1)) - 1]
        assert coordinator.delays.usual == usual
        coordinator.check_state()


def test_a_delay_that_is_measured_changes_no_other_task() -> None:
    """What each start may be late by is reckoned when it starts, not of all tasks at every end."""
    coordinator = begun("slack", n=40)
    arrays = coordinator.state.arrays
    latest, steps = arrays.latest.copy(), arrays.steps
    for k in range(30):
        # a second of its own, and half a second until that is heard
        ended = TaskFinished(k, 1.5 * (k + 1), detail={"seconds": 1.0})
        assert len(coordinator.handle(ended)) == 1
        assert steps.tolist() == [float(task + 1) for task in range(40)]
    assert coordinator.state.arrays.latest is arrays.latest
    assert (arrays.latest == latest).all()
    assert coordinator.evaluations[1:] == []
    *_, asked = coordinator.handle(TaskFinished(30, 100.0))
    assert isinstance(asked, Replan)


def begun(strategy: str, n: int) -> Coordinator:
    """Tasks of a second on one processor, the first of which has begun."""
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], [1.0] * n, [])
    platform = Platform.build([Processor("p")])
    policy, planner = registry.strategy(strategy)
    estimates = Estimates.declared(workflow, platform)
    coordinator = Coordinator(workflow, platform, estimates, policy, rest=1.0)
    Driver(coordinator, planner).begin()
    return coordinator


def test_few_plans_of_a_wide_workflow() -> None:
    workflow = rows(width=20, length=6)
    run = dispatched(workflow, "slack", processors=2)
    blunt = dispatched(workflow, "slack", processors=2, tells=False)
    assert blunt.considered > 40
    assert run.considered < 12
    default = dispatched(workflow, "adaptive", processors=2)
    assert (default.replans, sum(e.migrated for e in default.evaluations)) == (0, 0)


@pytest.mark.parametrize("strategy", ["slack", "adaptive"])
def test_what_is_really_late_is_noticed(strategy: str) -> None:
    """A task that takes three times as long: whatever starts after it is late."""
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(12)], [1.0] * 12, [])
    calm = dispatched(workflow, strategy, processors=2, error=0.0)
    assert calm.considered == 0
    run = dispatched(workflow, strategy, processors=2, error=0.0, longer={2: 3.0})
    assert run.evaluations[0].reason.startswith("late start of")
    assert run.evaluations[0].taken
    assert run.makespan < 7.2  # and 8 where it was planned


def test_steps_are_along_the_longest_way() -> None:
    """By the definition: one more than the most of those that must end before."""
    for seed in range(40):
        situation = random_situation(np.random.default_rng(seed), changes=False)
        plan = registry.planner("heft").plan(situation)
        a, wf = situation.attempts, situation.workflow
        done = set(a.task[~np.isnan(a.finish)].tolist())
        steps = steps_before(plan, situation).tolist()
        links = [(p, c) for _, p, c in zip(*(x.tolist() for x in wf.dependencies()), strict=True)]
        for p in range(situation.platform.n_processors):
            row = [t for t in plan.in_time.tolist() if plan.processor[t] == p]
            links += pairwise(row)
        for task in range(wf.n_tasks):
            before = [steps[p] + 1 for p, c in links if c == task and p not in done]
            assert steps[task] == max(before, default=0)
