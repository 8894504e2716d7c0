"""HBMCT's placement: groups of independent tasks, each balanced by moving tasks about.

On a processor, the group's tasks run in the order in which they could start there, by rank where
that is equal (as it is for all whose data are there when the processor gets free). A row of
tasks maps the time x at which the processor gets free to max(x + length, latest), so the effect
of one task more or less is known from what stands before it and behind it, without a replay.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.problem import Problem, begin_placing, fill_arrival

SHORTER = 1.0 - 1e-9  # a move must shorten the group by more than rounding


@compiled
def place_groups(problem: Problem, order: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """BMCT on one group of independent tasks after the other (Sakellariou, Zhao 2004)."""
    processor, start, finish, source_host, ready_at, free_from, arrival = begin_placing(problem)
    group_of = np.full(problem.n_tasks, -1, dtype=np.int32)
    begin = 0
    while begin < len(order):
        end = mark_group(problem, order, begin, group_of)
        tasks = order[begin:end]
        ready = np.zeros(len(tasks) * problem.n_processors)  # earliest start of each member
        for member in range(len(tasks)):
            fill_arrival(problem, tasks[member], source_host, ready_at, arrival)
            for p in range(problem.n_processors):
                at = member * problem.n_processors + p
                ready[at] = max(arrival[problem.host[p]], free_from[p])
        queue, count, ends = balance(problem, tasks, ready)
        if ends < np.inf:
            place_queues(problem, tasks, ready, free_from, queue, count, processor, start, finish)
        else:
            place_singly(problem, tasks, ready, free_from, processor, start, finish)
        for task in tasks:
            if processor[task] < 0:
                return processor, start, finish
            source_host[task] = problem.host[processor[task]]
            ready_at[task] = finish[task]
        begin = end
    return processor, start, finish


def place_queues(
    problem: Problem, tasks: IntArray, ready: FloatArray, free_from: FloatArray,
    queue: IntArray, count: IntArray, processor: IntArray, start: FloatArray, finish: FloatArray,
) -> None:  # fmt: skip
    """Place the group as it was balanced."""
    for p in range(problem.n_processors):
        for k in range(count[p]):
            member = queue[p * len(tasks) + k]
            task = tasks[member]
            processor[task] = p
            start[task] = max(free_from[p], ready[member * problem.n_processors + p])
            finish[task] = start[task] + problem.cost[task * problem.n_processors + p]
            free_from[p] = finish[task]


def place_singly(
    problem: Problem, tasks: IntArray, ready: FloatArray, free_from: FloatArray,
    processor: IntArray, start: FloatArray, finish: FloatArray,
) -> None:  # fmt: skip
    """Where balancing leaves tasks on processors that leave too early: each at its earliest."""
    for member in range(len(tasks)):
        task = tasks[member]
        for p in range(problem.n_processors):
            begins = max(ready[member * problem.n_processors + p], free_from[p])
            ends = begins + problem.cost[task * problem.n_processors + p]
            better = processor[task] < 0 or ends < finish[task]
            if better and ends <= problem.until[p]:
                processor[task], start[task], finish[task] = p, begins, ends
        if processor[task] < 0:
            return
        free_from[processor[task]] = finish[task]


def mark_group(problem: Problem, order: IntArray, begin: int, group_of: IntArray) -> int:
    """Mark the group that begins here; its end is the first task that reads from a member."""
    for k in range(begin, len(order)):
        task = order[k]
        for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
            producer = problem.item_producer[problem.in_item[e]]
            if producer >= 0 and group_of[producer] == begin:
                return k
        group_of[task] = begin
    return len(order)


def balance(
    problem: Problem, tasks: IntArray, ready: FloatArray
) -> tuple[IntArray, IntArray, float]:
    """All tasks on their fastest processors, then off the one that finishes last while it helps.

    Returns each processor's row of members (numbers within the group), their count, and the
    finish of the group, infinite if a processor leaves before.
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
        join_queue(problem, queue, count, size, fastest, member, ready)
    for p in range(processors):
        replay(problem, tasks, ready, queue, count, before, length, latest, p)
    while True:
        last, now = last_to_finish(problem, count, before, size)
        member, target, then = best_move(
            problem, tasks, ready, queue, count, before, length, latest, last
        )
        if member < 0 or not then < now * SHORTER:
            return queue, count, now
        leave_queue(queue, count, size, last, member)
        join_queue(problem, queue, count, size, target, member, ready)
        for p in (last, target):
            replay(problem, tasks, ready, queue, count, before, length, latest, p)


def last_to_finish(
    problem: Problem, count: IntArray, before: FloatArray, size: int
) -> tuple[int, float]:
    """The processor whose group members finish last, and when."""
    last = -1
    time = -1.0
    for p in range(problem.n_processors):
        if count[p] > 0:
            ends = in_time(problem, p, before[p * (size + 1) + count[p]])
            if ends > time:
                last, time = p, ends
    return last, time


def in_time(problem: Problem, p: int, ends: float) -> float:
    """The finish, or infinity if the processor has left by then."""
    return ends if ends <= problem.until[p] else np.inf


def best_move(
    problem: Problem, tasks: IntArray, ready: FloatArray, queue: IntArray, count: IntArray,
    before: FloatArray, length: FloatArray, latest: FloatArray, last: int,
) -> tuple[int, int, float]:  # fmt: skip
    """The member of the last processor's row, and where to, so that both processors end first."""
    size, processors = len(tasks), problem.n_processors
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
            at = p * (size + 1) + place_in_queue(problem, queue, count, size, p, member, ready)
            ends = max(before[at], ready[member * processors + p])
            ends += problem.cost[tasks[member] * processors + p]
            ends = in_time(problem, p, max(ends + length[at], latest[at]))
            time = max(without, ends)
            if time < best_time or (time == best_time and best >= 0 and member < best):
                best, best_target, best_time = member, p, time
    return best, best_target, best_time


def replay(
    problem: Problem, tasks: IntArray, ready: FloatArray, queue: IntArray, count: IntArray,
    before: FloatArray, length: FloatArray, latest: FloatArray, p: int,
) -> None:  # fmt: skip
    """Renew the finish before, and the effect behind, each member of a processor's row."""
    size = len(tasks)
    row = p * (size + 1)
    before[row] = 0.0  # the earliest starts know when the processor is free
    for k in range(count[p]):
        member = queue[p * size + k]
        cost = problem.cost[tasks[member] * problem.n_processors + p]
        begins = max(before[row + k], ready[member * problem.n_processors + p])
        before[row + k + 1] = begins + cost
    length[row + count[p]] = 0.0
    latest[row + count[p]] = 0.0
    for k in range(count[p] - 1, -1, -1):
        member = queue[p * size + k]
        cost = problem.cost[tasks[member] * problem.n_processors + p]
        begins = ready[member * problem.n_processors + p]
        length[row + k] = cost + length[row + k + 1]
        latest[row + k] = max(begins + cost + length[row + k + 1], latest[row + k + 1])


def place_in_queue(
    problem: Problem, queue: IntArray, count: IntArray, size: int, p: int, member: int,
    ready: FloatArray,
) -> int:  # fmt: skip
    """Where the member stands in a processor's row: by earliest start, then by rank."""
    processors = problem.n_processors
    begins = ready[member * processors + p]
    low, high = 0, count[p]
    while low < high:
        middle = (low + high) // 2
        other = queue[p * size + middle]
        other_begins = ready[other * processors + p]
        if other_begins < begins or (other_begins == begins and other < member):
            low = middle + 1
        else:
            high = middle
    return low


def join_queue(
    problem: Problem, queue: IntArray, count: IntArray, size: int, p: int, member: int,
    ready: FloatArray,
) -> None:  # fmt: skip
    """Put the member into a processor's row."""
    place = place_in_queue(problem, queue, count, size, p, member, ready)
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
