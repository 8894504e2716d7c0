"""The transition rules of a run: what happens on each event, and what may start next.

The simulator's native loop calls them compiled; the coordinator calls the same source event by
event for any executor. Each rule changes the state and writes commands; none reads a clock.
"""

from __future__ import annotations

import numpy as np

from foreplan.engine.kernels.amounts import price_of
from foreplan.engine.kernels.arrays import (
    ABSENT,
    AVAILABILITY,
    BANDWIDTH,
    DONE,
    FAILED,
    FINISHED,
    FOR_A_WHILE,
    FOR_GOOD,
    FOR_MONEY,
    GONE,
    HELD_BACK,
    HERE,
    ITEM_ARRIVED,
    ITEM_LOST,
    JOINED,
    LEAVING,
    LIMITS,
    MORE_TO_COME,
    N_DONE,
    N_TRANSFERS,
    OVERDUE,
    PAUSED,
    PLANNED,
    RETRY,
    TASK_FAILED,
    TASK_FINISHED,
    WAITING,
    WAKE,
    RunArrays,
)
from foreplan.engine.kernels.attempts import end_attempt, estimated, worked_by_now
from foreplan.engine.kernels.dispatch import (
    begin_after,
    dispatch,
    empty_queue,
    fill_ready_queue,
    go_on,
    hand_out,
    on_producer_done,
)
from foreplan.engine.kernels.items import gather, holder, send
from foreplan.engine.kernels.losses import (
    give_up,
    give_up_hopeless,
    on_host_gone,
    on_item_gone,
    rest,
    rewind,
    rewind_lost,
    take_up_again,
    take_up_rested,
)
from foreplan.engine.kernels.plans import on_wake
from foreplan.native import compiled

ROUNDING = 1e-9  # of the time: what a task is off by less is not off at all


@compiled
def apply_event(
    state: RunArrays, kind: int, which: int, time: float, value: float
) -> tuple[int, bool]:
    """One event; returns a task that wants to start late (or -1), and whether machines changed.

    `which` is an attempt, a transfer, a processor, a link (from * hosts + to) or an item on a host
    (host * items + item).
    """
    state.clock[0] = time
    if kind == TASK_FINISHED:
        off, dear = off_estimate(state, which), spend_allowance(state, which)
        if dear and not off:
            state.counts[FOR_MONEY] = 1
        return on_task_finished(state, which, off or dear), off or dear
    if kind == ITEM_ARRIVED:
        return on_item_arrived(state, which), False
    if kind == AVAILABILITY:
        off = on_availability_changed(state, which, value)
        return -1, off or look_at_money(state)
    if kind == OVERDUE:
        return -1, look_at_money(state)
    if kind == BANDWIDTH:
        on_bandwidth_changed(state, which, value)
        return -1, False
    if kind == WAKE:
        return -1, on_wake(state)
    if kind == LIMITS:
        return -1, False  # they are looked at whatever happens
    if kind == PAUSED:
        state.counts[HELD_BACK] = 1 if value > 0 else 0
        if value > 0 or not take_up_again(state):
            return go_on(state), False
        make_good(state)  # an input may have been lost while nobody wanted it
    elif kind == TASK_FAILED:
        end_attempt(state, which, FAILED)
        if value == FOR_GOOD:
            give_up(state, state.attempt_task[which])
        elif value == FOR_A_WHILE:
            rest(state, state.attempt_task[which])
        make_good(state)  # an input may have been lost while it ran
    elif kind == RETRY:
        if not take_up_rested(state):
            return -1, False
        make_good(state)  # an input may have been lost while nobody wanted it
    elif kind == JOINED:
        state.present[which] = True
        if state.leaves[which] <= time:
            state.leaves[which] = np.inf  # it is back
        if value == MORE_TO_COME:
            return -1, False
    elif kind == LEAVING:
        state.leaves[which] = value
        if value <= time:
            empty_queue(state, which)
    elif kind == GONE:
        on_processor_gone(state, which, value)
    elif kind == ITEM_LOST:
        n = len(state.item_producer)
        if state.held[(which % n) * state.n_hosts + which // n] != HERE:
            return -1, False  # that is known
        on_item_lost(state, which % n, which // n)
    if state.dispatch != PLANNED:
        fill_ready_queue(state)
        hand_out(state)
    return -1, True


def look_at_money(state: RunArrays) -> bool:
    """Have the coordinator look at what the plan costs, and at nothing else; if that matters."""
    if state.allowance[0] == np.inf:
        return False
    state.counts[FOR_MONEY] = 1
    return True


def on_task_finished(state: RunArrays, attempt: int, hold: bool) -> int:
    """A task is done: its outputs are on its host, and go to the hosts of their consumers.

    Nothing is started if that is to be held until the policy has been asked.
    """
    task, p = state.attempt_task[attempt], state.attempt_on[attempt]
    here = state.host[p]
    end_attempt(state, attempt, FINISHED)
    state.status[task] = DONE
    state.counts[N_DONE] += 1
    late = -1
    for o in range(state.out_ptr[task], state.out_ptr[task + 1]):
        item = state.out_item[o]
        had_it = state.held[item * state.n_hosts + here] == HERE  # a copy, of a task made again
        state.held[item * state.n_hosts + here] = HERE
        for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
            consumer = state.use_task[u]
            if state.status[consumer] != WAITING or state.on[consumer] < 0:
                continue
            there = state.host[state.on[consumer]]
            if there == here:
                if not had_it:
                    state.missing[consumer] -= 1
                elsewhere = state.on[consumer] != p and state.most_cores == 0
                if elsewhere and late < 0 and not hold:
                    late = dispatch(state, state.on[consumer])
            elif state.held[item * state.n_hosts + there] == ABSENT:
                send(state, item, here, there)
    if state.dispatch != PLANNED:
        on_producer_done(state, task)
        hand_out(state)
        return -1
    if late >= 0 or hold:
        return late
    return dispatch(state, p) if state.most_cores == 0 else begin_after(state, attempt)


def on_item_arrived(state: RunArrays, transfer: int) -> int:
    """An item is complete on a host: tasks that waited for it there may start."""
    item, there = state.transfer_item[transfer], state.transfer_to[transfer]
    state.transfer_arrival[transfer] = state.clock[0]
    if state.held[item * state.n_hosts + there] == HERE:
        return -1  # it was made there meanwhile
    state.held[item * state.n_hosts + there] = HERE
    late = -1
    for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
        consumer = state.use_task[u]
        if state.status[consumer] != WAITING or state.on[consumer] < 0:
            continue
        if state.host[state.on[consumer]] == there:
            state.missing[consumer] -= 1
            if late < 0:
                late = dispatch(state, state.on[consumer])
    return late


def on_processor_gone(state: RunArrays, p: int, value: float) -> None:
    """A processor left or died: its attempt ends; with its host's last one the host's items go."""
    state.present[p] = False
    empty_queue(state, p)
    if state.running[p] >= 0:
        attempt = state.running[p]
        end_attempt(state, attempt, FAILED)
        if value == FOR_GOOD:
            give_up(state, state.attempt_task[attempt])
    last = True
    for other in range(state.n_processors):
        if state.present[other] and state.host[other] == state.host[p]:
            last = False
    if last:
        on_host_gone(state, state.host[p])
    make_good(state)


def on_item_lost(state: RunArrays, item: int, host: int) -> None:
    """A copy has vanished; a product that nobody reads is wanted for itself."""
    on_item_gone(state, item, host)
    producer = state.item_producer[item]
    unread = state.use_ptr[item] == state.use_ptr[item + 1]
    if unread and producer >= 0 and state.status[producer] == DONE and holder(state, item) < 0:
        rewind(state, producer)
    make_good(state)


@compiled
def make_good(state: RunArrays) -> None:
    """Rewind what is lost, and send again what was cut from where there is a copy."""
    rewind_lost(state, False)
    give_up_hopeless(state)
    for k in range(state.n_tasks):
        task = state.order[k]
        if state.status[task] == WAITING and state.on[task] >= 0:
            gather(state, task)


def off_estimate(state: RunArrays, attempt: int) -> bool:
    """Whether a finished attempt took longer or shorter than expected, by more than the watch."""
    if state.variance[0] == np.inf and state.early[0] == np.inf:
        return False
    expected, took = estimated(state, attempt), worked_by_now(state, attempt)
    slop = ROUNDING * state.clock[0]
    if expected - took > state.early[0] + slop:
        return True
    if state.variance[0] == np.inf:
        return False
    return bool(abs(took - expected) > state.variance[0] * expected + slop)


def spend_allowance(state: RunArrays, attempt: int) -> bool:
    """Take what a finished attempt cost beyond its estimate from the allowance; whether it is gone.

    The plan may have reckoned with a slower processor: then this is too strict, and looked into.
    """
    if state.allowance[0] == np.inf:
        return False
    over = state.clock[0] - state.attempt_start[attempt] - estimated(state, attempt)
    state.allowance[0] -= price_of(state, attempt) * over
    return bool(state.allowance[0] < 0)


def on_availability_changed(state: RunArrays, p: int, value: float) -> bool:
    """Note what was done at the old speed; whether the new one is off by more than the watch.

    An attempt goes at the pace of its first core.
    """
    attempt = state.running[p]
    if attempt >= 0 and state.attempt_on[attempt] == p:
        state.worked[attempt] = worked_by_now(state, attempt)
        state.since[attempt] = state.clock[0]
    state.availability[p] = value
    if state.variance[0] == np.inf:
        return False
    off = abs(value - state.reckoned[p]) > state.variance[0] * state.reckoned[p]
    if off:
        state.reckoned[p] = value
    return bool(off)


def on_bandwidth_changed(state: RunArrays, link: int, value: float) -> None:
    """Note what was moved at the old speed."""
    now, old = state.clock[0], state.bandwidth[link]
    for transfer in range(state.counts[N_TRANSFERS]):
        here = state.transfer_from[transfer] * state.n_hosts + state.transfer_to[transfer]
        under_way = here == link and np.isnan(state.transfer_arrival[transfer])
        if under_way and now > state.moved_since[transfer]:
            state.moved[transfer] += (now - state.moved_since[transfer]) * old
            state.moved_since[transfer] = now
    state.bandwidth[link] = value
