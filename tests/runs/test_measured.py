"""What is measured, as the coordinator reckons with it: on plain numbers, and in real runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foreplan
from foreplan.checks.runs import check_run
from foreplan.engine.coordinator import Coordinator
from foreplan.executors import monitor
from foreplan.model.events import Event, LinkChanged, SpeedChanged
from foreplan.runs.estimates import Links, as_measured
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.opening import reopen_run
from foreplan.runs.replay import replay
from foreplan.runs.session import Session, Silent
from model.told import what, whom
from runs.known import state_of

AVAILABILITY = SpeedChanged


def running(expected: float, worked: float, availability: float = 1.0) -> Coordinator:
    """Attempt 4 at task 0 runs on processor 0, and is believed to have done this much at 10."""
    state = state_of(
        n_processors=2,
        running=np.array([4, -1]),
        availability=np.array([availability, 1.0]),
        attempt_task=np.array([9, 9, 9, 9, 0]),
        worked=np.array([0.0, 0.0, 0.0, 0.0, worked]),
        since=np.full(5, 10.0),
        attempt_on=np.zeros(5, dtype=int),
        attempt_start=np.zeros(5),
        attempt_end=np.array([1, 1, 1, 1, 0], dtype=np.int8),
    )
    platform = SimpleNamespace(n_processors=2)
    estimates = SimpleNamespace(cost=np.full((1, 2), expected))
    return cast(Coordinator, SimpleNamespace(state=state, estimates=estimates, platform=platform))


def report(done: float, rate: float, share: float = 1.0) -> SpeedChanged:
    detail = {"by": "progress", "attempt": 4, "progress": done, "rate": rate}
    return AVAILABILITY.of(0, 10.0, share, detail)


def value(event: Event | None) -> float:
    assert event is not None
    return what(event)


def test_progress_on_several_cores_is_by_what_was_expected_on_them() -> None:
    # 40 s on one core are 10 s on its four; as below: after 1 s, 5% are done, at 5% per second
    wide = running(expected=40.0, worked=1.0)
    arrays: Any = wide.state.arrays
    arrays.most_cores, arrays.attempt_factor = 4, np.full(5, 0.25)
    alone = running(expected=10.0, worked=1.0)
    told = [value(as_measured(report(0.05, 0.05), c)) for c in (wide, alone)]
    assert told[0] == told[1] < 1


def test_half_the_speed_from_the_start() -> None:
    # after 1 s of an estimated 10 s, 5% are done, at 5% per second: 19 s are left
    told = as_measured(report(0.05, 0.05), running(10.0, 1.0))
    assert value(told) == pytest.approx(9 / 19)


@given(st.floats(0.1, 100), st.floats(0.01, 0.99), st.floats(1e-3, 1.0), st.floats(0.5, 2))
def test_the_rest_takes_as_long_as_progress_says(
    expected: float, done: float, speed: float, believed: float
) -> None:
    worked = expected * (1 - believed * (1 - done))
    coordinator = running(expected, worked, availability=0.0)
    told = as_measured(report(done, speed / expected), coordinator)
    if value(told) < 1:
        left = (expected - worked) / value(told)
        assert left == pytest.approx((1 - done) * expected / speed, rel=1e-6)


def test_within_a_factor_of_two_of_the_measured_speed() -> None:
    # it is believed to be done long ago, and is half done at half the speed
    assert value(as_measured(report(0.5, 0.05), running(10.0, 30.0))) == pytest.approx(0.25)


def test_no_news() -> None:
    assert as_measured(report(0.5, 0.1), running(10.0, 5.0)) is None  # as expected
    assert as_measured(report(0.5, 0.3), running(10.0, 5.0)) is None  # faster
    assert as_measured(report(1.0, 0.01), running(10.0, 5.0)) is None  # all but over
    assert as_measured(report(0.5, 0.01), running(0.0, 5.0)) is None  # nothing was expected
    other = AVAILABILITY.of(0, 10.0, 0.5, {"by": "share", "attempt": 3})
    assert as_measured(other, running(10.0, 5.0)) is None  # of an attempt that is over
    unknown = AVAILABILITY.of(2, 10.0, 0.5, {"by": "silence"})
    assert as_measured(unknown, running(10.0, 5.0)) is None


def test_shares_are_told_as_they_are() -> None:
    share = AVAILABILITY.of(0, 10.0, 0.5, {"by": "share", "attempt": 4})
    assert value(as_measured(share, running(10.0, 5.0))) == 0.5
    stopped = report(0.5, 0.1, share=0.0)
    assert value(as_measured(stopped, running(10.0, 5.0))) == 0.0
    by_hand = AVAILABILITY.of(0, 10.0, 0.99)
    assert as_measured(by_hand, running(10.0, 5.0)) == by_hand


def link(per_byte: float = 1e-8) -> Coordinator:
    state = state_of(
        n_hosts=2,
        transfer_item=np.array([0]),
        transfer_from=np.array([0]),
        transfer_to=np.array([1]),
        bandwidth=np.ones(4),
    )
    platform = SimpleNamespace(
        n_hosts=2, time_per_unit=np.full((2, 2), per_byte), startup=np.full((2, 2), 1e-3)
    )
    return cast(Coordinator, SimpleNamespace(state=state, platform=platform))


def arrival(links: Links, coordinator: Coordinator, now: float, **detail: Any) -> float | None:
    told = links.note_arrival(0, detail, coordinator, now)
    if told is None:
        return None
    assert (type(told), whom(told)) == (LinkChanged, 1)
    coordinator.state.arrays.bandwidth[1] = what(told)
    return what(told)


def test_a_link_is_as_fast_as_what_arrives_over_it() -> None:
    links, coordinator = Links(), link()
    assert arrival(links, coordinator, 0.0, size=10**7, seconds=0.101) is None  # as declared
    factor = arrival(links, coordinator, 0.0, size=10**7, seconds=0.401)
    assert factor == pytest.approx(0.25)
    assert arrival(links, coordinator, 0.5, size=10**7, seconds=0.101) is None  # so soon
    assert arrival(links, coordinator, 2.0, size=10**7, seconds=0.44) is None  # much the same
    assert arrival(links, coordinator, 2.0, size=10**7, seconds=0.101) == pytest.approx(1.0)


def test_what_says_nothing_of_a_link() -> None:
    links, coordinator = Links(), link()
    assert arrival(links, coordinator, 0.0) is None
    assert arrival(links, coordinator, 0.0, size=10**7) is None
    assert arrival(links, coordinator, 0.0, size=10**5, seconds=9.0) is None
    assert arrival(links, link(0.0), 0.0, size=10**7, seconds=9.0) is None


SLOW = """for done in 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9; do
  sleep 0.15; echo $done >> $FOREPLAN_PROGRESS
done"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    monkeypatch.setattr(monitor, "INTERVAL", 0.1)
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def test_a_run_is_told_of_progress_and_replays(data: Path) -> None:
    workflow = foreplan.load(
        {
            "name": "slow",
            "tasks": {"a": {"cost": 0.5, "run": SLOW}, "b": {"cost": 0.1, "run": "true"}},
            "edges": [["a", "b", 0]],
        }
    )
    done = foreplan.run(workflow, on="local:1", dir=data, strategy="aheft[threshold=0.3]")
    assert done.ok
    told = [what(e) for e in done.run.changes if type(e) is AVAILABILITY]
    assert told  # it takes three times as long as expected
    assert min(told) < 0.6
    check_run(done.run)
    again = replay(read(RunHome(done.home).journal), data)
    assert again.decisions == again.journalled
    assert [what(e) for e in again.run().changes if type(e) is AVAILABILITY] == told
    assert any("changed its speed" in e.reason for e in done.run.evaluations)


class Slowed(Silent):
    """Says that a processor is slow, and stops the run."""

    def began(self, session: Session) -> None:
        session.machines.post(AVAILABILITY.of(0, 0.0, 0.5))
        session.stop()


def test_a_resumed_run_forgets_what_was_measured(data: Path) -> None:
    content = {"tasks": {"a": {"run": "true"}, "b": {"run": "true"}}, "edges": [["a", "b", 0]]}
    stopped = foreplan.run(foreplan.load(content), on="local:1", dir=data, listener=Slowed())
    assert (stopped.status, stopped.not_done) == ("stopped", ("b",))
    with reopen_run(RunHome(stopped.home)) as session:
        done = session.drive()
    assert done.ok
    assert [what(e) for e in done.run.changes if type(e) is AVAILABILITY] == [0.5, 1.0]
    check_run(done.run)
