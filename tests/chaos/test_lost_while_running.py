"""An input vanishes while a task reads it, and then the task fails: its producer runs again."""

from __future__ import annotations

import pytest

import weft
from weft import registry
from weft.coordinator import Coordinator
from weft.kernels import board as b
from weft.model import Estimates, Platform
from weft.model.events import NO_FAULT, Command, Event, EventKind, SendItem, StartTask
from weft.model.platform import Processor
from weft.wiring import Progress

CONTENT = {
    "name": "pair",
    "tasks": {"make": {"cost": 1}, "other": {"cost": 5}, "read": {"cost": 1}},
    "edges": [["make", "read", 1.0], ["other", "read", 1.0]],
}


class Told:
    """A coordinator that is told of one thing after another; transfers arrive at once."""

    def __init__(self, strategy: str) -> None:
        self.workflow = weft.load(CONTENT)
        platform = Platform.build([Processor("p", host="h"), Processor("q", host="i")])
        policy, planner = registry.strategy(strategy)
        estimates = Estimates.declared(self.workflow, platform)
        self.coordinator = Coordinator(self.workflow, platform, estimates, policy)
        self.progress = Progress(self.coordinator, planner, events=[])
        self.started: dict[str, StartTask] = {}
        self.take(self.progress.settled(self.coordinator.begin()))

    def take(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, StartTask):
                self.started[self.workflow.task_names[command.task]] = command
            elif isinstance(command, SendItem):
                self.hear(EventKind.ITEM_ARRIVED, command.transfer)

    def hear(self, kind: EventKind, which: int, value: float = 0.0) -> None:
        time = self.coordinator.now + 1
        self.take(self.progress.hear(Event(kind, which, time, value)))


@pytest.mark.parametrize("strategy", ["static", "slack", "fifo"])
def test_the_producer_runs_again(strategy: str) -> None:
    told = Told(strategy)
    told.hear(EventKind.TASK_FINISHED, told.started["make"].attempt)
    told.hear(EventKind.TASK_FINISHED, told.started["other"].attempt)
    reading, board = told.started["read"], told.coordinator.board
    told.hear(EventKind.GONE, 1 - reading.processor)
    for place in (board.held == b.HERE).nonzero()[0].tolist():
        item, host = divmod(place, board.n_hosts)
        told.hear(EventKind.ITEM_LOST, host * len(board.item_producer) + item)
    told.hear(EventKind.TASK_FAILED, reading.attempt, NO_FAULT)
    told.coordinator.check_state()
    for _ in range(3):
        newest = max(told.started.values(), key=lambda command: command.attempt)
        assert newest.attempt > reading.attempt, "nothing is run any more"
        told.hear(EventKind.TASK_FINISHED, newest.attempt)
    assert told.coordinator.done
