"""Plans: how one is taken, and when the next one is due."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import IntArray
from foreplan.engine.kernels.arrays import N_MIGRATED, NEVER, WAITING, WAKE_AT, RunArrays
from foreplan.engine.kernels.attempts import cancel
from foreplan.engine.kernels.items import command, gather, is_placed, leave_behind
from foreplan.engine.kernels.losses import rewind_lost
from foreplan.native import compiled


def on_wake(state: RunArrays) -> bool:
    """Whether one has come; then the next one is set."""
    if state.clock[0] < state.wake[0]:
        return False  # it was set for another plan
    set_alarm(state, state.wake[1])
    return True


@compiled
def set_alarm(state: RunArrays, period: float) -> None:
    """From now on there is a rescheduling point every so many seconds."""
    state.wake[0] = state.clock[0] + period
    state.wake[1] = period
    if period < np.inf:
        command(state, WAKE_AT, 0)


@compiled
def install_plan(
    state: RunArrays, on: IntArray, queue: IntArray, queue_at: IntArray, queue_end: IntArray
) -> None:
    """Take a plan: tasks get their processors, and made items go where they are needed.

    A running task that is to be elsewhere is stopped.
    """
    for p in range(state.n_processors):
        state.queue_at[p] = queue_at[p]
        state.queue_end[p] = queue_end[p]
    for k in range(len(queue)):
        state.queue[k] = queue[k]
    migrated = False
    for p in range(state.n_processors):
        attempt = state.running[p]
        if attempt >= 0 and on[state.attempt_task[attempt]] != p:
            cancel(state, attempt)
            state.counts[N_MIGRATED] += 1
            migrated = True
    for k in range(len(queue)):
        task = queue[k]
        if state.on[task] != on[task] and is_placed(state, task):
            state.counts[N_MIGRATED] += 1
    if migrated:
        # an input may have been lost while it ran; the plan counts on any copy
        rewind_lost(state, True)
    clear_places(state)
    for k in range(len(queue)):
        state.on[queue[k]] = on[queue[k]]
    send_inputs(state)


def clear_places(state: RunArrays) -> None:
    """What waits has no place any more."""
    for k in range(state.n_tasks):
        task = state.order[k]
        if state.status[task] == WAITING:
            state.on[task] = -1


def send_inputs(state: RunArrays) -> None:
    """What is made goes where it is needed; where copies are not reused, the rest is forgotten."""
    if state.reuse == NEVER:
        leave_behind(state)
    for k in range(state.n_tasks):
        task = state.order[k]
        if state.status[task] == WAITING and state.on[task] >= 0:
            gather(state, task)


@compiled
def install_plan_of_cores(
    state: RunArrays, cores_ptr: IntArray, cores: IntArray, line: IntArray, queue: IntArray,
    queue_at: IntArray, queue_end: IntArray,
) -> None:  # fmt: skip
    """The same where tasks take several cores: those of task t are cores[cores_ptr[t]:].

    `line` says who comes before whom where amounts are short. A task stands in the queue of each
    of its cores.
    """
    for p in range(state.n_processors):
        state.queue_at[p] = queue_at[p]
        state.queue_end[p] = queue_end[p]
    for k in range(len(queue)):
        state.queue[k] = queue[k]
    migrated = False
    for p in range(state.n_processors):
        attempt = state.running[p]
        if attempt < 0 or state.attempt_on[attempt] != p:
            continue
        task, its = state.attempt_task[attempt], attempt * state.most_cores
        row = cores[cores_ptr[task] : cores_ptr[task + 1]]
        if not are_the_same(state.attempt_core, its, state.attempt_wide[attempt], row):
            cancel(state, attempt)
            state.counts[N_MIGRATED] += 1
            migrated = True
    for p in range(state.n_processors):
        for k in range(queue_at[p], queue_end[p]):
            task = queue[k]
            row = cores[cores_ptr[task] : cores_ptr[task + 1]]
            if row[0] != p or not is_placed(state, task):
                continue
            if not are_the_same(state.core, task * state.most_cores, state.wide[task], row):
                state.counts[N_MIGRATED] += 1
    if migrated:
        rewind_lost(state, True)
    clear_places(state)
    for k in range(len(queue)):
        task = queue[k]
        row = cores[cores_ptr[task] : cores_ptr[task + 1]]
        state.on[task] = row[0]
        state.wide[task] = len(row)
        for j in range(len(row)):
            state.core[task * state.most_cores + j] = row[j]
    for task in range(state.n_tasks):
        state.line[task] = line[task]
    send_inputs(state)


def are_the_same(held: IntArray, first: int, wide: int, cores: IntArray) -> bool:
    """Whether cores that are held, or noted, are these."""
    same = wide == len(cores)
    for j in range(wide):
        same = same and held[first + j] == cores[j]
    return same
