"""Dispatch delays: what a real run needs to have a task done, beyond the task's own time."""

from __future__ import annotations

import math
from heapq import heappop, heappush

from foreplan.contracts import Watch
from foreplan.engine.check_state import BrokenStateError
from foreplan.engine.state import RunState
from foreplan.model import Schedule, Situation
from foreplan.model.events import Event, TaskFinished
from foreplan.scheduling.slack import steps_before

MOST = 0.9  # so large a share of the delays is no longer than the one that is reckoned with


class Delays:
    """As measured in this run, by what machines tell of tasks that have finished.

    From the start of an attempt to the moment at which its end is heard, less the seconds for which
    the task ran: messages, processes, the journal. Plans know nothing of it, so a start is late
    only beyond one delay of its own, and one for each task that must end before it. No simulated
    machine tells how long a task ran, so there are no delays in a simulation.
    """

    def __init__(self) -> None:
        self._short: list[float] = []  # a heap of most of them, negated: the longest first
        self._long: list[float] = []  # a heap of the others, the shortest first
        self._made_for: tuple[Schedule, Situation] | None = None
        self._has_steps = False

    @property
    def usual(self) -> float:
        """The delay that most are no longer than; 0 as long as none is measured."""
        return -self._short[0] if self._short else 0.0

    def measure(self, event: Event, state: RunState) -> None:
        """Note the delay of a task that has finished, if that is told."""
        seconds = (event.detail or {}).get("seconds")
        if not isinstance(event, TaskFinished) or not isinstance(seconds, int | float):
            return
        delay = event.time - float(state.arrays.attempt_start[event.attempt]) - seconds
        if math.isfinite(delay):
            self._add(max(0.0, delay))
            self._set(state)

    def watch(self, watch: Watch, plan: Schedule, situation: Situation, state: RunState) -> None:
        """Reckon from this plan, which was made for this situation."""
        state.arrays.latest[:] = watch.latest_start
        state.arrays.steps[:] = 0.0
        self._made_for, self._has_steps = (plan, situation), False
        self._set(state)

    def check(self, state: RunState) -> None:
        """Raise BrokenStateError if the state has not the delay that most do not exceed."""
        delays = sorted([-delay for delay in self._short] + self._long)
        usual = delays[_most_of(len(delays)) - 1] if delays else 0.0
        if self._made_for is not None and state.arrays.delay[0] != usual:
            raise BrokenStateError(f"the usual delay is {usual:g}, not {state.arrays.delay[0]:g}")

    def _add(self, delay: float) -> None:
        """Keep the two heaps such that the usual delay stands at the top of the first."""
        if self._short and delay < self.usual:
            heappush(self._short, -delay)
        else:
            heappush(self._long, delay)
        most = _most_of(len(self._short) + len(self._long))
        while len(self._short) < most:
            heappush(self._short, -heappop(self._long))
        while len(self._short) > most:
            heappush(self._long, -heappop(self._short))

    def _set(self, state: RunState) -> None:
        """Have the rules reckon with the usual delay; the steps of a plan are counted once."""
        if self._made_for is None:
            return
        if self.usual > 0 and not self._has_steps:
            steps = steps_before(*self._made_for) + 1
            state.arrays.steps[: len(steps)] = steps  # tasks may have been added since
            self._has_steps = True
        state.arrays.delay[0] = self.usual


def _most_of(n: int) -> int:
    """How many of so many delays the usual one is no shorter than."""
    return math.ceil(MOST * n)
