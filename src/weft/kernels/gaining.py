"""A greedy play of the pebble game that looks at the eligibility gained."""

from __future__ import annotations

import numpy as np

from weft.arrays import IntArray
from weft.kernels.heap import LongArray, pop, push

SCALE = 1 << 20  # densities as whole numbers


def gain_order(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray,
    waiting: IntArray, rank: IntArray, by_rank: IntArray,
) -> IntArray:  # fmt: skip
    """An order of the nonsinks: always on to the vertex that is cheapest to render ELIGIBLE.

    A vertex can be had if all its parents are executed or ELIGIBLE. Of these the one with the
    fewest parents to execute is next; if one parent is enough, the one whose parent renders the
    most vertices ELIGIBLE; among equals the first by rank. `waiting` is the indegrees, used up.
    """
    n = len(rank)
    order = np.empty(n, dtype=np.int32)
    hidden = np.empty(n, dtype=np.int32)  # parents that are neither executed nor ELIGIBLE
    missing = np.zeros(n, dtype=np.int64)  # the exclusive or of the parents not yet executed
    gain = np.zeros(n, dtype=np.int64)  # vertices that wait for this one alone
    executed = np.zeros(n, dtype=np.bool_)
    heap = np.empty(2 * len(child) + n + 1, dtype=np.int64)
    size = 0
    for v in range(n):
        hidden[v] = waiting[v]
        for e in range(parent_ptr[v], parent_ptr[v + 1]):
            missing[v] ^= parent[e]
    for v in range(n):
        if parent_ptr[v] == parent_ptr[v + 1]:
            size = appear(child_ptr, child, waiting, hidden, missing, gain, rank, heap, size, v)
    done = 0
    while size > 0:
        wanted = by_rank[pop(heap, size) % n]
        size -= 1
        if waiting[wanted] == 0:
            continue
        for e in range(parent_ptr[wanted], parent_ptr[wanted + 1]):
            u = parent[e]
            if executed[u]:
                continue
            executed[u] = True
            order[done] = u
            done += 1
            for f in range(child_ptr[u], child_ptr[u + 1]):
                c = child[f]
                waiting[c] -= 1
                missing[c] ^= u
                if waiting[c] == 0:
                    size = appear(
                        child_ptr, child, waiting, hidden, missing, gain, rank, heap, size, c
                    )
                elif hidden[c] == 0:
                    size = offer(waiting, missing, gain, rank, heap, size, c)
    return order[:done]


def appear(
    child_ptr: IntArray, child: IntArray, waiting: IntArray, hidden: IntArray, missing: LongArray,
    gain: LongArray, rank: IntArray, heap: LongArray, size: int, v: int,
) -> int:  # fmt: skip
    """A vertex becomes ELIGIBLE: some of its children can be had now; the heap's new size."""
    for e in range(child_ptr[v], child_ptr[v + 1]):
        c = child[e]
        hidden[c] -= 1
        if hidden[c] == 0:
            size = offer(waiting, missing, gain, rank, heap, size, c)
    return size


def offer(
    waiting: IntArray, missing: LongArray, gain: LongArray, rank: IntArray, heap: LongArray,
    size: int, c: int,
) -> int:  # fmt: skip
    """Put a vertex that can be had into the heap, by its density; the heap's new size."""
    n = len(rank)
    density = SCALE // waiting[c]
    if waiting[c] == 1:
        gain[missing[c]] += 1
        density = SCALE * min(gain[missing[c]], 1000)
    return push(heap, size, (1000 * SCALE - density) * n + rank[c])


def loss_order(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray, rank: IntArray,
    by_rank: IntArray,
) -> IntArray:  # fmt: skip
    """An order of the nonsinks found from its end: always that nonsink last that holds up least.

    A nonsink can be last once its children that are nonsinks are placed after it. It holds up those
    of its children that nothing placed after it holds up already; among equals the last by rank.
    """
    n = len(rank)
    later = np.zeros(n, dtype=np.int32)  # children that are nonsinks and not yet placed
    fresh = np.zeros(n, dtype=np.int32)  # children that are not yet held up
    held = np.zeros(n, dtype=np.bool_)
    placed = np.zeros(n, dtype=np.bool_)
    heap = np.empty(len(child) + n + 1, dtype=np.int64)
    size, count = 0, 0
    for u in range(n):
        fresh[u] = child_ptr[u + 1] - child_ptr[u]
        count += fresh[u] > 0
        for e in range(child_ptr[u], child_ptr[u + 1]):
            later[u] += child_ptr[child[e] + 1] > child_ptr[child[e]]
        if fresh[u] > 0 and later[u] == 0:
            size = push(heap, size, fresh[u] * n + n - 1 - rank[u])
    order = np.empty(count, dtype=np.int32)
    while size > 0:
        u = by_rank[n - 1 - pop(heap, size) % n]
        size -= 1
        if placed[u]:
            continue
        placed[u] = True
        count -= 1
        order[count] = u
        for e in range(child_ptr[u], child_ptr[u + 1]):
            c = child[e]
            if held[c]:
                continue
            held[c] = True
            for f in range(parent_ptr[c], parent_ptr[c + 1]):
                w = parent[f]
                fresh[w] -= 1
                if later[w] == 0 and not placed[w]:
                    size = push(heap, size, fresh[w] * n + n - 1 - rank[w])
        for e in range(parent_ptr[u], parent_ptr[u + 1]):
            w = parent[e]
            later[w] -= 1
            if later[w] == 0:
                size = push(heap, size, fresh[w] * n + n - 1 - rank[w])
    return order
