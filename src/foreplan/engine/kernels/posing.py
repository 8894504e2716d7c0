"""The problem posed from the state of a run: what a planner is asked from, without leaving it.

The same as `RunState.situation` and `Planning` do for planners in Python (Hernandez, Cole: the
situated task graph).
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.ends import LEFT_THERE, STANDS_STILL, expected_end
from foreplan.engine.kernels.arrays import (
    DONE,
    FINISHED,
    GIVEN_UP,
    HERE,
    N_ATTEMPTS,
    N_TRANSFERS,
    OPEN,
    RUNNING,
    RunArrays,
)
from foreplan.engine.kernels.attempts import estimated
from foreplan.engine.kernels.items import home_of
from foreplan.native import compiled


@compiled
def list_facts(state: RunArrays, holds: IntArray) -> int:
    """List the attempts that run or whose results count; how many."""
    count = 0
    for attempt in range(state.counts[N_ATTEMPTS]):
        if state.attempt_end[attempt] <= FINISHED:
            holds[count] = attempt
            count += 1
    return count


@compiled
def list_copies(state: RunArrays, items: IntArray, hosts: IntArray) -> int:
    """List where needed items are complete, away from their producers' hosts; how many there are.

    If there are more than the arrays can take, they are only counted.
    """
    count = 0
    for item in range(len(state.item_producer)):
        producer = state.item_producer[item]
        if producer < 0 or state.status[producer] != DONE or not needed(state, item):
            continue
        home = home_of(state, item)
        for host in range(state.n_hosts):
            if host != home and state.held[item * state.n_hosts + host] == HERE:
                if count < len(items):
                    items[count] = item
                    hosts[count] = host
                count += 1
    return count


def needed(state: RunArrays, item: int) -> bool:
    """Whether a task that is not done reads the item."""
    for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
        if state.status[state.use_task[u]] <= RUNNING:
            return True
    return False


@compiled
def mark_astray(state: RunArrays, items: BoolArray) -> int:
    """Mark the needed items that are made, but not on their producers' hosts; how many."""
    count = 0
    for item in range(len(state.item_producer)):
        producer = state.item_producer[item]
        if producer < 0 or state.status[producer] != DONE:
            continue
        home = home_of(state, item)
        if state.held[item * state.n_hosts + home] != HERE and needed(state, item):
            items[item] = True
            count += 1
    return count


@compiled
def list_under_way(state: RunArrays, transfers: IntArray, arrival: FloatArray) -> int:
    """List the transfers under way and when each is expected at the bandwidth known now.

    If there are more than the arrays can take, they are only counted.
    """
    count = 0
    for transfer in range(state.counts[N_TRANSFERS]):
        if not np.isnan(state.transfer_arrival[transfer]):
            continue
        if count < len(transfers):
            transfers[count] = transfer
            arrival[count] = expected_arrival(state, transfer)
        count += 1
    return count


def expected_arrival(state: RunArrays, transfer: int) -> float:
    """When a transfer is expected at the bandwidth known now."""
    link = state.transfer_from[transfer] * state.n_hosts + state.transfer_to[transfer]
    takes = state.item_size[state.transfer_item[transfer]] * state.per_unit[link]
    moved, since = state.moved[transfer], state.moved_since[transfer]
    return expected_end(takes, moved, since, state.bandwidth[link], state.clock[0], 0.0)


def expected_finish(state: RunArrays, attempt: int) -> float:
    """When an attempt finished, or should: an overdue one is expected to finish now."""
    if state.attempt_end[attempt] != OPEN:
        return float(state.attempt_finish[attempt])
    cost, rate = estimated(state, attempt), state.availability[state.attempt_on[attempt]]
    done, since = state.worked[attempt], state.since[attempt]
    return expected_end(cost, done, since, rate, state.clock[0], LEFT_THERE)


def number_usable(state: RunArrays, usable: BoolArray, number: IntArray) -> int:
    """Number the processors that may be used now; how many, -1 if it is not those expected."""
    count = 0
    for p in range(state.n_processors):
        may = state.present[p] and state.leaves[p] > state.clock[0]
        if may != usable[p]:
            return -1
        number[p] = count if may else -1
        count += may
    return count


def cost_now(state: RunArrays, number: IntArray, count: int) -> FloatArray:
    """What each task takes on each usable processor, as that is available now."""
    full = count == state.n_processors
    for p in range(state.n_processors):
        full = full and state.availability[p] == 1.0
    cost = np.empty(0 if full else state.n_tasks * count)
    if full:
        return cost  # as it is estimated
    scaled = False
    for p in range(state.n_processors):
        scaled = scaled or state.availability[p] != 1.0
    for task in range(state.n_tasks):
        for p in range(state.n_processors):
            if number[p] >= 0:
                takes = state.estimate[task * state.n_processors + p]
                if scaled:
                    takes /= max(state.availability[p], STANDS_STILL)
                cost[task * count + number[p]] = takes
    return cost


def full_speed(state: RunArrays) -> bool:
    """Whether every link has its full bandwidth."""
    full = True
    for link in range(len(state.bandwidth)):
        full = full and state.bandwidth[link] == 1.0
    return full


def per_unit_now(state: RunArrays) -> FloatArray:
    """What a unit of data takes on every link, at the bandwidth known now."""
    per_unit = np.empty(len(state.bandwidth))
    for link in range(len(state.bandwidth)):
        per_unit[link] = state.per_unit[link] / max(state.bandwidth[link], STANDS_STILL)
    return per_unit


def settle(
    state: RunArrays, restart: bool, number: IntArray, usable: BoolArray, free: FloatArray,
    movable: BoolArray, settled_on: IntArray, source_host: IntArray, ready_at: FloatArray,
) -> int:  # fmt: skip
    """What has begun stays, its outputs can leave once made and not before now; what may move.

    With `restart` so may what runs, but where nothing new starts it is let end.
    """
    now, count = state.clock[0], 0
    for attempt in range(state.counts[N_ATTEMPTS]):
        if state.attempt_end[attempt] > FINISHED:
            continue
        task, p = state.attempt_task[attempt], state.attempt_on[attempt]
        ends = expected_finish(state, attempt)
        runs = state.attempt_end[attempt] == OPEN
        movable[task] = restart and runs and usable[p]
        settled_on[task] = number[p]
        source_host[task] = state.host[p]
        ready_at[task] = max(now, ends)
        if runs and number[p] >= 0:
            free[number[p]] = max(free[number[p]], ends)
    for task in range(state.n_tasks):
        if state.status[task] >= GIVEN_UP:
            movable[task] = False
        count += movable[task]
    return count


def fill_known(
    state: RunArrays, n_copies: int, n_moving: int, pointers: IntArray, hosts: IntArray,
    times: FloatArray, whole: BoolArray,
) -> None:  # fmt: skip
    """Rows by item of what is known of it: copies away from home, then what is on its way."""
    known, now = n_copies + n_moving, state.clock[0]
    item = np.empty(known, dtype=np.int32)
    host = np.empty(known, dtype=np.int32)
    time = np.full(known, now)
    moving = np.empty(n_moving, dtype=np.int32)
    list_copies(state, item[0:n_copies], host[0:n_copies])
    list_under_way(state, moving, time[n_copies:known])
    for k in range(n_moving):
        item[n_copies + k] = state.transfer_item[moving[k]]
        host[n_copies + k] = state.transfer_to[moving[k]]
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
