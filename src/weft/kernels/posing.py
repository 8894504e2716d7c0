"""The problem posed from the state of a run: what a planner is asked from, without leaving it.

The same as `read_situation` and `Planning` do for planners in Python (Hernandez, Cole: the
situated task graph).
"""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.kernels.board import (
    DONE,
    FINISHED,
    GIVEN_UP,
    HERE,
    N_ATTEMPTS,
    N_TRANSFERS,
    OPEN,
    Board,
)
from weft.kernels.copies import home_of
from weft.kernels.situate import expected_arrival, needed

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


def count_known(board: Board, pointers: IntArray) -> int:
    """Rows of what is known of items: complete copies away from home, and what is on its way.

    `pointers` gets the beginnings of the rows, and at its end their number.
    """
    n = len(board.item_producer)
    for item in range(n):
        producer = board.item_producer[item]
        if producer < 0 or board.status[producer] != DONE or not needed(board, item):
            continue
        home = home_of(board, item)
        for host in range(board.n_hosts):
            if host != home and board.held[item * board.n_hosts + host] == HERE:
                pointers[item + 1] += 1
    for transfer in range(board.counts[N_TRANSFERS]):
        if np.isnan(board.transfer_arrival[transfer]):
            pointers[board.transfer_item[transfer] + 1] += 1
    for item in range(n):
        pointers[item + 1] += pointers[item]
    return int(pointers[n])


def fill_known(
    board: Board, pointers: IntArray, hosts: IntArray, times: FloatArray, whole: BoolArray
) -> None:
    """The rows themselves: copies first, then transfers, each in the order of the run's logs."""
    n, now = len(board.item_producer), board.clock[0]
    at = np.empty(n, dtype=np.int32)
    for item in range(n):
        at[item] = pointers[item]
        if pointers[item] == pointers[item + 1]:
            continue
        producer = board.item_producer[item]
        if producer < 0 or board.status[producer] != DONE or not needed(board, item):
            continue
        home = home_of(board, item)
        for host in range(board.n_hosts):
            if host != home and board.held[item * board.n_hosts + host] == HERE:
                hosts[at[item]] = host
                times[at[item]] = now
                whole[at[item]] = True
                at[item] += 1
    for transfer in range(board.counts[N_TRANSFERS]):
        if np.isnan(board.transfer_arrival[transfer]):
            k = at[board.transfer_item[transfer]]
            hosts[k] = board.transfer_to[transfer]
            times[k] = expected_arrival(board, transfer, STANDS_STILL)
            whole[k] = False
            at[board.transfer_item[transfer]] += 1
