"""The IC Pebble Game on flat arrays (Hall, Rosenberg, Venkataramani, sections 2.2, 3.2 and 4.3)."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import IntArray, LongArray
from foreplan.native import compiled
from foreplan.sorting import pop, push

FIFO, LIFO, GREEDY, LISTED = range(4)  # the disciplines by which a Server hands out vertices


@compiled
def levels(child_ptr: IntArray, child: IntArray, indegree: IntArray) -> tuple[IntArray, IntArray]:
    """A topological order, and the length of the longest path to each vertex.

    An order shorter than the dag means a cycle.
    """
    n = len(child_ptr) - 1
    waiting = indegree.copy()
    level = np.zeros(n, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    end = 0
    for v in range(n):
        if waiting[v] == 0:
            order[end] = v
            end += 1
    front = 0
    while front < end:
        v = order[front]
        front += 1
        for e in range(child_ptr[v], child_ptr[v + 1]):
            c = child[e]
            level[c] = max(level[c], level[v] + 1)
            waiting[c] -= 1
            if waiting[c] == 0:
                order[end] = c
                end += 1
    return order[:end], level


@compiled
def profile_of(
    child_ptr: IntArray, child: IntArray, indegree: IntArray, order: IntArray
) -> IntArray:
    """E(0), ..., E(n) of an order.

    E(t) is -1 from the first step that executes a vertex which is not ELIGIBLE then.
    """
    n = len(order)
    waiting = indegree.copy()
    eligible = 0
    for v in range(n):
        if waiting[v] == 0:
            eligible += 1
    profile = np.full(n + 1, -1, dtype=np.int32)
    profile[0] = eligible
    for t in range(n):
        v = order[t]
        if waiting[v] != 0:
            break
        waiting[v] = -1  # executed
        eligible -= 1
        for e in range(child_ptr[v], child_ptr[v + 1]):
            waiting[child[e]] -= 1
            if waiting[child[e]] == 0:
                eligible += 1
        profile[t + 1] = eligible
    return profile


@compiled
def follow(
    child_ptr: IntArray, child: IntArray, indegree: IntArray, rank: IntArray, by_rank: IntArray
) -> IntArray:
    """The order of a play that always executes, of what is ELIGIBLE, the first by rank.

    by_rank[rank[v]] = v.
    """
    n = len(rank)
    waiting = indegree.copy()
    order = np.empty(n, dtype=np.int32)
    heap = np.empty(n, dtype=np.int64)
    size = 0
    for r in range(n):  # in order of rank, so that this is a heap
        if waiting[by_rank[r]] == 0:
            heap[size] = r
            size += 1
    for t in range(n):
        v = by_rank[pop(heap, size)]
        size -= 1
        order[t] = v
        for e in range(child_ptr[v], child_ptr[v + 1]):
            waiting[child[e]] -= 1
            if waiting[child[e]] == 0:
                size = push(heap, size, rank[child[e]])
    return order


@compiled
def play_batches(
    child_ptr: IntArray, child: IntArray, indegree: IntArray, discipline: int, rank: IntArray,
    by_rank: IntArray, requests: IntArray,
) -> tuple[IntArray, int]:  # fmt: skip
    """Vertices in the order in which they are handed out, and the number of polls it takes.

    `requests` clients come to a poll; with none given, one comes each time, uncounted. All that a
    poll hands out is done before the next, in the order in which it was handed out. `rank` is a
    list of all vertices (by_rank[rank[v]] = v): those that become ELIGIBLE at once enter in its
    order, and LISTED hands out by it. An order shorter than the dag: the requests ran out.
    """
    n = len(rank)
    waiting = indegree.copy()
    order = np.empty(n, dtype=np.int32)
    entered = np.empty(n, dtype=np.int32)  # the vertices in the order of becoming ELIGIBLE
    heap = np.empty(n, dtype=np.int64)
    fresh = np.empty(n, dtype=np.int64)  # ranks of what one execution renders ELIGIBLE
    count = 0
    for v in range(n):
        if waiting[v] == 0:
            fresh[count] = rank[v]
            count += 1
    known, given, done, polls = 0, 0, 0, 0
    while True:
        size = known - given
        known = enter(discipline, child_ptr, by_rank, fresh, count, entered, known, heap, size)
        count = 0
        if done < given:
            count = execute(child_ptr, child, waiting, rank, order[done], fresh)
            done += 1
            continue
        if done == n or (polls == len(requests) and polls > 0):
            break
        clients = 1 if len(requests) == 0 else requests[polls]
        polls += 1 if len(requests) > 0 else 0
        while done + clients > given and given < known:
            order[given] = entered[pop(heap, known - given) % n]
            given += 1
    return order[:done], polls


def execute(
    child_ptr: IntArray, child: IntArray, waiting: IntArray, rank: IntArray, v: int,
    fresh: LongArray,
) -> int:  # fmt: skip
    """Execute a vertex; the number of vertices that it renders ELIGIBLE, their ranks in `fresh`."""
    count = 0
    for e in range(child_ptr[v], child_ptr[v + 1]):
        c = child[e]
        waiting[c] -= 1
        if waiting[c] == 0:
            fresh[count] = rank[c]
            count += 1
    return count


def enter(
    discipline: int, child_ptr: IntArray, by_rank: IntArray, fresh: LongArray, count: int,
    entered: IntArray, known: int, heap: LongArray, size: int,
) -> int:  # fmt: skip
    """Put the first `count` fresh ranks into the heap; how many vertices have now entered.

    The key is what the discipline looks at, then the order of arrival.
    """
    n = len(by_rank)
    if count > 1:
        sort_first(fresh, count)
    for k in range(count):
        r = fresh[count - 1 - k] if discipline == LIFO else fresh[k]  # pushed last, popped first
        v = by_rank[r]
        key = 0
        if discipline == LIFO:
            key = n - known
        elif discipline == GREEDY:
            key = n - int(child_ptr[v + 1] - child_ptr[v])
        elif discipline == LISTED:
            key = r
        entered[known] = v
        size = push(heap, size, key * n + known)
        known += 1
    return known


def sort_first(values: LongArray, count: int) -> None:
    """Sort the first values in place: few by insertion, many through a heap."""
    if count > 32:
        size = 0
        for k in range(count):
            size = push(values, size, values[k])
        for last in range(count - 1, -1, -1):  # the least goes behind what is left of the heap
            values[last] = pop(values, last + 1)
        for k in range(count // 2):
            values[k], values[count - 1 - k] = values[count - 1 - k], values[k]
        return
    for k in range(1, count):
        value = values[k]
        at = k
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
