"""Global task positioning: every task that is not done anew, where it finishes earliest.

Hernandez, Cole: "Reactive Scheduling of DAG Applications", equations 5 to 11. Readings: equation 5
holds for the processor that a task runs on, and that is taken until it ends there (equation 7), so
that a task of higher rank cannot push it away; it is free now if nothing runs there, or what runs
moves away.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.arrival import data_arrival
from weft.kernels.problem import Problem
from weft.native import compiled


@compiled
def position(
    problem: Problem, order: IntArray, runs_on: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Processor, start and finish of every task in the order; without insertion.

    A task that runs (runs_on[task] >= 0) can stay, and then ends when its processor is expected
    to be free; elsewhere it begins from scratch. A task that fits nowhere gets processor -1, and
    the placement ends there.
    """
    processor = np.full(problem.n_tasks, -1, dtype=np.int32)
    start = np.zeros(problem.n_tasks)
    finish = np.zeros(problem.n_tasks)
    source_host = problem.source_host.copy()
    ready_at = problem.ready_at.copy()
    free = problem.free_from.copy()
    counted_on = np.zeros(problem.n_processors, dtype=np.bool_)
    arrival = np.zeros(problem.n_hosts)
    for k in range(len(order)):
        task = order[k]
        data_arrival(problem, task, source_host, ready_at, arrival)
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
