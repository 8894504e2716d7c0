"""FCP's placement: only two processors are looked at for each task."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.arrival import data_arrival
from weft.kernels.problem import Problem
from weft.native import compiled


@compiled
def place_two_choices(
    problem: Problem, order: IntArray, position: IntArray, startup: float, per_unit: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Each task on the processor free first or on its enabling one, whichever finishes it first.

    All processors are candidates where neither can finish the task before leaving. No insertion.
    """
    processor = np.full(problem.n_tasks, -1, dtype=np.int32)
    start = np.zeros(problem.n_tasks)
    finish = np.zeros(problem.n_tasks)
    source_host = problem.source_host.copy()
    ready_at = problem.ready_at.copy()
    free_from = problem.free_from.copy()
    placed_on = problem.settled_on.copy()
    arrival = np.zeros(problem.n_hosts)
    for task in order:
        data_arrival(problem, task, source_host, ready_at, arrival)
        enabling = enabling_processor(
            problem, task, placed_on, ready_at, position, startup, per_unit
        )
        best = better_of_two(problem, task, enabling, arrival, free_from)
        if best < 0:
            break
        processor[task] = best
        placed_on[task] = best
        start[task] = max(arrival[problem.host[best]], free_from[best])
        finish[task] = start[task] + problem.cost[task * problem.n_processors + best]
        source_host[task] = problem.host[best]
        ready_at[task] = finish[task]
        free_from[best] = finish[task]
    return processor, start, finish


def better_of_two(
    problem: Problem, task: int, enabling: int, arrival: FloatArray, free_from: FloatArray
) -> int:
    """Of the processors free first and the enabling one, or of all if none of them will do.

    Several may be free first, above all in mid-run, where all that are idle are free from now.
    """
    first_free = np.inf
    for p in range(problem.n_processors):
        first_free = min(first_free, free_from[p])
    best = -1
    best_finish = np.inf
    for everyone in (False, True):
        if best >= 0:
            break
        for p in range(problem.n_processors):
            if everyone or p == enabling or free_from[p] == first_free:
                ends = max(arrival[problem.host[p]], free_from[p])
                ends += problem.cost[task * problem.n_processors + p]
                if ends < best_finish and ends <= problem.until[p]:
                    best, best_finish = p, ends
    return best


def enabling_processor(
    problem: Problem, task: int, placed_on: IntArray, ready_at: FloatArray, position: IntArray,
    startup: float, per_unit: float,
) -> int:  # fmt: skip
    """The processor whose message, at the mean transfer time, arrives last; -1 if there is none."""
    last = -1
    last_arrival = -1.0
    for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
        item = problem.in_item[e]
        producer = problem.item_producer[item]
        if producer < 0 or placed_on[producer] < 0:
            continue
        here = ready_at[producer] + startup + problem.item_size[item] * per_unit
        if here > last_arrival or (here == last_arrival and position[producer] < position[last]):
            last, last_arrival = producer, here
    return placed_on[last] if last >= 0 else -1
