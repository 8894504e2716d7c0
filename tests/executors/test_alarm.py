"""An alarm rings once, never early, and after what has happened before."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from weft.executors.alarm import OVERDUE, Alarm
from weft.model.events import EventKind


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nothing_was_asked_for() -> None:
    alarm = Alarm(Clock())
    assert alarm.rung(is_quiet=True) is None
    assert alarm.wait(0.5) == 0.5


def test_what_has_happened_is_heard_first_but_not_for_ever() -> None:
    clock = Clock()
    alarm = Alarm(clock)
    alarm.set(1.0)
    clock.now = 1.0
    assert alarm.rung(is_quiet=False) is None
    assert alarm.wait(0.5) == 0.0
    clock.now = 1.0 + OVERDUE
    assert alarm.rung(is_quiet=False) is not None


@given(st.lists(st.tuples(st.floats(0, 2), st.none() | st.floats(0, 10)), max_size=30))
def test_once_and_never_early(steps: list[tuple[float, float | None]]) -> None:
    clock = Clock()
    alarm, asked = Alarm(clock), math.inf
    for passed, at in steps:
        clock.now += passed
        if at is not None:
            alarm.set(at)
            asked = at
        assert alarm.wait(0.5) == min(0.5, max(0.0, asked - clock.now))
        event = alarm.rung(is_quiet=True)
        assert (event is not None) == (clock.now >= asked)
        if event is not None:
            assert event.kind == EventKind.WAKE
            asked = math.inf
