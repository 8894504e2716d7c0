"""What a board must satisfy between two events, by slow recomputation from its logs."""

from __future__ import annotations

from collections import Counter
from math import isnan

from weft.kernels import board as b
from weft.kernels.board import Board


def check_board(board: Board, pending: bool = False) -> None:
    """Status, attempts, queues, missing inputs and held items agree with each other.

    While an answer of the planner is pending, a task that could start may be held back.
    """
    _check_attempts(board)
    _check_items(board)
    _check_queues(board)
    if board.just_in_time:
        _check_line(board)
    elif not pending:
        _check_nothing_idle(board)


def inputs(board: Board, task: int) -> list[int]:
    """The items that a task reads and another makes."""
    items = board.in_item[board.in_ptr[task] : board.in_ptr[task + 1]].tolist()
    return [item for item in items if board.item_producer[item] >= 0]


def held(board: Board, item: int, host: int) -> int:
    return int(board.held[item * board.n_hosts + host])


def _check_attempts(board: Board) -> None:
    n = int(board.counts[b.N_ATTEMPTS])
    latest: dict[int, int] = {}
    finished: Counter[int] = Counter()
    running: dict[int, int] = {}
    for k in range(n):
        task, p, end = (
            int(log[k]) for log in (board.attempt_task, board.attempt_on, board.attempt_end)
        )
        assert latest.get(task, -1) < k
        latest[task] = k
        assert board.attempt_start[k] <= board.clock[0]
        if end == b.OPEN:
            assert isnan(board.attempt_finish[k])
            assert p not in running
            running[p] = k
        else:
            assert board.attempt_start[k] <= board.attempt_finish[k] <= board.clock[0]
        finished[task] += end == b.FINISHED
        assert board.since[k] >= board.attempt_start[k]
        assert board.worked[k] >= 0
    for p in range(board.n_processors):
        assert board.running[p] == running.get(p, -1)
        assert board.present[p] or p not in running
    for task in range(board.n_tasks):
        assert board.attempt[task] == latest.get(task, -1)
        end = int(board.attempt_end[latest[task]]) if task in latest else -1
        expected = {b.OPEN: b.RUNNING, b.FINISHED: b.DONE}.get(end, b.WAITING)
        assert board.status[task] == expected, f"task {task}: {board.status[task]}, {end}"
        assert finished[task] == (expected == b.DONE)
        if expected == b.RUNNING:
            assert board.on[task] == board.attempt_on[latest[task]]
    assert board.counts[b.N_DONE] == sum(finished.values())
    assert board.counts[b.N_REWOUND] == (board.attempt_end[:n] == b.REWOUND).sum()


def _check_items(board: Board) -> None:
    """What is held was gained, what is moving has one transfer, and nothing needed is lost."""
    there = {int(board.host[p]) for p in range(board.n_processors) if board.present[p]}
    gained, moving = set(), Counter[tuple[int, int]]()
    for k in range(int(board.counts[b.N_ATTEMPTS])):
        if board.attempt_end[k] in (b.FINISHED, b.REWOUND):
            task, host = int(board.attempt_task[k]), int(board.host[board.attempt_on[k]])
            for item in board.out_item[board.out_ptr[task] : board.out_ptr[task + 1]].tolist():
                gained.add((item, host))
    for k in range(int(board.counts[b.N_TRANSFERS])):
        where = int(board.transfer_item[k]), int(board.transfer_to[k])
        assert board.transfer_from[k] != board.transfer_to[k]
        if isnan(board.transfer_arrival[k]):
            moving[where] += 1
            assert held(board, where[0], int(board.transfer_from[k])) == b.HERE
        elif board.transfer_arrival[k] <= board.clock[0]:
            gained.add(where)
    for item in range(len(board.item_producer)):
        for host in range(board.n_hosts):
            state = held(board, item, host)
            assert moving[item, host] <= 1
            # a producer that was rewound may make what is still on its way
            assert state == b.MOVING or state == b.HERE or moving[item, host] == 0
            assert state != b.MOVING or moving[item, host] == 1
            assert state != b.HERE or (item, host) in gained
            assert state == b.ABSENT or host in there
    for task in range(board.n_tasks):
        if board.status[task] == b.WAITING:
            for item in inputs(board, task):
                if board.status[board.item_producer[item]] == b.DONE:
                    copies = [held(board, item, host) for host in range(board.n_hosts)]
                    assert b.HERE in copies, f"item {item} is nowhere, but task {task} needs it"


def _check_queues(board: Board) -> None:
    """A waiting task with a processor is in its queue, and counts what is not on the host."""
    queued: dict[int, int] = {}
    for p in range(board.n_processors):
        row = board.queue[board.queue_at[p] : board.queue_end[p]].tolist()
        assert not row or board.present[p]
        assert not board.just_in_time or len(row) <= 1
        for task in row:
            assert task not in queued
            queued[task] = p
    for task in range(board.n_tasks):
        waiting = board.status[task] == b.WAITING
        assert (task in queued) == (waiting and board.on[task] >= 0)
        if task not in queued:
            continue
        assert board.on[task] == queued[task]
        host = int(board.host[queued[task]])
        states = [(item, held(board, item, host)) for item in inputs(board, task)]
        absent = [item for item, state in states if state != b.HERE]
        assert board.missing[task] == len(absent), f"task {task} lacks {absent}"
        for item, state in states:  # what is made is pushed
            assert state != b.ABSENT or board.status[board.item_producer[item]] != b.DONE


def _check_nothing_idle(board: Board) -> None:
    """No processor is idle whose next task could start."""
    for p in range(board.n_processors):
        if board.present[p] and board.running[p] < 0 and board.queue_at[p] < board.queue_end[p]:
            assert board.missing[board.queue[board.queue_at[p]]] > 0, f"processor {p} is idle"


def _check_line(board: Board) -> None:
    """The heap holds the tasks that are ready and have no processor; none of those is idle."""
    ready = board.ready[: board.counts[b.N_READY]].tolist()
    assert len(ready) == len(set(ready))
    for k in range(1, len(ready)):
        assert board.line[ready[(k - 1) // 2]] <= board.line[ready[k]]
    for task in range(board.n_tasks):
        free = board.status[task] == b.WAITING and board.on[task] < 0
        producers = [board.item_producer[item] for item in inputs(board, task)]
        unmade = sum(board.status[producer] != b.DONE for producer in producers)
        assert (task in ready) == (free and unmade == 0)
        assert not free or board.unmade[task] == unmade
    for p in range(board.n_processors):
        idle = board.present[p] and board.running[p] < 0
        assert not ready or not idle or board.queue_at[p] < board.queue_end[p]
