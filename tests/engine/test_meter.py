"""What machines were used for, kept up event by event: the same sums as from the whole log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.priced import priced
from foreplan import registry
from foreplan.engine.budget import BudgetTracker
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.model import Estimates, Platform, Processor, Usage, Workflow
from foreplan.model.events import TaskFinished
from foreplan.simulation.simulated import SimulatedExecutor
from simulation.worlds import random_case

SPECS = ["fifo", "static", "gtp/c", "gtp/c/r", "min-min"]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000), spec=st.sampled_from(SPECS), every=st.sampled_from([1, 2, 5, 30])
)
def test_the_same_as_from_the_whole_log(seed: int, spec: str, every: int) -> None:
    """Machines join, leave and die, links have prices; it is asked at every event, or few."""
    case = priced(random_case(seed), seed, plain=False)
    policy, planner = registry.strategy(spec)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, policy)
    executor = SimulatedExecutor(case.workflow, case.platform, case.reality)
    driver = Driver(coordinator, planner, executor)
    commands, heard = driver.begin(), 0
    while not coordinator.done:
        driver.perform(commands)
        event = executor.next_event()
        if event is None:  # tasks were lost too often, or nobody is there
            break
        commands, heard = driver.hear(event), heard + 1
        if heard % every == 0:
            coordinator.meter.check(coordinator.state, coordinator.workflow, coordinator.platform)
    coordinator.check_state()


def test_what_has_ended_is_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempts that are looked at are as many as were begun, and those that ran meanwhile."""
    looked = 0
    plainly = Usage.and_then

    def and_then(used: Usage, processor: Any, *more: Any) -> Usage:
        nonlocal looked
        looked += len(processor)
        return plainly(used, processor, *more)

    n = 200
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(n)], [1.0] * n, [])
    platform = Platform.build([Processor("p", price=1.0), Processor("q", price=2.0)])
    estimates, tracker = Estimates.declared(workflow, platform), BudgetTracker(1e6, "cut")
    policy, planner = registry.strategy("static")
    coordinator = Coordinator(workflow, platform, estimates, policy, tracker=tracker)
    Driver(coordinator, planner).begin()
    monkeypatch.setattr(Usage, "and_then", and_then)
    for k in range(n):
        coordinator.handle(TaskFinished(k, 1.0 + k / 2))
    assert coordinator.done
    assert looked < 12 * n  # and 200 times as many, were they all looked at
    coordinator.check_state()
