"""Where a ready task fits: on which host, on how many of its cores, and on which.

A task that may take several widths takes the largest that is idle on the host and uses its cores
well enough, else a smaller one; and the host on which it is expected to take least. If it fits on
none, the first such task reserves where it can start earliest, and others pass as in `passing`.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray
from foreplan.ends import STANDS_STILL
from foreplan.engine.kernels.amounts import factor_of, fits
from foreplan.engine.kernels.arrays import HERE, WAITING, RunArrays
from foreplan.engine.kernels.items import sending_time, source_for
from foreplan.engine.kernels.passing import (
    busy_until,
    earliest_by_amounts,
    is_idle,
    leaves_too_little,
)
from foreplan.native import compiled

EFFICIENT = 0.5  # of what the smallest width makes of its cores: less is a waste of them


def usable(state: RunArrays, p: int) -> bool:
    """Whether a processor is there to stay."""
    return bool(state.present[p] and state.leaves[p] > state.clock[0])


def takes(state: RunArrays, task: int, p: int) -> float:
    """Seconds that a task is expected to take on a processor as it is now."""
    full = state.estimate[task * state.n_processors + p]
    return float(full / max(state.availability[p], STANDS_STILL))


def is_efficient(state: RunArrays, task: int, w: int) -> bool:
    """Whether a width is no waste of cores, against the smallest of the task."""
    least = state.width_ptr[task]
    smallest = state.factor[least] * state.width[least]
    return bool(smallest >= EFFICIENT * state.factor[w] * state.width[w])


def usable_cores(state: RunArrays, host: int) -> int:
    """How many cores of a host are there to stay."""
    count = 0
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        count += usable(state, state.host_core[k])
    return count


def is_possible(state: RunArrays, task: int) -> bool:
    """Whether a host that is there can run the task at all, once enough of it is free."""
    least = state.width[state.width_ptr[task]]
    for host in range(state.n_hosts):
        if state.allowed[task * state.n_hosts + host] and usable_cores(state, host) >= least:
            return True
    return False


def keep_among(state: RunArrays, task: int, p: int, found: int, most: int) -> int:
    """Keep a core among those of a task if it is of the best by `core_key`; how many there are."""
    row, at = task * state.most_cores, found
    while at > 0 and state.core_key[p] < state.core_key[state.core[row + at - 1]]:
        at -= 1
    if at >= most:
        return found
    last = min(found, most - 1)
    for j in range(last, at, -1):
        state.core[row + j] = state.core[row + j - 1]
    state.core[row + at] = p
    return min(found + 1, most)


def sort_cores(state: RunArrays, task: int) -> None:
    """Put the slowest of its cores first, as they are now; the others by their number."""
    row, wide = task * state.most_cores, state.wide[task]
    for i in range(1, wide):
        core, at = state.core[row + i], i
        while at > 0 and state.core[row + at - 1] > core:
            state.core[row + at] = state.core[row + at - 1]
            at -= 1
        state.core[row + at] = core
    slowest = 0
    for j in range(1, wide):
        if takes(state, task, state.core[row + j]) > takes(state, task, state.core[row + slowest]):
            slowest = j
    first = state.core[row + slowest]
    for j in range(slowest, 0, -1):
        state.core[row + j] = state.core[row + j - 1]
    state.core[row] = first


def idle_cores(state: RunArrays, host: int) -> int:
    """How many cores of a host have nothing to do, and nobody waits on."""
    count = 0
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        count += is_unclaimed(state, state.host_core[k])
    return count


def is_unclaimed(state: RunArrays, p: int) -> bool:
    """Whether a core has nothing to do, and nobody waits on it."""
    return bool(is_idle(state, p) and state.queue_at[p] >= state.queue_end[p])


def find_place(state: RunArrays, task: int, first: int, there: int, begins: float) -> bool:
    """Note the cores for a ready task on the host where it is expected to take least; if any fits.

    `first` is the task that has reserved on a host, `there`, from a time on; -1: none has.
    """
    chosen, width, least, core = -1, 0, np.inf, -1
    for host in range(state.n_hosts):
        if not state.allowed[task * state.n_hosts + host] or not fits(state, task, host):
            continue
        idle = idle_cores(state, host)
        for w in range(state.width_ptr[task + 1] - 1, state.width_ptr[task] - 1, -1):
            if state.width[w] > idle or not is_efficient(state, task, w):
                continue
            pick_idle(state, task, host, state.width[w])
            if first >= 0 and is_in_the_way(state, task, host, first, there, begins):
                continue
            p = state.core[task * state.most_cores]
            cost = state.estimate[task * state.n_processors + p] * state.factor[w]
            if cost < least or (cost == least and p < core):
                chosen, width, least, core = host, state.width[w], cost, p
            break
    if chosen >= 0:
        pick_idle(state, task, chosen, width)
    return chosen >= 0


def pick_idle(state: RunArrays, task: int, host: int, wide: int) -> None:
    """Note so many idle cores of a host, those on which the task is expected to take least."""
    found = 0
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        p = state.host_core[k]
        if is_unclaimed(state, p):
            state.core_key[p] = state.estimate[task * state.n_processors + p]
            found = keep_among(state, task, p, found, wide)
    state.wide[task] = found
    sort_cores(state, task)


def is_in_the_way(
    state: RunArrays, task: int, host: int, first: int, there: int, begins: float
) -> bool:
    """Whether a task on the cores noted for it would delay the one that has reserved."""
    p = state.core[task * state.most_cores]
    share = factor_of(state, task, state.wide[task])
    if inputs_by(state, task, host) + takes(state, task, p) * share <= begins:
        return False
    if host == there:
        left = cores_by(state, host, begins) - state.wide[task]
        if left < state.width[state.width_ptr[first]]:
            return True
    return leaves_too_little(state, first, there, task, host, begins)


def inputs_by(state: RunArrays, task: int, host: int) -> float:
    """When all inputs of a ready task can be on a host, if what is not there is sent now."""
    by = state.clock[0]
    for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
        item = state.in_item[e]
        if state.item_producer[item] >= 0 and state.held[item * state.n_hosts + host] != HERE:
            source = source_for(state, item, host)
            by = max(by, state.clock[0] + sending_time(state, item, source, host))
    return float(by)


def cores_by(state: RunArrays, host: int, time: float) -> int:
    """How many cores of a host are expected to be free by a time."""
    count = 0
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        p = state.host_core[k]
        count += usable(state, p) and busy_until(state, p) <= time
    return count


def earliest_on(state: RunArrays, task: int, host: int) -> float:
    """When a ready task could start on a host with the fewest cores that it takes."""
    least, begins = state.width[state.width_ptr[task]], earliest_by_amounts(state, task, host)
    while begins < np.inf and cores_by(state, host, begins) < least:
        soonest = np.inf
        for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
            p = state.host_core[k]
            if usable(state, p) and busy_until(state, p) > begins:
                soonest = min(soonest, busy_until(state, p))
        begins = soonest
    return begins


def reserve(state: RunArrays, task: int) -> tuple[int, float]:
    """The host on which a ready task that fits on none can start earliest, and when; -1: none."""
    chosen, earliest = -1, np.inf
    for host in range(state.n_hosts):
        if state.allowed[task * state.n_hosts + host]:
            begins = max(earliest_on(state, task, host), inputs_by(state, task, host))
            if begins < earliest:
                chosen, earliest = host, begins
    return chosen, earliest


@compiled
def mark_shut_out(state: RunArrays, tasks: BoolArray) -> int:
    """Mark the waiting tasks that no host can run as it is now, and all that needs them; how many.

    They wait until a machine joins that can.
    """
    count = 0
    cores = np.zeros(state.n_hosts, dtype=np.int32)
    for host in range(state.n_hosts):
        cores[host] = usable_cores(state, host)
    for k in range(state.n_tasks):
        task = state.order[k]
        if state.status[task] != WAITING:
            continue
        shut = True
        for host in range(state.n_hosts):
            least = state.width[state.width_ptr[task]]
            shut = shut and not (
                state.allowed[task * state.n_hosts + host] and cores[host] >= least
            )
        for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
            producer = state.item_producer[state.in_item[e]]
            shut = shut or (producer >= 0 and tasks[producer])
        tasks[task] = shut
        count += shut
    return count
