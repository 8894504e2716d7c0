"""HBMCT's placement: groups of independent tasks, each balanced by moving tasks about.

On a processor, the group's tasks run in the order in which their data arrive there. A row of
tasks maps the time x at which the processor gets free to max(x + length, latest), so the effect
of one task more or less is known from what stands before it and behind it, without a replay.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.arrival import data_arrival
from weft.kernels.problem import Problem

SHORTER = 1.0 - 1e-9  # a move must shorten the group by more than rounding


def place_groups(problem: Problem, order: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """BMCT on one group of independent tasks after the other (Sakellariou, Zhao 2004)."""
    processor = np.full(problem.n_tasks, -1, dtype=np.int32)
    start = np.zeros(problem.n_tasks)
    finish = np.zeros(problem.n_tasks)
    source_host = problem.source_host.copy()
    ready_at = problem.ready_at.copy()
    free_from = problem.free_from.copy()
    group_of = np.full(problem.n_tasks, -1)
    begin = 0
    while begin < len(order):
        end = group_end(problem, order, begin, group_of)
        arrival = np.zeros((end - begin) * problem.n_hosts)
        for k in range(begin, end):
            row = arrival[(k - begin) * problem.n_hosts : (k - begin + 1) * problem.n_hosts]
            data_arrival(problem, order[k], source_host, ready_at, row)
        queue, count = balance(problem, order[begin:end], arrival, free_from)
        for p in range(problem.n_processors):
            for k in range(count[p]):
                member = queue[p * (end - begin) + k]
                task = order[begin + member]
                data_ready = arrival[member * problem.n_hosts + problem.host[p]]
                start[task] = max(free_from[p], data_ready)
                finish[task] = start[task] + problem.cost[task * problem.n_processors + p]
                if finish[task] > problem.until[p]:
                    return processor, start, finish
                processor[task] = p
                source_host[task] = problem.host[p]
                ready_at[task] = finish[task]
                free_from[p] = finish[task]
        begin = end
    return processor, start, finish


def group_end(problem: Problem, order: IntArray, begin: int, group_of: IntArray) -> int:
    """The end of the group that begins here: the first task that reads from one of its members."""
    for k in range(begin, len(order)):
        task = order[k]
        for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
            producer = problem.item_producer[problem.in_item[e]]
            if producer >= 0 and group_of[producer] == begin:
                return k
        group_of[task] = begin
    return len(order)


def balance(
    problem: Problem, tasks: IntArray, arrival: FloatArray, free_from: FloatArray
) -> tuple[IntArray, IntArray]:
    """All tasks on their fastest processors, then off the one that finishes last while it helps.

    Returns each processor's row of members (numbers within the group) and their count.
    """
    size, processors = len(tasks), problem.n_processors
    queue = np.empty(processors * size, dtype=np.int32)
    count = np.zeros(processors, dtype=np.int32)
    before = np.empty(processors * (size + 1))  # finish of the members before k
    length = np.empty(processors * (size + 1))  # of the members from k on
    latest = np.empty(processors * (size + 1))
    for member in range(size):
        row = tasks[member] * processors
        fastest = 0
        for p in range(1, processors):
            if problem.cost[row + p] < problem.cost[row + fastest]:
                fastest = p
        join_queue(problem, queue, count, size, fastest, member, arrival)
    for p in range(processors):
        replay(problem, tasks, arrival, free_from, queue, count, before, length, latest, p)
    while True:
        last, now = last_to_finish(problem, count, before, size, -1, -1)
        member, target, then = best_move(
            problem, tasks, arrival, queue, count, before, length, latest, last
        )
        if member < 0 or not then < now * SHORTER:
            return queue, count
        leave_queue(queue, count, size, last, member)
        join_queue(problem, queue, count, size, target, member, arrival)
        for p in (last, target):
            replay(problem, tasks, arrival, free_from, queue, count, before, length, latest, p)


def last_to_finish(
    problem: Problem, count: IntArray, before: FloatArray, size: int, but: int, nor: int
) -> tuple[int, float]:
    """The processor (but for two) whose group members finish last, and when."""
    last = -1
    time = -1.0
    for p in range(problem.n_processors):
        if p != but and p != nor and count[p] > 0:
            ends = in_time(problem, p, before[p * (size + 1) + count[p]])
            if ends > time:
                last, time = p, ends
    return last, time


def in_time(problem: Problem, p: int, ends: float) -> float:
    """The finish, or infinity if the processor has left by then."""
    return ends if ends <= problem.until[p] else np.inf


def best_move(
    problem: Problem, tasks: IntArray, arrival: FloatArray, queue: IntArray, count: IntArray,
    before: FloatArray, length: FloatArray, latest: FloatArray, last: int,
) -> tuple[int, int, float]:  # fmt: skip
    """The member of the last processor's row, and where to, that make the group finish first."""
    size, processors, hosts = len(tasks), problem.n_processors, problem.n_hosts
    next_last, next_time = last_to_finish(problem, count, before, size, last, -1)
    _, third_time = last_to_finish(problem, count, before, size, last, next_last)
    best = -1
    best_target = -1
    best_time = np.inf
    for k in range(count[last]):
        member = queue[last * size + k]
        at = last * (size + 1) + k
        without = max(before[at] + length[at + 1], latest[at + 1])
        without = in_time(problem, last, without) if count[last] > 1 else -1.0
        if without > best_time:
            continue
        for p in range(processors):
            if p == last:
                continue
            others = third_time if p == next_last else next_time
            data_ready = arrival[member * hosts + problem.host[p]]
            at = p * (size + 1) + place_in_queue(problem, queue, count, size, p, member, arrival)
            ends = max(before[at], data_ready) + problem.cost[tasks[member] * processors + p]
            ends = in_time(problem, p, max(ends + length[at], latest[at]))
            time = max(max(without, others), ends)
            if time < best_time or (time == best_time and best >= 0 and member < best):
                best, best_target, best_time = member, p, time
    return best, best_target, best_time


def replay(
    problem: Problem, tasks: IntArray, arrival: FloatArray, free_from: FloatArray,
    queue: IntArray, count: IntArray, before: FloatArray, length: FloatArray, latest: FloatArray,
    p: int,
) -> None:  # fmt: skip
    """Renew the finish before, and the effect behind, each member of a processor's row."""
    size = len(tasks)
    row = p * (size + 1)
    before[row] = free_from[p]
    for k in range(count[p]):
        member = queue[p * size + k]
        cost = problem.cost[tasks[member] * problem.n_processors + p]
        data_ready = arrival[member * problem.n_hosts + problem.host[p]]
        before[row + k + 1] = max(before[row + k], data_ready) + cost
    length[row + count[p]] = 0.0
    latest[row + count[p]] = 0.0
    for k in range(count[p] - 1, -1, -1):
        member = queue[p * size + k]
        cost = problem.cost[tasks[member] * problem.n_processors + p]
        data_ready = arrival[member * problem.n_hosts + problem.host[p]]
        length[row + k] = cost + length[row + k + 1]
        latest[row + k] = max(data_ready + cost + length[row + k + 1], latest[row + k + 1])


def place_in_queue(
    problem: Problem, queue: IntArray, count: IntArray, size: int, p: int, member: int,
    arrival: FloatArray,
) -> int:  # fmt: skip
    """Where the member stands in a processor's row: by arrival of its data, then by rank."""
    hosts, host = problem.n_hosts, problem.host[p]
    data_ready = arrival[member * hosts + host]
    low, high = 0, count[p]
    while low < high:
        middle = (low + high) // 2
        other = queue[p * size + middle]
        other_ready = arrival[other * hosts + host]
        if other_ready < data_ready or (other_ready == data_ready and other < member):
            low = middle + 1
        else:
            high = middle
    return low


def join_queue(
    problem: Problem, queue: IntArray, count: IntArray, size: int, p: int, member: int,
    arrival: FloatArray,
) -> None:  # fmt: skip
    """Put the member into a processor's row."""
    place = place_in_queue(problem, queue, count, size, p, member, arrival)
    for k in range(count[p], place, -1):
        queue[p * size + k] = queue[p * size + k - 1]
    queue[p * size + place] = member
    count[p] += 1


def leave_queue(queue: IntArray, count: IntArray, size: int, p: int, member: int) -> None:
    """Take the member out of a processor's row."""
    k = 0
    while queue[p * size + k] != member:
        k += 1
    count[p] -= 1
    for j in range(k, count[p]):
        queue[p * size + j] = queue[p * size + j + 1]
