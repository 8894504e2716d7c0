"""Drawn scenarios: repeatable, within their bound, legal, and never without a processor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.model import Platform
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.model.platform import Processor
from foreplan.simulation import scenarios
from foreplan.simulation.reality import Reality, platform_changes
from foreplan.simulation.scenario import EVENT_RATE, Scenario
from foreplan.simulation.scenarios import HORIZON, horizon, with_scenario
from model.told import what, whom

PLANNED = 100.0
SPEED, BANDWIDTH, GONE, JOINED = (
    SpeedChanged,
    LinkChanged,
    ProcessorGone,
    ProcessorJoined,
)


def cluster(hosts: int = 5, cores: int = 2) -> Platform:
    return Platform.build(
        [Processor(f"p{h}.{c}", host=f"h{h}") for h in range(hosts) for c in range(cores)]
    )


def drawn(
    platform: Platform, seed: int = 0, planned: float = PLANNED, lasts: float = 0.0, **options: Any
) -> Sequence[Event]:
    still = Reality(np.ones((1, platform.n_processors)), platform_changes(platform))
    return with_scenario(still, platform, Scenario(**options), planned, seed, lasts).changes


def of(events: Sequence[Event], *kinds: type[Event]) -> list[Event]:
    return [event for event in events if type(event) in kinds]


def check_presence(platform: Platform, events: Sequence[Event]) -> None:
    """Who goes was there, who comes was away, and somebody is always there if it can be."""
    here, declared = platform.present(0.0).copy(), platform.present(0.0).copy()
    last = 0.0
    for event in of(events, GONE, JOINED):
        assert last <= event.time < math.inf
        assert here[whom(event)] == (type(event) is GONE), event
        here[whom(event)] = type(event) is JOINED
        declared = platform.present(event.time)
        assert here.any() or not declared.any(), event
        last = event.time


def test_nothing_is_drawn_unless_asked_for() -> None:
    platform = cluster()
    assert drawn(platform) == []
    assert drawn(platform, variability=0.4, event_rate=0) == []
    assert drawn(platform, variability=0.4, failures=3, planned=0.0) == []


@pytest.mark.parametrize("variability", [0.1, 0.4, 0.9])
def test_values_are_within_the_bound_of_the_peak(variability: float) -> None:
    events = drawn(cluster(), variability=variability, event_rate=10.0)
    values = np.array([what(event) for event in events])
    assert len(of(events, SPEED, BANDWIDTH)) == len(events)
    assert values.min() >= 1 - variability
    assert values.max() <= 1
    # uniform in between: they come near both ends, and the mean is in the middle
    assert values.min() < 1 - 0.98 * variability
    assert values.max() > 1 - 0.02 * variability
    assert abs(values.mean() - (1 - variability / 2)) < 0.03 * variability
    assert [event.time for event in events] == sorted(event.time for event in events)


def test_both_directions_of_a_link_change_together() -> None:
    platform = cluster(hosts=4)
    events, n = of(drawn(platform, variability=0.5), BANDWIDTH), platform.n_hosts
    assert events
    for one, other in zip(events[::2], events[1::2], strict=True):
        a, b = divmod(whom(one), n)
        assert a != b
        assert whom(other) == b * n + a
        assert (one.time, what(one)) == (other.time, what(other))


def test_one_host_has_no_links() -> None:
    events = drawn(cluster(hosts=1, cores=3), variability=0.5)
    assert {(type(event), whom(event)) for event in events} == {(SPEED, p) for p in range(3)}


def test_every_processor_and_every_link_changes_as_often_as_the_rate_says() -> None:
    platform, seeds = cluster(hosts=6, cores=1), 40
    counts: Counter[tuple[type[Event], int]] = Counter()
    for seed in range(seeds):
        for event in drawn(platform, seed, variability=0.3, event_rate=7.0):
            if event.time < PLANNED:
                counts[type(event), whom(event)] += 1
    assert len(counts) == 6 + 30
    mean = 7.0 * seeds
    assert all(abs(count - mean) < 4.5 * math.sqrt(mean) for count in counts.values()), counts
    links = [count for (kind, _), count in counts.items() if kind == BANDWIDTH]
    speeds = [count for (kind, _), count in counts.items() if kind == SPEED]
    assert abs(np.mean(speeds) - mean) < 4 * math.sqrt(mean / 6)
    assert abs(np.mean(links) - mean) < 4 * math.sqrt(mean / 15)


def test_another_variability_has_the_same_times_and_resources() -> None:
    platform = cluster()
    events = {v: drawn(platform, 3, variability=v, failures=2) for v in (0.2, 0.4, 0.8)}
    assert len(events[0.2]) < len(events[0.4]) < len(events[0.8])  # slower, so for longer
    for v, others in events.items():
        until = events[0.2][-1].time
        shared = [event for event in others if event.time <= until]
        for one, other in zip(events[0.2], shared, strict=True):
            assert (type(one), whom(one), one.time) == (type(other), whom(other), other.time)
            if type(one) in (SPEED, BANDWIDTH):
                assert (1 - what(one)) / 0.2 == pytest.approx((1 - what(other)) / v)


def test_another_rate_or_time_scale_only_stretches_it() -> None:
    platform = cluster()
    slow = drawn(platform, 3, variability=0.2, event_rate=2.0)
    fast = drawn(platform, 3, variability=0.2, event_rate=8.0, planned=2 * PLANNED)
    for one, other in zip(slow, fast, strict=False):
        assert (type(one), whom(one), what(one)) == (type(other), whom(other), what(other))
        assert other.time == pytest.approx(one.time / 2)


def test_the_same_seed_the_same_scenario() -> None:
    options: dict[str, Any] = {"variability": 0.4, "failure_rate": 0.3, "return_after": 9.0}
    platform = cluster()
    assert drawn(platform, 7, **options) == drawn(platform, 7, **options)
    assert drawn(platform, 7, **options) != drawn(platform, 8, **options)
    # failures leave the changes of speed alone, and the other way round
    calm = drawn(platform, 7, variability=0.4)
    assert of(drawn(platform, 7, **options), SPEED, BANDWIDTH)[: len(calm)] == calm
    deaths = drawn(platform, 7, failures=3)
    assert of(drawn(platform, 7, variability=0.4, failures=3), GONE) == deaths


def test_events_go_on_as_long_as_the_run_may_last() -> None:
    platform = cluster()
    for v in (0.1, 0.5, 0.9):
        last = drawn(platform, variability=v)[-1].time
        assert 0.95 * HORIZON / (1 - v) < last / PLANNED < HORIZON / (1 - v)
    usual = drawn(platform, variability=0.5)
    longer = drawn(platform, variability=0.5, lasts=10 * PLANNED)
    assert longer[: len(usual)] == usual
    assert longer[-1].time > 9 * usual[-1].time
    assert horizon(Scenario(failures=9), 10, PLANNED) == 10 * HORIZON
    assert horizon(Scenario(failure_rate=0.5, return_after=50.0), 10, PLANNED) == 1.25 * HORIZON
    assert 1.3 < horizon(Scenario(failure_rate=0.5), 10, PLANNED) / HORIZON < 1.4
    assert horizon(Scenario(failure_rate=3.0), 10, PLANNED) == 10 * HORIZON


@pytest.mark.parametrize("failures", [1, 4, 9])
def test_so_many_processors_fail(failures: int) -> None:
    platform = cluster()
    times = []
    for seed in range(30):
        events = drawn(platform, seed, failures=failures)
        assert [type(event) for event in events] == [GONE] * failures
        assert len({whom(event) for event in events}) == failures
        times += [event.time for event in events]
        check_presence(platform, events)
        fewer = drawn(platform, seed, failures=failures - 1)
        assert set(fewer) < set(events)
    assert min(times) >= 0
    assert max(times) < PLANNED
    assert len({round(time / 25) for time in times}) > 3


def test_every_processor_may_be_the_one() -> None:
    chosen = Counter(whom(drawn(cluster(), seed, failures=1)[0]) for seed in range(300))
    assert set(chosen) == set(range(10))
    assert all(10 <= count <= 55 for count in chosen.values()), chosen


def test_they_return() -> None:
    events = drawn(cluster(), failures=3, return_after=5.0)
    died = {whom(event): event.time for event in of(events, GONE)}
    back = {whom(event): event.time for event in of(events, JOINED)}
    assert len(died) == 3
    assert back == {p: time + 5.0 for p, time in died.items()}


def test_a_rate_of_failures() -> None:
    platform, deaths = cluster(), 0
    for seed in range(60):
        events = drawn(platform, seed, failure_rate=0.4, return_after=1.0)
        check_presence(platform, events)
        deaths += sum(event.time < PLANNED for event in of(events, GONE))
    assert abs(deaths - 240) < 4 * math.sqrt(240)
    many = drawn(platform, failure_rate=30.0)  # for good: all but one, each once
    assert len(many) == len({whom(event) for event in many}) == 9
    often = drawn(platform, failure_rate=30.0, return_after=20.0)
    check_presence(platform, often)
    assert len(often) > 200


def test_the_declaration_of_the_platform_stays_legal() -> None:
    platform = Platform.build(
        [
            Processor("early", leaves=60.0),
            Processor("late", joins=40.0),
            Processor("always"),
            Processor("after", joins=500.0),
        ]
    )
    died: Counter[int] = Counter()
    for seed in range(200):
        events = drawn(platform, seed, failures=2)
        check_presence(platform, events)
        assert sum(whom(event) == 0 for event in of(events, GONE)) == 1  # dies or leaves
        died.update(whom(e) for e in of(events, GONE) if (whom(e), e.time) != (0, 60.0))
        assert all(e.time > 40.0 for e in of(events, GONE) if whom(e) == 1)
    assert set(died) == {0, 1, 2}


def test_the_last_one_that_stays_does_not_fail() -> None:
    platform = Platform.build([Processor("goes", leaves=99.0), Processor("stays")])
    for seed in range(50):
        assert {whom(event) for event in drawn(platform, seed, failures=1)} == {0}
    # but it may, if it is back in time
    back = [drawn(platform, seed, failures=1, return_after=1.0) for seed in range(50)]
    assert any(whom(event) == 1 for events in back for event in events)


moments = st.floats(0.0, 300.0)


@given(
    windows=st.lists(st.tuples(moments, moments, st.booleans()), min_size=1, max_size=6),
    failures=st.integers(0, 6),
    failure_rate=st.sampled_from([0.0, 0.5, 4.0]),
    return_after=st.sampled_from([0.5, 30.0, math.inf]),
    seed=st.integers(0, 10**6),
)
def test_any_platform_any_failures(
    windows: list[tuple[float, float, bool]],
    failures: int,
    failure_rate: float,
    return_after: float,
    seed: int,
) -> None:
    processors = [
        Processor(f"p{i}", joins=min(a, b), leaves=max(a, b) + 1.0 if leaves else math.inf)
        for i, (a, b, leaves) in enumerate(windows)
    ]
    platform = Platform.build(processors)
    failures = min(failures, len(windows) - 1)
    if not failures and not failure_rate:
        return_after = math.inf
    events = drawn(
        platform, seed, failures=failures, failure_rate=failure_rate, return_after=return_after
    )
    check_presence(platform, events)


def test_there_is_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MOST_EVENTS", 30_000)
    events = drawn(cluster(hosts=5, cores=1), variability=0.99, event_rate=30_000 / 15)
    assert len(of(events, SPEED)) + len(of(events, BANDWIDTH)) / 2 == 30_000
    assert 0.97 < events[-1].time / PLANNED < 1.03


def test_in_words() -> None:
    assert str(Scenario(0.4, failures=1)) == "variability 40%, 1 failure"
    assert str(Scenario(0.25, 3.0)) == "variability 25% at rate 3"
    assert (
        str(Scenario(failures=2, failure_rate=0.1, return_after=8.0))
        == "2 failures, failure rate 0.1, back after 8 s"
    )
    assert Scenario(0.4).to_dict() == {
        "variability": 0.4,
        "event_rate": EVENT_RATE,
        "failures": 0,
        "failure_rate": 0.0,
        "return_after": None,
    }
