"""Shortcut arcs: those with another path from their tail to their head.

Only an arc that spans two levels or more can be one. For these, many heads are searched at once,
one bit each: a sweep against the topological order tells every vertex which heads it reaches.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, IntArray, LongArray
from weft.native import compiled

WORDS = 8  # of a vertex in a sweep: as many as are fetched at once
BITS = 62  # of a word, that are surely there
HEADS_AT_ONCE = WORDS * BITS


@compiled
def mark_shortcuts(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray,
    order: IntArray, position: IntArray, level: IntArray,
) -> BoolArray:  # fmt: skip
    """Which arcs, in the order of `child`, are shortcuts."""
    n = len(order)
    shortcut = np.zeros(len(child), dtype=np.bool_)
    beyond = np.zeros(n * WORDS, dtype=np.int64)  # by position: heads reached by an arc or more
    found = np.zeros(WORDS, dtype=np.int64)
    number = np.full(n, -1, dtype=np.int32)  # of the vertices that are heads in this sweep
    live = np.zeros(n, dtype=np.bool_)  # whether a vertex is such a head or reaches one
    count = 0
    first = n  # the first position of a tail that asks
    for k in range(n):
        v = order[k]
        asked = earliest_tail(parent_ptr, parent, position, level, v)
        if asked < n:
            number[v] = count
            live[v] = True
            count += 1
            first = min(first, asked)
        if count == HEADS_AT_ONCE or (k == n - 1 and count > 0):
            sweep(
                child_ptr, child, order, position, first, k, beyond, number, live, found, shortcut
            )
            count = 0
            first = n
    return shortcut


def earliest_tail(
    parent_ptr: IntArray, parent: IntArray, position: IntArray, level: IntArray, v: int
) -> int:
    """The least position of a parent at least two levels above; n if there is none."""
    first = len(position)
    for e in range(parent_ptr[v], parent_ptr[v + 1]):
        u = parent[e]
        if level[v] - level[u] > 1:
            first = min(first, position[u])
    return first


def sweep(
    child_ptr: IntArray, child: IntArray, order: IntArray, position: IntArray, first: int,
    last: int, beyond: LongArray, number: IntArray, live: BoolArray, found: LongArray,
    shortcut: BoolArray,
) -> None:  # fmt: skip
    """Mark the shortcuts to the numbered heads whose tails lie between two positions."""
    for k in range(last, first - 1, -1):
        u = order[k]
        any_live = False
        for e in range(child_ptr[u], child_ptr[u + 1]):
            if live[child[e]]:
                any_live = True
        if not any_live:
            continue
        live[u] = True
        for w in range(WORDS):
            found[w] = 0
        for e in range(child_ptr[u], child_ptr[u + 1]):
            if live[child[e]]:
                at = position[child[e]] * WORDS
                for w in range(WORDS):
                    found[w] |= beyond[at + w]
        for e in range(child_ptr[u], child_ptr[u + 1]):
            head = int(number[child[e]])
            if head >= 0 and (found[head // BITS] >> (head % BITS)) & 1:
                shortcut[e] = True
        for e in range(child_ptr[u], child_ptr[u + 1]):
            head = int(number[child[e]])
            if head >= 0:
                found[head // BITS] |= 1 << (head % BITS)
        for w in range(WORDS):
            beyond[k * WORDS + w] = found[w]
    for k in range(first, last + 1):
        number[order[k]] = -1
        live[order[k]] = False
        for w in range(WORDS):
            beyond[k * WORDS + w] = 0
