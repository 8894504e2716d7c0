"""Dispatch delays: what a real run needs to have a task done, beyond the task's own time."""

from __future__ import annotations

import math
from bisect import insort

import numpy as np

from weft.arrays import FloatArray
from weft.contracts import Watch
from weft.kernels.board import Board
from weft.model import Schedule, Situation
from weft.model.events import Event, EventKind
from weft.robustness import steps_before

MOST = 0.9  # so large a share of the delays is no longer than the one that is reckoned with


class Delays:
    """As measured in this run, by what machines tell of tasks that have finished.

    From the start of an attempt to the moment at which its end is heard, less the seconds for which
    the task ran: messages, processes, the journal. Plans know nothing of it, so a start is late
    only beyond one delay of its own, and one for each task that must end before it. No simulated
    machine tells how long a task ran, so there are no delays in a simulation.
    """

    def __init__(self) -> None:
        self._delays: list[float] = []  # sorted
        self._latest: FloatArray = np.empty(0)
        self._made_for: tuple[Schedule, Situation] | None = None
        self._steps: FloatArray | None = None

    @property
    def usual(self) -> float:
        """The delay that most are no longer than; 0 as long as none is measured."""
        n = len(self._delays)
        return self._delays[math.ceil(MOST * n) - 1] if n else 0.0

    @property
    def follows_a_plan(self) -> bool:
        """Whether there is a plan whose starts may be late."""
        return self._made_for is not None

    def measure(self, event: Event, board: Board) -> bool:
        """Note the delay of a task that has finished; whether that was told."""
        seconds = (event.detail or {}).get("seconds")
        if event.kind != EventKind.TASK_FINISHED or not isinstance(seconds, int | float):
            return False
        delay = event.time - float(board.attempt_start[event.which]) - seconds
        if not math.isfinite(delay):
            return False
        insort(self._delays, max(0.0, delay))
        return True

    def watch(self, watch: Watch, plan: Schedule, situation: Situation) -> None:
        """Reckon from this plan, which was made for this situation."""
        self._latest, self._made_for, self._steps = watch.latest_start, (plan, situation), None

    def latest_start(self) -> FloatArray:
        """What the policy wants to be woken for, and the delays until then."""
        if self.usual == 0 or self._made_for is None:
            return self._latest
        if self._steps is None:
            self._steps = steps_before(*self._made_for)
        return self._latest + self.usual * (self._steps + 1)
