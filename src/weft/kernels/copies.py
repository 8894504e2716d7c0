"""Copies of items: where one is sent from, and which are left behind when a task migrates."""

from __future__ import annotations

import numpy as np

from weft.kernels.board import (
    ABSENT,
    ANYWHERE,
    DONE,
    DROP,
    HERE,
    MOVING,
    N_COMMANDS,
    N_TRANSFERS,
    NEVER,
    RUNNING,
    Board,
)

SLOWEST = 0.01  # what stands still is expected to go on at this share of its speed


def command(board: Board, kind: int, which: int) -> None:
    """Write down what the executor is to do."""
    at = 2 * board.counts[N_COMMANDS]
    board.commands[at] = kind
    board.commands[at + 1] = which
    board.counts[N_COMMANDS] += 1


def home_of(board: Board, item: int) -> int:
    """The host on which an item was made last; -1: it never was."""
    producer = board.item_producer[item]
    if producer < 0 or board.attempt[producer] < 0:
        return -1
    return int(board.host[board.attempt_on[board.attempt[producer]]])


def at_home(board: Board, item: int) -> bool:
    """Whether the host that made the item holds it."""
    home = home_of(board, item)
    return bool(home >= 0 and board.held[item * board.n_hosts + home] == HERE)


def holder(board: Board, item: int) -> int:
    """A host that holds the item whole: its producer's where it can, else the first; -1: none."""
    if at_home(board, item):
        return home_of(board, item)
    for host in range(board.n_hosts):
        if board.held[item * board.n_hosts + host] == HERE:
            return host
    return -1


def source_for(board: Board, item: int, there: int) -> int:
    """Where to send the item from: its producer's host; else, or with /c, the cheapest copy.

    Hernandez, Cole: equation 12, the producer's own host among the copies, and before its equals.
    """
    best = home_of(board, item) if at_home(board, item) else -1
    if best >= 0 and board.reuse != ANYWHERE:
        return best
    least = np.inf if best < 0 else sending_time(board, item, best, there)
    for host in range(board.n_hosts):
        if board.held[item * board.n_hosts + host] == HERE:
            takes = sending_time(board, item, host, there)
            if takes < least:
                best, least = host, takes
    return best


def sending_time(board: Board, item: int, source: int, there: int) -> float:
    """Seconds that an item takes from one host to another at the bandwidth known now."""
    link = source * board.n_hosts + there
    rate = max(board.bandwidth[link], SLOWEST)
    return float(board.startup[link] + board.item_size[item] * board.per_unit[link] / rate)


def can_have(board: Board, item: int, consumer: int, anywhere: bool) -> bool:
    """Whether a waiting task can get an item that is made: from anywhere, or as copies are reused.

    Where they are not, only from its producer's host, if it has not come whole yet.
    """
    if anywhere or board.reuse != NEVER:
        return holder(board, item) >= 0
    if at_home(board, item):
        return True
    p = board.on[consumer]
    return bool(p >= 0 and board.held[item * board.n_hosts + board.host[p]] == HERE)


def is_placed(board: Board, task: int) -> bool:
    """Whether a waiting task has begun to gather inputs at its processor (Hernandez, Cole)."""
    p = board.on[task]
    if p < 0:
        return False
    for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
        item = board.in_item[e]
        made = board.item_producer[item] >= 0
        if made and board.held[item * board.n_hosts + board.host[p]] != ABSENT:
            return True
    return False


def leave_behind(board: Board) -> None:
    """Forget what was sent to hosts where no task is left that reads it.

    So a migrated task gathers its inputs from the very beginning (Hernandez, Cole: section 3.3).
    The last copy of an item that its producer's host has lost is kept.
    """
    for transfer in range(board.counts[N_TRANSFERS]):
        item, there = board.transfer_item[transfer], board.transfer_to[transfer]
        where = item * board.n_hosts + there
        gone = board.transfer_forgotten[transfer] < np.inf or board.held[where] == ABSENT
        gone |= board.transfer_arrival[transfer] == np.inf
        # it may have come, been lost, and be on its way again
        again = board.held[where] == MOVING and not np.isnan(board.transfer_arrival[transfer])
        if gone or again or there == home_of(board, item):
            continue
        if board.status[board.item_producer[item]] != DONE or not at_home(board, item):
            continue
        if wanted_at(board, item, there):
            continue
        board.transfer_forgotten[transfer] = board.clock[0]
        if np.isnan(board.transfer_arrival[transfer]):
            board.transfer_arrival[transfer] = np.inf
            command(board, DROP, transfer)
        board.held[where] = ABSENT


def wanted_at(board: Board, item: int, host: int) -> bool:
    """Whether a task that is not done reads the item on this host."""
    for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
        task = board.use_task[u]
        open_here = board.status[task] <= RUNNING and board.on[task] >= 0
        if open_here and board.host[board.on[task]] == host:
            return True
    return False
