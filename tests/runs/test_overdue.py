"""When tasks that go on and on may have used up the money."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreplan.engine.budget import NEVER_MIND, STEP, WHERE_NOT_ADDED, overdue_at
from foreplan.engine.coordinator import Coordinator
from foreplan.model.events import Command, TasksOverdue, WakeAt
from foreplan.runs.money import Overdue
from runs.known import state_of


def coordinator(
    allowance: float, ends: list[float], prices: list[float], holds: bool = False
) -> Coordinator:
    """Tasks that began at 0, one on each processor, and are to end then."""
    n = len(ends)
    state = state_of(
        n_processors=n,
        allowance=np.array([allowance]),
        running=np.arange(n, dtype=np.int32),
        attempt_task=np.arange(n, dtype=np.int32),
        estimate=np.tile(np.array(ends), (n, 1)).reshape(-1),
        availability=np.ones(n),
        worked=np.zeros(n),
        since=np.zeros(n),
        attempt_on=np.arange(n),
        attempt_start=np.zeros(n),
        attempt_end=np.zeros(n, dtype=np.int8),
    )
    tracker = SimpleNamespace(kept=True, holds=holds)
    platform = SimpleNamespace(price=np.array(prices))
    return cast(Coordinator, SimpleNamespace(state=state, tracker=tracker, platform=platform))


def due(allowance: float, ends: list[float], prices: list[float], holds: bool = False) -> float:
    return overdue_at(coordinator(allowance, ends, prices, holds), 0.0)


some = st.integers(0, 20).map(float)


@given(st.floats(0.1, 50), st.lists(st.tuples(some, some), min_size=1, max_size=5))
def test_when_what_is_left_is_used_up(allowance: float, rows: list[tuple[float, float]]) -> None:
    ends, prices = [end for end, _ in rows], [price for _, price in rows]
    when = due(allowance, ends, prices)
    if not any(prices):
        assert when == math.inf
        return
    over = sum(price * max(0.0, when - end) for end, price in rows)
    assert over == pytest.approx(allowance) or (when == STEP and over >= allowance)


def test_when_there_is_nothing_to_look_at() -> None:
    assert due(NEVER_MIND, [1.0], [1.0]) == math.inf
    assert due(math.inf, [1.0], [1.0]) == math.inf
    assert due(5.0, [1.0], [1.0], holds=True) == math.inf
    assert due(5.0, [], []) == math.inf


def test_where_costs_do_not_add_up() -> None:
    assert due(-math.inf, [7.0, 3.0], [1.0, 1.0]) == 3.0
    assert due(-math.inf, [0.0], [1.0]) == WHERE_NOT_ADDED


def test_it_is_asked_for_once_and_then_worked_out_anew() -> None:
    known, asked = coordinator(1.0, [2.0], [1.0]), list[Command]()
    overdue = Overdue(known, asked.append)
    overdue.watch()
    overdue.watch()
    assert asked == [WakeAt(3.0, TasksOverdue)]
    known.state.arrays.allowance[0] = 0.5
    overdue.watch()
    assert asked[1:] == [WakeAt(2.5, TasksOverdue)]
    event = TasksOverdue(3.5)
    assert overdue.take(event) == [event]
    overdue.watch()
    assert asked[2:] == [WakeAt(4.0, TasksOverdue)]  # what is left is for what comes after the look
    known.state.arrays.running[0] = -1
    assert overdue.take(event) == []  # it has ended meanwhile
    overdue.watch()
    assert len(asked) == 3


def test_an_alarm_that_is_not_wanted_any_more_is_off() -> None:
    known, asked = coordinator(1.0, [2.0], [1.0]), list[Command]()
    overdue = Overdue(known, asked.append)
    overdue.watch()
    known.state.arrays.running[0] = -1
    overdue.watch()
    assert asked[1:] == [WakeAt(math.inf, TasksOverdue)]
