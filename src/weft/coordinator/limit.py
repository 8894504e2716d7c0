"""A budget as a limit: when the money is gone with what runs, and what may still be begun."""

from __future__ import annotations

import heapq
import math

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.kernels.board import Board
from weft.model import Platform, Usage, Workflow
from weft.model.money import ROUNDING

LEAD = 1.0  # seconds before a billing unit that cannot be paid: work must be over when it begins
LEAD_SHARE = 0.1  # of a unit, where that is less
MOST_UNITS = 1000  # that are looked at ahead; then it is looked again
NOBODY = np.empty(0, dtype=np.int32)


def end_of_money(
    board: Board, used: Usage, platform: Platform, budget: float
) -> tuple[float, IntArray]:
    """When what runs will have used up the budget, and on which processors it must end then.

    A billing unit is paid when it begins; where it cannot be, work ends a little before it.
    """
    busy = np.flatnonzero(board.running >= 0).astype(np.int32)
    price, billing, now = platform.price, platform.billing, float(board.clock[0])
    metered = busy[(price[busy] > 0) & (billing[busy] == 0)]
    rate, left = float(price[metered].sum()), budget - used.cost(platform)
    billed = busy[(price[busy] > 0) & (billing[busy] > 0)]
    units = [(_next_unit(used, platform, int(p)), int(p)) for p in billed]
    heapq.heapify(units)
    at = now
    for _ in range(MOST_UNITS):
        gone = at + max(0.0, left) / rate if rate > 0 else math.inf
        if not units or gone <= units[0][0]:
            return gone, metered
        unit, p = heapq.heappop(units)
        left, at = left - rate * max(0.0, unit - at), max(at, unit)
        if billing[p] * price[p] > left + ROUNDING * budget:
            return at, np.array([p], dtype=np.int32)
        left -= float(billing[p] * price[p])
        heapq.heappush(units, (unit + float(billing[p]), p))
    return at, NOBODY


def _next_unit(used: Usage, platform: Platform, p: int) -> float:
    """When the next billing unit of a processor in use is about to begin."""
    unit = float(platform.billing[p])
    span = float(used.last[p] - used.first[p])
    begun = max(1.0, math.ceil(span / unit * (1 - ROUNDING)))
    return float(used.first[p]) + begun * unit - lead(unit)


def lead(unit: float) -> float:
    """How long before a billing unit work ends that must not reach it."""
    return min(LEAD, LEAD_SHARE * unit)


def ceilings(workflow: Workflow, timeout: float | None) -> FloatArray:
    """The time-out of every task, 0 for none."""
    given = (workflow.spec(task).timeout for task in range(workflow.n_tasks))
    return np.array([(timeout if t is None else t) or 0.0 for t in given])


def gated(ceiling: FloatArray, platform: Platform) -> BoolArray:
    """The tasks that are begun only if that can be paid: with a time-out, or where units begin."""
    mask: BoolArray = (ceiling > 0) | bool((platform.billing > 0).any())
    return mask


def worst_cost(
    board: Board, used: Usage, platform: Platform, ceiling: FloatArray, task: int, p: int
) -> float:
    """What is spent if this task is begun now, and all that runs takes as long as it may.

    What has no time-out is taken to end as expected.
    """
    now, busy = float(board.clock[0]), np.flatnonzero(board.running >= 0)
    attempts = board.running[busy]
    tasks = board.attempt_task[attempts]
    rest = board.estimate[tasks * board.n_processors + busy] - board.worked[attempts]
    expected = board.since[attempts] + rest / np.maximum(board.availability[busy], 1e-9)
    until = np.where(ceiling[tasks] > 0, board.attempt_start[attempts] + ceiling[tasks], expected)
    begun = np.full(len(busy), now)
    sure = used.and_then(busy.astype(np.int32), begun, np.maximum(now, until))
    most = max(float(ceiling[task]), lead(float(platform.billing[p])))
    it = np.array([p], dtype=np.int32), np.array([now]), np.array([now + most])
    return sure.and_then(*it).cost(platform)


def more_for_timeouts(
    board: Board, platform: Platform, ceiling: FloatArray, on: IntArray, wait: BoolArray
) -> float:
    """What must be there beyond the estimates, so that every time-out can be paid in its turn."""
    tasks = np.flatnonzero(wait & (ceiling > 0) & (on >= 0))
    p = on[tasks]
    over = ceiling[tasks] - board.estimate[tasks * board.n_processors + p]
    most = np.zeros(platform.n_processors)  # one runs on each at a time
    np.maximum.at(most, p, np.maximum(0.0, over) * platform.price[p])
    return float(most.sum())
