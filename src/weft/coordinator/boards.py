"""The board of a run: made empty, made larger, and read as a Situation."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.arrays import BoolArray, frozen
from weft.contracts import Line
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.kernels.situate import astray, copies, facts, under_way
from weft.model import (
    STANDS_STILL,
    Attempts,
    Copies,
    Estimates,
    Platform,
    Reuse,
    Situation,
    Transfers,
    Workflow,
)

LOGS = {
    "attempt_task": np.int32,
    "attempt_on": np.int32,
    "attempt_start": np.float64,
    "attempt_finish": np.float64,
    "attempt_end": np.int8,
    "worked": np.float64,
    "since": np.float64,
    "transfer_item": np.int32,
    "transfer_from": np.int32,
    "transfer_to": np.int32,
    "transfer_sent": np.float64,
    "transfer_arrival": np.float64,
    "moved": np.float64,
    "moved_since": np.float64,
    "transfer_forgotten": np.float64,
}
BY_ATTEMPT = {name for name in LOGS if name.startswith("attempt")} | {"worked", "since"}


def empty_board(
    wf: Workflow, pf: Platform, estimates: Estimates, line: Line | None = None,
    min_min: bool = False, reuse: Reuse = Reuse.IN_PLACE,
) -> Board:  # fmt: skip
    """Nothing has happened; the processors that join at 0 are there. With a line: just in time."""
    n, p, h = wf.n_tasks, pf.n_processors, pf.n_hosts
    # outputs sent to all consumers, a start on every processor, the next alarm
    burst = wf.widest_fan + p + 2
    if line is not None:
        fan_in = np.diff(wf.in_ptr)  # inputs sent to every processor, or of every task
        burst += int(fan_in.sum()) if min_min else p * int(fan_in.max(initial=0))
    attempts, transfers = n + burst, len(wf.use_task) + burst
    logs = {
        name: np.zeros(attempts if name in BY_ATTEMPT else transfers, dtype=dtype)
        for name, dtype in LOGS.items()
    }
    return Board(
        n_tasks=n,
        n_processors=p,
        n_hosts=h,
        just_in_time=line is not None,
        last_come=line is not None and line.last_come,
        min_min=min_min,
        reuse=int(reuse),
        burst=burst,
        order=wf.order,
        in_ptr=wf.in_ptr,
        in_item=wf.in_item,
        out_ptr=wf.out_ptr,
        out_item=wf.out_item,
        use_ptr=wf.use_ptr,
        use_task=wf.use_task,
        item_producer=wf.item_producer,
        host=pf.host,
        startup=pf.startup.reshape(-1),
        per_unit=pf.time_per_unit.reshape(-1),
        item_size=wf.item_size,
        clock=np.zeros(1),
        counts=np.zeros(b.COUNTS, dtype=np.int64),
        wake=np.full(2, np.inf),
        status=np.zeros(n, dtype=np.int8),
        on=np.full(n, -1, dtype=np.int32),
        missing=np.zeros(n, dtype=np.int32),
        attempt=np.full(n, -1, dtype=np.int32),
        latest=np.full(n, np.inf),
        delay=np.zeros(1),
        steps=np.zeros(n),
        variance=np.full(1, np.inf),
        early=np.full(1, np.inf),
        allowance=np.full(1, np.inf),
        gated=np.zeros(n, dtype=np.bool_),
        rank=wf.position if line is None else frozen(line.rank, np.int32),
        tie=wf.position if line is None else frozen(line.tie, np.int32),
        line=np.full(n, -1, dtype=np.int32),
        unmade=np.zeros(n, dtype=np.int32),
        ready=np.zeros(n + 1, dtype=np.int32),
        **_for_min_min(n, p, h) if min_min else _for_min_min(0, 0, 0),
        estimate=estimates.cost.reshape(-1),
        present=pf.present(0.0).copy(),
        leaves=pf.leaves.copy(),
        price=pf.price,
        running=np.full(p, -1, dtype=np.int32),
        queue=np.zeros(max(n, p), dtype=np.int32),
        queue_at=np.zeros(p, dtype=np.int32),
        queue_end=np.zeros(p, dtype=np.int32),
        availability=np.ones(p),
        reckoned=np.ones(p),
        held=np.zeros(wf.n_items * h, dtype=np.int8),
        bandwidth=np.ones(h * h),
        commands=np.zeros(2 * (transfers + attempts), dtype=np.int32),
        **logs,
    )


def _for_min_min(n: int, p: int, h: int) -> dict[str, Any]:
    """What only Min-Min needs."""
    ints = {"candidate": n, "best": n, "row": p + 1, "old_queue": max(n, p)}
    floats = {"inputs_at": n, "done_at": n, "free_from": p, "arrival": h}
    return {
        **{name: np.zeros(size, dtype=np.int32) for name, size in ints.items()},
        **{name: np.zeros(size) for name, size in floats.items()},
    }


def grown(board: Board, pf: Platform, estimates: Estimates) -> Board:
    """The same board on a platform with more processors, at its end; they have yet to join."""
    h, more = board.n_hosts, pf.n_processors - board.n_processors
    held = np.zeros((len(board.item_producer), pf.n_hosts), dtype=np.int8)
    held[:, :h] = board.held.reshape(-1, h)
    bandwidth = np.ones((pf.n_hosts, pf.n_hosts))
    bandwidth[:h, :h] = board.bandwidth.reshape(h, h)
    burst = board.burst + more
    if board.just_in_time and not board.min_min:
        burst += more * int(np.diff(board.in_ptr).max(initial=0))
    queue = np.zeros(max(board.n_tasks, pf.n_processors), dtype=np.int32)
    queue[: len(board.queue)] = board.queue
    if board.min_min:
        more_room = _for_min_min(board.n_tasks, pf.n_processors, pf.n_hosts)
        board = board._replace(**{**more_room, "inputs_at": board.inputs_at})
    return board._replace(
        n_processors=pf.n_processors,
        n_hosts=pf.n_hosts,
        burst=burst,
        host=pf.host,
        startup=pf.startup.reshape(-1),
        per_unit=pf.time_per_unit.reshape(-1),
        estimate=estimates.cost.reshape(-1),
        present=np.concatenate([board.present, np.zeros(more, dtype=np.bool_)]),
        leaves=np.concatenate([board.leaves, pf.leaves[board.n_processors :]]),
        price=pf.price,
        running=np.concatenate([board.running, np.full(more, -1, dtype=np.int32)]),
        queue=queue,
        queue_at=np.concatenate([board.queue_at, np.zeros(more, dtype=np.int32)]),
        queue_end=np.concatenate([board.queue_end, np.zeros(more, dtype=np.int32)]),
        availability=np.concatenate([board.availability, np.ones(more)]),
        reckoned=np.concatenate([board.reckoned, np.ones(more)]),
        held=held.reshape(-1),
        bandwidth=bandwidth.reshape(-1),
    )


def room_for(board: Board, transfers: int = 0) -> Board:
    """The same board, its logs long enough for an event and so many transfers more.

    A loss can make all that is under way be sent again: as many as there were, at most. Who counted
    them would count again at every event.
    """
    attempts = int(board.counts[b.N_ATTEMPTS]) + board.burst
    most = transfers + 2 * int(board.counts[b.N_TRANSFERS]) + board.burst
    while attempts > len(board.attempt_task) or most > len(board.transfer_item):
        board = _larger(board)
    return board


def _larger(board: Board) -> Board:
    """The same board with twice the room in its logs."""
    longer: dict[str, Any] = {}
    for name in (*LOGS, "commands"):
        old = getattr(board, name)
        longer[name] = np.concatenate([old, np.zeros_like(old)])
    return board._replace(**longer)


def waiting(board: Board) -> BoolArray:
    """The tasks that have not started, or must start again."""
    mask: BoolArray = board.status == b.WAITING
    return mask


def read_situation(board: Board, wf: Workflow, pf: Platform, estimates: Estimates) -> Situation:
    """What is known now, for a planner or a policy."""
    holds = np.empty(int(board.counts[b.N_ATTEMPTS]), dtype=np.int32)
    holds = holds[: facts(board, holds)]
    running = board.attempt_end[holds] == b.OPEN
    return Situation(
        workflow=wf,
        platform=pf,
        estimates=estimates,
        now=float(board.clock[0]),
        attempts=Attempts(
            task=board.attempt_task[holds],
            processor=board.attempt_on[holds],
            start=board.attempt_start[holds],
            finish=np.where(running, np.nan, board.attempt_finish[holds]),
            worked=board.worked[holds],
            since=board.since[holds],
        ),
        copies=_copies(board),
        transfers=_transfers(board),
        availability=board.availability.copy(),
        bandwidth=board.bandwidth.reshape(board.n_hosts, board.n_hosts).copy(),
        present=board.present.copy(),
        given_up=board.status == b.GIVEN_UP if board.counts[b.N_GIVEN_UP] else None,
        astray=_astray(board),
        reuse=Reuse(board.reuse),
    )


def _astray(board: Board) -> BoolArray | None:
    """Needed items that are not on their producers' hosts any more."""
    mask = np.zeros(len(board.item_producer), dtype=np.bool_)
    return mask if astray(board, mask) else None


def _copies(board: Board) -> Copies:
    """Complete items that are still needed, away from their producer's host."""
    room, count = 64, 65
    while count > room:
        room = max(room, count)
        items, hosts = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
        count = copies(board, items, hosts)
    return Copies(item=items[:count], host=hosts[:count])


def _transfers(board: Board) -> Transfers:
    """Transfers under way, and when each is expected at the bandwidth known now."""
    room, count = 64, 65
    while count > room:
        room = max(room, count)
        which, arrival = np.empty(room, dtype=np.int32), np.empty(room)
        count = under_way(board, STANDS_STILL, which, arrival)
    which = which[:count]
    return Transfers(
        item=board.transfer_item[which], host=board.transfer_to[which], arrival=arrival[:count]
    )
