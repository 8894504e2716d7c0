"""A dag parsed into building blocks, with those recognised that the theory knows by name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.arrays import BoolArray, IntArray, csr, sealed
from weft.ic.dag import Dag
from weft.ic.profiles import Profile, c_profile, k_profile, m_profile, n_profile, w_profile
from weft.kernels.building_blocks import label_blocks, walk_blocks

OTHER, COMPLETE, W, M, N, CYCLE = range(6)


class Kind(NamedTuple):
    """A family of building blocks and its sizes; two blocks of one kind are alike."""

    family: int
    a: int
    d: int

    def __str__(self) -> str:
        if self.family == COMPLETE:
            return _complete_name(self.a, self.d)
        return {W: "W({},{})", M: "M({},{})", N: "N({})", CYCLE: "C({})"}[self.family].format(
            self.a, self.d
        )

    def profile(self) -> Profile:
        """The profile of its IC-optimal order."""
        makers = {COMPLETE: k_profile, W: w_profile, M: m_profile}
        if self.family in makers:
            return makers[self.family](self.a, self.d)
        return {N: n_profile, CYCLE: c_profile}[self.family](self.a)


def _complete_name(sources: int, sinks: int) -> str:
    """All sources to all sinks goes by several names in the papers."""
    if sources == sinks:
        return f"Q({sources})" if sources > 1 else "N(1)"
    if sources == 1:
        return f"W(1,{sinks})"
    return f"M(1,{sources})" if sinks == 1 else f"K({sources},{sinks})"


@dataclass(frozen=True, eq=False)
class Parsing:
    """The blocks of a dag: block b's sources are sources[source_ptr[b]:source_ptr[b + 1]].

    The sources of a block of a known family are in IC-optimal order.
    """

    dag: Dag
    source_of: IntArray  # vertex -> the block of which it is a source, or -1
    sink_of: IntArray
    source_ptr: IntArray
    sources: IntArray
    family: IntArray
    n_sinks: IntArray

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return len(self.family)

    @cached_property
    def n_sources(self) -> IntArray:
        """The number of sources of each block."""
        return sealed(np.diff(self.source_ptr))

    def block_sources(self, block: int) -> IntArray:
        """The sources of a block."""
        return self.sources[self.source_ptr[block] : self.source_ptr[block + 1]]

    @cached_property
    def super_arcs(self) -> tuple[IntArray, IntArray, IntArray]:
        """The arcs of the super-dag: for each vertex in two blocks, (vertex, from, to)."""
        shared = np.flatnonzero((self.source_of >= 0) & (self.sink_of >= 0)).astype(np.int32)
        return shared, self.sink_of[shared], self.source_of[shared]

    def kind(self, block: int) -> Kind | None:
        """The kind of a block of a known family."""
        family = int(self.family[block])
        s, t = int(self.n_sources[block]), int(self.n_sinks[block])
        if family == OTHER:
            return None
        if family == W:
            return Kind(W, s, (t - 1) // s + 1)
        if family == M:
            return Kind(M, t, (s - 1) // t + 1)
        return Kind(family, s, t if family == COMPLETE else 0)


def parse(dag: Dag) -> Parsing:
    """Parse a dag that has no shortcuts. Every dag has blocks; their super-dag may have cycles."""
    rows = dag.child_ptr, dag.child, dag.parent_ptr, dag.parent
    source_of, sink_of, blocks = label_blocks(*rows, dag.order)
    nonsinks = np.flatnonzero(source_of >= 0).astype(np.int32)
    source_ptr, sources = csr(source_of[nonsinks], nonsinks, blocks)
    shape = _Shape(dag, source_of, sink_of, blocks)
    family = shape.families()
    starts = shape.starts(family)
    if (starts >= 0).any():
        sources = sealed(walk_blocks(*rows, starts, source_ptr, sources))
    return Parsing(dag, source_of, sink_of, source_ptr, sources, family, shape.n_sinks)


def _counts(numbers: IntArray, count: int) -> IntArray:
    """How often each of 0 .. count - 1 occurs."""
    return np.bincount(numbers, minlength=count).astype(np.int32)


class _Shape:
    """What tells the families apart: sizes and degrees of every block."""

    def __init__(self, dag: Dag, source_of: IntArray, sink_of: IntArray, blocks: int) -> None:
        self.dag, self.source_of, self.blocks = dag, source_of, blocks
        self.is_source, self.is_sink = source_of >= 0, sink_of >= 0
        self.sink_of = sink_of
        self.n_sources = _counts(source_of[self.is_source], blocks)
        self.n_sinks = _counts(sink_of[self.is_sink], blocks)
        tails, heads = dag.tails, dag.child
        self.n_arcs = _counts(source_of[tails], blocks)
        # sinks with other parents too, per source, and sources with other children too, per sink
        self.forks = _counts(tails[dag.indegree[heads] > 1], dag.n)
        self.joins = _counts(heads[dag.outdegree[tails] > 1], dag.n)

    def families(self) -> IntArray:
        """The family of every block."""
        s, t, arcs = self.n_sources, self.n_sinks, self.n_arcs
        out_least, out_most = self._range(self.dag.outdegree, self.source_of)
        in_least, in_most = self._range(self.dag.indegree, self.sink_of)
        _, forks = self._range(self.forks, self.source_of)
        _, joins = self._range(self.joins, self.sink_of)
        tree = arcs == s + t - 1
        twos = (out_most <= 2) & (in_most <= 2)
        family = np.full(self.blocks, OTHER, dtype=np.int32)
        family[(arcs == s + t) & twos] = CYCLE
        family[tree & twos & (s == t)] = N
        family[tree & (in_least == in_most) & (out_most <= 2) & (joins <= 2)] = M
        family[tree & (out_least == out_most) & (in_most <= 2) & (forks <= 2)] = W
        family[arcs == s.astype(np.int64) * t] = COMPLETE
        return sealed(family)

    def _range(self, values: IntArray, block_of: IntArray) -> tuple[IntArray, IntArray]:
        """The least and the most of the values of each block's vertices."""
        vertices = np.flatnonzero(block_of >= 0)
        order = vertices[np.argsort(block_of[vertices], kind="stable")]
        if len(order) == 0:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        first = np.flatnonzero(np.diff(block_of[order], prepend=-1))
        ordered = values[order]
        return np.minimum.reduceat(ordered, first), np.maximum.reduceat(ordered, first)

    def starts(self, family: IntArray) -> IntArray:
        """Where the walk through each block begins that has an end; -1: any order will do."""
        outdegree = self.dag.outdegree
        of = np.where(self.is_source, family[self.source_of], OTHER) if self.blocks else outdegree
        one_sink = np.zeros(self.dag.n, dtype=np.bool_)  # whose only sink is at an end
        lonely = np.flatnonzero(outdegree == 1)
        one_sink[lonely] = self.joins[self.dag.child[self.dag.child_ptr[lonely]]] <= 1
        can_start: BoolArray = self.is_source & (
            ((of == W) & (self.forks <= 1))
            | ((of == M) & one_sink)
            | ((of == N) & (self.forks < outdegree))
            | (of == CYCLE)
        )
        starts = np.full(self.blocks, -1, dtype=np.int32)
        vertices = np.flatnonzero(can_start)[::-1]
        starts[self.source_of[vertices]] = vertices  # the first of each block is written last
        return starts
