"""Placement in a given order: each task where it finishes earliest, with or without insertion.

The idle time of a processor is a sorted row of gaps in one pool, the last gap ending when the
processor leaves. A gap too short for every task of the problem is forgotten.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.problem import Problem, begin_placing, fill_arrival

ROOM = 8  # gaps per processor to begin with


@compiled
def place_in_order(
    problem: Problem, order: IntArray, pinned: IntArray, bias: FloatArray, shortest: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Processor, start and finish of every task in the order.

    A pinned task (pinned[task] >= 0; an empty array pins none) goes there, if it fits before the
    processor leaves. Else the processor with the smallest finish + bias[task, processor] is taken
    (an empty bias is 0), the first one if equal. Gaps that cannot take a task of cost `shortest`
    are forgotten: give the smallest cost for insertion, infinity for none. A task that fits
    nowhere gets processor -1, and the placement ends there.
    """
    processors = problem.n_processors
    processor, start, finish, source_host, ready_at, _, arrival = begin_placing(problem)
    first = np.empty(processors, dtype=np.int32)  # each processor's row in the pool
    last = np.empty(processors, dtype=np.int32)  # its last gap, which ends when it leaves
    room = np.full(processors, ROOM, dtype=np.int32)
    gap_start = np.empty(2 * processors * ROOM)
    gap_end = np.empty(2 * processors * ROOM)
    pool_used = processors * ROOM
    for p in range(processors):
        first[p] = last[p] = p * ROOM
        gap_start[first[p]] = problem.free_from[p]
        gap_end[first[p]] = problem.until[p]

    done = 0
    while True:
        done = place_some(
            problem, order, done, pinned, bias, shortest, processor, start, finish, source_host,
            ready_at, arrival, first, last, room, gap_start, gap_end,
        )  # fmt: skip
        if done == len(order) or processor[order[done]] < 0:
            return processor, start, finish
        # a processor has no room for another gap: its row moves to where there is twice as much
        full = processor[order[done]]
        processor[order[done]] = -1
        if pool_used + 2 * room[full] > len(gap_start):
            gap_start = twice_as_long(gap_start)
            gap_end = twice_as_long(gap_end)
        for k in range(room[full]):
            gap_start[pool_used + k] = gap_start[first[full] + k]
            gap_end[pool_used + k] = gap_end[first[full] + k]
        last[full] += pool_used - first[full]
        first[full] = pool_used
        room[full] *= 2
        pool_used += room[full]


def place_some(
    problem: Problem, order: IntArray, done: int, pinned: IntArray, bias: FloatArray,
    shortest: float, processor: IntArray, start: FloatArray, finish: FloatArray,
    source_host: IntArray, ready_at: FloatArray, arrival: FloatArray, first: IntArray,
    last: IntArray, room: IntArray, gap_start: FloatArray, gap_end: FloatArray,
) -> int:  # fmt: skip
    """Place more of the order; how far it came.

    It ends before a task that fits nowhere, or, with its processor noted, before one whose
    processor has no room for another gap.
    """
    for k in range(done, len(order)):
        task = order[k]
        fill_arrival(problem, task, source_host, ready_at, arrival)
        best, gap = -1, -1
        if len(pinned) > 0 and pinned[task] >= 0:
            p = pinned[task]
            best, gap = earliest(
                problem, task, p, p + 1, arrival, bias, first, last, gap_start, gap_end
            )
        if best < 0:
            best, gap = earliest(
                problem, task, 0, problem.n_processors, arrival, bias, first, last, gap_start,
                gap_end,
            )  # fmt: skip
        processor[task] = best
        if best < 0 or last[best] + 1 == first[best] + room[best]:
            return k
        begins = max(gap_start[gap], arrival[problem.host[best]])
        ends = begins + problem.cost[task * problem.n_processors + best]
        start[task] = begins
        finish[task] = ends
        source_host[task] = problem.host[best]
        ready_at[task] = ends
        last[best] = fill_gap(gap_start, gap_end, gap, last[best], begins, ends, shortest)
    return len(order)


def earliest(
    problem: Problem, task: int, low: int, high: int, arrival: FloatArray, bias: FloatArray,
    first: IntArray, last: IntArray, gap_start: FloatArray, gap_end: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Of the processors low..high-1 the one with the smallest finish + bias, and the gap there."""
    row = task * problem.n_processors
    cost = problem.cost[row : row + problem.n_processors]
    best = -1
    best_key = np.inf
    best_gap = -1
    for p in range(low, high):
        ready = arrival[problem.host[p]]
        extra = bias[row + p] if len(bias) > 0 else 0.0
        if ready + cost[p] + extra >= best_key:
            continue  # not even an idle processor would do
        gap = last[p]
        if ready < gap_start[gap] and gap > first[p]:
            gap = find_gap(gap_start, gap_end, first[p], gap, ready, cost[p])
        ends = max(gap_start[gap], ready) + cost[p]
        if ends + extra < best_key and ends <= gap_end[gap]:
            best, best_key, best_gap = p, ends + extra, gap
    return best, best_gap


def find_gap(
    gap_start: FloatArray, gap_end: FloatArray, first: int, last: int, ready: float, duration: float
) -> int:
    """The first of the gaps in which the task fits once it is ready; else the last one."""
    earliest = ready + duration
    low, high = first, last
    while low < high:  # gaps that end before the task could are out
        middle = (low + high) // 2
        if gap_end[middle] < earliest:
            low = middle + 1
        else:
            high = middle
    while low < last and max(gap_start[low], ready) + duration > gap_end[low]:
        low += 1
    return low


def fill_gap(
    gap_start: FloatArray, gap_end: FloatArray, gap: int, last: int, begins: float, ends: float,
    shortest: float,
) -> int:  # fmt: skip
    """Take begins..ends out of the gap; returns where the processor's last gap is then."""
    before, after = gap_start[gap], gap_end[gap]
    keep_left = before + shortest <= begins
    keep_right = ends + shortest <= after or gap == last
    if keep_left and keep_right:
        for k in range(last, gap, -1):
            gap_start[k + 1] = gap_start[k]
            gap_end[k + 1] = gap_end[k]
        gap_end[gap] = begins
        gap_start[gap + 1] = ends
        gap_end[gap + 1] = after
        return last + 1
    if keep_left:
        gap_end[gap] = begins
        return last
    if keep_right:
        gap_start[gap] = ends
        return last
    for k in range(gap, last):
        gap_start[k] = gap_start[k + 1]
        gap_end[k] = gap_end[k + 1]
    return last - 1


@compiled
def twice_as_long(values: FloatArray) -> FloatArray:
    """A copy with as much room again."""
    longer = np.empty(2 * len(values))
    for k in range(len(values)):
        longer[k] = values[k]
    return longer


@compiled
def position(
    problem: Problem, order: IntArray, runs_on: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Global task positioning: every task that is not done anew, without insertion.

    Hernandez, Cole: "Reactive Scheduling of DAG Applications", equations 5 to 11. Readings:
    equation 5 holds for the processor that a task runs on, and that is taken until it ends there
    (equation 7), so that a task of higher rank cannot push it away; it is free now if nothing runs
    there, or what runs moves away. A task that runs (runs_on[task] >= 0) can stay, and then
    ends when its processor is expected to be free; elsewhere it begins from scratch. A task that
    fits nowhere gets processor -1, and the placement ends there.
    """
    processor, start, finish, source_host, ready_at, free, arrival = begin_placing(problem)
    counted_on = np.zeros(problem.n_processors, dtype=np.bool_)
    for k in range(len(order)):
        task = order[k]
        fill_arrival(problem, task, source_host, ready_at, arrival)
        best, begins, ends = earliest_finish(problem, task, runs_on[task], free, arrival)
        if best < 0:
            break
        stays = best == runs_on[task]
        if runs_on[task] >= 0 and not stays and not counted_on[runs_on[task]]:
            free[runs_on[task]] = problem.now
        processor[task] = best
        start[task] = begins
        finish[task] = ends
        source_host[task] = problem.host[best]
        ready_at[task] = ends
        if not stays:  # what stays has its processor already
            free[best] = ends
            counted_on[best] = True
    return processor, start, finish


def earliest_finish(
    problem: Problem, task: int, here: int, free: FloatArray, arrival: FloatArray
) -> tuple[int, float, float]:
    """The processor on which a task finishes earliest, the first of equals; it rather stays."""
    best, begins, ends = here, problem.now, np.inf
    if here >= 0 and problem.free_from[here] <= problem.until[here]:
        ends = problem.free_from[here]
    row = task * problem.n_processors
    for p in range(problem.n_processors):
        starts = max(free[p], arrival[problem.host[p]])
        done = starts + problem.cost[row + p]
        if p != here and done < ends and done <= problem.until[p]:
            best, begins, ends = p, starts, done
    if best == here and here >= 0:
        ends = problem.free_from[here]
    return best, begins, ends
