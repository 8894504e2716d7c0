"""Min-Min just in time: what is ready is mapped at once, what would be done soonest first.

Dynamic Min-Min (Yu, Shi, section 4.2). With tasks that take several cores, those of a host on which
it would be done soonest; that amounts are short is seen only when it is to start.
"""

from __future__ import annotations

import numpy as np

from foreplan.engine.kernels.amounts import factor_of
from foreplan.engine.kernels.arrays import HERE, LINE, N_READY, RunArrays
from foreplan.engine.kernels.fitting import (
    is_efficient,
    is_possible,
    keep_among,
    sort_cores,
    takes,
    usable,
)
from foreplan.engine.kernels.items import sending_time, source_for
from foreplan.engine.kernels.passing import takes_there
from foreplan.engine.kernels.posing import expected_finish
from foreplan.engine.kernels.ready_heap import take_first_ready


def map_ready(state: RunArrays) -> int:
    """Take the ready tasks out of the queue, each to the end of a queue; how many.

    They are in state.candidate, in the order in which they were mapped.
    """
    if not any_usable(state):
        return 0
    count = 0
    while state.counts[N_READY] > 0:
        task = take_first_ready(state)
        if state.most_cores > 0 and not is_possible(state, task):
            continue  # it is ready again when the machines change
        state.candidate[count] = task
        state.best[count] = -1
        count += 1
    expect_free(state)
    for mapped in range(count):
        choose(state, mapped, count)
    if state.most_cores > 0:
        lengthen_queues_of_cores(state, count)
    else:
        lengthen_queues(state, count)
    return count


def any_usable(state: RunArrays) -> bool:
    """Whether there is such a processor."""
    count = 0
    for p in range(state.n_processors):
        count += usable(state, p)
    return count > 0


def expect_free(state: RunArrays) -> None:
    """When each processor is expected to have done what it runs and what is in its queue."""
    for p in range(state.n_processors):
        free, attempt = state.clock[0], state.running[p]
        if attempt >= 0:
            free = expected_finish(state, attempt)
        for k in range(state.queue_at[p], state.queue_end[p]):
            task = state.queue[k]
            if state.most_cores > 0:
                free = max(free, state.inputs_at[task]) + takes_there(state, task)
            else:
                free = max(free, state.inputs_at[task]) + takes(state, task, p)
        state.free_from[p] = free


def choose(state: RunArrays, mapped: int, count: int) -> None:
    """Map the candidate that is done soonest; of equals, the first of the ready queue."""
    first = mapped
    for k in range(mapped, count):
        if state.best[k] < 0:
            if state.most_cores > 0:
                find_soonest_cores(state, k)
            else:
                find_soonest(state, k)
        if state.done_at[k] < state.done_at[first]:
            first = k
    task, p = state.candidate[first], state.best[first]
    expect_inputs(state, task)
    state.inputs_at[task] = state.arrival[state.host[p]]
    state.on[task] = p
    if state.most_cores > 0:
        settle_on_cores(state, task)
    else:
        state.free_from[p] = max(state.free_from[p], state.inputs_at[task]) + takes(state, task, p)
    for k in range(first, mapped, -1):  # the others keep their order
        state.candidate[k] = state.candidate[k - 1]
        state.best[k] = state.best[k - 1]
        state.done_at[k] = state.done_at[k - 1]
    state.candidate[mapped] = task
    for k in range(mapped + 1, count):
        if state.best[k] == p:
            state.best[k] = -1  # the processor is free later now
    if state.most_cores > 0:
        look_again(state, mapped + 1, count, state.host[p])


def find_soonest(state: RunArrays, k: int) -> None:
    """The processor on which a candidate is done soonest: before it leaves, if that can be."""
    task, fits = state.candidate[k], False
    expect_inputs(state, task)
    for p in range(state.n_processors):
        if not usable(state, p):
            continue
        starts = max(state.free_from[p], state.arrival[state.host[p]])
        end = starts + takes(state, task, p)
        in_time = end <= state.leaves[p]
        better = state.best[k] < 0 or end < state.done_at[k]
        if (in_time and not fits) or (in_time == fits and better):
            state.best[k], state.done_at[k], fits = p, end, in_time


def look_again(state: RunArrays, first: int, count: int, host: int) -> None:
    """Cores of a host are free later now: who was to go there is looked at again."""
    for k in range(first, count):
        if state.best[k] >= 0 and state.host[state.best[k]] == host:
            state.best[k] = -1


def find_soonest_cores(state: RunArrays, k: int) -> None:
    """The cores on which a candidate is done soonest: before one of them leaves, if that can be.

    Its first core is noted, and how many it takes.
    """
    task, fits, wide = state.candidate[k], False, 0
    expect_inputs(state, task)
    for host in range(state.n_hosts):
        if not state.allowed[task * state.n_hosts + host]:
            continue
        for w in range(state.width_ptr[task], state.width_ptr[task + 1]):
            if not is_efficient(state, task, w):
                continue
            if not pick_soonest(state, task, host, state.width[w]):
                continue
            p = state.core[task * state.most_cores]
            end = soonest_end(state, task)
            in_time = end <= first_leave(state, task)
            better = state.best[k] < 0 or end < state.done_at[k]
            better = better or (end == state.done_at[k] and p < state.best[k])
            if (in_time and not fits) or (in_time == fits and better):
                state.best[k], state.done_at[k], fits = p, end, in_time
                wide = state.width[w]
    state.wide[task] = wide


def pick_soonest(state: RunArrays, task: int, host: int, wide: int) -> bool:
    """Note so many cores of a host on which the task alone would be done soonest; if it has them.

    Those that stay until then, if there are enough.
    """
    found = soonest_of(state, task, host, wide, True)
    if found < wide:
        found = soonest_of(state, task, host, wide, False)
    state.wide[task] = found
    sort_cores(state, task)
    return found == wide


def soonest_of(state: RunArrays, task: int, host: int, wide: int, staying: bool) -> int:
    """Note the best cores of a host, or of those that stay; how many were found."""
    found = 0
    for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
        p = state.host_core[k]
        if usable(state, p):
            end = max(state.free_from[p], state.arrival[host]) + takes(state, task, p)
            state.core_key[p] = end
            if end <= state.leaves[p] or not staying:
                found = keep_among(state, task, p, found, wide)
    return found


def soonest_end(state: RunArrays, task: int) -> float:
    """When a candidate would be done on the cores that are noted for it."""
    row, host = task * state.most_cores, state.host[state.core[task * state.most_cores]]
    start = state.arrival[host]
    for j in range(state.wide[task]):
        start = max(start, state.free_from[state.core[row + j]])
    share = factor_of(state, task, state.wide[task])
    return float(start + takes(state, task, state.core[row]) * share)


def first_leave(state: RunArrays, task: int) -> float:
    """When the first of the cores that are noted for a task leaves."""
    leaves = np.inf
    for j in range(state.wide[task]):
        leaves = min(leaves, state.leaves[state.core[task * state.most_cores + j]])
    return leaves


def settle_on_cores(state: RunArrays, task: int) -> None:
    """Map a task to the cores that were found for it, behind all that was mapped before."""
    pick_soonest(state, task, state.host[state.on[task]], state.wide[task])
    end = soonest_end(state, task)
    for j in range(state.wide[task]):
        state.free_from[state.core[task * state.most_cores + j]] = end
    state.line[task] = state.counts[LINE]
    state.counts[LINE] += 1


def expect_inputs(state: RunArrays, task: int) -> None:
    """When the inputs of a task can be on each host, if what is not there is sent now."""
    now = state.clock[0]
    for host in range(state.n_hosts):
        state.arrival[host] = now
    for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
        item = state.in_item[e]
        if state.item_producer[item] < 0:
            continue
        for host in range(state.n_hosts):
            if state.held[item * state.n_hosts + host] != HERE:
                source = source_for(state, item, host)
                moves = sending_time(state, item, source, host)
                state.arrival[host] = max(state.arrival[host], now + moves)


def measure_queues(state: RunArrays) -> None:
    """Note how long each queue is."""
    for p in range(state.n_processors):
        state.row[p + 1] = state.queue_end[p] - state.queue_at[p]
    state.row[0] = 0


def make_gaps(state: RunArrays) -> None:
    """Move the queues apart, so that each can be as long as is noted."""
    for p in range(state.n_processors):
        state.row[p + 1] += state.row[p]
    for k in range(len(state.queue)):
        state.old_queue[k] = state.queue[k]
    for p in range(state.n_processors):
        to = state.row[p]
        for k in range(state.queue_at[p], state.queue_end[p]):
            state.queue[to] = state.old_queue[k]
            to += 1
        state.queue_at[p] = state.row[p]
        state.queue_end[p] = to


def lengthen_queues(state: RunArrays, count: int) -> None:
    """Put the mapped tasks behind what is in the queues of their processors."""
    measure_queues(state)
    for k in range(count):
        state.row[state.on[state.candidate[k]] + 1] += 1
    make_gaps(state)
    for k in range(count):
        task = state.candidate[k]
        state.queue[state.queue_end[state.on[task]]] = task
        state.queue_end[state.on[task]] += 1


def lengthen_queues_of_cores(state: RunArrays, count: int) -> None:
    """The same for tasks that stand in the queue of each of their cores."""
    measure_queues(state)
    for k in range(count):
        task = state.candidate[k]
        for j in range(state.wide[task]):
            state.row[state.core[task * state.most_cores + j] + 1] += 1
    make_gaps(state)
    for k in range(count):
        task = state.candidate[k]
        for j in range(state.wide[task]):
            core = state.core[task * state.most_cores + j]
            state.queue[state.queue_end[core]] = task
            state.queue_end[core] += 1
