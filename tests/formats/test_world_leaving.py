"""The world's `leaving`: announced, then gone; and what is wrong with a wrong one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import InputError
from foreplan.formats import load_world
from foreplan.model import Estimates, Platform, Processor, Workflow
from foreplan.model.events import Event, ProcessorGone, ProcessorJoined, ProcessorLeaving
from foreplan.model.world import WorldFile
from foreplan.simulation.reality import from_world
from model.told import what, whom


def test_it_is_read(tmp_path: Path) -> None:
    expected = WorldFile(leaving={"r2": (30, 55), "3": (1.5, 1.5)})
    assert load_world({"leaving": {"r2": [30, 55], 3: (1.5, 1.5)}}) == expected
    (tmp_path / "w.yaml").write_text("leaving: {r2: [30, 55], 3: [1.5, 1.5]}")
    (tmp_path / "w.json").write_text('{"leaving": {"r2": [30, 55], "3": [1.5, 1.5]}}')
    assert load_world(tmp_path / "w.yaml") == load_world(tmp_path / "w.json") == expected
    assert load_world({"leaving": None}) == load_world({"leaving": {}}) == WorldFile()


WRONG: list[tuple[Any, str, str]] = [
    ([], "leaving", "expected a mapping"),
    ({"p": 30}, "leaving.p", "expected a list, not 30"),
    ({"p": None}, "leaving.p", "expected a list"),
    ({"p": []}, "leaving.p", "expected [announced, gone]"),
    ({"p": [30]}, "leaving.p", "expected [announced, gone]"),
    ({"p": [30, 40, 50]}, "leaving.p", "expected [announced, gone]"),
    ({"p": [30, 20]}, "leaving.p", "cannot be gone at 20, before that is announced"),
    ({"p": [-1, 20]}, "leaving.p[0]", "must not be negative"),
    ({"p": [1, "soon"]}, "leaving.p[1]", "expected a number, not 'soon'"),
    ({"p": [math.nan, 3]}, "leaving.p[0]", "finite"),
    ({"p": [1, math.inf]}, "leaving.p[1]", "finite"),
    ({"p": [True, 3]}, "leaving.p[0]", "not true"),
    ({"1": [1, 2], 1: [1, 2]}, "leaving", "'1' is given twice"),
]


@pytest.mark.parametrize(("content", "place", "problem"), WRONG)
def test_wrong_content_says_what_and_where(content: Any, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load_world({"leaving": content})
    assert caught.value.place == place
    assert problem in caught.value.problem


PLATFORM = Platform.build([
    Processor("stays"), Processor("joins", joins=10.0), Processor("leaves", leaves=40.0),
])  # fmt: skip
WORKFLOW = Workflow.from_items("w", ["x"], [5.0], [])


def changes(**world: Any) -> Sequence[Event]:
    estimates = Estimates.declared(WORKFLOW, PLATFORM)
    return from_world(WORKFLOW, PLATFORM, estimates, WorldFile(**world)).changes


def test_it_becomes_two_events() -> None:
    assert changes(leaving={"stays": (30.0, 55.0), "joins": (12.0, 12.0)}) == [
        ProcessorJoined(1, 10.0),
        ProcessorLeaving(1, 12.0, 12.0),
        ProcessorGone(1, 12.0),
        ProcessorLeaving(0, 30.0, 55.0),
        ProcessorGone(2, 40.0),
        ProcessorGone(0, 55.0),
    ]


@pytest.mark.parametrize(("world", "problem"), [
    ({"leaving": {"stay": (1, 2)}}, "did you mean 'stays'?"),
    ({"leaving": {"joins": (9.0, 20.0)}}, "it joins only at 10"),
    ({"leaving": {"joins": (10.0, 20.0)}}, "it joins only at 10"),
    ({"leaving": {"leaves": (9.0, 20.0)}}, "leaves at 40"),
    ({"leaving": {"stays": (9.0, 20.0)}, "failures": {"stays": (50.0,)}}, "it fails, too"),
])  # fmt: skip
def test_a_world_that_does_not_fit_the_platform(world: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        changes(**world)
    assert problem in caught.value.problem
    assert caught.value.place == f"leaving.{next(iter(world['leaving']))}"


def test_simultaneous_joins_tell_that_more_come() -> None:
    processors = [Processor("p0"), *(Processor(f"p{i}", joins=7.0) for i in range(1, 4))]
    platform = Platform.build([*processors, Processor("p4", joins=8.0)])
    estimates = Estimates.declared(WORKFLOW, platform)
    events = from_world(WORKFLOW, platform, estimates, WorldFile()).changes
    told = [(whom(e), e.time, what(e)) for e in events]
    assert told == [(1, 7, 1), (2, 7, 1), (3, 7, 0), (4, 8, 0)]
