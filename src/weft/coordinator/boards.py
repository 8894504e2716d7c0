"""The board of a run: made empty, made larger, and read as a Situation."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model import (
    Attempts,
    Copies,
    Estimates,
    Platform,
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
}
BY_ATTEMPT = {name for name in LOGS if name.startswith("attempt")} | {"worked", "since"}


def empty_board(wf: Workflow, pf: Platform) -> Board:
    """Nothing has happened; the processors that join at 0 are there."""
    n, p, h = wf.n_tasks, pf.n_processors, pf.n_hosts
    burst = _burst(wf, p)
    attempts, transfers = n + burst, len(wf.use_task) + burst
    logs = {
        name: np.zeros(attempts if name in BY_ATTEMPT else transfers, dtype=dtype)
        for name, dtype in LOGS.items()
    }
    return Board(
        n_tasks=n,
        n_processors=p,
        n_hosts=h,
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
        clock=np.zeros(1),
        counts=np.zeros(b.COUNTS, dtype=np.int64),
        status=np.zeros(n, dtype=np.int8),
        on=np.full(n, -1, dtype=np.int32),
        missing=np.zeros(n, dtype=np.int32),
        attempt=np.full(n, -1, dtype=np.int32),
        latest=np.full(n, np.inf),
        present=pf.present(0.0).copy(),
        running=np.full(p, -1, dtype=np.int32),
        queue=np.zeros(n, dtype=np.int32),
        queue_at=np.zeros(p, dtype=np.int32),
        queue_end=np.zeros(p, dtype=np.int32),
        availability=np.ones(p),
        held=np.zeros(wf.n_items * h, dtype=np.int8),
        bandwidth=np.ones(h * h),
        commands=np.zeros(2 * (transfers + attempts), dtype=np.int32),
        **logs,
    )


def _burst(wf: Workflow, processors: int) -> int:
    """A finished task sends its outputs to all consumers; and every processor may start one."""
    uses = np.diff(wf.use_ptr)[wf.out_item]
    row = np.repeat(np.arange(wf.n_tasks), np.diff(wf.out_ptr))
    most = np.bincount(row, weights=uses, minlength=1).max(initial=0)
    return int(most) + processors + 1


def room_for(board: Board, transfers: int) -> Board:
    """The same board, its logs long enough for an event and so many transfers more."""
    while board.counts[b.N_ATTEMPTS] + board.burst > len(board.attempt_task) or board.counts[
        b.N_TRANSFERS
    ] + board.burst + transfers > len(board.transfer_item):
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


def sends_of_a_plan(board: Board) -> int:
    """The most transfers that a new plan can begin: inputs of waiting tasks that are made."""
    producers = board.item_producer[board.in_item]
    made = (producers >= 0) & (board.status[producers] == b.DONE)
    of_waiting = np.repeat(waiting(board), np.diff(board.in_ptr))
    return int(np.count_nonzero(made & of_waiting))


def read_situation(board: Board, wf: Workflow, pf: Platform, estimates: Estimates) -> Situation:
    """What is known now, for a planner or a policy."""
    now = float(board.clock[0])
    n = int(board.counts[b.N_ATTEMPTS])
    holds = np.flatnonzero(board.attempt_end[:n] <= b.FINISHED)
    end = board.attempt_end[holds]
    return Situation(
        workflow=wf,
        platform=pf,
        estimates=estimates,
        now=now,
        attempts=Attempts(
            task=board.attempt_task[holds],
            processor=board.attempt_on[holds],
            start=board.attempt_start[holds],
            finish=np.where(end == b.OPEN, np.nan, board.attempt_finish[holds]),
            worked=board.worked[holds],
            since=board.since[holds],
        ),
        copies=_copies(board),
        transfers=_transfers(board, wf, pf, now),
        availability=board.availability.copy(),
        present=board.present.copy(),
    )


def _needed(board: Board) -> BoolArray:
    """The items that a waiting task reads."""
    needed = np.zeros(len(board.item_producer), dtype=np.bool_)
    readers = np.flatnonzero(waiting(board)[board.use_task])
    needed[np.searchsorted(board.use_ptr, readers, side="right") - 1] = True
    return needed


def _copies(board: Board) -> Copies:
    """Complete items that are still needed, away from their producer's host."""
    items = np.flatnonzero(_needed(board) & (board.item_producer >= 0))
    held = board.held.reshape(-1, board.n_hosts)[items] == b.HERE
    made_by = board.attempt[board.item_producer[items]]
    done = made_by >= 0
    held[done, board.host[board.attempt_on[made_by[done]]]] = False
    at, host = np.nonzero(held)
    return Copies(item=items[at].astype(np.int32), host=host.astype(np.int32))


def _transfers(board: Board, wf: Workflow, pf: Platform, now: float) -> Transfers:
    """Transfers under way, and when each is expected at the bandwidth known now."""
    n = int(board.counts[b.N_TRANSFERS])
    under_way = np.flatnonzero(np.isnan(board.transfer_arrival[:n]))
    item: IntArray = board.transfer_item[under_way]
    source, target = board.transfer_from[under_way], board.transfer_to[under_way]
    takes = wf.item_size[item] * pf.time_per_unit[source, target]
    left: FloatArray = np.maximum(0.0, takes - board.moved[under_way])
    factor = board.bandwidth[source * board.n_hosts + target]
    with np.errstate(divide="ignore", invalid="ignore"):
        arrival = board.moved_since[under_way] + np.where(left > 0, left / factor, 0.0)
    return Transfers(item=item, host=target, arrival=np.maximum(now, arrival))
