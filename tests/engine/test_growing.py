"""Graphs that grow: tasks that are added while a run goes on, in any world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.checks.schedules import check_schedule
from foreplan.engine.check_state import IllegalEventError
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record
from foreplan.engine.retries import RetryPolicy
from foreplan.engine.state import TaskState
from foreplan.formats import load, workflow_from_dict
from foreplan.formats.growing import added_tasks
from foreplan.model import Estimates, Link, Platform, Processor, Run, Workflow
from foreplan.model.events import TaskFailed, TaskFinished, TasksAdded
from foreplan.model.growth import grow
from foreplan.model.world import WorldFile
from foreplan.simulation.expanding import Expanding
from foreplan.simulation.reality import from_world
from foreplan.simulation.simulated import SimulatedExecutor
from repeated import repetitions

STRATEGIES = [
    "static",
    "always[planner=heft]",
    "slack",
    "adaptive",
    "ico",
    "min-min",
    "fifo",
    "gtp",
]


def drawn(seed: int, wide: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """A workflow in which some tasks add others, some of which add more; and what they add."""
    rng = np.random.default_rng(seed)
    tasks: dict[str, Any] = {}
    expansions: dict[str, Any] = {}

    def body(name: str, files: list[str], grows: bool) -> dict[str, Any]:
        some = rng.permutation(len(files))[: rng.integers(0, 3)]
        said: dict[str, Any] = {"cost": float(rng.integers(1, 20)), "category": name[0]}
        said |= {"inputs": [files[k] for k in some], "outputs": [f"{name}.out"]}
        if wide and rng.random() < 0.4:
            said["cores"] = 2
        return said | ({"expand": True} if grows else {})

    def add(by: str, files: list[str], depth: int) -> None:
        added: dict[str, Any] = {}
        own = list(files)
        for k in range(int(rng.integers(1, 6))):
            name = f"{by}-{k}"
            grows = depth > 0 and rng.random() < 0.3
            added[name] = body(name, own, grows)
            own.append(f"{name}.out")
            if grows:
                add(name, files, depth - 1)
        expansions[by] = {"tasks": added}

    files: list[str] = []
    for k in range(int(rng.integers(4, 14))):
        name, grows = f"t{k}", rng.random() < 0.35
        tasks[name] = body(name, files, grows)
        waits = [t for t in tasks if tasks[t].get("expand") and rng.random() < 0.4]
        if waits and not grows:
            tasks[name]["after"] = waits
            tasks[name]["inputs"] += [f"{t}-*.out" for t in waits if rng.random() < 0.7]
        if grows:
            add(name, list(files), 1)
        files.append(f"{name}.out")
    return {"name": "growing", "tasks": tasks}, expansions


def platform(seed: int) -> Platform:
    """A few hosts, with links that take some time."""
    rng = np.random.default_rng([seed, 1])
    count = int(rng.integers(2, 5))
    hosts = [f"h{k // 2}" for k in range(count)]
    processors = [
        Processor(f"p{k}", host=host, speed=float(rng.uniform(0.5, 2)))
        for k, host in enumerate(hosts)
    ]
    return Platform.build(processors, Link(1.0, 0.5))


def simulate(spec: str, seed: int, wide: bool = False, failures: bool = False) -> Run:
    """A run in which the state is looked through after every event."""
    content, expansions = drawn(seed, wide)
    workflow, machines = load(content), platform(seed)
    estimates = Estimates.declared(workflow, machines)
    more = {task: added_tasks(said, workflow_from_dict) for task, said in expansions.items()}
    world = WorldFile(expansions=more)
    if failures:
        world = replace(world, failures={machines.processor_names[0]: (9.0, 30.0)})
    truth = from_world(workflow, machines, estimates, world, 0.3, seed)
    policy, planner = registry.strategy(spec)
    patient = RetryPolicy(losses=10**9)
    coordinator = Coordinator(workflow, machines, estimates, policy, patient)
    executor = SimulatedExecutor(workflow, machines, truth)
    driver = Driver(coordinator, planner, executor, events=[])
    driver.observer = Expanding(driver, executor)
    commands = driver.begin()
    while True:
        driver.perform(commands)
        coordinator.check_state()
        if coordinator.done:
            break
        event = executor.next_event()
        assert event is not None
        commands = driver.take(event)
    check_growth(driver, expansions)
    run = record(driver, spec, executor.changes(), executor.actual_work)
    check_run(run)
    for plan in run.plans[:1]:
        check_schedule(plan)
    return run


def check_growth(driver: Driver, expansions: dict[str, Any]) -> None:
    """All was added, with the numbers that it has from then on, and all of it is done."""
    coordinator = driver.coordinator
    names, n = coordinator.workflow.task_names, coordinator.workflow.n_tasks
    assert {names[by] for by in coordinator.expanded} == set(expansions)
    for by, said in expansions.items():
        assert set(said["tasks"]) <= set(names), by
    assert coordinator.state.count(TaskState.DONE) == n
    assert coordinator.estimates.cost.shape[0] == n


@pytest.mark.parametrize("spec", STRATEGIES)
def test_any_graph_that_grows(spec: str) -> None:
    grown = 0
    for seed in repetitions(6):
        grown += len(simulate(spec, seed).added)
    assert grown


@pytest.mark.parametrize("spec", ["always[planner=heft]", "fifo", "min-min"])
def test_graphs_that_grow_where_machines_die_or_tasks_are_wide(spec: str) -> None:
    for seed in repetitions(4):
        simulate(spec, seed, failures=True)
        simulate(spec, seed, wide=True)


def two(keep_going: bool = False, strategy: str = "fifo") -> tuple[Coordinator, Workflow]:
    """A task that adds one that reads what another makes, and one that waits for it."""
    workflow = load(
        {
            "tasks": {
                "bad": {"cost": 1, "outputs": ["bad.out"]},
                "split": {"cost": 2, "expand": True},
                "merge": {"cost": 1, "after": ["split"], "inputs": ["*.part"]},
            }
        }
    )
    machines = Platform.build([Processor("a", "h"), Processor("b", "h")])
    policy, _ = registry.strategy(strategy)
    patience = RetryPolicy(keep_going=keep_going)
    estimates = Estimates.declared(workflow, machines)
    return Coordinator(workflow, machines, estimates, policy, patience), workflow


def added(coordinator: Coordinator, tasks: dict[str, Any], time: float = 1.5) -> TasksAdded:
    more = added_tasks({"tasks": tasks}, workflow_from_dict)
    grown = grow(coordinator.workflow, 1, more)
    cost = np.concatenate([coordinator.estimates.cost, np.ones((more.n_tasks, 2))])
    return TasksAdded(time, 1, more, grown, Estimates(cost), "digest")


def attempt_at(coordinator: Coordinator, task: int) -> int:
    return next(attempt.number for attempt in coordinator.state.running() if attempt.task == task)


PART = {"part": {"inputs": ["bad.out"], "outputs": ["one.part"]}}


def test_what_needs_a_task_that_was_given_up_is_given_up_with_whoever_waits_for_it() -> None:
    coordinator, _ = two(keep_going=True)
    coordinator.begin()
    coordinator.handle(TaskFailed(attempt_at(coordinator, 0), 1.0))
    coordinator.handle(added(coordinator, PART))
    coordinator.check_state()
    assert coordinator.given_up == [0, 2, 3]
    coordinator.handle(TaskFinished(attempt_at(coordinator, 1), 2.0))
    assert coordinator.done


def test_whoever_waits_for_an_expansion_begins_when_all_of_it_is_done() -> None:
    coordinator, _ = two()
    coordinator.begin()
    coordinator.handle(added(coordinator, {**PART, "other": {}}))
    time, running = 2.0, list[list[int]]()
    for task in (1, 4, 0, 3):
        coordinator.handle(TaskFinished(attempt_at(coordinator, task), time))
        coordinator.check_state()
        running.append(sorted(attempt.task for attempt in coordinator.state.running()))
        time += 1.0
    assert running == [[0, 4], [0], [3], [2]]


def test_a_task_adds_once_and_to_the_workflow_that_is_run() -> None:
    coordinator, _ = two()
    coordinator.begin()
    new = added(coordinator, PART)
    coordinator.handle(new)
    with pytest.raises(IllegalEventError, match="no tasks can be added"):
        coordinator.handle(replace(new, time=2.0))
    with pytest.raises(IllegalEventError, match="no tasks can be added"):
        coordinator.handle(replace(new, time=1.0, by=0))
    other, _ = two()
    strange = replace(new, workflow=load({"tasks": {"x": {"cost": 1}}}))
    with pytest.raises(IllegalEventError, match="another workflow"):
        other.handle(strange)


def test_planning_is_asked_for_at_once_and_knows_the_added_tasks() -> None:
    coordinator, _ = two(strategy="static")
    driver = Driver(coordinator, registry.planner("heft"))
    driver.begin()
    driver.hear(added(coordinator, PART))
    assert coordinator.evaluations[-1].reason == "split added tasks"
    assert driver.plans[-1].workflow.n_tasks == 4
    coordinator.check_state()


def test_simulate_with_a_world_that_says_what_is_added() -> None:
    content, expansions = drawn(3)
    run = foreplan.simulate(
        load(content), platform(3), "adaptive", world={"expansions": expansions}, seed=1
    )
    check_run(run)
    assert run.n_done == run.workflow.n_tasks > len(content["tasks"])
    same = foreplan.simulate(load(content), platform(3), "adaptive", seed=1)
    assert same.workflow.n_tasks == len(content["tasks"])
