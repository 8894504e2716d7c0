"""Runs that are held back: what runs may end, and all goes on afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from engine.endings import finish_all
from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import answered
from foreplan.model import Estimates, Item, Link, Platform, Processor, Workflow
from foreplan.model.events import (
    CancelTask,
    Command,
    Event,
    ItemArrived,
    NewPlan,
    Paused,
    SpeedChanged,
    StartTask,
    TaskFinished,
    Woken,
)

SPECS = ["static", "fifo", "lifo", "greedy", "ico", "min-min", "gtp[period=10]", "gtp/c[period=10]"]


class Held:
    """x on p0 takes 5, then y on p1, where it is much faster, and z on p0; links take a while."""

    def __init__(self, spec: str) -> None:
        cost = np.array([[5.0, 99.0], [90.0, 20.0], [30.0, 95.0]])
        columns = {f"p{k}": cost[:, k] for k in range(2)}
        items = [Item(4.0, 0, [1]), Item(0.0, 0, [2])]
        workflow = Workflow.from_items("w", list("xyz"), [np.nan] * 3, items, columns)
        platform = Platform.build([Processor("p0"), Processor("p1")], Link(1.0))
        policy, self.planner = registry.strategy(spec)
        estimates = Estimates.declared(workflow, platform)
        self.coordinator = Coordinator(workflow, platform, estimates, policy)
        self.first = self.settled(self.coordinator.begin())

    def settled(self, commands: list[Command]) -> list[Command]:
        c = self.coordinator
        while c.asked is not None:
            assert self.planner is not None
            plan = answered(self.planner, c, c.asked)
            commands = [*commands, *c.handle(NewPlan(c.now, c.version, plan))]
        c.check_state()
        return commands

    def hear(self, kind: type[Event], which: int, time: float, value: float = 0.0) -> list[Command]:
        return self.settled(self.coordinator.handle(kind.of(which, time, value)))


@pytest.mark.parametrize("spec", SPECS)
def test_what_arrives_meanwhile_is_used_afterwards(spec: str) -> None:
    """y's input comes while nothing may start; then y starts."""
    held = Held(spec)
    held.hear(TaskFinished, 0, 5.0)
    held.hear(Paused, 0, 6.0, 1.0)
    came = held.hear(ItemArrived, 0, 9.0)
    assert not [c for c in came if isinstance(c, StartTask)]
    after = held.hear(Paused, 0, 50.0, 0.0)
    assert [(c.task, c.processor) for c in after if isinstance(c, StartTask)] == [(1, 1)]
    finish_all(held.coordinator, held.planner, [])


@pytest.mark.parametrize("spec", ["gtp[period=10]", "gtp/c[period=10]"])
def test_a_rescheduling_point_stops_nothing_that_is_to_end(spec: str) -> None:
    """z runs on p0, which becomes slow: it would be moved, but then could not be begun again."""
    held = Held(spec)
    held.hear(TaskFinished, 0, 5.0)
    held.hear(Paused, 0, 6.0, 1.0)
    held.hear(SpeedChanged, 0, 7.0, 0.01)
    point = float(held.coordinator.state.arrays.wake[0])
    commands = held.hear(Woken, 0, point)
    assert not [c for c in commands if isinstance(c, CancelTask)]
    assert not held.coordinator.halted
    # but afterwards it is moved
    held.hear(Paused, 0, point + 1.0, 0.0)
    commands = held.hear(Woken, 0, float(held.coordinator.state.arrays.wake[0]))
    assert [c for c in commands if isinstance(c, CancelTask)]
    finish_all(held.coordinator, held.planner, [])
