"""Departures are announced, and said again at their time, never before it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

import pytest

from weft.executors.departures import Departures
from weft.model.events import Event, EventKind

LIMIT = 20.0


@pytest.fixture
def heard() -> queue.SimpleQueue[Event]:
    return queue.SimpleQueue()


@pytest.fixture
def departures(heard: queue.SimpleQueue[Event]) -> Iterator[Departures]:
    departures = Departures(time.monotonic, heard.put)
    yield departures
    departures.close()


def test_at_once_is_said_once(departures: Departures, heard: queue.SimpleQueue[Event]) -> None:
    departures.announce(3, None)
    event = heard.get(timeout=LIMIT)
    assert (event.kind, event.which) == (EventKind.LEAVING, 3)
    assert event.value <= time.monotonic()
    departures.announce(3, 0.0)  # a time that has come long ago
    assert heard.get(timeout=LIMIT).value == 0.0
    assert heard.empty()


def test_a_clock_that_lags(heard: queue.SimpleQueue[Event]) -> None:
    """The timer rings before the clock has come to the time: nothing is said too early."""
    begin = time.monotonic()

    def clock() -> float:
        return (time.monotonic() - begin) / 3

    departures = Departures(clock, heard.put)
    departures.announce(0, 0.05)
    heard.get(timeout=LIMIT)
    assert heard.get(timeout=LIMIT).value == 0.05 <= clock()
    departures.close()


def test_another_time_takes_the_place_of_the_first(
    departures: Departures, heard: queue.SimpleQueue[Event]
) -> None:
    soon, later = time.monotonic() + 0.02, time.monotonic() + 0.1
    departures.announce(0, soon)
    departures.announce(0, later)
    assert [heard.get(timeout=LIMIT).value for _ in range(3)] == [soon, later, later]


def test_closed(departures: Departures, heard: queue.SimpleQueue[Event]) -> None:
    for processor in range(3):
        departures.announce(processor, time.monotonic() + 600)
    departures.close()
    departures.close()
    assert not [t for t in threading.enumerate() if t.name == "weft-leaving"]
    departures.announce(0, None)
    assert [heard.get(timeout=LIMIT).which for _ in range(3)] == [0, 1, 2]
    assert heard.empty()
