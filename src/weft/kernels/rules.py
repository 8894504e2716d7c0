"""The transition rules of a run: what happens on each event, and what may start next.

The simulator's native loop calls them compiled; the coordinator calls the same source event by
event for any executor. Each rule changes the board and writes commands; none reads a clock.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.attempts import end_attempt, start
from weft.kernels.board import (
    ABSENT,
    AVAILABILITY,
    BANDWIDTH,
    DONE,
    FAILED,
    FINISHED,
    FOR_GOOD,
    FOR_MONEY,
    GONE,
    GRACE,
    HELD_BACK,
    HERE,
    ITEM_ARRIVED,
    ITEM_LOST,
    JOINED,
    LEAVING,
    MORE_TO_COME,
    N_DONE,
    N_READY,
    PAUSED,
    TASK_FAILED,
    TASK_FINISHED,
    WAITING,
    WAKE,
    Board,
)
from weft.kernels.copies import holder
from weft.kernels.just_in_time import fastest_idle, next_in_line, producer_done, stand_in_line
from weft.kernels.losses import (
    give_up,
    give_up_hopeless,
    host_gone,
    item_gone,
    rewind,
    rewind_lost,
    take_up_again,
)
from weft.kernels.min_min import map_ready
from weft.kernels.moves import gather, send
from weft.kernels.pace import (
    availability_changed,
    bandwidth_changed,
    costs_more,
    off_estimate,
)
from weft.kernels.plans import rescheduling_point
from weft.native import compiled


@compiled
def apply_event(board: Board, kind: int, which: int, time: float, value: float) -> tuple[int, bool]:
    """One event; returns a task that wants to start late (or -1), and whether machines changed.

    `which` is an attempt, a transfer, a processor, a link (from * hosts + to) or an item on a host
    (host * items + item).
    """
    board.clock[0] = time
    if kind == TASK_FINISHED:
        off, dear = off_estimate(board, which), costs_more(board, which)
        if dear and not off:
            board.counts[FOR_MONEY] = 1
        return finish_attempt(board, which, off or dear), off or dear
    if kind == ITEM_ARRIVED:
        return item_arrived(board, which), False
    if kind == AVAILABILITY:
        off = availability_changed(board, which, value)
        if not off and board.allowance[0] < np.inf:
            board.counts[FOR_MONEY] = 1
            return -1, True
        return -1, off
    if kind == BANDWIDTH:
        bandwidth_changed(board, which, value)
        return -1, False
    if kind == WAKE:
        return -1, rescheduling_point(board)
    if kind == PAUSED:
        board.counts[HELD_BACK] = 1 if value > 0 else 0
        if value > 0 or not take_up_again(board):
            return go_on(board), False
        make_good(board)  # an input may have been lost while nobody wanted it
    elif kind == TASK_FAILED:
        end_attempt(board, which, FAILED)
        if value == FOR_GOOD:
            give_up(board, board.attempt_task[which])
        make_good(board)  # an input may have been lost while it ran
    elif kind == JOINED:
        board.present[which] = True
        if board.leaves[which] <= time:
            board.leaves[which] = np.inf  # it is back
        if value == MORE_TO_COME:
            return -1, False
    elif kind == LEAVING:
        board.leaves[which] = value
        if value <= time:
            empty_queue(board, which)
    elif kind == GONE:
        processor_gone(board, which, value)
    elif kind == ITEM_LOST:
        n = len(board.item_producer)
        if board.held[(which % n) * board.n_hosts + which // n] != HERE:
            return -1, False  # that is known
        item_lost(board, which % n, which // n)
    if board.just_in_time:
        stand_in_line(board)
        hand_out(board)
    return -1, True


def go_on(board: Board) -> int:
    """Start whatever can start; a task that wants to start late (or -1)."""
    if board.just_in_time:
        hand_out(board)
    return dispatch_all(board)


def finish_attempt(board: Board, attempt: int, hold: bool) -> int:
    """A task is done: its outputs are on its host, and go to the hosts of their consumers.

    Nothing is started if that is to be held until the policy has been asked.
    """
    task, p = board.attempt_task[attempt], board.attempt_on[attempt]
    here = board.host[p]
    end_attempt(board, attempt, FINISHED)
    board.status[task] = DONE
    board.counts[N_DONE] += 1
    late = -1
    for o in range(board.out_ptr[task], board.out_ptr[task + 1]):
        item = board.out_item[o]
        had_it = board.held[item * board.n_hosts + here] == HERE  # a copy, of a task made again
        board.held[item * board.n_hosts + here] = HERE
        for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
            consumer = board.use_task[u]
            if board.status[consumer] != WAITING or board.on[consumer] < 0:
                continue
            there = board.host[board.on[consumer]]
            if there == here:
                if not had_it:
                    board.missing[consumer] -= 1
                if board.on[consumer] != p and late < 0 and not hold:
                    late = dispatch(board, board.on[consumer])
            elif board.held[item * board.n_hosts + there] == ABSENT:
                send(board, item, here, there)
    if board.just_in_time:
        producer_done(board, task)
        hand_out(board)
        return -1
    return late if late >= 0 or hold else dispatch(board, p)


@compiled
def hand_out(board: Board) -> None:
    """Just in time: give ready tasks to idle processors, in the order of the line."""
    if board.min_min:
        map_and_gather(board)
        return
    while board.counts[N_READY] > 0 and board.counts[HELD_BACK] == 0:
        task = board.ready[0]
        p = fastest_idle(board, task)
        if p < 0:
            return
        next_in_line(board)
        board.on[task] = p
        board.queue[p] = task  # a queue of one
        board.queue_at[p] = p
        board.queue_end[p] = p + 1
        gather(board, task)
        dispatch(board, p)


def map_and_gather(board: Board) -> None:
    """Just in time by Min-Min: what is ready gets its place in a queue, and its inputs move."""
    if board.counts[HELD_BACK] > 0:
        return
    for k in range(map_ready(board)):
        gather(board, board.candidate[k])
    dispatch_all(board)


def item_arrived(board: Board, transfer: int) -> int:
    """An item is complete on a host: tasks that waited for it there may start."""
    item, there = board.transfer_item[transfer], board.transfer_to[transfer]
    board.transfer_arrival[transfer] = board.clock[0]
    if board.held[item * board.n_hosts + there] == HERE:
        return -1  # it was made there meanwhile
    board.held[item * board.n_hosts + there] = HERE
    late = -1
    for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
        consumer = board.use_task[u]
        if board.status[consumer] != WAITING or board.on[consumer] < 0:
            continue
        if board.host[board.on[consumer]] == there:
            board.missing[consumer] -= 1
            if late < 0:
                late = dispatch(board, board.on[consumer])
    return late


@compiled
def dispatch(board: Board, p: int) -> int:
    """Start the next task of the processor if it can; -1, or the task that would start late."""
    if not board.present[p] or board.running[p] >= 0 or board.queue_at[p] >= board.queue_end[p]:
        return -1
    if board.counts[HELD_BACK] > 0 or board.leaves[p] <= board.clock[0]:
        return -1
    task = board.queue[board.queue_at[p]]
    if board.missing[task] > 0 or board.gated[task]:
        return -1
    late = board.latest[task] + board.delay[0] * board.steps[task]
    if board.clock[0] > late and board.counts[GRACE] == 0:
        return int(task)
    board.counts[GRACE] = 0  # the start that a new plan was made for is not asked about again
    start(board, task, p)
    return -1


@compiled
def dispatch_all(board: Board) -> int:
    """Start whatever can start; -1, or the first task that would start late."""
    for p in range(board.n_processors):
        late = dispatch(board, p)
        if late >= 0:
            return late
    return -1


def processor_gone(board: Board, p: int, value: float) -> None:
    """A processor left or died: its attempt ends; with its host's last one the host's items go."""
    board.present[p] = False
    empty_queue(board, p)
    if board.running[p] >= 0:
        attempt = board.running[p]
        end_attempt(board, attempt, FAILED)
        if value == FOR_GOOD:
            give_up(board, board.attempt_task[attempt])
    last = True
    for other in range(board.n_processors):
        if board.present[other] and board.host[other] == board.host[p]:
            last = False
    if last:
        host_gone(board, board.host[p])
    make_good(board)


def empty_queue(board: Board, p: int) -> None:
    """What was to run on a processor must run elsewhere."""
    for k in range(board.queue_at[p], board.queue_end[p]):
        board.on[board.queue[k]] = -1
    board.queue_at[p] = board.queue_end[p]


def item_lost(board: Board, item: int, host: int) -> None:
    """A copy has vanished; a product that nobody reads is wanted for itself."""
    item_gone(board, item, host)
    producer = board.item_producer[item]
    unread = board.use_ptr[item] == board.use_ptr[item + 1]
    if unread and producer >= 0 and board.status[producer] == DONE and holder(board, item) < 0:
        rewind(board, producer)
    make_good(board)


@compiled
def make_good(board: Board) -> None:
    """Rewind what is lost, and send again what was cut from where there is a copy."""
    rewind_lost(board, False)
    give_up_hopeless(board)
    for k in range(board.n_tasks):
        task = board.order[k]
        if board.status[task] == WAITING and board.on[task] >= 0:
            gather(board, task)
