"""A run that begins just in time and follows plans from some moment on, in any world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.engine.check_state import IllegalEventError
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, record
from foreplan.engine.retries import RetryPolicy
from foreplan.model import Item, Platform, Processor, Run, Workflow
from foreplan.model.events import NewStrategy
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from simulation.worlds import Case, Checked, random_case


def play(case: Case, first: str, then: str, after: int) -> Run:
    """The run, in which the strategy changes after so many events; its state is always sound."""
    policy, _ = registry.strategy(first)
    patient = RetryPolicy(losses=10**9)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy, patient)
    executor = SimulatedExecutor(case.workflow, case.platform, case.reality)
    driver = Driver(coordinator, None, executor, events=[])
    commands, heard = driver.begin(), 0
    while True:
        driver.perform(commands)
        coordinator.check_state()
        if coordinator.done:
            break
        arrays = coordinator.state.arrays
        usable = (arrays.present & (arrays.leaves > coordinator.now)).any()
        if heard >= after and coordinator.policy is None and usable:
            commands = driver.hear(NewStrategy(coordinator.now, then, "it is time"))
            assert driver.planner is not None
            driver.planner = Checked(driver.planner)
            continue
        event = executor.next_event()
        assert event is not None
        commands = driver.hear(event)
        heard += 1
    # what was planned and begun at one instant cannot be told apart, as on real machines
    run = replace(record(driver, f"{first}, then {then}", executor.changes()), real=True)
    assert run.planned_from == (driver.switched.time if driver.switched else 0.0)
    return run


@pytest.mark.parametrize("then", ["slack", "always[planner=heft]", "static"])
@pytest.mark.parametrize("first", ["ico", "lifo", "min-min"])
def test_any_world(first: str, then: str) -> None:
    switched = 0
    for seed in range(12):
        case = random_case(seed, stops=False, quiet=seed % 3 == 0)
        run = play(case, first, then, after=seed)
        check_run(replace(run, plans=(), plan_times=(), evaluations=()) if not run.plans else run)
        switched += bool(run.plans)
    assert switched >= 5


def test_the_plan_is_followed() -> None:
    """x is much faster on p1, but p0 is idle first: only a plan waits for it."""
    platform = Platform.build([Processor("p0"), Processor("p1")])
    cost = np.array([[1.0, 9.0], [9.0, 3.0], [50.0, 2.0]])
    columns = {f"p{k}": cost[:, k] for k in range(2)}
    items = [Item(0.0, 0, [2])]
    workflow = Workflow.from_items("w", ["a", "b", "x"], [np.nan] * 3, items, columns)
    case = Case(workflow, platform, Reality(cost))
    assert case.run("ico").makespan == 51.0
    run = play(case, "ico", "slack", after=0)
    assert run.makespan == 5.0
    assert len(run.plans) == 1
    check_run(run)


def test_only_once_and_not_in_the_past() -> None:
    case = random_case(3, quiet=True)
    policy, _ = registry.strategy("ico")
    slack, _ = registry.strategy("slack")
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy)
    coordinator.begin()
    driver = Driver(coordinator, None)
    with pytest.raises(IllegalEventError):
        driver.hear(NewStrategy(-1.0, "slack", "too early"))
    driver.hear(NewStrategy(0.0, "slack", "it is time"))
    with pytest.raises(IllegalEventError):
        driver.hear(NewStrategy(0.0, "slack", "again"))
    assert slack.name == "slack"
