"""How fast things go: rules for changes of speed, and for what is off its estimate."""

from __future__ import annotations

import numpy as np

from weft.kernels.board import N_TRANSFERS, Board

ROUNDING = 1e-9  # of the time: what a task is off by less is not off at all


def off_estimate(board: Board, attempt: int) -> bool:
    """Whether a finished attempt took longer or shorter than expected, by more than the watch."""
    if board.variance[0] == np.inf and board.early[0] == np.inf:
        return False
    p = board.attempt_on[attempt]
    expected = board.estimate[board.attempt_task[attempt] * board.n_processors + p]
    last = (board.clock[0] - board.since[attempt]) * board.availability[p]
    took = board.worked[attempt] + last
    slop = ROUNDING * board.clock[0]
    if expected - took > board.early[0] + slop:
        return True
    if board.variance[0] == np.inf:
        return False
    return bool(abs(took - expected) > board.variance[0] * expected + slop)


def costs_more(board: Board, attempt: int) -> bool:
    """Take what a finished attempt cost beyond its estimate from the allowance; whether it is gone.

    The plan may have reckoned with a slower processor: then this is too strict, and looked into.
    """
    if board.allowance[0] == np.inf:
        return False
    p = board.attempt_on[attempt]
    expected = board.estimate[board.attempt_task[attempt] * board.n_processors + p]
    took = board.clock[0] - board.attempt_start[attempt]
    board.allowance[0] -= board.price[p] * (took - expected)
    return bool(board.allowance[0] < 0)


def availability_changed(board: Board, p: int, value: float) -> bool:
    """Note what was done at the old speed; whether the new one is off by more than the watch."""
    attempt, now = board.running[p], board.clock[0]
    if attempt >= 0:
        board.worked[attempt] += (now - board.since[attempt]) * board.availability[p]
        board.since[attempt] = now
    board.availability[p] = value
    if board.variance[0] == np.inf:
        return False
    off = abs(value - board.reckoned[p]) > board.variance[0] * board.reckoned[p]
    if off:
        board.reckoned[p] = value
    return bool(off)


def bandwidth_changed(board: Board, link: int, value: float) -> None:
    """Note what was moved at the old speed."""
    now, old = board.clock[0], board.bandwidth[link]
    for transfer in range(board.counts[N_TRANSFERS]):
        here = board.transfer_from[transfer] * board.n_hosts + board.transfer_to[transfer]
        under_way = here == link and np.isnan(board.transfer_arrival[transfer])
        if under_way and now > board.moved_since[transfer]:
            board.moved[transfer] += (now - board.moved_since[transfer]) * old
            board.moved_since[transfer] = now
    board.bandwidth[link] = value
