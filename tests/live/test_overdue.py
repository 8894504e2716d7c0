"""When tasks that go on and on may have used up the money."""

from __future__ import annotations

import math
import queue
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.coordinator import Coordinator
from weft.coordinator.purse import NEVER_MIND
from weft.live.overdue import STEP, WHERE_NOT_ADDED, Overdue
from weft.model.events import Event

LIMIT = 20.0  # seconds; a hang must fail


def coordinator(
    allowance: float, ends: list[float], prices: list[float], holds: bool = False
) -> Coordinator:
    """Tasks that began at 0, one on each processor, and are to end then."""
    n = len(ends)
    board = SimpleNamespace(
        n_processors=n,
        allowance=np.array([allowance]),
        running=np.arange(n, dtype=np.int32),
        attempt_task=np.arange(n, dtype=np.int32),
        estimate=np.tile(np.array(ends), (n, 1)).reshape(-1),
        availability=np.ones(n),
        worked=np.zeros(n),
        since=np.zeros(n),
        price=np.array(prices),
    )
    purse = SimpleNamespace(kept=True, holds=holds)
    return cast(Coordinator, SimpleNamespace(board=board, purse=purse))


def due(
    allowance: float, ends: list[float], prices: list[float], holds: bool = False
) -> tuple[float, int]:
    overdue = Overdue(coordinator(allowance, ends, prices, holds), lambda _: None, lambda: 0.0)
    return overdue._when()


some = st.integers(0, 20).map(float)


@given(st.floats(0.1, 50), st.lists(st.tuples(some, some), min_size=1, max_size=5))
def test_when_what_is_left_is_used_up(allowance: float, rows: list[tuple[float, float]]) -> None:
    ends, prices = [end for end, _ in rows], [price for _, price in rows]
    when, where = due(allowance, ends, prices)
    if not any(prices):
        assert when == math.inf
        return
    over = sum(price * max(0.0, when - end) for end, price in rows)
    assert over == pytest.approx(allowance) or (when == STEP and over >= allowance)
    assert ends[where] == min(ends)


def test_when_there_is_nothing_to_look_at() -> None:
    assert due(NEVER_MIND, [1.0], [1.0])[0] == math.inf
    assert due(math.inf, [1.0], [1.0])[0] == math.inf
    assert due(5.0, [1.0], [1.0], holds=True)[0] == math.inf
    assert due(5.0, [], [])[0] == math.inf


def test_where_costs_do_not_add_up() -> None:
    assert due(-math.inf, [7.0, 3.0], [1.0, 1.0]) == (3.0, 1)
    assert due(-math.inf, [0.0], [1.0]) == (WHERE_NOT_ADDED, 0)


def test_it_is_posted_once_and_then_worked_out_anew() -> None:
    now, posted = [0.0], queue.SimpleQueue[Event]()
    known = coordinator(1.0, [2.0], [1.0])
    overdue = Overdue(known, posted.put, lambda: now[0])
    overdue.watch()
    assert posted.empty()
    now[0] = 3.5  # more than 2 + 1
    known.board.allowance[0] = 0.5
    overdue.watch()
    event = posted.get(timeout=LIMIT)
    known.board.availability[0] = 0.25
    told = overdue.told(event)
    assert told is not None
    assert (told.which, told.value) == (0, 0.25)  # nothing new is said of its speed
    known.board.running[0] = -1
    assert overdue.told(event) is None  # it has ended meanwhile
    overdue.watch()
    overdue.close()
    assert posted.empty()
