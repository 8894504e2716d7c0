"""How often a task may fail or be lost before it is given up."""

from __future__ import annotations

from collections import Counter

from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model import Tolerance, Workflow
from weft.model.events import MACHINE_LOST, OWN_FAULT, Event, EventKind


class Patience:
    """Counts failures and losses by task, by what the run puts up with."""

    def __init__(self, tolerance: Tolerance, workflow: Workflow) -> None:
        self.tolerance, self.workflow = tolerance, workflow
        self.failures: Counter[int] = Counter()  # by task, its own fault
        self.losses: Counter[int] = Counter()  # by task, of the processor under it

    def judged(self, event: Event, board: Board) -> float:
        """The event's value; a failure or loss too many is for good, and may hold the run back."""
        match event.kind:
            case EventKind.PAUSED:
                self.failures.clear()
                self.losses.clear()
                return event.value
            case EventKind.TASK_FAILED if event.value in (OWN_FAULT, MACHINE_LOST):
                attempt, own = event.which, event.value == OWN_FAULT
            case EventKind.GONE if board.running[event.which] >= 0:
                attempt, own = int(board.running[event.which]), False
            case _:
                return event.value
        task = int(board.attempt_task[attempt])
        count, most = self.losses, self.tolerance.losses
        if own:
            given = self.workflow.spec(task).retries
            count, most = self.failures, self.tolerance.retries if given is None else given
        count[task] += 1
        if count[task] <= most:
            return event.value
        if not self.tolerance.keep_going:
            board.counts[b.HELD_BACK] = 1
        return b.FOR_GOOD
