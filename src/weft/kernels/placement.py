"""Placement in a given order: each task where it finishes earliest, with or without insertion.

The idle time of a processor is a sorted row of gaps in one pool, the last gap ending when the
processor leaves. A gap too short for every task of the problem is forgotten.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.arrival import data_arrival
from weft.kernels.problem import Problem

ROOM = 8  # gaps per processor to begin with


def place_in_order(
    problem: Problem, order: IntArray, pinned: IntArray, bias: FloatArray, insertion: bool
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Processor, start and finish of every task in the order.

    A pinned task (pinned[task] >= 0; an empty array pins none) has no choice. Else the processor
    with the smallest finish + bias[task, processor] is taken (an empty bias is 0), the first one
    if equal. A task that fits nowhere gets processor -1, and the placement ends there.
    """
    processors = problem.n_processors
    host, cost = problem.host, problem.cost
    processor = np.full(problem.n_tasks, -1, dtype=np.int32)
    start = np.zeros(problem.n_tasks)
    finish = np.zeros(problem.n_tasks)
    source_host = problem.source_host.copy()
    ready_at = problem.ready_at.copy()
    arrival = np.zeros(problem.n_hosts)

    shortest = shortest_costs(problem, order, insertion)
    first = np.arange(processors) * ROOM  # each processor's row in the pool
    count = np.ones(processors, dtype=np.int64)
    room = np.full(processors, ROOM)
    gap_start = np.empty(2 * processors * ROOM)
    gap_end = np.empty(2 * processors * ROOM)
    pool_used = processors * ROOM
    for p in range(processors):
        gap_start[first[p]] = problem.free_from[p]
        gap_end[first[p]] = problem.until[p]

    for task in order:
        data_arrival(problem, task, source_host, ready_at, arrival)
        low, high = 0, processors
        if len(pinned) > 0 and pinned[task] >= 0:
            low, high = pinned[task], pinned[task] + 1
        best = -1
        best_key = np.inf
        best_gap = -1
        for p in range(low, high):
            ready = arrival[host[p]]
            duration = cost[task * processors + p]
            extra = bias[task * processors + p] if len(bias) > 0 else 0.0
            if ready + duration + extra >= best_key:
                continue  # not even an idle processor would do
            end = first[p] + count[p]
            begin = first[p] if insertion else end - 1
            gap = find_gap(gap_start, gap_end, begin, end, ready, duration)
            if gap >= 0:
                key = max(gap_start[gap], ready) + duration + extra
                if key < best_key:
                    best, best_key, best_gap = p, key, gap
        if best < 0:
            return processor, start, finish
        begins = max(gap_start[best_gap], arrival[host[best]])
        ends = begins + cost[task * processors + best]
        processor[task] = best
        start[task] = begins
        finish[task] = ends
        source_host[task] = host[best]
        ready_at[task] = ends
        if count[best] == room[best]:
            if pool_used + 2 * room[best] > len(gap_start):
                gap_start = twice_as_long(gap_start)
                gap_end = twice_as_long(gap_end)
            best_gap += pool_used - first[best]
            for k in range(count[best]):
                gap_start[pool_used + k] = gap_start[first[best] + k]
                gap_end[pool_used + k] = gap_end[first[best] + k]
            first[best] = pool_used
            room[best] *= 2
            pool_used += room[best]
        count[best] += fill_gap(
            gap_start, gap_end, best_gap, first[best] + count[best], begins, ends, shortest[best]
        )
    return processor, start, finish


def shortest_costs(problem: Problem, order: IntArray, insertion: bool) -> FloatArray:
    """The smallest cost on each processor, as no shorter gap is ever filled; else infinity."""
    processors = problem.n_processors
    shortest = np.full(processors, np.inf)
    if insertion:
        for task in order:
            for p in range(processors):
                if problem.cost[task * processors + p] < shortest[p]:
                    shortest[p] = problem.cost[task * processors + p]
    return shortest


def find_gap(
    gap_start: FloatArray, gap_end: FloatArray, begin: int, end: int, ready: float, duration: float
) -> int:
    """The first of the gaps begin..end-1 in which the task fits once it is ready; -1 if none."""
    earliest = ready + duration
    if end > begin and ready >= gap_start[end - 1]:  # the usual case: behind everything
        begin = end - 1
    low, high = begin, end
    while low < high:  # gaps that end before the task could are out
        middle = (low + high) // 2
        if gap_end[middle] < earliest:
            low = middle + 1
        else:
            high = middle
    for gap in range(low, end):
        if max(gap_start[gap], ready) + duration <= gap_end[gap]:
            return gap
    return -1


def fill_gap(
    gap_start: FloatArray, gap_end: FloatArray, gap: int, end: int, begins: float, ends: float,
    shortest: float,
) -> int:  # fmt: skip
    """Take begins..ends out of the gap; how many gaps more (or fewer) the processor has now."""
    before, after = gap_start[gap], gap_end[gap]
    keep_left = before + shortest <= begins
    keep_right = ends + shortest <= after or gap == end - 1
    if keep_left and keep_right:
        for k in range(end, gap + 1, -1):
            gap_start[k] = gap_start[k - 1]
            gap_end[k] = gap_end[k - 1]
        gap_end[gap] = begins
        gap_start[gap + 1] = ends
        gap_end[gap + 1] = after
        return 1
    if keep_left:
        gap_end[gap] = begins
        return 0
    if keep_right:
        gap_start[gap] = ends
        return 0
    for k in range(gap, end - 1):
        gap_start[k] = gap_start[k + 1]
        gap_end[k] = gap_end[k + 1]
    return -1


def twice_as_long(values: FloatArray) -> FloatArray:
    """A copy with as much room again."""
    longer = np.empty(2 * len(values))
    longer[: len(values)] = values
    return longer
