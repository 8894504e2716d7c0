"""The line for amounts: who is first in it reserves, others pass only if they do not delay it.

EASY backfilling (Lifka) in several dimensions. Nothing is written down: who is first, and when it
could start, follows from what runs now and is expected to end.
"""

from __future__ import annotations

import numpy as np

from foreplan.ends import STANDS_STILL
from foreplan.engine.kernels.amounts import columns, factor_of, fits, place_of, suffices
from foreplan.engine.kernels.arrays import WAITING, RunArrays
from foreplan.engine.kernels.posing import expected_finish


def next_on(state: RunArrays, p: int) -> int:
    """The task that is first in the queue of a processor; -1: none."""
    if state.queue_at[p] >= state.queue_end[p]:
        return -1
    return int(state.queue[state.queue_at[p]])


def is_idle(state: RunArrays, p: int) -> bool:
    """Whether something may start on a processor, as far as that goes."""
    return bool(state.running[p] < 0 and state.present[p] and state.leaves[p] > state.clock[0])


def could_start(state: RunArrays, task: int) -> bool:
    """Whether nothing but amounts can keep a task from starting.

    It is first on all of its cores, they are idle, and it has its inputs.
    """
    if state.status[task] != WAITING or state.missing[task] > 0 or state.gated[task]:
        return False
    for j in range(state.wide[task]):
        core = state.core[task * state.most_cores + j]
        if not is_idle(state, core) or next_on(state, core) != task:
            return False
    return True


def takes_there(state: RunArrays, task: int) -> float:
    """Seconds that a task is expected to take on its cores: it goes at the pace of the first."""
    p = state.on[task]
    full = state.estimate[task * state.n_processors + p]
    share = factor_of(state, task, state.wide[task])
    return float(full / max(state.availability[p], STANDS_STILL) * share)


def may_start(state: RunArrays, task: int) -> bool:
    """Whether a task that could start but for amounts has them, and delays nobody before it."""
    if not fits(state, task, state.host[state.on[task]]):
        return False
    first = first_in_line(state, task)
    return first < 0 or not delays(state, first, task)


def first_in_line(state: RunArrays, task: int) -> int:
    """The first of those before a task that could start but for amounts that it takes, too."""
    host, first = state.host[state.on[task]], -1
    if takes_of_pools(state, task):
        for p in range(state.n_processors):
            first = earlier(state, first, task, p)
        return first
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        first = earlier(state, first, task, state.host_core[k])
    return first


def earlier(state: RunArrays, first: int, task: int, p: int) -> int:
    """Who is first in line before a task, if the one that is next on a processor may be."""
    if state.running[p] >= 0:
        return first
    other = next_on(state, p)
    if other < 0 or other == task or state.on[other] != p or state.line[other] > state.line[task]:
        return first
    if first >= 0 and state.line[other] > state.line[first]:
        return first
    if competes(state, other, task) and could_start(state, other):
        return other
    return first


def takes_of_pools(state: RunArrays, task: int) -> bool:
    """Whether a task takes of what all hosts share."""
    for k in range(state.n_kinds, columns(state)):
        if state.need[task * columns(state) + k] > 0.0:
            return True
    return False


def competes(state: RunArrays, one: int, other: int) -> bool:
    """Whether two tasks take of the same amounts, where they stand."""
    here, there = state.host[state.on[one]], state.host[state.on[other]]
    for k in range(columns(state)):
        both = min(state.need[one * columns(state) + k], state.need[other * columns(state) + k])
        place = place_of(state, here, k)
        if both > 0.0 and place == place_of(state, there, k) and state.capacity[place] < np.inf:
            return True
    return False


def delays(state: RunArrays, first: int, task: int) -> bool:
    """Whether a task that starts now delays the first in line, by the estimates.

    It does not if it ends before that one could start, or leaves it enough.
    """
    here, there = state.host[state.on[task]], state.host[state.on[first]]
    begins = earliest_by_amounts(state, first, there)
    if state.clock[0] + takes_there(state, task) <= begins:
        return False
    return leaves_too_little(state, first, there, task, here, begins)


def leaves_too_little(
    state: RunArrays, first: int, there: int, task: int, here: int, time: float
) -> bool:
    """Whether a task takes of what the first in line needs at a time, and cannot be spared."""
    for k in range(columns(state)):
        wanted = state.need[first * columns(state) + k]
        taken = state.need[task * columns(state) + k]
        place = place_of(state, there, k)
        if wanted > 0.0 and taken > 0.0 and place == place_of(state, here, k):
            left = free_at(state, there, k, time) - taken
            if not suffices(state, place, wanted, left):
                return True
    return False


def earliest_by_amounts(state: RunArrays, task: int, host: int) -> float:
    """When all amounts that a task needs on a host are free, as what runs is expected to end."""
    begins = state.clock[0]
    for k in range(columns(state)):
        wanted, time = state.need[task * columns(state) + k], state.clock[0]
        place = place_of(state, host, k)
        while not suffices(state, place, wanted, free_at(state, host, k, time)):
            time = next_release(state, host, k, time)
            if time == np.inf:
                return np.inf
        begins = max(begins, time)
    return float(begins)


def free_at(state: RunArrays, host: int, column: int, time: float) -> float:
    """How much of a column is free at a time, if nothing starts and all ends as expected."""
    free = state.free[place_of(state, host, column)]
    if column >= state.n_kinds:
        for p in range(state.n_processors):
            if frees_at(state, p, column) <= time:
                free += held_of(state, p, column)
        return float(free)
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        if frees_at(state, state.host_core[k], column) <= time:
            free += held_of(state, state.host_core[k], column)
    return float(free)


def next_release(state: RunArrays, host: int, column: int, time: float) -> float:
    """The first time after this at which something of a column is given back."""
    found = np.inf
    if column >= state.n_kinds:
        for p in range(state.n_processors):
            ends = frees_at(state, p, column)
            if time < ends < found:
                found = ends
        return float(found)
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        ends = frees_at(state, state.host_core[k], column)
        if time < ends < found:
            found = ends
    return float(found)


def frees_at(state: RunArrays, p: int, column: int) -> float:
    """When what has a processor as its first core gives back of a column; infinite: it has none."""
    if held_of(state, p, column) <= 0.0:
        return np.inf
    return busy_until(state, p)


def held_of(state: RunArrays, p: int, column: int) -> float:
    """What is held of a column by what has a processor as its first core, or has claimed it so."""
    attempt = state.running[p]
    if attempt >= 0:
        if state.attempt_on[attempt] != p:
            return 0.0
        return float(state.attempt_amount[attempt * columns(state) + column])
    task = next_on(state, p)
    if len(state.claim) == 0 or task < 0 or state.on[task] != p:
        return 0.0
    return float(state.claim[task * columns(state) + column])


def busy_until(state: RunArrays, p: int) -> float:
    """When a processor is expected to have done what it runs, or is claimed for; else now."""
    attempt = state.running[p]
    if attempt >= 0:
        return expected_finish(state, attempt)
    task = next_on(state, p)
    if task < 0:
        return float(state.clock[0])
    return float(max(state.clock[0], state.inputs_at[task]) + takes_there(state, task))
