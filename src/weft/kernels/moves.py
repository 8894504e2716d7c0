"""Items on their way: what a task still lacks, and what is sent for it."""

from __future__ import annotations

import numpy as np

from weft.kernels.board import (
    ABSENT,
    DONE,
    HERE,
    MOVING,
    N_TRANSFERS,
    SEND,
    Board,
)
from weft.kernels.copies import command, source_for
from weft.native import compiled


@compiled
def send(board: Board, item: int, source: int, target: int) -> None:
    """Begin to move an item to a host; one move per item and host."""
    transfer = board.counts[N_TRANSFERS]
    board.counts[N_TRANSFERS] += 1
    board.transfer_item[transfer] = item
    board.transfer_from[transfer] = source
    board.transfer_to[transfer] = target
    board.transfer_sent[transfer] = board.clock[0]
    board.transfer_arrival[transfer] = np.nan
    board.transfer_forgotten[transfer] = np.inf
    board.moved[transfer] = 0.0
    link = source * board.n_hosts + target
    board.moved_since[transfer] = board.clock[0] + board.startup[link]
    board.held[item * board.n_hosts + target] = MOVING
    command(board, SEND, transfer)


def gather(board: Board, task: int) -> None:
    """Count the inputs that are not on the task's host, and send those that are made."""
    there = board.host[board.on[task]]
    missing = 0
    for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
        item = board.in_item[e]
        producer = board.item_producer[item]
        if producer < 0 or board.held[item * board.n_hosts + there] == HERE:
            continue
        missing += 1
        if board.status[producer] == DONE and board.held[item * board.n_hosts + there] == ABSENT:
            source = source_for(board, item, there)
            if source >= 0:
                send(board, item, source, there)
    board.missing[task] = missing
