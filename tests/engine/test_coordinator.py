"""The coordinator: illegal events, stale plans, losses at awkward moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.endings import finish_all, image
from foreplan import registry
from foreplan.engine.check_state import IllegalEventError, check_state
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.event_numbers import NUMBERS
from foreplan.model import (
    Estimates,
    Item,
    Link,
    Platform,
    Processor,
    Workflow,
)
from foreplan.model.events import (
    KINDS,
    Beat,
    DropTransfer,
    Event,
    ItemArrived,
    ItemLost,
    LinkChanged,
    MachineMessage,
    NewPlan,
    ProcessorGone,
    ProcessorJoined,
    Replan,
    SendItem,
    SpeedChanged,
    StartTask,
    TaskFailed,
    TaskFinished,
)


def small(spec: str = "slack") -> tuple[Coordinator, Any]:
    """x on one host, then y on it and z on the other, which needs what x makes."""
    cost = np.array([[2.0, 9.0], [3.0, 9.0], [9.0, 2.0]])
    columns = {"p": cost[:, 0], "q": cost[:, 1]}
    items = [Item(1.0, 0, [1, 2])]
    workflow = Workflow.from_items("w", list("xyz"), [np.nan] * 3, items, columns)
    platform = Platform.build([Processor("p"), Processor("q")], Link(1.0))
    policy, planner = registry.strategy(spec)
    estimates = Estimates.declared(workflow, platform)
    return Coordinator(workflow, platform, estimates, policy), planner


def begun(spec: str = "slack") -> tuple[Coordinator, Any]:
    """The same, following its first plan: x runs."""
    coordinator, planner = small(spec)
    commands = coordinator.begin()
    assert isinstance(commands[0], Replan)
    answer = NewPlan(0.0, commands[0].version, planner.plan(coordinator.situation()))
    assert coordinator.handle(answer) == [StartTask(0, 0, 0, 0.0)]
    return coordinator, planner


ILLEGAL = [
    TaskFinished(2, 3.0),  # no such attempt
    TaskFinished(0, 3.0),  # over already
    TaskFinished(1, 1.5),  # runs, but that was before
    TaskFinished(-1, 3.0),
    TaskFailed(0, 3.0),
    TaskFailed(99, 3.0),
    ItemArrived(1, 3.0),
    ItemArrived(-1, 3.0),
    ProcessorJoined(0, 3.0),
    ProcessorJoined(2, 3.0),
    ProcessorGone(-1, 3.0),
    ProcessorGone(2, 3.0),
    SpeedChanged(0, 3.0, 1.1),
    SpeedChanged(0, 3.0, -0.1),
    SpeedChanged(0, 3.0, np.nan),
    SpeedChanged(2, 3.0, 0.5),
    LinkChanged(4, 3.0, 0.5),
    LinkChanged(1, 3.0, np.inf),
    LinkChanged(1, 3.0, -1.0),
    ItemLost(2, 3.0),  # there is only one item on two hosts
    ProcessorGone(1, 1.9),  # before the last event
    ProcessorGone(1, np.nan),
    ProcessorGone(1, np.inf),
]


@pytest.mark.parametrize("event", ILLEGAL, ids=str)
def test_illegal_events_change_nothing(event: Event) -> None:
    coordinator, _ = begun()
    commands = coordinator.handle(TaskFinished(0, 2.0))
    assert [type(c) for c in commands] == [SendItem, StartTask]
    before, version, plan = image(coordinator.state.arrays), coordinator.version, coordinator.plan
    with pytest.raises(IllegalEventError):
        coordinator.handle(event)
    assert image(coordinator.state.arrays) == before
    assert (coordinator.version, coordinator.plan) == (version, plan)
    check_state(coordinator.state)


def test_commands() -> None:
    coordinator, _ = begun("static")
    sent, started = coordinator.handle(TaskFinished(0, 2.0))
    assert sent == SendItem(0, 0, 0, 1, 2.0)
    assert started == StartTask(1, 1, 0, 2.0)
    commands = coordinator.handle(ProcessorGone(1, 2.5))
    assert commands[0] == DropTransfer(0, 2.5)
    assert isinstance(commands[1], Replan)


def asked() -> tuple[Coordinator, Any, Replan]:
    """A coordinator that waits for a plan, since q is gone and z has no processor."""
    coordinator, planner = begun()
    commands = coordinator.handle(ProcessorGone(1, 1.0))
    assert isinstance(commands[-1], Replan)
    return coordinator, planner, commands[-1]


def test_a_stale_plan_is_dropped() -> None:
    coordinator, planner, replan = asked()
    plan, before = coordinator.plan, image(coordinator.state.arrays)
    schedule = planner.plan(coordinator.situation())
    for version in (replan.version - 1, replan.version + 1):
        assert coordinator.handle(NewPlan(1.0, version, schedule)) == []
        assert image(coordinator.state.arrays) == before
        assert coordinator.plan is plan
    coordinator.handle(NewPlan(1.0, replan.version, schedule))
    assert coordinator.plan is schedule
    assert [e.forced for e in coordinator.evaluations] == [True, True]


def test_a_plan_nobody_asked_for_is_dropped() -> None:
    coordinator, planner = begun()
    plan, before = coordinator.plan, image(coordinator.state.arrays)
    schedule = planner.plan(coordinator.situation())
    assert coordinator.handle(NewPlan(0.0, coordinator.version, schedule)) == []
    assert coordinator.plan is plan
    assert image(coordinator.state.arrays) == before


def test_an_event_before_the_answer() -> None:
    """A real planner takes its time: what happens meanwhile does not lose the question."""
    coordinator, planner, replan = asked()
    coordinator.handle(TaskFinished(0, 2.0))
    schedule = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(2.0, replan.version, schedule))
    assert coordinator.plan is schedule
    check_state(coordinator.state)


def test_a_loss_before_the_answer() -> None:
    """The plan that comes is for machines that are not there any more: it must not be final."""
    coordinator, planner, replan = asked()
    late = planner.plan(coordinator.situation())  # everything on p
    coordinator.handle(ProcessorJoined(1, 1.2))
    coordinator.handle(ProcessorGone(0, 1.5))
    finish_all(coordinator, planner, coordinator.handle(NewPlan(1.6, replan.version, late)))


def test_every_event_that_is_heard_has_a_number_of_its_own() -> None:
    assert set(NUMBERS) == set(KINDS.values()) - {
        Beat,
        MachineMessage,
    }  # which no coordinator hears
    assert len(set(NUMBERS.values())) == len(NUMBERS)
