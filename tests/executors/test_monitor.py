"""What the run is told of its processors: what was measured, once, and only what matters."""

from __future__ import annotations

import pytest

from foreplan.executors import monitor as monitor_module
from foreplan.executors.cpu_share import INTERVAL, differs
from foreplan.executors.monitor import STALE, Monitor, Pace
from foreplan.model.events import Event, SpeedChanged
from model.told import what, whom


class Time:
    """Stands for the module `time`."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(monitor_module, "time", made)
    return made


def shares(events: list[Event]) -> list[tuple[int, float]]:
    assert all(isinstance(e, SpeedChanged) for e in events)
    return [(whom(e), what(e)) for e in events]


def test_what_matters() -> None:
    assert not differs(0.95, 1.0)
    assert not differs(0.6, 0.5)
    assert differs(0.7, 0.5)
    assert differs(0.0, 0.05)
    assert differs(0.05, 0.0)
    assert not differs(0.0, 0.0)
    assert differs(1.0, float("nan"))


def test_only_changes_are_told(time: Time) -> None:
    told: list[Event] = []
    monitor = Monitor(told.append)
    for share in (1.0, 0.95, 0.5, 0.45, 0.0, 0.0, 0.04, 1.0):
        monitor.note_share(3, 7, 99.0, share, None)
    assert shares(told) == [(3, 0.5), (3, 0.0), (3, 0.04), (3, 1.0)]
    assert all(e.detail == {"by": "share", "attempt": 7} for e in told)


def test_it_is_due_after_an_interval(time: Time) -> None:
    monitor = Monitor(print)
    assert not monitor.is_due()
    time.now += INTERVAL
    assert monitor.is_due()
    monitor.end_look(time.now - 0.001, ())
    assert not monitor.is_due()
    time.now += INTERVAL
    assert monitor.is_due()
    monitor.end_look(time.now - 1.0, ())  # it took a second, so it is not done again at once
    time.now += INTERVAL
    assert not monitor.is_due()


def test_what_is_not_measured_any_more_is_taken_for_available(time: Time) -> None:
    told: list[Event] = []
    monitor = Monitor(told.append)
    monitor.note_share(0, 1, 99.0, 0.5, None)
    monitor.note_share(1, 2, 99.0, 0.0, None)
    monitor.end_look(time.now, {1, 2})
    assert shares(told) == [(0, 0.5), (1, 0.0)]
    time.now += 1
    monitor.end_look(time.now, {1})  # what stood still is over
    assert shares(told[2:]) == [(1, 1.0)]
    time.now += STALE
    monitor.end_look(time.now, ())
    assert shares(told[3:]) == [(0, 1.0)]
    monitor.end_look(time.now + 100, ())
    assert len(told) == 4


def test_silence(time: Time) -> None:
    told: list[Event] = []
    monitor = Monitor(told.append)
    for _ in range(20):
        monitor.note_silence(4)
        monitor.end_look(time.now, ())
        time.now += 1
    monitor.note_return(4)
    monitor.note_return(4)
    assert shares(told) == [(4, 0.0), (4, 1.0)]


def test_a_report_comes_with_the_share_done_and_the_rate(time: Time) -> None:
    told: list[Event] = []
    monitor = Monitor(told.append)
    monitor.note_share(0, 1, 98.0, 1.0, (0.2, 0.0))  # two seconds after it began
    assert told[0].detail == {"by": "progress", "attempt": 1, "progress": 0.2, "rate": 0.1}
    time.now += 1
    monitor.note_share(0, 1, 98.0, 1.0, (0.2, 1.0))  # nothing new
    assert len(told) == 1
    monitor.note_share(0, 1, 98.0, 0.0, (0.2, 1.0))  # that it is stopped is seen at once
    assert told[1].detail == {"by": "share", "attempt": 1}
    monitor.note_share(0, 1, 98.0, 1.0, (0.2, 1.0))
    assert what(told[2]) == 1.0
    monitor.note_share(0, 2, 98.0, 1.0, None)  # another attempt, which reports nothing
    assert told[3].detail == {"by": "share", "attempt": 2}
    assert len(told) == 4


def test_the_pace_of_reports() -> None:
    pace = Pace(10.0)
    assert not pace.is_known
    assert not pace.take((0.0, 0.0), 11.0)
    assert pace.take((0.1, 1.0), 12.0)  # said a second ago
    assert pace.rate(12.0) == pytest.approx(0.1)
    assert not pace.is_overdue(13.0)
    assert pace.take((0.4, 0.0), 12.0)  # 0.3 per second, of late
    assert pace.rate(12.0) == pytest.approx(0.2)
    assert pace.is_overdue(14.5)
    assert pace.rate(15.0) == pytest.approx(0.1)  # less and less
    assert pace.rate(42.0) == pytest.approx(0.01)
    assert pace.take((0.3, 5.0), 14.0)  # it goes back, by a clock that is off
    assert pace.rate(14.0) == pytest.approx(0.1)
    assert pace.take((1.0, 0.0), 15.0)
    assert not pace.is_overdue(99.0)
