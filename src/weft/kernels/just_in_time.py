"""Just-in-time dispatch: a processor that is idle gets the ready task that is first in line.

Nothing is planned ahead. A task is ready once all its producers are done; its inputs begin to
move only when its processor is chosen, and the processor waits for them.
"""

from __future__ import annotations

from weft.kernels.board import DONE, HERE, IN_LINE, N_READY, WAITING, Board
from weft.kernels.losses import leave_queue
from weft.native import compiled


@compiled
def stand_in_line(board: Board) -> None:
    """Count for every waiting task what its producers have yet to make; line up the ready ones."""
    board.counts[N_READY] = 0
    board.counts[IN_LINE] += 1
    for k in range(board.n_tasks):
        task = board.order[k]
        if board.status[task] != WAITING:
            continue
        if board.on[task] >= 0:
            if can_gather(board, task):
                continue
            leave_queue(board, task)  # no processor waits for what may need it to be made again
        board.unmade[task] = 0
        for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
            producer = board.item_producer[board.in_item[e]]
            if producer >= 0 and board.status[producer] != DONE:
                board.unmade[task] += 1
        if board.unmade[task] == 0:
            get_ready(board, task)


def can_gather(board: Board, task: int) -> bool:
    """Whether all that the task reads is on its host or made elsewhere."""
    there = board.host[board.on[task]]
    for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
        item = board.in_item[e]
        producer = board.item_producer[item]
        here = board.held[item * board.n_hosts + there] == HERE
        if producer >= 0 and not here and board.status[producer] != DONE:
            return False
    return True


def producer_done(board: Board, task: int) -> None:
    """A task is done: its consumers lack one thing less each."""
    board.counts[IN_LINE] += 1
    for o in range(board.out_ptr[task], board.out_ptr[task + 1]):
        item = board.out_item[o]
        for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
            consumer = board.use_task[u]
            if board.status[consumer] == WAITING and board.on[consumer] < 0:
                board.unmade[consumer] -= 1
                if board.unmade[consumer] == 0:
                    get_ready(board, consumer)


def get_ready(board: Board, task: int) -> None:
    """Put a task into the heap of ready ones; one that stood in line before keeps its turn."""
    if board.line[task] < 0:
        board.line[task] = board.counts[IN_LINE]
    at = board.counts[N_READY]
    board.counts[N_READY] += 1
    while at > 0 and goes_before(board, task, board.ready[(at - 1) // 2]):
        board.ready[at] = board.ready[(at - 1) // 2]
        at = (at - 1) // 2
    board.ready[at] = task


@compiled
def goes_before(board: Board, one: int, other: int) -> bool:
    """Whether a ready task is handed out before another one."""
    if board.rank[one] != board.rank[other]:
        return bool(board.rank[one] < board.rank[other])
    if board.line[one] != board.line[other]:
        return bool((board.line[one] < board.line[other]) != board.last_come)
    return bool(board.tie[one] < board.tie[other])


def next_in_line(board: Board) -> int:
    """Take the first task out of the heap."""
    first = board.ready[0]
    board.counts[N_READY] -= 1
    last = board.counts[N_READY]
    task = board.ready[last]
    at, below = 0, 1
    while below < last:
        if below + 1 < last and goes_before(board, board.ready[below + 1], board.ready[below]):
            below += 1
        if not goes_before(board, board.ready[below], task):
            break
        board.ready[at] = board.ready[below]
        at, below = below, 2 * below + 1
    board.ready[at] = task
    return int(first)


def fastest_idle(board: Board, task: int) -> int:
    """The idle processor on which the task is expected to take least; -1: all have work."""
    best, row = -1, task * board.n_processors
    for p in range(board.n_processors):
        free = board.present[p] and board.running[p] < 0 and board.queue_at[p] >= board.queue_end[p]
        free = free and board.leaves[p] > board.clock[0]
        if free and (best < 0 or board.estimate[row + p] < board.estimate[row + best]):
            best = p
    return best
