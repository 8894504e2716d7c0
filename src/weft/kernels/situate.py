"""Reading the board: which facts hold, and where the items that are still needed are."""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.kernels.board import (
    DONE,
    FINISHED,
    HERE,
    N_ATTEMPTS,
    N_TRANSFERS,
    RUNNING,
    Board,
)
from weft.kernels.copies import home_of
from weft.native import compiled


@compiled
def facts(board: Board, holds: IntArray) -> int:
    """List the attempts that run or whose results count; how many."""
    count = 0
    for attempt in range(board.counts[N_ATTEMPTS]):
        if board.attempt_end[attempt] <= FINISHED:
            holds[count] = attempt
            count += 1
    return count


@compiled
def copies(board: Board, items: IntArray, hosts: IntArray) -> int:
    """List where needed items are complete, away from their producers' hosts; how many there are.

    If there are more than the arrays can take, they are only counted.
    """
    count = 0
    for item in range(len(board.item_producer)):
        producer = board.item_producer[item]
        if producer < 0 or board.status[producer] != DONE or not needed(board, item):
            continue
        home = home_of(board, item)
        for host in range(board.n_hosts):
            if host != home and board.held[item * board.n_hosts + host] == HERE:
                if count < len(items):
                    items[count] = item
                    hosts[count] = host
                count += 1
    return count


def needed(board: Board, item: int) -> bool:
    """Whether a task that is not done reads the item."""
    for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
        if board.status[board.use_task[u]] <= RUNNING:
            return True
    return False


@compiled
def astray(board: Board, items: BoolArray) -> int:
    """Mark the needed items that are made, but not on their producers' hosts; how many."""
    count = 0
    for item in range(len(board.item_producer)):
        producer = board.item_producer[item]
        if producer < 0 or board.status[producer] != DONE:
            continue
        home = home_of(board, item)
        if board.held[item * board.n_hosts + home] != HERE and needed(board, item):
            items[item] = True
            count += 1
    return count


@compiled
def under_way(board: Board, slowest: float, transfers: IntArray, arrival: FloatArray) -> int:
    """List the transfers under way and when each is expected at the bandwidth known now.

    If there are more than the arrays can take, they are only counted.
    """
    count = 0
    for transfer in range(board.counts[N_TRANSFERS]):
        if not np.isnan(board.transfer_arrival[transfer]):
            continue
        if count < len(transfers):
            transfers[count] = transfer
            arrival[count] = expected_arrival(board, transfer, slowest)
        count += 1
    return count


def expected_arrival(board: Board, transfer: int, slowest: float) -> float:
    """When a transfer is expected at the bandwidth known now.

    A link is expected to be no slower than `slowest`, even if it stands still.
    """
    link = board.transfer_from[transfer] * board.n_hosts + board.transfer_to[transfer]
    size = board.item_size[board.transfer_item[transfer]]
    left = size * board.per_unit[link] - board.moved[transfer]
    since, rate = board.moved_since[transfer], board.bandwidth[link]
    if rate < slowest and board.clock[0] > since:
        left -= (board.clock[0] - since) * rate
        since = board.clock[0]
    return float(max(since + max(0.0, left) / max(rate, slowest), board.clock[0]))
