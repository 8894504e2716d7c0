"""The list planners: an order of the tasks, and a placement in that order."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.best_pair import place_best_pair
from weft.kernels.groups import place_groups
from weft.kernels.listing import by_rank, mean_cost, median_cost, places
from weft.kernels.placement import place_in_order
from weft.kernels.problem import Problem
from weft.kernels.ranks import (
    critical_path,
    downward_rank,
    hop_levels,
    optimistic_cost,
    ready_order,
    upward_rank,
    waiting_counts,
)
from weft.kernels.sorting import sort_by
from weft.kernels.two_choices import place_two_choices
from weft.native import compiled

HEFT, HEFT_AT_THE_END, CPOP, PEFT, LMT, DLS, MIN_MIN, MAX_MIN, HBMCT, FCP = range(10)


@compiled
def plan_listed(
    problem: Problem, planner: int, weight: FloatArray, least: float, startup: float,
    per_unit: float,
) -> tuple[IntArray, FloatArray, FloatArray]:  # fmt: skip
    """Processor, start and finish of every movable task by one of the list planners.

    `weight` is the mean cost of each task, `least` the smallest of all costs; startup and time per
    unit are those of the mean link. A task that fits nowhere gets processor
    -1; if ranks are infinite, so do all.
    """
    nowhere = np.empty(0, dtype=np.int32)
    nobody = np.empty(0)
    if planner == PEFT:
        table = optimistic_cost(problem, startup, per_unit)
        rank = mean_cost(table, problem.n_tasks, problem.n_processors)
        ranked = by_rank(problem, rank)
        order = ready_order(problem, ranked)
        return place_in_order(problem, order, nowhere, table, least)
    if planner == LMT:
        order = by_level(problem, weight)
        return place_in_order(problem, order, nowhere, nobody, np.inf)
    rank = upward_rank(problem, weight, startup, per_unit)
    if planner == CPOP:
        return plan_cpop(problem, weight, least, rank, startup, per_unit)
    order = by_rank(problem, rank)
    if planner == HBMCT:
        return place_groups(problem, order)
    if planner == FCP:
        ranked = ready_order(problem, order)
        position = places(problem, problem.order)
        return place_two_choices(problem, ranked, position, startup, per_unit)
    if planner in (DLS, MIN_MIN, MAX_MIN):
        line = places(problem, order)
        bonus = np.zeros(problem.n_tasks)
        if planner == DLS:
            median = median_cost(problem)
            level = upward_rank(problem, median, 0.0, 0.0)
            for task in range(problem.n_tasks):
                bonus[task] = level[task] + median[task]
        return place_best_pair(problem, bonus, line, planner == MAX_MIN)
    shortest = least if planner == HEFT else np.inf
    return place_in_order(problem, order, nowhere, nobody, shortest)


def by_level(problem: Problem, weight: FloatArray) -> IntArray:
    """Level by level, the costliest task first."""
    hops = hop_levels(problem)
    level = np.empty(problem.n_tasks)
    for task in range(problem.n_tasks):
        level[task] = hops[task]
    order = by_rank(problem, weight)
    sort_by(level, order)
    return order


def plan_cpop(
    problem: Problem, weight: FloatArray, least: float, rank: FloatArray, startup: float,
    per_unit: float,
) -> tuple[IntArray, FloatArray, FloatArray]:  # fmt: skip
    """The critical path on the processor with the smallest sum of its costs."""
    nobody = np.empty(0)
    priority = downward_rank(problem, weight, startup, per_unit)
    for task in range(problem.n_tasks):
        priority[task] = rank[task] + priority[task]
    ranked = by_rank(problem, priority)
    order = ready_order(problem, ranked)
    pins = np.full(problem.n_tasks, -1, dtype=np.int32)
    waiting = waiting_counts(problem)
    entry = -1
    for k in range(len(ranked) - 1, -1, -1):
        if waiting[ranked[k]] == 0:
            entry = ranked[k]
    if entry >= 0:
        position = places(problem, problem.order)
        path = critical_path(problem, rank, position, entry, startup, per_unit)
        pin_path(problem, path, pins)
    return place_in_order(problem, order, pins, nobody, least)


def pin_path(problem: Problem, path: IntArray, pins: IntArray) -> None:
    """Pin a path to the processor on which it costs least, the first of equals."""
    best, least = 0, np.inf
    for p in range(problem.n_processors):
        total = 0.0
        for k in range(len(path)):
            total += problem.cost[path[k] * problem.n_processors + p]
        if total < least:
            best, least = p, total
    for k in range(len(path)):
        pins[path[k]] = best
