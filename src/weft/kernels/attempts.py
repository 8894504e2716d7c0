"""Attempts at tasks: how they start and how they end."""

from __future__ import annotations

import numpy as np

from weft.kernels.board import (
    CANCEL,
    CANCELLED,
    FINISHED,
    N_ATTEMPTS,
    OPEN,
    RUNNING,
    START,
    WAITING,
    Board,
)
from weft.kernels.copies import command
from weft.native import compiled


@compiled
def start(board: Board, task: int, p: int) -> None:
    """A new attempt at the task on an idle processor."""
    attempt = board.counts[N_ATTEMPTS]
    board.counts[N_ATTEMPTS] += 1
    board.attempt_task[attempt] = task
    board.attempt_on[attempt] = p
    board.attempt_start[attempt] = board.clock[0]
    board.attempt_finish[attempt] = np.nan
    board.attempt_end[attempt] = OPEN
    board.worked[attempt] = 0.0
    board.since[attempt] = board.clock[0]
    board.status[task] = RUNNING
    board.attempt[task] = attempt
    board.running[p] = attempt
    board.queue_at[p] += 1
    board.line[task] = -1
    command(board, START, attempt)


@compiled
def end_attempt(board: Board, attempt: int, how: int) -> None:
    """The attempt is over and its processor idle; unless finished, its task waits again."""
    p, now = board.attempt_on[attempt], board.clock[0]
    board.worked[attempt] += (now - board.since[attempt]) * board.availability[p]
    board.since[attempt] = now
    board.attempt_finish[attempt] = now
    board.attempt_end[attempt] = how
    board.running[p] = -1
    if how != FINISHED:
        board.status[board.attempt_task[attempt]] = WAITING
        board.on[board.attempt_task[attempt]] = -1


@compiled
def cancel(board: Board, task: int) -> None:
    """Stop a running task: its attempt is over, its partial output discarded."""
    attempt = board.attempt[task]
    end_attempt(board, attempt, CANCELLED)
    command(board, CANCEL, attempt)
