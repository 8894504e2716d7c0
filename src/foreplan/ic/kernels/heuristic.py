"""Good orders where ICO fails: greedy plays by what is gained, and what a source is worth."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, LongArray
from foreplan.native import compiled
from foreplan.sorting import pop, push

SCALE = 1 << 14  # densities as whole numbers
MOST = 1 << 20  # vertices that one renders ELIGIBLE; more are as good


@compiled
def gain_order(
    child_ptr: IntArray, child: IntArray, parent_ptr: IntArray, parent: IntArray,
    indegree: IntArray, rank: IntArray, by_rank: IntArray,
) -> IntArray:  # fmt: skip
    """An order of the nonsinks: always on to the vertex that is cheapest to render ELIGIBLE.

    A vertex can be had if all its parents are executed or ELIGIBLE. Of these the one with the
    fewest parents to execute is next; if one parent is enough, the one whose parent renders the
    most vertices ELIGIBLE; among equals the first by rank.
    """
    n = len(rank)
    waiting = indegree.copy()
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
            key = weigh(waiting, missing, gain, c) * n + int(rank[c])
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


def weigh(waiting: IntArray, missing: LongArray, gain: LongArray, c: int) -> int:
    """Offer a vertex: the less, the more ELIGIBLE vertices per step there are in having it."""
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


# What a source is worth: the density of the run of sources that it is part of.
#
# Without regard to what follows, the best order of chains is by the densities of their runs
# (Sidney; Horn): a run is executed as a whole, and each gains less per step than the one before.


@compiled
def source_densities(
    unit_ptr: IntArray, sources: IntArray, units: IntArray,
    enabled_ptr: IntArray, enabled: IntArray, unit_of: IntArray, entries: IntArray, ahead: bool,
) -> FloatArray:  # fmt: skip
    """For every place in `sources`, the density of its run within its unit.

    Unit b holds the sources from unit_ptr[b] to unit_ptr[b + 1], in its own order. The source at
    place p renders enabled[enabled_ptr[p]:enabled_ptr[p + 1]] ELIGIBLE within its unit. `units`
    lists the units against the arcs of the super-dag. Looking `ahead`, what a vertex leads to
    counts too: the first run of the unit of which it is a source, by its share in the `entries`.
    """
    density = np.zeros(len(sources))
    value = np.zeros(len(sources))  # of the run that begins at a place: what it gains
    cost = np.zeros(len(sources))  # and its steps
    runs = np.zeros(len(sources), dtype=np.int32)  # where the runs of a unit begin
    for k in range(len(units)):
        b = units[k]
        begin, end = unit_ptr[b], unit_ptr[b + 1]
        count = 0
        for p in range(begin, end):
            runs[count] = p
            value[p] = enabled_ptr[p + 1] - enabled_ptr[p] - 1.0
            cost[p] = 1.0
            if ahead:
                for e in range(enabled_ptr[p], enabled_ptr[p + 1]):
                    to = unit_of[enabled[e]]
                    if to >= 0 and to != b:
                        add_ahead(value, cost, p, unit_ptr[to], entries[to])
            count += 1
            while count > 1 and joins(value, cost, runs[count - 2], runs[count - 1]):
                value[runs[count - 2]] += value[runs[count - 1]]
                cost[runs[count - 2]] += cost[runs[count - 1]]
                count -= 1
        for r in range(count):
            until = runs[r + 1] if r + 1 < count else end
            for p in range(runs[r], until):
                density[p] = value[runs[r]] / cost[runs[r]]
    return density


def joins(value: FloatArray, cost: FloatArray, one: int, other: int) -> bool:
    """Whether a run gains no more per step than the one after it, so that they are one."""
    return bool(value[one] * cost[other] <= value[other] * cost[one])


def add_ahead(value: FloatArray, cost: FloatArray, p: int, first: int, entries: int) -> None:
    """Count a share of the run that begins at `first` to place p, if that makes p worth more."""
    if value[first] * cost[p] > value[p] * cost[first]:
        value[p] += value[first] / entries
        cost[p] += cost[first] / entries
