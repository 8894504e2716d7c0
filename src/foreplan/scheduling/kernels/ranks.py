"""Priorities over the graph: mean costs, ranks, levels, and the orders they give."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.problem import Problem
from foreplan.sorting import pop, push, sort_by

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


@compiled
def upward_rank(
    problem: Problem, weight: FloatArray, startup: float, per_unit: float
) -> FloatArray:
    """rank_u(i) = w_i + max over outputs of (c + rank_u(j)) (Topcuoglu et al., eq. 8).

    Only movable tasks count; with startup and per_unit 0 it is DLS's static level.
    """
    rank = np.zeros(problem.n_tasks)
    for k in range(problem.n_tasks - 1, -1, -1):
        task = problem.order[k]
        if not problem.movable[task]:
            continue
        rank[task] += weight[task]  # on top of the longest way on, which its consumers have noted
        for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
            item = problem.in_item[e]
            producer = problem.item_producer[item]
            if producer >= 0:
                transfer = startup + problem.item_size[item] * per_unit
                rank[producer] = max(rank[producer], transfer + rank[task])
    for task in range(problem.n_tasks):
        if not problem.movable[task]:
            rank[task] = 0.0
    return rank


@compiled
def downward_rank(
    problem: Problem, weight: FloatArray, startup: float, per_unit: float
) -> FloatArray:
    """rank_d(j) = max over inputs of (rank_d(i) + w_i + c) (Topcuoglu et al., eq. 10)."""
    rank = np.zeros(problem.n_tasks)
    for k in range(problem.n_tasks):
        task = problem.order[k]
        if not problem.movable[task]:
            continue
        longest = 0.0
        for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
            item = problem.in_item[e]
            producer = problem.item_producer[item]
            if producer >= 0 and problem.movable[producer]:
                transfer = startup + problem.item_size[item] * per_unit
                path = rank[producer] + weight[producer] + transfer
                if path > longest:
                    longest = path
        rank[task] = longest
    return rank


@compiled
def critical_path(
    problem: Problem, rank: FloatArray, position: IntArray, entry: int, startup: float,
    per_unit: float,
) -> IntArray:  # fmt: skip
    """From an entry task, always on to the consumer that the upward rank comes from."""
    path = np.empty(problem.n_tasks, dtype=np.int32)
    task, count = entry, 0
    while task >= 0:
        path[count] = task
        count += 1
        following = -1
        longest = -1.0
        for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
            item = problem.out_item[o]
            transfer = startup + problem.item_size[item] * per_unit
            for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
                consumer = problem.use_task[u]
                length = transfer + rank[consumer]
                earlier = following >= 0 and position[consumer] < position[following]
                if problem.movable[consumer] and (
                    length > longest or (length == longest and earlier)
                ):
                    longest = length
                    following = consumer
        task = following
    return path[:count]


@compiled
def hop_levels(problem: Problem) -> FloatArray:
    """The number of tasks on the longest path that leads to each task, settled ones included."""
    level = np.zeros(problem.n_tasks)
    for k in range(problem.n_tasks):
        task = problem.order[k]
        deepest = 0.0
        for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
            producer = problem.item_producer[problem.in_item[e]]
            if producer >= 0 and level[producer] >= deepest:
                deepest = level[producer] + 1.0
        level[task] = deepest
    return level


def waiting_counts(problem: Problem) -> IntArray:
    """How many inputs of each task come from tasks that are still to be placed."""
    waiting = np.zeros(problem.n_tasks, dtype=np.int32)
    for task in range(problem.n_tasks):
        for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
            producer = problem.item_producer[problem.in_item[e]]
            if producer >= 0 and problem.movable[producer]:
                waiting[task] += 1
    return waiting


@compiled
def ready_order(problem: Problem, ranked: IntArray) -> IntArray:
    """The order in which a ready list hands out the tasks: of those ready, the first ranked."""
    waiting = waiting_counts(problem)
    place = places(problem, ranked)
    order = np.empty(len(ranked), dtype=np.int32)
    heap = np.empty(len(ranked), dtype=np.int64)
    size, count = 0, 0
    for k in range(len(ranked)):  # in order of rank, so that this is a heap
        if waiting[ranked[k]] == 0:
            heap[size] = k
            size += 1
    while size > 0:
        task = ranked[pop(heap, size)]
        size -= 1
        order[count] = task
        count += 1
        for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
            item = problem.out_item[o]
            for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
                consumer = problem.use_task[u]
                if problem.movable[consumer]:
                    waiting[consumer] -= 1
                    if waiting[consumer] == 0:
                        size = push(heap, size, place[consumer])
    return order


@compiled
def optimistic_cost(problem: Problem, startup: float, per_unit: float) -> FloatArray:
    """PEFT's table, flat: OCT(i,p) = max_j min_q (OCT(j,q) + w(j,q) + c) (Arabnejad, Barbosa).

    The transfer is free where q is on p's host, so only two candidates count for each consumer:
    the best q on p's host, and the best q anywhere with the mean transfer time.
    """
    table = np.zeros(problem.n_tasks * problem.n_processors)
    on_host = np.empty(problem.n_hosts)
    for k in range(problem.n_tasks - 1, -1, -1):
        fill_optimistic_cost(problem, problem.order[k], startup, per_unit, table, on_host)
    return table


def fill_optimistic_cost(
    problem: Problem, task: int, startup: float, per_unit: float, table: FloatArray,
    on_host: FloatArray,
) -> None:  # fmt: skip
    """The row of one task, once its consumers have theirs."""
    processors = problem.n_processors
    if not problem.movable[task]:
        return
    for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
        item = problem.out_item[o]
        transfer = startup + problem.item_size[item] * per_unit
        for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
            consumer = problem.use_task[u]
            if not problem.movable[consumer]:
                continue
            anywhere = np.inf
            for host in range(problem.n_hosts):
                on_host[host] = np.inf
            for q in range(processors):
                at = consumer * processors + q
                rest = table[at] + problem.cost[at]
                on_host[problem.host[q]] = min(on_host[problem.host[q]], rest)
                anywhere = min(anywhere, rest)
            for p in range(processors):
                least = min(on_host[problem.host[p]], anywhere + transfer)
                table[task * processors + p] = max(table[task * processors + p], least)
