"""Dispatch: planned queues, the ready queue, and Min-Min.

By a plan, every processor has its queue. Without one, an idle processor gets the first of the ready
tasks: those whose producers are all done; inputs begin to move only when a processor is chosen,
which waits for them. By dynamic Min-Min (Yu, Shi) what is ready is mapped at once, what would be
done soonest first; a mapped task stays in the queue of its processor, unless that is lost.

Where tasks take several cores, or amounts, a task stands in the queue of each of its cores, and
starts when it is first in all of them, they are idle, and the amounts are there.
"""

from __future__ import annotations

import numpy as np

from foreplan.engine.kernels.amounts import claim, columns, disclaim
from foreplan.engine.kernels.arrays import (
    DONE,
    GRACE,
    HELD_BACK,
    HERE,
    LINE,
    MIN_MIN,
    N_READY,
    PLANNED,
    READY_QUEUE,
    TURN,
    WAITING,
    RunArrays,
)
from foreplan.engine.kernels.attempts import start
from foreplan.engine.kernels.fitting import (
    find_place,
    inputs_by,
    is_possible,
    is_unclaimed,
    reserve,
)
from foreplan.engine.kernels.items import gather
from foreplan.engine.kernels.losses import close_ranks, leave_queue
from foreplan.engine.kernels.min_min import map_ready
from foreplan.engine.kernels.passing import could_start, may_start, next_on
from foreplan.engine.kernels.ready_heap import get_ready, take_first_ready
from foreplan.native import compiled

MOST_TRIED = 64  # ready tasks that may pass the first one that does not fit, at one time


@compiled
def dispatch(state: RunArrays, p: int) -> int:
    """Start the next task of the processor if it can; -1, or the task that would start late."""
    if state.most_cores > 0:
        task = next_on(state, p)
        return begin(state, task) if task >= 0 else -1
    if not state.present[p] or state.running[p] >= 0 or state.queue_at[p] >= state.queue_end[p]:
        return -1
    if state.counts[HELD_BACK] > 0 or state.leaves[p] <= state.clock[0]:
        return -1
    task = state.queue[state.queue_at[p]]
    if state.missing[task] > 0 or state.gated[task]:
        return -1
    return start_unless_late(state, task, p)


def start_unless_late(state: RunArrays, task: int, p: int) -> int:
    """Start a task that can start; -1, or the task if the policy is to be asked first."""
    late = state.latest[task] + state.delay[0] * state.steps[task]
    if state.clock[0] > late and state.counts[GRACE] == 0:
        return int(task)
    state.counts[GRACE] = 0  # the start that a new plan was made for is not asked about again
    start(state, task, p)
    return -1


@compiled
def dispatch_all(state: RunArrays) -> int:
    """Start whatever can start; -1, or the first task that would start late."""
    if state.most_cores > 0:
        return begin_everywhere(state)
    for p in range(state.n_processors):
        late = dispatch(state, p)
        if late >= 0:
            return late
    return -1


def begin(state: RunArrays, task: int) -> int:
    """Start a task that takes several cores, or amounts, if it can; -1, or itself if it is late."""
    if state.counts[HELD_BACK] > 0 or not could_start(state, task):
        return -1
    if state.dispatch != READY_QUEUE and not may_start(state, task):
        return -1
    return start_unless_late(state, task, state.on[task])


def begin_on(state: RunArrays, host: int) -> int:
    """Start what can start on a host, in the order of the line; -1, or a task that is late."""
    last = -1
    while True:
        task = -1
        for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
            p = state.host_core[k]
            other = next_on(state, p)
            if other < 0 or state.running[p] >= 0 or state.on[other] != p:
                continue
            sooner = task < 0 or state.line[other] < state.line[task]
            if sooner and state.line[other] > last and could_start(state, other):
                task = other
        if task < 0:
            return -1
        last = state.line[task]
        late = begin(state, task)
        if late >= 0:
            return late


def begin_everywhere(state: RunArrays) -> int:
    """Start whatever can start; -1, or the first task that would start late."""
    for host in range(state.n_hosts):
        late = begin_on(state, host)
        if late >= 0:
            return late
    return -1


def begin_after(state: RunArrays, attempt: int) -> int:
    """Start what can start now that an attempt has given back what it held; -1, or a late task."""
    late = begin_on(state, state.host[state.attempt_on[attempt]])
    for k in range(state.n_kinds, columns(state)):
        if late < 0 and state.attempt_amount[attempt * columns(state) + k] > 0.0:
            late = begin_everywhere(state)
    return late


def go_on(state: RunArrays) -> int:
    """Start whatever can start; a task that wants to start late (or -1)."""
    if state.dispatch != PLANNED:
        hand_out(state)
    return dispatch_all(state)


def empty_queue(state: RunArrays, p: int) -> None:
    """What was to run on a processor must run elsewhere."""
    if state.most_cores > 0:
        for k in range(state.queue_at[p], state.queue_end[p]):
            disclaim(state, state.queue[k])
    for k in range(state.queue_at[p], state.queue_end[p]):
        state.on[state.queue[k]] = -1
    state.queue_at[p] = state.queue_end[p]
    if state.most_cores > 0:
        host = state.host[p]
        for k in range(state.host_ptr[host], state.host_ptr[host + 1]):
            close_ranks(state, state.host_core[k])


@compiled
def hand_out(state: RunArrays) -> None:
    """Just in time: give ready tasks to idle processors, by their priority."""
    if state.dispatch == MIN_MIN:
        map_and_gather(state)
        return
    if state.most_cores > 0:
        hand_out_cores(state)
        return
    while state.counts[N_READY] > 0 and state.counts[HELD_BACK] == 0:
        task = state.ready[0]
        p = fastest_idle(state, task)
        if p < 0:
            return
        take_first_ready(state)
        state.on[task] = p
        state.queue[p] = task  # a queue of one
        state.queue_at[p] = p
        state.queue_end[p] = p + 1
        gather(state, task)
        dispatch(state, p)


def hand_out_cores(state: RunArrays) -> None:
    """The same for tasks that take several cores, or amounts, and claim them at once.

    The first that fits nowhere reserves; a few of those behind it may pass.
    """
    kept, tried, first, there, begins = 0, 0, -1, -1, np.inf
    while state.counts[N_READY] > 0 and state.counts[HELD_BACK] == 0 and tried < MOST_TRIED:
        if not any_unclaimed(state):
            break
        task = take_first_ready(state)
        if find_place(state, task, first, there, begins):
            settle_in(state, task)
        elif is_possible(state, task):  # else it is ready again when the machines change
            state.candidate[kept] = task
            kept += 1
            if first < 0:
                first = task
                there, begins = reserve(state, task)
            else:
                tried += 1
    for k in range(kept):
        get_ready(state, state.candidate[k])


def any_unclaimed(state: RunArrays) -> bool:
    """Whether any core has nothing to do, and nobody waits on it."""
    count = 0
    for p in range(state.n_processors):
        count += is_unclaimed(state, p)
    return count > 0


def settle_in(state: RunArrays, task: int) -> None:
    """Claim the cores that were found for a ready task, and amounts; its inputs move there."""
    p = state.core[task * state.most_cores]
    state.on[task] = p
    for j in range(state.wide[task]):
        core = state.core[task * state.most_cores + j]
        state.queue[core] = task  # a queue of one
        state.queue_at[core] = core
        state.queue_end[core] = core + 1
    claim(state, task)
    state.line[task] = state.counts[LINE]
    state.counts[LINE] += 1
    state.inputs_at[task] = inputs_by(state, task, state.host[p])
    gather(state, task)
    dispatch(state, p)


@compiled
def fill_ready_queue(state: RunArrays) -> None:
    """Count for every waiting task what its producers have yet to make; queue the ready ones."""
    state.counts[N_READY] = 0
    state.counts[TURN] += 1
    for k in range(state.n_tasks):
        task = state.order[k]
        if state.status[task] != WAITING:
            continue
        if state.on[task] >= 0:
            if can_gather(state, task):
                continue
            leave_queue(state, task)  # no processor waits for what may need it to be made again
        state.unmade[task] = 0
        for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
            producer = state.item_producer[state.in_item[e]]
            if producer >= 0 and state.status[producer] != DONE:
                state.unmade[task] += 1
        if state.unmade[task] == 0:
            get_ready(state, task)


def can_gather(state: RunArrays, task: int) -> bool:
    """Whether all that the task reads is on its host or made elsewhere."""
    there = state.host[state.on[task]]
    for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
        item = state.in_item[e]
        producer = state.item_producer[item]
        here = state.held[item * state.n_hosts + there] == HERE
        if producer >= 0 and not here and state.status[producer] != DONE:
            return False
    return True


def on_producer_done(state: RunArrays, task: int) -> None:
    """A task is done: its consumers lack one thing less each."""
    state.counts[TURN] += 1
    for o in range(state.out_ptr[task], state.out_ptr[task + 1]):
        item = state.out_item[o]
        for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
            consumer = state.use_task[u]
            if state.status[consumer] == WAITING and state.on[consumer] < 0:
                state.unmade[consumer] -= 1
                if state.unmade[consumer] == 0:
                    get_ready(state, consumer)


def fastest_idle(state: RunArrays, task: int) -> int:
    """The idle processor on which the task is expected to take least; -1: all have work."""
    best, row = -1, task * state.n_processors
    for p in range(state.n_processors):
        free = state.present[p] and state.running[p] < 0 and state.queue_at[p] >= state.queue_end[p]
        free = free and state.leaves[p] > state.clock[0]
        if free and (best < 0 or state.estimate[row + p] < state.estimate[row + best]):
            best = p
    return best


def map_and_gather(state: RunArrays) -> None:
    """Just in time by Min-Min: what is ready gets its place in a queue, and its inputs move."""
    if state.counts[HELD_BACK] > 0:
        return
    for k in range(map_ready(state)):
        gather(state, state.candidate[k])
    dispatch_all(state)
