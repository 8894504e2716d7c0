"""The list planners: an order of the tasks and a placement in it, or both at once."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.groups import place_groups
from foreplan.scheduling.kernels.placement import place_in_order
from foreplan.scheduling.kernels.problem import Problem, begin_placing, fill_arrival
from foreplan.scheduling.kernels.ranks import (
    by_rank,
    critical_path,
    downward_rank,
    hop_levels,
    mean_cost,
    median_cost,
    optimistic_cost,
    places,
    ready_order,
    upward_rank,
    waiting_counts,
)
from foreplan.sorting import sort_by

HEFT, HEFT_AT_THE_END, CPOP, PEFT, LMT, DLS, MIN_MIN, MAX_MIN, HBMCT, FCP = range(10)
GTP = -1  # the planner that is no list planner


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
        place = places(problem, order)
        bonus = np.zeros(problem.n_tasks)
        if planner == DLS:
            median = median_cost(problem)
            level = upward_rank(problem, median, 0.0, 0.0)
            for task in range(problem.n_tasks):
                bonus[task] = level[task] + median[task]
        return place_best_pair(problem, bonus, place, planner == MAX_MIN)
    shortest = least if planner == HEFT else np.inf
    return place_in_order(problem, order, nowhere, nobody, shortest)


def by_level(problem: Problem, weight: FloatArray) -> IntArray:
    """Level by level, the costliest task first."""
    order, level = by_rank(problem, weight), hop_levels(problem)
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


@compiled
def place_best_pair(
    problem: Problem, bonus: FloatArray, place: IntArray, largest: bool
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Of all ready tasks at their earliest finish, the smallest finish - bonus goes first.

    With `largest` it is the largest (Max-Min). Equal tasks go by their place in the order, equal
    processors by number; no insertion. A task that fits nowhere keeps processor -1.

    A placement delays one processor only, so just the tasks that wanted it are looked at again.
    """
    processor, start, finish, source_host, ready_at, free_from, arrival = begin_placing(problem)
    waiting = waiting_counts(problem)
    ready = np.empty(problem.n_tasks, dtype=np.int32)  # in no particular order
    n_ready = 0
    for task in range(problem.n_tasks):
        if problem.movable[task] and waiting[task] == 0:
            fill_arrival(problem, task, source_host, ready_at, arrival)
            prefer(problem, task, arrival, free_from, processor, start, finish)
            ready[n_ready] = task
            n_ready += 1
    while n_ready > 0:
        chosen = choose(ready, n_ready, finish, bonus, place, largest)
        task = ready[chosen]
        p = processor[task]
        if p < 0:
            break
        source_host[task] = problem.host[p]
        ready_at[task] = finish[task]
        free_from[p] = finish[task]
        n_ready -= 1
        ready[chosen] = ready[n_ready]
        for k in range(n_ready):
            if processor[ready[k]] == p:
                fill_arrival(problem, ready[k], source_host, ready_at, arrival)
                prefer(problem, ready[k], arrival, free_from, processor, start, finish)
        for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
            item = problem.out_item[o]
            for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
                consumer = problem.use_task[u]
                if not problem.movable[consumer]:
                    continue
                waiting[consumer] -= 1
                if waiting[consumer] == 0:
                    fill_arrival(problem, consumer, source_host, ready_at, arrival)
                    prefer(problem, consumer, arrival, free_from, processor, start, finish)
                    ready[n_ready] = consumer
                    n_ready += 1
    return processor, start, finish


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
    ready: IntArray, n_ready: int, finish: FloatArray, bonus: FloatArray, place: IntArray,
    largest: bool,
) -> int:  # fmt: skip
    """The position in `ready` of the task to place next."""
    sign = -1.0 if largest else 1.0
    best = 0
    best_key = sign * (finish[ready[0]] - bonus[ready[0]])
    for k in range(1, n_ready):
        task = ready[k]
        key = sign * (finish[task] - bonus[task])
        if key < best_key or (key == best_key and place[task] < place[ready[best]]):
            best, best_key = k, key
    return best


@compiled
def place_two_choices(
    problem: Problem, order: IntArray, position: IntArray, startup: float, per_unit: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Each task on the processor free first or on its enabling one, whichever finishes it first.

    All processors are candidates where neither can finish the task before leaving. No insertion.
    """
    processor, start, finish, source_host, ready_at, free_from, arrival = begin_placing(problem)
    placed_on = problem.settled_on.copy()
    for task in order:
        fill_arrival(problem, task, source_host, ready_at, arrival)
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
    """Of the processors free first and the enabling one, or of all if it fits on none of them.

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
