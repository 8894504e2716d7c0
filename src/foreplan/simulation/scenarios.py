"""Random events of a simulated world: speeds that vary, processors that die and come back."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.errors import InputError
from foreplan.model import Platform
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.model.world import WorldFile
from foreplan.simulation.reality import Reality
from foreplan.simulation.scenario import MOST_EVENTS, Scenario

SCENARIO = 0x7363  # so that the seed of the durations does not draw the same numbers here
# How many times as long as it should a run may last for the events to go on until its end.
HORIZON = 2.0
# Every kind of number has a stream of its own: what is drawn of one leaves the others alone.
_GAPS, _RESOURCES, _VALUES, _DYING, _DEATH_GAPS, _DEATHS = range(6)


def with_scenario(
    reality: Reality,
    platform: Platform,
    scenario: Scenario,
    planned: float,
    seed: int = 0,
    lasts: float = 0.0,
) -> Reality:
    """The same world with the scenario's events.

    `planned` is the makespan to which the rates refer. `lasts` is what the run needs at full speed
    where that is known to be more: it makes for more events, but not for others.
    """
    check_failures(scenario, platform)
    if scenario.calm or planned <= 0:
        return reality
    lasting = max(1.0, lasts / planned) * horizon(scenario, platform.n_processors, planned)
    deaths = failures(platform, scenario, planned, seed, lasting)
    last = {event.processor: type(event) for event in deaths}
    kept = [  # who died for good does not leave any more
        event
        for event in reality.changes
        if not isinstance(event, ProcessorGone) or last.get(event.processor) != ProcessorGone
    ]
    events = changes_of_speed(platform, scenario, planned, seed, lasting)
    return replace(reality, changes=kept + deaths + events)


def check_failures(scenario: Scenario, platform: Platform) -> None:
    """One processor must be left."""
    n = platform.n_processors
    if scenario.failures >= n:
        raise InputError(
            f"{scenario.failures} of {n} processors cannot fail: one must be left, so the number "
            f"of failures is at most {n - 1}"
        )


def check_world(scenario: Scenario, world: WorldFile) -> None:
    """What a world file gives is not drawn as well."""
    for section in ("availability", "bandwidth"):
        if scenario.varies and getattr(world, section):
            problem = f"the world gives {section}, so no variability can be drawn"
            raise InputError(f"{problem}: leave one of them out", place=section)
    for section in ("failures", "leaving"):
        if scenario.fails and getattr(world, section):
            problem = "the world says which processors go, so no failures can be drawn"
            raise InputError(f"{problem}: leave one of them out", place=section)


def horizon(scenario: Scenario, n_processors: int, planned: float) -> float:
    """For how long to draw events, in planned makespans: the slower the machines, the longer."""
    n, rate = n_processors, scenario.failure_rate
    fewer = n / (n - scenario.failures)
    if rate > 0:
        for_good = -math.log1p(-rate) / rate if rate < 1 else math.inf
        fewer *= min(for_good, 1 + rate * scenario.return_after / planned)
    return HORIZON / (1 - scenario.variability) * min(n, fewer)


def changes_of_speed(
    platform: Platform, scenario: Scenario, planned: float, seed: int, lasting: float
) -> list[Event]:
    """Every processor and every link between two hosts changes as often as any other.

    The times and what changes are the same for any variability. Both directions of a link change
    together. The last value stays.
    """
    if not scenario.varies:
        return []
    hosts, p, h = np.unique(platform.host), platform.n_processors, platform.n_hosts
    one, other = (hosts[end] for end in np.triu_indices(len(hosts), 1))
    times = _moments(seed, _GAPS, scenario.event_rate * (p + len(one)), lasting, "event rate")
    times *= planned
    which = _stream(seed, _RESOURCES).integers(0, p + len(one), len(times), dtype=np.int32)
    values = 1 - scenario.variability * _stream(seed, _VALUES).random(len(times))
    speed, link = which < p, which[which >= p] - p
    there, back = one[link] * h + other[link], other[link] * h + one[link]
    on_links = times[~speed], values[~speed]
    return [
        *_events(SpeedChanged, which[speed], times[speed], values[speed]),
        *_events(LinkChanged, there, *on_links),
        *_events(LinkChanged, back, *on_links),
    ]


def failures(
    platform: Platform, scenario: Scenario, planned: float, seed: int, lasting: float
) -> list[ProcessorGone | ProcessorJoined]:
    """Deaths and returns; who is not there cannot die, and the last one there does not."""
    p, times, dying = platform.n_processors, np.empty(0), np.empty(0, dtype=np.int32)
    if scenario.failures > 0:
        times, dying = _once(platform, scenario.failures, planned, _stream(seed, _DYING))
    if scenario.failure_rate > 0:
        again = _moments(seed, _DEATH_GAPS, scenario.failure_rate * p, lasting, "failure rate")
        times = np.concatenate([times, again * planned])
        dying = np.append(dying, _stream(seed, _DEATHS).integers(0, p, len(again), dtype=np.int32))
    events = list[ProcessorGone | ProcessorJoined]()
    away = np.full(p, -np.inf)  # until when each is dead
    order = np.argsort(times, kind="stable")
    for time, who in zip(times[order].tolist(), dying[order].tolist(), strict=True):
        back = time + scenario.return_after
        if back >= platform.leaves[who]:
            back = math.inf
        if not _may_die(platform, away, who, time, back):
            continue
        away[who] = back
        events.append(ProcessorGone(who, time))
        if back < math.inf:
            events.append(ProcessorJoined(who, back))
    return events


def _once(
    platform: Platform, n: int, planned: float, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """So many different processors, each at a time of the planned makespan when it is there."""
    until = np.minimum(platform.leaves, planned)
    order = rng.permutation(platform.n_processors).astype(np.int32)
    shares = rng.random(platform.n_processors)
    chosen = order[platform.joins[order] < until[order]][:n]
    joins = platform.joins[chosen]
    return joins + shares[chosen] * (until[chosen] - joins), chosen


def _may_die(platform: Platform, away: FloatArray, who: int, time: float, back: float) -> bool:
    """Whether it is there, and others are there whenever it would have been."""
    if away[who] > time or not platform.joins[who] <= time < platform.leaves[who]:
        return False
    if time == platform.joins[who] > 0:
        return False  # it is only just coming
    later = platform.leaves[platform.leaves > time]
    for moment in [time, *later[later < min(back, platform.leaves[who])].tolist()]:
        there = platform.present(moment) & (away <= moment)
        there[who] = False
        if not there.any():
            return False
    return True


def _moments(seed: int, stream: int, rate: float, lasting: float, named: str) -> FloatArray:
    """Random times at a rate per planned makespan, in planned makespans; the first ones first."""
    if rate > MOST_EVENTS:
        problem = f"the {named} makes for {rate:,.0f} events in the planned makespan"
        raise InputError(f"{problem}, and {MOST_EVENTS:,} are the most: give a lower one")
    expected = min(rate * lasting, MOST_EVENTS)
    n = min(MOST_EVENTS, int(expected + 6 * math.sqrt(expected) + 10))
    times: FloatArray = np.cumsum(_stream(seed, stream).standard_exponential(n)) / rate
    return times[times < lasting]


def _stream(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, SCENARIO, stream])


def _events(
    kind: type[Event], which: IntArray, times: FloatArray, values: FloatArray
) -> list[Event]:
    return list(map(kind.of, which.tolist(), times.tolist(), values.tolist()))
