"""The problem posed from the state of a run: what a planner is asked from, without leaving it.

The same as `read_situation` and `Planning` do for planners in Python (Hernandez, Cole: the
situated task graph).
"""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.kernels.board import (
    FINISHED,
    GIVEN_UP,
    N_ATTEMPTS,
    OPEN,
    Board,
)
from weft.kernels.situate import copies, under_way

STANDS_STILL = 0.01  # as in weft.model.situation
LEFT_THERE = 0.1  # likewise


def expected_finish(board: Board, attempt: int) -> float:
    """When an attempt finished, or should: an overdue one is expected to finish now."""
    if board.attempt_end[attempt] != OPEN:
        return float(board.attempt_finish[attempt])
    p, now = board.attempt_on[attempt], board.clock[0]
    cost = board.estimate[board.attempt_task[attempt] * board.n_processors + p]
    left, since, rate = cost - board.worked[attempt], board.since[attempt], board.availability[p]
    if rate < STANDS_STILL:
        left -= (now - since) * rate
        since = now
        if not left > 0.0:
            left = LEFT_THERE * cost
    return float(max(now, since + max(0.0, left / max(rate, STANDS_STILL))))


def number_usable(board: Board, usable: BoolArray, number: IntArray) -> int:
    """Number the processors that may be used now; how many, -1 if it is not those expected."""
    count = 0
    for p in range(board.n_processors):
        may = board.present[p] and board.leaves[p] > board.clock[0]
        if may != usable[p]:
            return -1
        number[p] = count if may else -1
        count += may
    return count


def cost_now(board: Board, number: IntArray, count: int) -> FloatArray:
    """What each task takes on each usable processor, as that is available now."""
    full = count == board.n_processors
    for p in range(board.n_processors):
        full = full and board.availability[p] == 1.0
    cost = np.empty(0 if full else board.n_tasks * count)
    if full:
        return cost  # as it is estimated
    scaled = False
    for p in range(board.n_processors):
        scaled = scaled or board.availability[p] != 1.0
    for task in range(board.n_tasks):
        for p in range(board.n_processors):
            if number[p] >= 0:
                takes = board.estimate[task * board.n_processors + p]
                if scaled:
                    takes /= max(board.availability[p], STANDS_STILL)
                cost[task * count + number[p]] = takes
    return cost


def full_speed(board: Board) -> bool:
    """Whether every link has its full bandwidth."""
    full = True
    for link in range(len(board.bandwidth)):
        full = full and board.bandwidth[link] == 1.0
    return full


def per_unit_now(board: Board) -> FloatArray:
    """What a unit of data takes on every link, at the bandwidth known now."""
    per_unit = np.empty(len(board.bandwidth))
    for link in range(len(board.bandwidth)):
        per_unit[link] = board.per_unit[link] / max(board.bandwidth[link], STANDS_STILL)
    return per_unit


def settle(
    board: Board, restart: bool, number: IntArray, usable: BoolArray, free: FloatArray,
    movable: BoolArray, settled_on: IntArray, source_host: IntArray, ready_at: FloatArray,
) -> int:  # fmt: skip
    """What has begun stays, its outputs can leave once made and not before now; what may move.

    With `restart` so may what runs, but where nothing new starts it is let end.
    """
    now, count = board.clock[0], 0
    for attempt in range(board.counts[N_ATTEMPTS]):
        if board.attempt_end[attempt] > FINISHED:
            continue
        task, p = board.attempt_task[attempt], board.attempt_on[attempt]
        ends = expected_finish(board, attempt)
        runs = board.attempt_end[attempt] == OPEN
        movable[task] = restart and runs and usable[p]
        settled_on[task] = number[p]
        source_host[task] = board.host[p]
        ready_at[task] = max(now, ends)
        if runs and number[p] >= 0:
            free[number[p]] = max(free[number[p]], ends)
    for task in range(board.n_tasks):
        if board.status[task] == GIVEN_UP:
            movable[task] = False
        count += movable[task]
    return count


def fill_known(
    board: Board, n_copies: int, n_moving: int, pointers: IntArray, hosts: IntArray,
    times: FloatArray, whole: BoolArray,
) -> None:  # fmt: skip
    """Rows by item of what is known of it: copies away from home, then what is on its way."""
    known, now = n_copies + n_moving, board.clock[0]
    item = np.empty(known, dtype=np.int32)
    host = np.empty(known, dtype=np.int32)
    time = np.full(known, now)
    moving = np.empty(n_moving, dtype=np.int32)
    copies(board, item[0:n_copies], host[0:n_copies])
    under_way(board, STANDS_STILL, moving, time[n_copies:known])
    for k in range(n_moving):
        item[n_copies + k] = board.transfer_item[moving[k]]
        host[n_copies + k] = board.transfer_to[moving[k]]
    for k in range(known):
        pointers[item[k] + 1] += 1
    for k in range(len(pointers) - 1):
        pointers[k + 1] += pointers[k]
    at = pointers.copy()
    for k in range(known):
        to = at[item[k]]
        at[item[k]] += 1
        hosts[to] = host[k]
        times[to] = time[k]
        whole[to] = k < n_copies
