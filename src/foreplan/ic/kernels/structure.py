"""Connected bipartite building blocks of a dag, what is connected among them, and shortcuts.

Two arcs that share their tail or their head are in one block, and so on. A vertex is thus a source
of one block at most, and a sink of one at most.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray, IntArray, LongArray
from foreplan.native import compiled


@compiled
def label_blocks(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray, order: IntArray
) -> tuple[IntArray, IntArray, int]:
    """The block of which each vertex is a source, that of which it is a sink, and their number.

    -1 where there is none. Blocks are numbered by their first source in the order.
    """
    n = len(order)
    source_of = np.full(n, -1, dtype=np.int32)
    sink_of = np.full(n, -1, dtype=np.int32)
    stack = np.empty(n, dtype=np.int32)
    blocks = 0
    for k in range(n):
        start = order[k]
        if source_of[start] >= 0 or child_ptr[start] == child_ptr[start + 1]:
            continue
        source_of[start] = blocks
        stack[0] = start
        size = 1
        while size > 0:
            size -= 1
            u = stack[size]
            for e in range(child_ptr[u], child_ptr[u + 1]):
                v = child[e]
                if sink_of[v] >= 0:
                    continue
                sink_of[v] = blocks
                for f in range(parent_ptr[v], parent_ptr[v + 1]):
                    w = parent[f]
                    if source_of[w] < 0:
                        source_of[w] = blocks
                        stack[size] = w
                        size += 1
        blocks += 1
    return source_of, sink_of, blocks


@compiled
def walk_blocks(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray,
    starts: IntArray, source_ptr: IntArray, sources: IntArray,
) -> IntArray:  # fmt: skip
    """The sources, each block's in the order of a walk from its start, where it has one (not -1).

    The walk goes from a source to its sinks, and from a sink to its sources: first to those that
    lead no further. `sources` holds those of block b from source_ptr[b] on.
    """
    n = len(child_ptr) - 1
    walked = np.empty(len(sources), dtype=np.int32)
    seen_source = np.zeros(n, dtype=np.bool_)
    seen_sink = np.zeros(n, dtype=np.bool_)
    for b in range(len(starts)):
        front = source_ptr[b]
        if starts[b] < 0:
            for k in range(front, source_ptr[b + 1]):
                walked[k] = sources[k]
            continue
        walked[front] = starts[b]
        seen_source[starts[b]] = True
        end = front + 1
        while front < end:
            u = walked[front]
            front += 1
            for e in range(child_ptr[u], child_ptr[u + 1]):
                v = child[e]
                if not seen_sink[v]:
                    seen_sink[v] = True
                    end = visit(child_ptr, parent_ptr, parent, v, seen_source, walked, end)
    return walked


def visit(
    child_ptr: IntArray, parent_ptr: IntArray, parent: IntArray, sink: int, seen: BoolArray,
    sources: IntArray, end: int,
) -> int:  # fmt: skip
    """Append a sink's sources that were not seen before; where the list ends now."""
    for last in range(2):
        for f in range(parent_ptr[sink], parent_ptr[sink + 1]):
            w = parent[f]
            leads_on = child_ptr[w + 1] - child_ptr[w] > 1
            if not seen[w] and leads_on == (last == 1):
                seen[w] = True
                sources[end] = w
                end += 1
    return end


@compiled
def strong_components(ptr: IntArray, successor: IntArray) -> tuple[IntArray, int]:
    """The strongly connected component of each vertex, numbered against the arcs (Tarjan)."""
    n = len(ptr) - 1
    number = np.full(n, -1, dtype=np.int32)
    low = np.zeros(n, dtype=np.int32)
    component = np.full(n, -1, dtype=np.int32)
    edge = np.zeros(n, dtype=np.int32)
    path, pending = np.empty(n + 1, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
    seen, found, waiting = 0, 0, 0
    for root in range(n):
        if number[root] >= 0:
            continue
        depth, path[0] = 0, root
        while depth >= 0:
            v = path[depth]
            if number[v] < 0:  # on the way down
                number[v] = low[v] = seen
                seen += 1
                edge[v] = ptr[v]
                pending[waiting] = v
                waiting += 1
            if edge[v] < ptr[v + 1]:
                w = successor[edge[v]]
                edge[v] += 1
                if number[w] < 0:
                    depth += 1
                    path[depth] = w
                elif component[w] < 0:
                    low[v] = min(low[v], number[w])
                continue
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[v])
            if low[v] == number[v]:
                while component[v] < 0:
                    waiting -= 1
                    component[pending[waiting]] = found
                found += 1
    return component, found


# Shortcut arcs: those with another path from their tail to their head.
#
# Only an arc that spans two levels or more can be one. For these, many heads are searched at once,
# one bit each: a sweep against the topological order tells every vertex which heads it reaches.

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
