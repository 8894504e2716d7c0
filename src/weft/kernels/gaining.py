"""A greedy play of the pebble game that looks at the eligibility gained."""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, IntArray, LongArray
from weft.kernels.heap import pop, push
from weft.native import compiled

SCALE = 1 << 14  # densities as whole numbers
MOST = 1 << 20  # vertices that one renders ELIGIBLE; more are as good


@compiled
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
    executed = np.zeros(n, dtype=np.bool_)
    looked_at = np.empty(n, dtype=np.int32)  # all parents before it are executed
    hidden, missing, shown, end = look_round(parent_ptr, parent, looked_at)
    gain = np.zeros(n, dtype=np.int64)  # vertices that wait for this one alone
    heap = np.empty(2 * len(child) + n + 1, dtype=np.int64)
    offered = np.empty(len(child) + n, dtype=np.int32)
    order = np.empty(n, dtype=np.int32)
    size, done, begin, count = 0, 0, 0, 0
    wanted = -1
    while True:
        count = reveal(child_ptr, child, hidden, shown, begin, end, offered, count)
        begin = end
        for k in range(count):
            c = offered[k]
            key = cheapness(waiting, missing, gain, c) * n + int(rank[c])
            size = push(heap, size, key)
        while size > 0 and (wanted < 0 or waiting[wanted] == 0):
            wanted = by_rank[pop(heap, size) % n]
            size -= 1
        if wanted < 0 or waiting[wanted] == 0:
            break
        while executed[parent[looked_at[wanted]]]:
            looked_at[wanted] += 1
        u = parent[looked_at[wanted]]
        executed[u] = True
        order[done] = u
        done += 1
        count, end = lessen(child_ptr, child, u, waiting, hidden, missing, offered, shown, end)
    return order[:done]


def lessen(
    child_ptr: IntArray, child: IntArray, u: int, waiting: IntArray, hidden: IntArray,
    missing: LongArray, offered: IntArray, shown: IntArray, end: int,
) -> tuple[int, int]:  # fmt: skip
    """Execute a vertex; how many children are offered for less now, and where `shown` ends."""
    count = 0
    for e in range(child_ptr[u], child_ptr[u + 1]):
        c = child[e]
        waiting[c] -= 1
        missing[c] ^= u
        if waiting[c] == 0:
            shown[end] = c
            end += 1
        elif hidden[c] == 0:
            offered[count] = c
            count += 1
    return count, end


def look_round(
    parent_ptr: IntArray, parent: IntArray, looked_at: IntArray
) -> tuple[IntArray, LongArray, IntArray, int]:
    """Per vertex the parents that are neither executed nor ELIGIBLE, and the exclusive or of those
    not executed; then the vertices that became ELIGIBLE, and how many these are.
    """
    n = len(looked_at)
    hidden = np.zeros(n, dtype=np.int32)
    missing = np.zeros(n, dtype=np.int64)
    shown = np.empty(n, dtype=np.int32)
    end = 0
    for v in range(n):
        looked_at[v] = parent_ptr[v]
        hidden[v] = parent_ptr[v + 1] - parent_ptr[v]
        for e in range(parent_ptr[v], parent_ptr[v + 1]):
            missing[v] ^= parent[e]
        if hidden[v] == 0:
            shown[end] = v
            end += 1
    return hidden, missing, shown, end


def reveal(
    child_ptr: IntArray, child: IntArray, hidden: IntArray, shown: IntArray, begin: int, end: int,
    offered: IntArray, count: int,
) -> int:  # fmt: skip
    """Some vertices became ELIGIBLE: add the children that can be had now; how many are offered."""
    for k in range(begin, end):
        for e in range(child_ptr[shown[k]], child_ptr[shown[k] + 1]):
            c = child[e]
            hidden[c] -= 1
            if hidden[c] == 0:
                offered[count] = c
                count += 1
    return count


def cheapness(waiting: IntArray, missing: LongArray, gain: LongArray, c: int) -> int:
    """The less, the more ELIGIBLE vertices per step there are in having this one."""
    if waiting[c] > 1:
        return int(MOST * SCALE - SCALE // int(waiting[c]))
    gain[missing[c]] += 1
    return int((MOST - min(int(gain[missing[c]]), MOST)) * SCALE)


@compiled
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
    fresh = np.zeros(n, dtype=np.int64)  # children that are not yet held up
    held = np.zeros(n, dtype=np.bool_)
    placed = np.zeros(n, dtype=np.bool_)
    heap = np.empty(2 * len(child) + n + 1, dtype=np.int64)
    changed = np.empty(2 * len(child) + n, dtype=np.int32)
    count = 0
    for u in range(n):
        fresh[u] = child_ptr[u + 1] - child_ptr[u]
        for e in range(child_ptr[u], child_ptr[u + 1]):
            later[u] += child_ptr[child[e] + 1] > child_ptr[child[e]]
        if fresh[u] > 0:
            changed[count] = u
            count += 1
    size, left, order = 0, count, np.empty(count, dtype=np.int32)
    while left > 0:
        for k in range(count):
            u = changed[k]
            if later[u] == 0 and not placed[u]:
                size = push(heap, size, int(fresh[u]) * n + n - 1 - int(rank[u]))
        u = by_rank[n - 1 - pop(heap, size) % n]
        size -= 1
        count = 0
        if not placed[u]:
            placed[u] = True
            left -= 1
            order[left] = u
            count = place_last(child_ptr, child, parent_ptr, parent, u, later, fresh, held, changed)
    return order


def place_last(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray, u: int,
    later: IntArray, fresh: LongArray, held: BoolArray, changed: IntArray,
) -> int:  # fmt: skip
    """Put a nonsink before those placed; how many others are changed by that."""
    count = 0
    for e in range(child_ptr[u], child_ptr[u + 1]):
        c = child[e]
        if held[c]:
            continue
        held[c] = True
        for f in range(parent_ptr[c], parent_ptr[c + 1]):
            fresh[parent[f]] -= 1
            changed[count] = parent[f]
            count += 1
    for e in range(parent_ptr[u], parent_ptr[u + 1]):
        later[parent[e]] -= 1
        changed[count] = parent[e]
        count += 1
    return count
