"""The validator of a run's own state: what a board must satisfy between two events.

Everything is worked out anew from the logs, slowly and plainly.
"""

from __future__ import annotations

from collections import Counter
from math import isnan

from weft.errors import WeftError
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.kernels.just_in_time import goes_before


class BrokenStateError(WeftError):
    """The state of a run contradicts itself: a fault in the rules."""


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


def _must(holds: object, otherwise: str) -> None:
    if not holds:
        raise BrokenStateError(otherwise)


def _inputs(board: Board, task: int) -> list[int]:
    """The items that a task reads and another makes."""
    items = board.in_item[board.in_ptr[task] : board.in_ptr[task + 1]].tolist()
    return [item for item in items if board.item_producer[item] >= 0]


def _held(board: Board, item: int, host: int) -> int:
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
        _must(latest.get(task, -1) < k, "attempts of a task are logged in order")
        latest[task] = k
        _must(board.attempt_start[k] <= board.clock[0], f"attempt {k} starts in the future")
        if end == b.OPEN:
            _must(isnan(board.attempt_finish[k]), f"attempt {k} runs, but has a finish")
            _must(p not in running, f"two attempts run on processor {p}")
            running[p] = k
        else:
            _must(
                board.attempt_start[k] <= board.attempt_finish[k] <= board.clock[0],
                f"attempt {k} ends at no possible time",
            )
        finished[task] += end == b.FINISHED
        _must(board.since[k] >= board.attempt_start[k], f"attempt {k} worked before it started")
        _must(board.worked[k] >= 0, f"attempt {k} has done less than nothing")
    for p in range(board.n_processors):
        _must(board.running[p] == running.get(p, -1), f"processor {p} does not know what it runs")
        _must(board.present[p] or p not in running, f"processor {p} is gone, but runs an attempt")
    for task in range(board.n_tasks):
        _must(
            board.attempt[task] == latest.get(task, -1),
            f"task {task} does not know its latest attempt",
        )
        end = int(board.attempt_end[latest[task]]) if task in latest else -1
        expected = {b.OPEN: b.RUNNING, b.FINISHED: b.DONE}.get(end, b.WAITING)
        if expected == b.WAITING and board.status[task] == b.GIVEN_UP:
            continue
        _must(
            board.status[task] == expected, f"task {task} is not what its latest attempt makes it"
        )
        _must(
            finished[task] == (expected == b.DONE),
            f"task {task} has finished more than once, or never",
        )
        if expected == b.RUNNING:
            _must(
                board.on[task] == board.attempt_on[latest[task]],
                f"task {task} runs elsewhere than it says",
            )
    _must(board.counts[b.N_DONE] == sum(finished.values()), "the number of finished tasks is wrong")
    _must(
        board.counts[b.N_GIVEN_UP] == (board.status == b.GIVEN_UP).sum(),
        "the number of tasks given up is wrong",
    )
    _must(
        board.counts[b.N_REWOUND] == (board.attempt_end[:n] == b.REWOUND).sum(),
        "the number of rewound tasks is wrong",
    )


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
        _must(board.transfer_from[k] != board.transfer_to[k], f"transfer {k} goes nowhere")
        if isnan(board.transfer_arrival[k]):
            moving[where] += 1
            _must(
                _held(board, where[0], int(board.transfer_from[k])) == b.HERE,
                f"transfer {k} comes from where the item is not",
            )
        elif board.transfer_arrival[k] <= board.clock[0]:
            gained.add(where)
    for item in range(len(board.item_producer)):
        for host in range(board.n_hosts):
            state = _held(board, item, host)
            _must(moving[item, host] <= 1, f"item {item} is moved to host {host} twice at a time")
            # a producer that was rewound may make what is still on its way
            _must(
                state == b.MOVING or state == b.HERE or moving[item, host] == 0,
                f"item {item} moves to host {host}, which does not know",
            )
            _must(
                state != b.MOVING or moving[item, host] == 1,
                f"item {item} does not move to host {host}",
            )
            _must(
                state != b.HERE or (item, host) in gained, f"item {item} never came to host {host}"
            )
            _must(
                state == b.ABSENT or host in there, f"item {item} is on host {host}, which is gone"
            )
    for task in range(board.n_tasks):
        if board.status[task] == b.WAITING:
            for item in _inputs(board, task):
                if board.status[board.item_producer[item]] == b.DONE:
                    copies = [_held(board, item, host) for host in range(board.n_hosts)]
                    _must(b.HERE in copies, f"item {item} is nowhere, but task {task} needs it")


def _check_queues(board: Board) -> None:
    """A waiting task with a processor is in its queue, and counts what is not on the host."""
    queued: dict[int, int] = {}
    for p in range(board.n_processors):
        row = board.queue[board.queue_at[p] : board.queue_end[p]].tolist()
        _must(not row or board.present[p], f"processor {p} is gone, but has a queue")
        _must(
            not board.just_in_time or board.min_min or len(row) <= 1,
            f"processor {p} has more than one task, just in time",
        )
        for task in row:
            _must(task not in queued, f"task {task} is in two queues")
            queued[task] = p
    for task in range(board.n_tasks):
        waiting = board.status[task] == b.WAITING
        _must(
            (task in queued) == (waiting and board.on[task] >= 0),
            f"task {task} and the queues disagree",
        )
        if task not in queued:
            continue
        _must(board.on[task] == queued[task], f"task {task} is in another processor's queue")
        host = int(board.host[queued[task]])
        states = [(item, _held(board, item, host)) for item in _inputs(board, task)]
        absent = [item for item, state in states if state != b.HERE]
        _must(
            board.missing[task] == len(absent),
            f"task {task} lacks {absent}, not {board.missing[task]} items",
        )
        for item, state in states:  # what is made is pushed
            _must(
                state != b.ABSENT or board.status[board.item_producer[item]] != b.DONE,
                f"item {item} is made, but not on its way to task {task}",
            )


def _check_nothing_idle(board: Board) -> None:
    """No processor is idle whose next task could start."""
    for p in range(board.n_processors if board.counts[b.HELD_BACK] == 0 else 0):
        if board.leaves[p] <= board.clock[0]:
            continue  # what is left in its queue is planned elsewhere when that is told
        if board.present[p] and board.running[p] < 0 and board.queue_at[p] < board.queue_end[p]:
            task = board.queue[board.queue_at[p]]
            _must(
                board.missing[task] > 0 or board.gated[task],
                f"processor {p} is idle, and its next task could start",
            )


def _check_line(board: Board) -> None:
    """The heap holds the tasks that are ready and have no processor; none of those is idle."""
    ready = board.ready[: board.counts[b.N_READY]].tolist()
    _must(len(ready) == len(set(ready)), "a task stands in line twice")
    for k in range(1, len(ready)):
        behind = goes_before(board, ready[k], ready[(k - 1) // 2])
        _must(not behind, "the line is out of order")
    for task in range(board.n_tasks):
        free = board.status[task] == b.WAITING and board.on[task] < 0
        producers = [board.item_producer[item] for item in _inputs(board, task)]
        unmade = sum(board.status[producer] != b.DONE for producer in producers)
        _must(
            (task in ready) == (free and unmade == 0),
            f"task {task} is ready and not in line, or in line and not ready",
        )
        _must(not free or board.unmade[task] == unmade, f"task {task} miscounts what is not made")
    for p in range(board.n_processors if board.counts[b.HELD_BACK] == 0 else 0):
        idle = board.present[p] and board.running[p] < 0 and board.leaves[p] > board.clock[0]
        _must(
            not ready or not idle or board.queue_at[p] < board.queue_end[p],
            f"processor {p} is idle while tasks stand in line",
        )
