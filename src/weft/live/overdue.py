"""Tasks that run on and on: the money is looked at before they end, when it may not do any more."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from weft.coordinator import Coordinator
from weft.coordinator.purse import NEVER_MIND
from weft.model.events import Event, EventKind

STEP = 0.1  # seconds between two looks, at least
WHERE_NOT_ADDED = 1.0  # the same where costs do not add up, and nobody can say when it matters
WHY = {"why": "overdue"}


class Overdue:
    """Has the coordinator look at its plan once overdue tasks may have used up what is left.

    It is told by an event about the speed of such a task's processor, which is what it was: the
    journal has it, and a replay looks at the same moments.
    """

    def __init__(
        self, coordinator: Coordinator, post: Callable[[Event], None], clock: Callable[[], float]
    ) -> None:
        self._coordinator, self._post, self._clock = coordinator, post, clock
        self._changed = threading.Condition()
        self._due, self._which = math.inf, -1
        self._looked = 0.0  # the run's time of the last such event
        self._closed = False
        self._thread: threading.Thread | None = None

    def watch(self) -> None:
        """Work out when to look; called by the thread that drives, after everything it heard."""
        if not self._coordinator.purse.kept:
            return
        due, which = self._when()
        with self._changed:
            sooner, self._due, self._which = due < self._due, due, which
            if sooner:
                self._changed.notify()
        if self._thread is None and due < math.inf:
            self._thread = threading.Thread(target=self._wait, name="weft-overdue", daemon=True)
            self._thread.start()

    def told(self, event: Event) -> Event | None:
        """Such an event as it is when it is heard; None if the task has ended meanwhile."""
        board, p = self._coordinator.board, event.which
        if board.running[p] < 0:
            return None
        self._looked = event.time
        return replace(event, value=float(board.availability[p]))

    def close(self) -> None:
        """Post nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _when(self) -> tuple[float, int]:
        """When overdue tasks will have cost more than is left for that, and where one of them runs.

        What was overdue at the last look has been reckoned with until then.
        """
        board = self._coordinator.board
        left = float(board.allowance[0])
        busy = np.flatnonzero(board.running >= 0)
        if left >= NEVER_MIND or not len(busy) or self._coordinator.purse.holds:
            return math.inf, -1
        attempts = board.running[busy]
        estimate = board.estimate[board.attempt_task[attempts] * board.n_processors + busy]
        speed = np.maximum(board.availability[busy], 1e-9)
        rest = np.maximum(0.0, estimate - board.worked[attempts])
        ends = np.maximum(board.since[attempts] + rest / speed, self._looked)
        order = np.argsort(ends, kind="stable")
        first = int(busy[order[0]])
        if left < 0:
            return max(float(ends[order[0]]), self._looked + WHERE_NOT_ADDED), first
        rates = np.cumsum(board.price[busy[order]])
        spent = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(ends[order]))])
        k = int(np.searchsorted(spent, left, side="right")) - 1
        if rates[k] <= 0:  # what is overdue by then costs nothing
            return math.inf, -1
        when = float(ends[order[k]]) + (left - float(spent[k])) / float(rates[k])
        return max(when, self._looked + STEP), first

    def _wait(self) -> None:
        """The thread: it sleeps until the time has come, unless that changes."""
        with self._changed:
            while not self._closed:
                left = self._due - self._clock()
                if left > 0:
                    self._changed.wait(None if left == math.inf else left)
                    continue
                which, self._due = self._which, math.inf  # until it is worked out anew
                self._post(Event(EventKind.AVAILABILITY, which, 0.0, 1.0, WHY))
