"""Orders for list planners: what a task costs on average, and who comes first by rank."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.problem import Problem
from weft.kernels.sorting import sort_by
from weft.native import compiled

EQUAL_RANKS = 1e-12  # of the largest rank: what differs by less is rounding, hence a tie


@compiled
def mean_cost(cost: FloatArray, n_tasks: int, n_processors: int) -> FloatArray:
    """The mean over the processors of what each task costs; `cost` is flat."""
    mean = np.empty(n_tasks)
    for task in range(n_tasks):
        total, row = 0.0, task * n_processors
        for p in range(n_processors):
            total += cost[row + p]
        mean[task] = total / n_processors
    return mean


@compiled
def by_rank(problem: Problem, rank: FloatArray) -> IntArray:
    """The movable tasks, highest rank first, then by topological position.

    No order comes of ranks that are infinite: it is empty then.
    """
    highest, count = 0.0, 0
    for task in range(problem.n_tasks):
        highest = max(highest, rank[task])
        count += problem.movable[task]
    quantum = highest * EQUAL_RANKS
    if not quantum < np.inf:
        count = 0
    listed = np.empty(count, dtype=np.int32)
    if count == 0:
        return listed
    at = 0
    for k in range(problem.n_tasks):
        if problem.movable[problem.order[k]]:
            listed[at] = problem.order[k]
            at += 1
    if quantum > 0.0:
        level = np.empty(problem.n_tasks)
        for task in range(problem.n_tasks):
            level[task] = np.rint(rank[task] / -quantum)
        sort_by(level, listed)
    return listed


def shortest_cost(problem: Problem) -> float:
    """The least that any task costs anywhere."""
    least = np.inf
    for k in range(len(problem.cost)):
        least = min(least, problem.cost[k])
    return least


def median_cost(problem: Problem) -> FloatArray:
    """The median over the processors of what each task costs."""
    n = problem.n_processors
    median = np.empty(problem.n_tasks)
    row = np.empty(n)
    for task in range(problem.n_tasks):
        for p in range(n):
            cost, at = problem.cost[task * n + p], p
            while at > 0 and row[at - 1] > cost:
                row[at] = row[at - 1]
                at -= 1
            row[at] = cost
        median[task] = row[n // 2]
        if n % 2 == 0:
            median[task] = (row[n // 2 - 1] + row[n // 2]) / 2
    return median


def places(problem: Problem, order: IntArray) -> IntArray:
    """The place of each task in an order."""
    place = np.zeros(problem.n_tasks, dtype=np.int32)
    for k in range(len(order)):
        place[order[k]] = k
    return place
