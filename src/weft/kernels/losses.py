"""What is lost and what is given up: rules for items that vanish and for tasks without hope."""

from __future__ import annotations

import numpy as np

from weft.kernels.board import (
    ABSENT,
    DONE,
    DROP,
    GIVEN_UP,
    HERE,
    MOVING,
    N_DONE,
    N_GIVEN_UP,
    N_REWOUND,
    N_TRANSFERS,
    REWOUND,
    WAITING,
    Board,
)
from weft.kernels.copies import can_have, command
from weft.native import compiled


def host_gone(board: Board, host: int) -> None:
    """Its items are gone, and so is all that was on its way from it or to it."""
    for item in range(len(board.item_producer)):
        board.held[item * board.n_hosts + host] = ABSENT
    for transfer in range(board.counts[N_TRANSFERS]):
        if board.transfer_from[transfer] == host or board.transfer_to[transfer] == host:
            cut(board, transfer)


def item_gone(board: Board, item: int, host: int) -> None:
    """A copy is gone, and so is what was being sent from it."""
    if board.held[item * board.n_hosts + host] == HERE:
        board.held[item * board.n_hosts + host] = ABSENT
    for transfer in range(board.counts[N_TRANSFERS]):
        if board.transfer_item[transfer] != item:
            continue
        if board.transfer_from[transfer] == host:
            cut(board, transfer)
        elif board.transfer_to[transfer] == host and np.isnan(board.transfer_arrival[transfer]):
            board.held[item * board.n_hosts + host] = MOVING  # it was made there meanwhile


@compiled
def cut(board: Board, transfer: int) -> None:
    """A transfer that is under way comes to nothing."""
    if not np.isnan(board.transfer_arrival[transfer]):
        return
    there = board.transfer_item[transfer] * board.n_hosts + board.transfer_to[transfer]
    if board.held[there] == MOVING:
        board.held[there] = ABSENT
    board.transfer_arrival[transfer] = np.inf
    command(board, DROP, transfer)


def rewind_lost(board: Board, anywhere: bool) -> None:
    """What unfinished work needs and cannot have any more is computed again, transitively.

    In reverse topological order (Hernandez, Cole: section 5; weft.rewind_set on plain data). With
    `anywhere` any copy will do.
    """
    for k in range(board.n_tasks - 1, -1, -1):
        task = board.order[k]
        if board.status[task] == DONE and result_lost(board, task, anywhere):
            rewind(board, task)


@compiled
def rewind(board: Board, task: int) -> None:
    """The result of a finished task is gone: it must be run again."""
    board.status[task] = WAITING
    board.on[task] = -1
    board.attempt_end[board.attempt[task]] = REWOUND
    board.counts[N_DONE] -= 1
    board.counts[N_REWOUND] += 1


def result_lost(board: Board, task: int, anywhere: bool) -> bool:
    """Whether a waiting task needs an output of the task and cannot have it any more."""
    for o in range(board.out_ptr[task], board.out_ptr[task + 1]):
        item = board.out_item[o]
        for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
            consumer = board.use_task[u]
            waits = board.status[consumer] == WAITING
            if waits and not can_have(board, item, consumer, anywhere):
                return True
    return False


def give_up(board: Board, task: int) -> None:
    """The task will not be tried again, nor anything that cannot do without its results."""
    abandon(board, task)
    give_up_hopeless(board)


def give_up_hopeless(board: Board) -> None:
    """Give up what waits for a result that nobody will make."""
    if board.counts[N_GIVEN_UP] == 0:
        return
    for k in range(board.n_tasks):
        task = board.order[k]
        if board.status[task] == WAITING and hopeless(board, task):
            abandon(board, task)


def hopeless(board: Board, task: int) -> bool:
    """Whether the producer of an input of the task is given up."""
    for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
        producer = board.item_producer[board.in_item[e]]
        if producer >= 0 and board.status[producer] == GIVEN_UP:
            return True
    return False


def abandon(board: Board, task: int) -> None:
    """Take a waiting task out of the run."""
    if board.on[task] >= 0:
        leave_queue(board, task)
    board.status[task] = GIVEN_UP
    board.counts[N_GIVEN_UP] += 1


def take_up_again(board: Board) -> bool:
    """Try again what was given up; whether there was anything."""
    for task in range(board.n_tasks):
        if board.status[task] == GIVEN_UP:
            board.status[task] = WAITING
    given_up = board.counts[N_GIVEN_UP]
    board.counts[N_GIVEN_UP] = 0
    return bool(given_up > 0)


def leave_queue(board: Board, task: int) -> None:
    """Take a task out of the queue of its processor."""
    p = board.on[task]
    to = board.queue_at[p]
    for k in range(board.queue_at[p], board.queue_end[p]):
        if board.queue[k] != task:
            board.queue[to] = board.queue[k]
            to += 1
    board.queue_end[p] = to
    board.on[task] = -1
