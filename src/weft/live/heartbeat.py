"""The journal's pulse: while anything runs it is told the time, so that it knows how long it ran.

A run whose driver is killed can say nothing any more. What it used until then is counted from the
last beat; what is known of later, from the machines, is reckoned by the wall clock of that beat.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.kernels.board import Board
from weft.model.events import Event, EventKind

LEAST, SHARE, MOST = 1.0, 0.02, 60.0  # seconds between beats: a share of the time so far
WHY = {"why": "beat"}
UNTIL = "until"  # in the detail of an event: the moment, by the wall clock, until which it ran


class Heartbeat:
    """Posts an event now and then while something runs; the driving thread notes it."""

    def __init__(
        self,
        post: Callable[[Event], None],
        clock: Callable[[], float],
        something_runs: Callable[[], bool],
    ) -> None:
        self._post, self._clock, self._something_runs = post, clock, something_runs
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Look from now on whether anything runs: now and then, not at every event."""
        self._thread = threading.Thread(target=self._beat, name="weft-heartbeat", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Post nothing more."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
        """The thread."""
        while not self._closed.wait(min(MOST, max(LEAST, SHARE * self._clock()))):
            if self._something_runs():
                self._post(Event(EventKind.AVAILABILITY, 0, 0.0, 1.0, WHY))


def moment(clock: Callable[[], float]) -> dict[str, float]:
    """The run's time and the wall clock's, as the journal has them."""
    return {"time": clock(), "wall": time.time()}


def last_moment(entries: list[dict[str, Any]]) -> tuple[float, float] | None:
    """The last time at which both clocks were noted."""
    for entry in reversed(entries):
        if "wall" in entry:
            return float(entry["time"]), float(entry["wall"])
    return None


def at_their_times(
    events: list[Event], board: Board, now: float, known: tuple[float, float] | None
) -> list[Event]:
    """What happened while nobody looked, each end of an attempt when it came, in order."""

    def when(event: Event) -> float:
        detail = event.detail or {}
        if event.kind == EventKind.TASK_FINISHED:
            return float(board.attempt_start[event.which]) + float(detail.get("seconds") or 0.0)
        if known is None or UNTIL not in detail:
            return now
        return known[0] + float(detail[UNTIL]) - known[1]

    ends = (EventKind.TASK_FINISHED, EventKind.TASK_FAILED)
    ended = iter(sorted((e for e in events if e.kind in ends), key=when))
    timed = list[Event]()
    for event in events:
        told = next(ended) if event.kind in ends else event
        now = max(now, when(told))
        timed.append(replace(told, time=now))
    return timed
