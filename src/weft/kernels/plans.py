"""Plans: how one is taken, and when the next one is due."""

from __future__ import annotations

import numpy as np

from weft.arrays import IntArray
from weft.kernels.attempts import cancel
from weft.kernels.board import (
    N_MIGRATED,
    NEVER,
    WAITING,
    WAKE_AT,
    Board,
)
from weft.kernels.copies import command, is_placed, leave_behind
from weft.kernels.losses import rewind_lost
from weft.kernels.moves import gather
from weft.native import compiled


def rescheduling_point(board: Board) -> bool:
    """Whether one has come; then the next one is set."""
    if board.clock[0] < board.wake[0]:
        return False  # it was set for another plan
    set_alarm(board, board.wake[1])
    return True


@compiled
def set_alarm(board: Board, period: float) -> None:
    """From now on there is a rescheduling point every so many seconds."""
    board.wake[0] = board.clock[0] + period
    board.wake[1] = period
    if period < np.inf:
        command(board, WAKE_AT, 0)


@compiled
def install_plan(
    board: Board, on: IntArray, queue: IntArray, queue_at: IntArray, queue_end: IntArray
) -> None:
    """Take a plan: tasks get their processors, and made items go where they are needed.

    A running task that is to be elsewhere is stopped.
    """
    for p in range(board.n_processors):
        board.queue_at[p] = queue_at[p]
        board.queue_end[p] = queue_end[p]
    for k in range(len(queue)):
        board.queue[k] = queue[k]
    migrated = False
    for p in range(board.n_processors):
        attempt = board.running[p]
        if attempt >= 0 and on[board.attempt_task[attempt]] != p:
            cancel(board, board.attempt_task[attempt])
            board.counts[N_MIGRATED] += 1
            migrated = True
    for k in range(len(queue)):
        task = queue[k]
        if board.on[task] != on[task] and is_placed(board, task):
            board.counts[N_MIGRATED] += 1
    if migrated:
        # an input may have been lost while it ran; the plan counts on any copy
        rewind_lost(board, True)
    for k in range(board.n_tasks):
        task = board.order[k]
        if board.status[task] == WAITING:
            board.on[task] = -1
    for k in range(len(queue)):
        board.on[queue[k]] = on[queue[k]]
    if board.reuse == NEVER:
        leave_behind(board)
    for k in range(board.n_tasks):
        task = board.order[k]
        if board.status[task] == WAITING and board.on[task] >= 0:
            gather(board, task)
