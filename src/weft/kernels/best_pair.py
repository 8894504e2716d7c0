"""Dynamic-order placement: at each step the best (task, processor) pair of all ready tasks."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.arrival import data_arrival
from weft.kernels.problem import Problem
from weft.kernels.ranks import waiting_counts
from weft.native import compiled


@compiled
def place_best_pair(
    problem: Problem, bonus: FloatArray, line: IntArray, largest: bool
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Of all ready tasks at their earliest finish, the smallest finish - bonus goes first.

    With `largest` it is the largest (Max-Min). Equal tasks go by their place in line, equal
    processors by number; no insertion. A task that fits nowhere keeps processor -1.

    A placement delays one processor only, so just the tasks that wanted it are looked at again.
    """
    processor = np.full(problem.n_tasks, -1, dtype=np.int32)
    start = np.zeros(problem.n_tasks)
    finish = np.zeros(problem.n_tasks)
    source_host = problem.source_host.copy()
    ready_at = problem.ready_at.copy()
    free_from = problem.free_from.copy()
    arrival = np.zeros(problem.n_hosts)
    waiting = waiting_counts(problem)

    ready = np.empty(problem.n_tasks, dtype=np.int32)  # in no particular order
    fill_best_pair(
        problem, bonus, line, largest, processor, start, finish, source_host, ready_at, free_from,
        arrival, waiting, ready,
    )  # fmt: skip
    return processor, start, finish


def fill_best_pair(
    problem: Problem, bonus: FloatArray, line: IntArray, largest: bool, processor: IntArray,
    start: FloatArray, finish: FloatArray, source_host: IntArray, ready_at: FloatArray,
    free_from: FloatArray, arrival: FloatArray, waiting: IntArray, ready: IntArray,
) -> None:  # fmt: skip
    """The same into arrays made for it."""
    n_ready = 0
    for task in range(problem.n_tasks):
        if problem.movable[task] and waiting[task] == 0:
            data_arrival(problem, task, source_host, ready_at, arrival)
            prefer(problem, task, arrival, free_from, processor, start, finish)
            ready[n_ready] = task
            n_ready += 1
    while n_ready > 0:
        chosen = choose(ready, n_ready, finish, bonus, line, largest)
        task = ready[chosen]
        p = processor[task]
        if p < 0:
            return
        source_host[task] = problem.host[p]
        ready_at[task] = finish[task]
        free_from[p] = finish[task]
        n_ready -= 1
        ready[chosen] = ready[n_ready]
        for k in range(n_ready):
            if processor[ready[k]] == p:
                data_arrival(problem, ready[k], source_host, ready_at, arrival)
                prefer(problem, ready[k], arrival, free_from, processor, start, finish)
        for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
            item = problem.out_item[o]
            for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
                consumer = problem.use_task[u]
                if not problem.movable[consumer]:
                    continue
                waiting[consumer] -= 1
                if waiting[consumer] == 0:
                    data_arrival(problem, consumer, source_host, ready_at, arrival)
                    prefer(problem, consumer, arrival, free_from, processor, start, finish)
                    ready[n_ready] = consumer
                    n_ready += 1


def prefer(
    problem: Problem, task: int, arrival: FloatArray, free_from: FloatArray,
    processor: IntArray, start: FloatArray, finish: FloatArray,
) -> None:  # fmt: skip
    """Note where the task would finish first now; processor -1 if it fits nowhere."""
    best = -1
    best_finish = np.inf
    row = task * problem.n_processors
    for p in range(problem.n_processors):
        ends = max(arrival[problem.host[p]], free_from[p]) + problem.cost[row + p]
        if ends < best_finish and ends <= problem.until[p]:
            best, best_finish = p, ends
    processor[task] = best
    finish[task] = best_finish
    if best >= 0:
        start[task] = max(arrival[problem.host[best]], free_from[best])


def choose(
    ready: IntArray, n_ready: int, finish: FloatArray, bonus: FloatArray, line: IntArray,
    largest: bool,
) -> int:  # fmt: skip
    """The position in `ready` of the task to place next."""
    sign = -1.0 if largest else 1.0
    best = 0
    best_key = sign * (finish[ready[0]] - bonus[ready[0]])
    for k in range(1, n_ready):
        task = ready[k]
        key = sign * (finish[task] - bonus[task])
        if key < best_key or (key == best_key and line[task] < line[ready[best]]):
            best, best_key = k, key
    return best
