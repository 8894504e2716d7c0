"""What ICO finds out about a dag before it orders anything: sections, blocks, super-dag."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from foreplan.arrays import BoolArray, IntArray, csr, sealed
from foreplan.ic.blocks import Parsing, parse
from foreplan.ic.dag import Dag
from foreplan.ic.kernels.pebbles import levels
from foreplan.ic.kernels.structure import mark_shortcuts, strong_components
from foreplan.ic.search import Scheduled, schedule_blocks


def pruned(dag: Dag) -> Dag:
    """The dag without the arcs whose tail and head are joined by another path."""
    span = dag.level[dag.child] - dag.level[dag.tails]
    far = np.unique(dag.child[span > 1])
    if len(far) == 0:
        return dag
    rows = dag.child_ptr, dag.child, dag.parent_ptr, dag.parent
    shortcuts = mark_shortcuts(*rows, dag.order, dag.position, dag.level)
    return dag.without(shortcuts) if shortcuts.any() else dag


# Sections of a dag: parts of which each must be executed before the next.
#
# Where every nonsink of one part precedes every nonsink of the next, any schedule that puts sinks
# last executes part after part. So it is IC-optimal if and only if it is so in each of them.


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


@dataclass(frozen=True, eq=False)
class Structure:
    """A dag without its shortcuts, its blocks, and for each block where it stands.

    A unit is a block, or the blocks of a circle in the super-dag, which cannot be told apart.
    """

    dag: Dag
    scheduled: Scheduled
    section: IntArray  # of each block
    unit: IntArray  # of each block
    in_circle: BoolArray  # whether a block's unit is a circle
    level: IntArray  # of each block's unit in the super-dag
    units: IntArray  # all units in a topological order

    @property
    def parsing(self) -> Parsing:
        """The blocks as they were found."""
        return self.scheduled.parsing

    @property
    def n_sections(self) -> int:
        """The number of sections."""
        return int(self.section.max(initial=-1)) + 1

    @property
    def hops(self) -> IntArray:
        """Of each block: the longest path from its sources."""
        ptr = self.parsing.source_ptr[:-1]
        return np.maximum.reduceat(self.dag.hops[self.scheduled.sources], ptr) if len(ptr) else ptr

    @cached_property
    def section_of_vertices(self) -> IntArray:
        """The section of each vertex; all sinks come after the last."""
        source_of = self.parsing.source_of
        if self.parsing.n_blocks == 0:
            return sealed(np.zeros(self.dag.n, dtype=np.int32))
        section = np.where(source_of >= 0, self.section[source_of], self.n_sections)
        return sealed(section.astype(np.int32))


def structure_of(dag: Dag) -> Structure:
    """Prune and parse a dag, and order the sources of its blocks."""
    without_shortcuts = pruned(dag)
    parsing = parse(without_shortcuts)
    scheduled = schedule_blocks(parsing)
    section = sections(without_shortcuts)[parsing.sources[parsing.source_ptr[:-1]]]
    _, above, below = parsing.super_arcs
    unit, in_circle = _units(above, below, parsing.n_blocks)
    count = int(unit.max(initial=-1)) + 1
    apart = unit[above] != unit[below]
    ptr, after = csr(unit[above[apart]], unit[below[apart]], count)
    waiting = np.bincount(after, minlength=count).astype(np.int32)
    order, level = levels(ptr, after, waiting)
    return Structure(
        without_shortcuts, scheduled, sealed(section), unit, in_circle, sealed(level[unit]), order
    )


def _units(above: IntArray, below: IntArray, blocks: int) -> tuple[IntArray, BoolArray]:
    """The unit of each block, and whether it is a circle."""
    ptr, after = csr(above, below, blocks)
    waiting = np.bincount(below, minlength=blocks).astype(np.int32)
    order, _ = levels(ptr, after, waiting)
    if len(order) == blocks:
        return np.arange(blocks, dtype=np.int32), np.zeros(blocks, dtype=np.bool_)
    component, count = strong_components(ptr, after)
    circle = np.bincount(component, minlength=count) > 1
    circle[component[above[above == below]]] = True
    return sealed(component), sealed(circle[component])
