"""What machines measure, as the coordinator is to reckon with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.coordinator import Coordinator
from weft.executors.cpu_share import INTERVAL, differs
from weft.model.events import Event, EventKind

_MOST_MENDED = 2.0
_LEAST_BYTES = 1e6  # a transfer of less tells more of the startup than of the bandwidth
_OFF = 1.25  # a link's speed counts as another if it is off by this factor


def as_measured(event: Event, coordinator: Coordinator) -> Event | None:
    """What is to be told of a processor's availability; None if that would be no news."""
    board, p, detail = coordinator.board, event.which, event.detail or {}
    if "by" not in detail:
        return event
    attempt = detail.get("attempt")
    if p >= board.n_processors or (attempt is not None and board.running[p] != attempt):
        return None  # it was measured of an attempt that is over
    value = event.value
    if "rate" in detail and value > 0:
        value = _by_progress(coordinator, event)
    if not differs(value, float(board.availability[p])):
        return None
    return replace(event, value=value)


def _by_progress(coordinator: Coordinator, event: Event) -> float:
    """The availability by which the rest of an attempt takes as long as its progress says.

    With a share f done of an estimate E, and a rate of r per second, the rest takes (1 - f) / r.
    The coordinator has reckoned with what it knew, so it takes w for done, which cannot be changed;
    it expects the rest to take (E - w) / availability. Both are the same at r (E - w) / (1 - f),
    which is r E, the speed of the machine measured by the estimate, where w is right. But what
    comes next on the processor is reckoned with the same number, so it is that speed within a
    factor of two. That a task is faster than expected cannot be said: availability ends at 1.
    """
    board, p, detail = coordinator.board, event.which, event.detail or {}
    attempt, done, rate = int(detail["attempt"]), detail["progress"], detail["rate"]
    expected = float(coordinator.estimates.cost[board.attempt_task[attempt], p])
    now = float(board.availability[p])
    if done >= 1 or expected <= 0:
        return now
    believed = float(board.worked[attempt]) + (event.time - float(board.since[attempt])) * now
    mend = (expected - believed) / ((1 - done) * expected)
    mend = min(_MOST_MENDED, max(1 / _MOST_MENDED, mend))
    return float(min(1.0, max(0.0, rate * expected * mend)))


class Links:
    """How fast links are, by what has arrived over them."""

    def __init__(self) -> None:
        self._told: dict[int, float] = {}  # by link, when

    def arrived(
        self, transfer: int, detail: Mapping[str, Any], coordinator: Coordinator, now: float
    ) -> Event | None:
        """What an arrival tells of a link's bandwidth, if that is news."""
        board, platform = coordinator.board, coordinator.platform
        source, target = int(board.transfer_from[transfer]), int(board.transfer_to[transfer])
        link, seconds = source * board.n_hosts + target, detail.get("seconds")
        declared = float(detail.get("size") or 0.0) * float(platform.time_per_unit[source, target])
        if not isinstance(seconds, int | float) or detail["size"] < _LEAST_BYTES or declared <= 0:
            return None
        if now < self._told.get(link, -INTERVAL) + INTERVAL:
            return None
        # by the data alone, if they took longer than it takes to begin
        taken = float(seconds) - float(platform.startup[source, target])
        taken = taken if taken > 0 else float(seconds)
        factor, known = declared / max(taken, 1e-9), float(board.bandwidth[link])
        if known > 0 and 1 / _OFF <= factor / known <= _OFF:
            return None
        self._told[link] = now
        return Event(EventKind.BANDWIDTH, link, now, factor, {"by": "transfer"})
