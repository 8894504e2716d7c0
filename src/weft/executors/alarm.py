"""The time at which a run wants to be woken."""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.model.events import Event, EventKind

OVERDUE = 0.05  # seconds; what has happened before is heard first, but not for ever


class Alarm:
    """It has no thread: who waits for events asks it how long, and whether the time has come."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._at = clock, math.inf

    def set(self, at: float) -> None:
        """Wake at this time of the run's clock; what was asked for before is off."""
        self._at = at

    def wait(self, limit: float) -> float:
        """How many seconds may be waited, at most this many."""
        if self._at == math.inf:
            return limit
        return min(limit, max(0.0, self._at - self._clock()))

    def rung(self, is_quiet: bool) -> Event | None:
        """The event, once, if the time has come; if it is not quiet, a little later."""
        if self._at == math.inf or self._clock() < self._at + (0.0 if is_quiet else OVERDUE):
            return None
        self._at = math.inf
        return Event(EventKind.WAKE, 0, 0.0)
