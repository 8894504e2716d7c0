"""Dynamic Min-Min: what is ready is mapped at once, what would be done soonest first (Yu, Shi).

A task is mapped when all its producers are done, and its inputs begin to move only then. A mapped
task stays where it is, in the queue of its processor, unless that is lost.
"""

from __future__ import annotations

from weft.kernels.board import HERE, N_READY, Board
from weft.kernels.copies import SLOWEST, sending_time, source_for
from weft.kernels.just_in_time import next_in_line


def map_ready(board: Board) -> int:
    """Take the ready tasks out of the line, each to the end of a queue; how many.

    They are in board.candidate, in the order in which they were mapped.
    """
    if not any_usable(board):
        return 0
    count = board.counts[N_READY]
    for k in range(count):
        board.candidate[k] = next_in_line(board)
        board.best[k] = -1
    expect_free(board)
    for mapped in range(count):
        choose(board, mapped, count)
    lengthen_queues(board, count)
    return int(count)


def usable(board: Board, p: int) -> bool:
    """Whether a processor is there to stay."""
    return bool(board.present[p] and board.leaves[p] > board.clock[0])


def any_usable(board: Board) -> bool:
    """Whether there is such a processor."""
    count = 0
    for p in range(board.n_processors):
        count += usable(board, p)
    return count > 0


def takes(board: Board, task: int, p: int) -> float:
    """Seconds that a task is expected to take on a processor as it is now."""
    full = board.estimate[task * board.n_processors + p]
    return float(full / max(board.availability[p], SLOWEST))


def expect_free(board: Board) -> None:
    """When each processor is expected to have done what it runs and what is in its queue."""
    for p in range(board.n_processors):
        free, attempt = board.clock[0], board.running[p]
        if attempt >= 0:
            rate = max(board.availability[p], SLOWEST)
            left = takes(board, board.attempt_task[attempt], p) - board.worked[attempt] / rate
            free = max(free, board.since[attempt] + left)
        for k in range(board.queue_at[p], board.queue_end[p]):
            task = board.queue[k]
            free = max(free, board.inputs_at[task]) + takes(board, task, p)
        board.free_from[p] = free


def choose(board: Board, mapped: int, count: int) -> None:
    """Map the candidate that is done soonest; of equals, the first in line."""
    first = mapped
    for k in range(mapped, count):
        if board.best[k] < 0:
            find_soonest(board, k)
        if board.done_at[k] < board.done_at[first]:
            first = k
    task, p = board.candidate[first], board.best[first]
    expect_inputs(board, task)
    board.inputs_at[task] = board.arrival[board.host[p]]
    board.on[task] = p
    board.free_from[p] = max(board.free_from[p], board.inputs_at[task]) + takes(board, task, p)
    for k in range(first, mapped, -1):  # the others keep their order
        board.candidate[k] = board.candidate[k - 1]
        board.best[k] = board.best[k - 1]
        board.done_at[k] = board.done_at[k - 1]
    board.candidate[mapped] = task
    for k in range(mapped + 1, count):
        if board.best[k] == p:
            board.best[k] = -1  # the processor is free later now


def find_soonest(board: Board, k: int) -> None:
    """The processor on which a candidate is done soonest: before it leaves, if that can be."""
    task, fits = board.candidate[k], False
    expect_inputs(board, task)
    for p in range(board.n_processors):
        if not usable(board, p):
            continue
        starts = max(board.free_from[p], board.arrival[board.host[p]])
        end = starts + takes(board, task, p)
        in_time = end <= board.leaves[p]
        better = board.best[k] < 0 or end < board.done_at[k]
        if (in_time and not fits) or (in_time == fits and better):
            board.best[k], board.done_at[k], fits = p, end, in_time


def expect_inputs(board: Board, task: int) -> None:
    """When the inputs of a task can be on each host, if what is not there is sent now."""
    now = board.clock[0]
    for host in range(board.n_hosts):
        board.arrival[host] = now
    for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
        item = board.in_item[e]
        if board.item_producer[item] < 0:
            continue
        for host in range(board.n_hosts):
            if board.held[item * board.n_hosts + host] != HERE:
                source = source_for(board, item, host)
                moves = sending_time(board, item, source, host)
                board.arrival[host] = max(board.arrival[host], now + moves)


def lengthen_queues(board: Board, count: int) -> None:
    """Put the mapped tasks behind what is in the queues of their processors."""
    for p in range(board.n_processors):
        board.row[p + 1] = board.queue_end[p] - board.queue_at[p]
    board.row[0] = 0
    for k in range(count):
        board.row[board.on[board.candidate[k]] + 1] += 1
    for p in range(board.n_processors):
        board.row[p + 1] += board.row[p]
    for k in range(len(board.queue)):
        board.old_queue[k] = board.queue[k]
    for p in range(board.n_processors):
        to = board.row[p]
        for k in range(board.queue_at[p], board.queue_end[p]):
            board.queue[to] = board.old_queue[k]
            to += 1
        board.queue_at[p] = board.row[p]
        board.queue_end[p] = to
    for k in range(count):
        task = board.candidate[k]
        board.queue[board.queue_end[board.on[task]]] = task
        board.queue_end[board.on[task]] += 1
