"""The truth of a simulated run: drawn from a seed, or as a world file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.formats import load, load_platform, load_world
from foreplan.model import Estimates
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.quantities import shortened
from foreplan.simulation import reality
from model.told import whom

WORKFLOW = load(
    {
        "tasks": {"a": {"cost": 4}, "b": {"cost": {"p1": 2, "p2": 6, "p3": 2}}, "c": {"cost": 3}},
        "edges": [["a", "b", 1], ["a", "c", 10]],
    }
)
PLATFORM = load_platform(
    {
        "processors": {
            "p1": {"host": "x"},
            "p2": {"host": "y", "joins": 15},
            "p3": {"host": "x", "leaves": 80},
        }
    }
)
ESTIMATES = Estimates.declared(WORKFLOW, PLATFORM)
DECLARED = [ProcessorJoined(1, 15.0), ProcessorGone(2, 80.0)]


def from_world(content: dict[str, Any], **drawn: Any) -> reality.Reality:
    return reality.from_world(WORKFLOW, PLATFORM, ESTIMATES, load_world(content), **drawn)


def test_an_empty_world_is_as_estimated() -> None:
    truth = from_world({})
    assert np.array_equal(truth.work, ESTIMATES.cost)
    assert truth.changes == DECLARED


def test_durations_are_factors_of_the_estimate_on_every_processor() -> None:
    truth = from_world({"durations": {"b": 1.5, "c": 0.5}})
    assert np.array_equal(truth.work, ESTIMATES.cost * np.array([[1.0], [1.5], [0.5]]))


def test_traces_become_changes_in_the_order_of_time() -> None:
    truth = from_world(
        {
            "availability": {"p3": [[0, 0.5], [30, 1]], "p1": [[7, 0]]},
            "bandwidth": [["y", "x", [[20, 0.25]]]],
        }
    )
    assert truth.changes == [
        SpeedChanged(2, 0.0, 0.5),
        SpeedChanged(0, 7.0, 0.0),
        DECLARED[0],
        LinkChanged(2, 20.0, 0.25),  # y to x, with two hosts
        LinkChanged(1, 20.0, 0.25),
        SpeedChanged(2, 30.0, 1.0),
        DECLARED[1],
    ]


def presence(content: dict[str, Any], processor: int) -> list[tuple[type[Event], float]]:
    kinds = (ProcessorJoined, ProcessorGone)
    changes = from_world({"failures": content}).changes
    return [(type(e), e.time) for e in changes if whom(e) == processor and type(e) in kinds]


def test_a_processor_dies_and_is_back() -> None:
    gone, joined = ProcessorGone, ProcessorJoined
    assert presence({"p1": 0}, 0) == [(gone, 0)]
    assert presence({"p1": [5, 9, 12]}, 0) == [(gone, 5), (joined, 9), (gone, 12)]
    assert presence({"p2": 20}, 1) == [(joined, 15), (gone, 20)]
    assert presence({"p3": [20, 50]}, 2) == [(gone, 20), (joined, 50), (gone, 80)]
    # it cannot leave after it has died for good
    assert presence({"p3": [20]}, 2) == [(gone, 20)]


CONFLICTS: list[tuple[dict[str, Any], str, str]] = [
    ({"failures": {"p2": 10}}, "failures.p2", "it dies at 10, but joins only at 15"),
    ({"failures": {"p2": 15}}, "failures.p2", "it dies at 15, but joins only at 15"),
    ({"failures": {"p3": 80}}, "failures.p3", "it dies at 80, but leaves for good at 80"),
    ({"failures": {"p3": [20, 90]}}, "failures.p3", "it is back at 90, but leaves for good at 80"),
    ({"failures": {"p4": 1}}, "failures.p4", "unknown processor 'p4' (did you mean"),
    ({"availability": {"px": []}}, "availability.px", "unknown processor 'px'"),
    ({"availability": {"nobody": [[0, 1]]}}, "availability.nobody", "unknown processor 'nobody'"),
    ({"bandwidth": [["x", "p2", [[0, 1]]]]}, "bandwidth[0]", "unknown host 'p2'"),
    ({"durations": {"aa": 2}}, "durations.aa", "unknown task 'aa' (did you mean 'a'?)"),
    ({"durations": {"\n" * 99: 2}}, "durations." + shortened("\\n" * 99), "unknown task"),
]


@pytest.mark.parametrize(("content", "place", "problem"), CONFLICTS)
def test_what_does_not_fit_is_told(content: dict[str, Any], place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        from_world(content)
    assert caught.value.place == place
    assert problem in caught.value.problem


def test_durations_are_given_or_drawn_but_not_both() -> None:
    with pytest.raises(InputError, match="durations: the world gives durations"):
        from_world({"durations": {"a": 1.5}}, qoi=0.1)
    world = {"availability": {"p1": [[7, 0]]}}
    drawn = reality.draw(WORKFLOW, PLATFORM, ESTIMATES, 0.3, 5)
    assert np.array_equal(from_world(world, qoi=0.3, seed=5).work, drawn.work)
    per_processor = from_world(world, qoi=0.3, seed=5, per_processor=True)
    assert not np.array_equal(per_processor.work, drawn.work)


@pytest.mark.parametrize("qoi", [-0.1, 1.0, 2.0, float("nan")])
def test_a_wrong_qoi(qoi: float) -> None:
    with pytest.raises(InputError, match="QoI"):
        reality.draw(WORKFLOW, PLATFORM, ESTIMATES, qoi)


def test_a_wrong_seed() -> None:
    with pytest.raises(InputError, match="the seed must not be negative, but is -1"):
        reality.draw(WORKFLOW, PLATFORM, ESTIMATES, 0.1, -1)


def test_the_library_names_the_file_of_the_world(tmp_path: Path) -> None:
    path = tmp_path / "world.yaml"
    path.write_text("failures: {p9: 3}")
    with pytest.raises(InputError) as caught:
        foreplan.simulate(WORKFLOW, PLATFORM, world=path)
    assert (caught.value.source, caught.value.place) == (str(path), "failures.p9")


@pytest.mark.parametrize("by_events", [False, True])
def test_a_world_by_hand(by_events: bool) -> None:
    """One processor: 4 s of work, at half speed from 2 s on, and half as much again."""
    workflow = load({"tasks": {"a": {"cost": 4}, "b": {"cost": 2}}, "edges": [["a", "b"]]})
    platform = load_platform({"processors": {"p": {}}})
    world = {"durations": {"a": 1.5}, "availability": {"p": [[2, 0.5], [6, 1]]}}
    run = foreplan.simulate(workflow, platform, world=world, by_events=by_events)
    # a: 2 s, then 4 s at half speed, then the last 2 s of 6; b as estimated
    place = {"processor": "p", "host": "p", "cores": 1, "memory": 0.0}
    assert run.to_dict()["tasks"] == {
        "a": {**place, "start": 0.0, "finish": 8.0},
        "b": {**place, "start": 8.0, "finish": 10.0},
    }


def test_a_slow_link_by_hand() -> None:
    """10 units at 1 per second; from 7 s on at half of it."""
    workflow = load(
        {"tasks": {"a": {"cost": {"p": 4, "q": 99}}, "b": {"cost": {"p": 99, "q": 1}}},
         "edges": [["a", "b", 10]]}
    )  # fmt: skip
    platform = load_platform({"processors": {"p": {}, "q": {}}})
    run = foreplan.simulate(workflow, platform, world={"bandwidth": [["q", "p", [[7, 0.5]]]]})
    assert run.transfers.arrival.tolist() == [4 + 3 + 14]
    assert run.makespan == 22


def test_a_processor_that_dies_by_hand() -> None:
    workflow = load({"tasks": {"a": {"cost": 4}}})
    platform = load_platform({"processors": {"fast": {"speed": 2, "price": 1}, "slow": {}}})
    run = foreplan.simulate(workflow, platform, world={"failures": {"fast": 1}})
    assert run.makespan == 5.0
    assert run.cost == 1.0
    one = {"cores": 1, "memory": 0.0}
    assert run.to_dict()["tasks"]["a"] == {
        **{"processor": "slow", "host": "slow", "start": 1.0, "finish": 5.0},
        **one,
    }
    back = foreplan.simulate(workflow, platform, world={"failures": {"fast": [1, 2], "slow": 0.5}})
    assert back.to_dict()["tasks"]["a"] == {
        **{"processor": "fast", "host": "fast", "start": 2.0, "finish": 4.0},
        **one,
    }


def test_a_host_stands_for_all_of_its_cores() -> None:
    workflow = load({"tasks": {"a": {"cost": 8, "cores": 2}, "b": {"cost": 4}}})
    platform = load_platform({"hosts": {"big": {"cores": 2}, "small": {"cores": 1}}})
    world = {"failures": {"big": [1, 2]}, "availability": {"big": [[0, 0.5]]}}
    run = foreplan.simulate(workflow, platform, world=world)
    assert run.to_dict()["tasks"]["a"] == {
        **{"processor": "big-1", "host": "big", "cores": 2, "memory": 0.0},
        **{"start": 2.0, "finish": 18.0},
    }
    assert [e.processor for e in run.changes if isinstance(e, ProcessorGone)] == [0, 1]
    assert [e.more for e in run.changes if isinstance(e, ProcessorJoined)] == [True, False]
    both = {"failures": {"big": [1, 2], "big-2": 5}}
    with pytest.raises(InputError, match="'big' and 'big-2' both speak of 'big-2'"):
        foreplan.simulate(workflow, platform, world=both)
