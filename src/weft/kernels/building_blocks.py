"""Connected bipartite building blocks of a dag, and what is connected among them.

Two arcs that share their tail or their head are in one block, and so on. A vertex is thus a source
of one block at most, and a sink of one at most.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, IntArray
from weft.native import compiled


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
