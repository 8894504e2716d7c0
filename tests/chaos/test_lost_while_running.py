"""An input vanishes while a task reads it, and then the task fails: its producer runs again."""

from __future__ import annotations

import pytest

import foreplan
from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.kernels import arrays as a
from foreplan.model import Estimates, Platform
from foreplan.model.events import (
    NO_FAULT,
    Command,
    Event,
    ItemArrived,
    ItemLost,
    ProcessorGone,
    SendItem,
    StartTask,
    TaskFailed,
    TaskFinished,
)
from foreplan.model.platform import Processor

CONTENT = {
    "name": "pair",
    "tasks": {"make": {"cost": 1}, "other": {"cost": 5}, "read": {"cost": 1}},
    "edges": [["make", "read", 1.0], ["other", "read", 1.0]],
}


class Told:
    """A coordinator that is told of one thing after another; transfers arrive at once."""

    def __init__(self, strategy: str) -> None:
        self.workflow = foreplan.load(CONTENT)
        platform = Platform.build([Processor("p", host="h"), Processor("q", host="i")])
        policy, planner = registry.strategy(strategy)
        estimates = Estimates.declared(self.workflow, platform)
        self.coordinator = Coordinator(self.workflow, platform, estimates, policy)
        self.driver = Driver(self.coordinator, planner, events=[])
        self.started: dict[str, StartTask] = {}
        self.take(self.driver.begin())

    def take(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, StartTask):
                self.started[self.workflow.task_names[command.task]] = command
            elif isinstance(command, SendItem):
                self.hear(ItemArrived, command.transfer)

    def hear(self, kind: type[Event], which: int, value: float = 0.0) -> None:
        time = self.coordinator.now + 1
        self.take(self.driver.hear(kind.of(which, time, value)))


@pytest.mark.parametrize("strategy", ["static", "slack", "fifo"])
def test_the_producer_runs_again(strategy: str) -> None:
    told = Told(strategy)
    told.hear(TaskFinished, told.started["make"].attempt)
    told.hear(TaskFinished, told.started["other"].attempt)
    reading, arrays = told.started["read"], told.coordinator.state.arrays
    told.hear(ProcessorGone, 1 - reading.processor)
    for place in (arrays.held == a.HERE).nonzero()[0].tolist():
        item, host = divmod(place, arrays.n_hosts)
        told.hear(ItemLost, host * len(arrays.item_producer) + item)
    told.hear(TaskFailed, reading.attempt, NO_FAULT)
    told.coordinator.check_state()
    for _ in range(3):
        newest = max(told.started.values(), key=lambda command: command.attempt)
        assert newest.attempt > reading.attempt, "nothing is run any more"
        told.hear(TaskFinished, newest.attempt)
    assert told.coordinator.done
