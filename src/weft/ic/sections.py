"""Sections of a dag: parts of which each must be executed before the next.

Where every nonsink of one part precedes every nonsink of the next, any schedule that puts sinks
last executes part after part. So it is IC-optimal if and only if it is so in each of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.arrays import IntArray, sealed
from weft.ic.dag import Dag


def sections(dag: Dag) -> IntArray:
    """The section of every nonsink of a dag without shortcuts, numbered in order; -1 for sinks.

    In a topological order each section is an interval. It ends at k where all the nonsinks before
    k without a later sibling in between are parents of all those that could come at k: that is,
    where the arcs between the last of the one side and the first of the other are all there.
    """
    nonsink = dag.outdegree > 0
    order = dag.order[nonsink[dag.order]]
    m = len(order)
    place = np.full(dag.n, -1, dtype=np.int64)
    place[order] = np.arange(m)
    inner = nonsink[dag.child]
    tail, head = place[dag.tails[inner]], place[dag.child[inner]]
    first_child, last_parent = np.full(m, m), np.full(m, -1)
    np.minimum.at(first_child, tail, head)
    np.maximum.at(last_parent, head, tail)
    at = np.arange(m)
    last = _covered(at + 1, first_child + 1, m)  # nonsinks without a child before k
    first = _covered(last_parent + 1, at + 1, m)  # nonsinks from k on without a parent from k on
    arcs = _covered(last_parent[head] + 1, first_child[tail] + 1, m)
    begins = (arcs == last * first) & (last > 0) & (first > 0)
    section = np.full(dag.n, -1, dtype=np.int32)
    section[order] = np.cumsum(begins)
    return sealed(section)


def _covered(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], m: int
) -> npt.NDArray[np.int64]:
    """For k = 0 .. m-1, how many of the intervals start <= k < end hold k; empty ones count 0."""
    real = starts < ends
    change = np.bincount(starts[real], minlength=m + 2) - np.bincount(ends[real], minlength=m + 2)
    return np.cumsum(change)[:m]
