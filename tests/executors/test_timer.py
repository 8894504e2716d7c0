"""The timer tells once, never early, and after what has happened before."""

from __future__ import annotations

import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.executors.listening import OVERDUE, Timer
from foreplan.model.events import Beat, Event, ProcessorLeaving, TasksOverdue, Woken
from model.told import what, whom


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def heard() -> list[Event]:
    return []


@pytest.fixture
def timer(clock: Clock, heard: list[Event]) -> Timer:
    return Timer(clock, heard.append)


def test_nothing_was_asked_for(timer: Timer) -> None:
    assert timer.take_due(is_quiet=True) is None
    assert timer.wait(0.5) == 0.5


def test_what_has_happened_is_heard_first_but_not_for_ever(timer: Timer, clock: Clock) -> None:
    timer.wake_at(1.0)
    clock.now = 1.0
    assert timer.take_due(is_quiet=False) is None
    assert timer.wait(0.5) == 0.0
    clock.now = 1.0 + OVERDUE
    assert timer.take_due(is_quiet=False) is not None


@given(st.lists(st.tuples(st.floats(0, 2), st.none() | st.floats(0, 10)), max_size=30))
def test_once_and_never_early(steps: list[tuple[float, float | None]]) -> None:
    clock = Clock()
    timer, asked = Timer(clock, print), math.inf
    for passed, at in steps:
        clock.now += passed
        if at is not None:
            timer.wake_at(at)
            asked = at
        assert timer.wait(0.5) == min(0.5, max(0.0, asked - clock.now))
        event = timer.take_due(is_quiet=True)
        assert (event is not None) == (clock.now >= asked)
        if event is not None:
            assert isinstance(event, Woken)
            asked = math.inf


def test_a_departure_at_once_is_told_once(timer: Timer, clock: Clock, heard: list[Event]) -> None:
    clock.now = 5.0
    timer.announce(3, None)
    timer.announce(3, 0.0)  # a time that has come long ago
    assert [(type(e), whom(e), what(e)) for e in heard] == [
        (ProcessorLeaving, 3, 5.0),
        (ProcessorLeaving, 3, 0.0),
    ]
    assert not timer.pending
    assert timer.take_due(is_quiet=True) is None


def test_a_departure_is_told_again_at_its_time(timer: Timer, clock: Clock) -> None:
    timer.announce(0, 1.0)
    timer.announce(0, 2.0)  # which takes the place of the first
    assert timer.wait(9.0) == 2.0
    clock.now = 1.5
    assert timer.take_due(is_quiet=True) is None
    assert timer.pending
    clock.now = 2.0
    due = timer.take_due(is_quiet=True)
    assert due is not None
    assert (type(due), whom(due), what(due)) == (ProcessorLeaving, 0, 2.0)
    assert not timer.pending
    assert timer.take_due(is_quiet=True) is None


def test_departures_and_an_alarm(timer: Timer, clock: Clock) -> None:
    timer.wake_at(3.0)
    timer.announce(1, 2.0)
    timer.announce(0, 1.0)
    told = []
    while timer.wait(9.0) < 9.0:
        clock.now += timer.wait(9.0)
        due = timer.take_due(is_quiet=True)
        assert due is not None
        told.append((clock.now, type(due), whom(due)))
    leaving = ProcessorLeaving
    assert told == [(1.0, leaving, 0), (2.0, leaving, 1), (3.0, Woken, 0)]


def test_alarms_of_several_kinds(timer: Timer, clock: Clock) -> None:
    timer.wake_at(2.0, Beat)
    timer.wake_at(1.0)
    timer.wake_at(3.0)  # which takes the place of that, and of no other
    timer.wake_at(2.5, TasksOverdue)
    timer.wake_at(math.inf, TasksOverdue)  # it is off
    told = []
    while timer.wait(9.0) < 9.0:
        clock.now += timer.wait(9.0)
        told.append((clock.now, timer.take_due(is_quiet=True)))
    assert told == [(2.0, Beat(0.0)), (3.0, Woken(0.0))]


def test_announced_by_many_threads(timer: Timer, clock: Clock, heard: list[Event]) -> None:
    """While the one that listens looks."""

    def announce(first: int) -> None:
        for processor in range(first, first + 200):
            timer.announce(processor, 1.0)

    threads = [threading.Thread(target=announce, args=(200 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert timer.take_due(is_quiet=True) is None
        timer.wait(1.0)
    clock.now = 1.0
    told = {whom(due) for _ in range(800) if (due := timer.take_due(is_quiet=True)) is not None}
    assert told == set(range(800))
    assert len(heard) == 800
