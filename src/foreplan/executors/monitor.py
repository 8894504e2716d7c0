"""What a run is told of its processors' availability: what was measured, if it matters."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container
from typing import Any

from foreplan.executors.cpu_share import INTERVAL, differs
from foreplan.executors.progress import Report
from foreplan.model.events import Event, SpeedChanged

STALE = 5.0  # seconds; a processor that was not measured for so long is taken for available
_REST = 50.0  # times what a measurement took, before the next one
_SHORTEST = 1e-3  # seconds between two reports
_LATE = 2.0  # times the last pause between reports: a report that takes longer is overdue


class Pace:
    """How fast an attempt comes on, by the shares that it reports to be done."""

    def __init__(self, begun: float) -> None:
        self.share, self._at = 0.0, begun
        self._rate, self._step, self._gap = 0.0, 0.0, math.inf

    def take(self, report: Report, now: float) -> bool:
        """It has said so; whether that is news."""
        share, at = report[0], now - report[1]
        if share == self.share:
            return False
        if at <= self._at:  # by a clock that is off
            at = max(now, self._at + _SHORTEST)
        self._step, self._gap = max(0.0, share - self.share), at - self._at
        newest = self._step / self._gap
        self._rate = newest if self._rate == 0 else (self._rate + newest) / 2
        self.share, self._at = share, at
        return True

    @property
    def is_known(self) -> bool:
        """Whether anything was reported."""
        return self._gap < math.inf

    def is_overdue(self, now: float) -> bool:
        """Whether the next report should have come long ago."""
        return self.is_known and self.share < 1 and now > self._at + _LATE * self._gap

    def rate(self, now: float) -> float:
        """The share done per second of late; less and less while a report is overdue."""
        if self.is_overdue(now):
            return min(self._rate, self._step / (now - self._at))
        return self._rate


class Monitor:
    """Posts AVAILABILITY: what was measured where an attempt runs, and what it reports.

    What to make of reported progress only the run can say, which knows the estimates: it finds
    the share done and the rate in the detail.
    """

    def __init__(self, post: Callable[[Event], None]) -> None:
        self._post = post
        self._told: dict[int, float] = {}  # by processor; NaN: only the run knows; else 1
        self._measured: dict[int, float] = {}  # by processor, when
        self._paces: dict[int, Pace] = {}  # by attempt
        self.due_at = time.monotonic() + INTERVAL  # for others to read

    def is_due(self) -> bool:
        """Whether it is time to measure."""
        return time.monotonic() >= self.due_at

    def end_look(self, begun: float, open_attempts: Container[int]) -> None:
        """All that runs was measured; what was long not is taken for available."""
        now = time.monotonic()
        self.due_at = now + max(INTERVAL, _REST * (now - begun))
        self._paces = {k: pace for k, pace in self._paces.items() if k in open_attempts}
        for processor, told in list(self._told.items()):
            measured = self._measured[processor]
            # what stood still and is over now has not stood still to the end
            if now > measured + STALE or (told == 0 and measured < begun):
                self._tell(processor, 1.0, {"by": "nothing"})
                del self._told[processor]

    def note_share(
        self, processor: int, attempt: int, begun: float, share: float, report: Report | None
    ) -> None:
        """An attempt gets this share of what it wants, and may have reported its progress."""
        now = time.monotonic()
        self._measured[processor] = now
        detail: dict[str, Any] = {"by": "share", "attempt": attempt}
        if report is not None:
            pace = self._paces.setdefault(attempt, Pace(begun))
            news = pace.take(report, now)
            if share > 0 and pace.is_known:
                if news or pace.is_overdue(now) or self._told.get(processor) == 0:
                    detail |= {"by": "progress", "progress": pace.share, "rate": pace.rate(now)}
                    self._tell(processor, share, detail)
                    self._told[processor] = math.nan
                return
        self._tell_change(processor, share, detail)

    def note_silence(self, processor: int) -> None:
        """Nothing is heard of its machine, whatever it may be doing."""
        self._measured[processor] = time.monotonic()
        self._tell_change(processor, 0.0, {"by": "silence"})

    def note_return(self, processor: int) -> None:
        """Its machine is heard of again."""
        self._tell_change(processor, 1.0, {"by": "silence"})

    def _tell_change(self, processor: int, share: float, detail: dict[str, Any]) -> None:
        if differs(share, self._told.get(processor, 1.0)):
            self._tell(processor, share, detail)

    def _tell(self, processor: int, share: float, detail: dict[str, Any]) -> None:
        self._told[processor] = share
        self._post(SpeedChanged(processor, 0.0, share, detail=detail))
