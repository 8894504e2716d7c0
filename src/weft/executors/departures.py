"""Processors that are to go: it is announced to the run, and said again when the time has come."""

from __future__ import annotations

import threading
from collections.abc import Callable

from weft.model.events import Event, EventKind


class Departures:
    """Announces departures by LEAVING; may be called from any thread."""

    def __init__(self, clock: Callable[[], float], post: Callable[[Event], None]) -> None:
        self._clock, self._post = clock, post
        self._lock = threading.Lock()
        self._timers: dict[int, threading.Timer] = {}
        self._closed = False

    @property
    def pending(self) -> bool:
        """Whether something will be said."""
        return bool(self._timers)

    def announce(self, processor: int, at: float | None) -> None:
        """It goes at this time, or now; what was announced before is off."""
        now = self._clock()
        with self._lock:
            if self._closed:
                return
            self._cancel(processor)
            self._post(Event(EventKind.LEAVING, processor, 0.0, now if at is None else at))
            if at is not None and at > now:
                self._wait(processor, at)

    def forget(self, processor: int) -> None:
        """It is gone, or stays: there is nothing more to say."""
        with self._lock:
            self._cancel(processor)

    def close(self) -> None:
        """Say nothing more."""
        with self._lock:
            self._closed = True
            timers = list(self._timers.values())
            self._timers.clear()
        for timer in timers:
            timer.cancel()
            timer.join()

    def _cancel(self, processor: int) -> None:
        if (timer := self._timers.pop(processor, None)) is not None:
            timer.cancel()

    def _wait(self, processor: int, at: float) -> None:
        wait = min(max(0.0, at - self._clock()), threading.TIMEOUT_MAX)
        timer = threading.Timer(wait, self._come, [processor, at])
        timer.name, timer.daemon = "weft-leaving", True
        self._timers[processor] = timer
        timer.start()

    def _come(self, processor: int, at: float) -> None:
        """The time has come: what is still to run there must run elsewhere."""
        with self._lock:
            if self._closed or self._timers.get(processor) is not threading.current_thread():
                return
            if self._clock() < at:  # a timer may be early, but the event must not
                self._wait(processor, at)
            else:  # first said, then no more pending: who sees that finds the event
                self._post(Event(EventKind.LEAVING, processor, 0.0, at))
                del self._timers[processor]
