"""What is lost and what is given up: rules for items that vanish and for tasks without hope."""

from __future__ import annotations

import numpy as np

from foreplan.engine.kernels.amounts import disclaim
from foreplan.engine.kernels.arrays import (
    ABSENT,
    DONE,
    DROP,
    GIVEN_UP,
    HERE,
    MOVING,
    N_DONE,
    N_GIVEN_UP,
    N_RESTING,
    N_REWOUND,
    N_TRANSFERS,
    RESTING,
    REWOUND,
    WAITING,
    RunArrays,
)
from foreplan.engine.kernels.items import can_have, command
from foreplan.native import compiled


def on_host_gone(state: RunArrays, host: int) -> None:
    """Its items are gone, and so is all that was on its way from it or to it."""
    for item in range(len(state.item_producer)):
        state.held[item * state.n_hosts + host] = ABSENT
    for transfer in range(state.counts[N_TRANSFERS]):
        if state.transfer_from[transfer] == host or state.transfer_to[transfer] == host:
            cut(state, transfer)


def on_item_gone(state: RunArrays, item: int, host: int) -> None:
    """A copy is gone, and so is what was being sent from it."""
    if state.held[item * state.n_hosts + host] == HERE:
        state.held[item * state.n_hosts + host] = ABSENT
    for transfer in range(state.counts[N_TRANSFERS]):
        if state.transfer_item[transfer] != item:
            continue
        if state.transfer_from[transfer] == host:
            cut(state, transfer)
        elif state.transfer_to[transfer] == host and np.isnan(state.transfer_arrival[transfer]):
            state.held[item * state.n_hosts + host] = MOVING  # it was made there meanwhile


@compiled
def cut(state: RunArrays, transfer: int) -> None:
    """A transfer that is under way comes to nothing."""
    if not np.isnan(state.transfer_arrival[transfer]):
        return
    there = state.transfer_item[transfer] * state.n_hosts + state.transfer_to[transfer]
    if state.held[there] == MOVING:
        state.held[there] = ABSENT
    state.transfer_arrival[transfer] = np.inf
    command(state, DROP, transfer)


def rewind_lost(state: RunArrays, anywhere: bool) -> None:
    """What unfinished work needs and cannot have any more is computed again, transitively.

    In reverse topological order (Hernandez, Cole: section 5; foreplan.rewind_set on plain data).
    With `anywhere`, any copy is enough.
    """
    for k in range(state.n_tasks - 1, -1, -1):
        task = state.order[k]
        if state.status[task] == DONE and result_lost(state, task, anywhere):
            rewind(state, task)


@compiled
def rewind(state: RunArrays, task: int) -> None:
    """The result of a finished task is gone: it must be run again."""
    state.status[task] = WAITING
    state.on[task] = -1
    state.attempt_end[state.attempt[task]] = REWOUND
    state.counts[N_DONE] -= 1
    state.counts[N_REWOUND] += 1


def result_lost(state: RunArrays, task: int, anywhere: bool) -> bool:
    """Whether a waiting task needs an output of the task and cannot have it any more."""
    for o in range(state.out_ptr[task], state.out_ptr[task + 1]):
        item = state.out_item[o]
        for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
            consumer = state.use_task[u]
            waits = state.status[consumer] == WAITING
            if waits and not can_have(state, item, consumer, anywhere):
                return True
    return False


def give_up(state: RunArrays, task: int) -> None:
    """The task will not be tried again, nor anything that cannot do without its results."""
    set_aside(state, task, GIVEN_UP)
    give_up_hopeless(state)


def rest(state: RunArrays, task: int) -> None:
    """The task is tried again later; until then all rests that cannot do without its results."""
    set_aside(state, task, RESTING)
    give_up_hopeless(state)


def give_up_hopeless(state: RunArrays) -> None:
    """Set aside what waits for a result that nobody will make, or nobody makes now."""
    if state.counts[N_GIVEN_UP] == 0 and state.counts[N_RESTING] == 0:
        return
    for k in range(state.n_tasks):
        task = state.order[k]
        if state.status[task] == WAITING:
            how = prospect(state, task)
            if how != WAITING:
                set_aside(state, task, how)


def prospect(state: RunArrays, task: int) -> int:
    """What a waiting task is, by the producers of its inputs."""
    found = WAITING
    for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
        producer = state.item_producer[state.in_item[e]]
        if producer >= 0 and state.status[producer] == GIVEN_UP:
            return GIVEN_UP
        if producer >= 0 and state.status[producer] == RESTING:
            found = RESTING
    return found


def set_aside(state: RunArrays, task: int, how: int) -> None:
    """Take a waiting task out of the run, for good or for a while."""
    if state.on[task] >= 0:
        leave_queue(state, task)
    state.status[task] = how
    if how == GIVEN_UP:
        state.counts[N_GIVEN_UP] += 1
    else:
        state.counts[N_RESTING] += 1


def take_up_again(state: RunArrays) -> bool:
    """Try again what was given up or rests; whether there was anything."""
    for task in range(state.n_tasks):
        state.rests[task] = np.inf
        if state.status[task] == GIVEN_UP or state.status[task] == RESTING:
            state.status[task] = WAITING
    aside = state.counts[N_GIVEN_UP] + state.counts[N_RESTING]
    state.counts[N_GIVEN_UP] = 0
    state.counts[N_RESTING] = 0
    return bool(aside > 0)


def take_up_rested(state: RunArrays) -> bool:
    """Try again what has rested until now; whether there was anything.

    What rests for the sake of others waits with them: `give_up_hopeless` sets it aside again.
    """
    due = 0
    for task in range(state.n_tasks):
        if state.status[task] == RESTING and state.rests[task] <= state.clock[0]:
            due += 1
            state.rests[task] = np.inf
    if due == 0:
        return False
    for task in range(state.n_tasks):
        if state.status[task] == RESTING and state.rests[task] == np.inf:
            state.status[task] = WAITING
            state.counts[N_RESTING] -= 1
    return True


def leave_queue(state: RunArrays, task: int) -> None:
    """Take a task out of the queue of its processor, and of all its cores."""
    p = state.on[task]
    if state.most_cores > 0:
        disclaim(state, task)
        state.on[task] = -1
        for j in range(state.wide[task]):
            close_ranks(state, state.core[task * state.most_cores + j])
        return
    to = state.queue_at[p]
    for k in range(state.queue_at[p], state.queue_end[p]):
        if state.queue[k] != task:
            state.queue[to] = state.queue[k]
            to += 1
    state.queue_end[p] = to
    state.on[task] = -1


def close_ranks(state: RunArrays, p: int) -> None:
    """Take tasks out of the queue of a processor that have no place any more."""
    to = state.queue_at[p]
    for k in range(state.queue_at[p], state.queue_end[p]):
        if state.on[state.queue[k]] >= 0:
            state.queue[to] = state.queue[k]
            to += 1
    state.queue_end[p] = to
