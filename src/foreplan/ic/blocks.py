"""Building blocks: their profiles and priorities (equation 2.1), and a dag parsed into them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from foreplan.arrays import BoolArray, IntArray, csr, frozen, sealed
from foreplan.ic.dag import Dag
from foreplan.ic.kernels.structure import label_blocks, walk_blocks


class BlockProfile:
    """E(0), ..., E(s) of a block whose sources are executed in one order, less E(0).

    `gains` is by how much each source changes the number of ELIGIBLE vertices: the sinks that it
    completes, less the source itself.
    """

    def __init__(self, gains: npt.ArrayLike, *, patient: bool = False) -> None:
        self.gains: IntArray = frozen(gains, np.int32)
        # patient: no k sources in a row gain less than the first k, nor more than the last k
        self.patient = patient or bool(np.all(np.diff(self.gains) >= 0))
        self._least: list[int] = [0]
        self._most: list[int] = [0]

    @property
    def sources(self) -> int:
        """The number of sources."""
        return len(self.gains)

    @cached_property
    def first(self) -> IntArray:
        """What the first k sources gain, for k = 0 .. s."""
        return sealed(np.concatenate([[0], np.cumsum(self.gains)]).astype(np.int32))

    @cached_property
    def last(self) -> IntArray:
        """What the last k sources gain, for k = 0 .. s."""
        return sealed(np.concatenate([[0], np.cumsum(self.gains[::-1])]).astype(np.int32))

    def least(self, k: int) -> IntArray:
        """The least that 0, 1, ..., k sources in a row gain."""
        if self.patient:
            return self.first[: k + 1]
        self._fill(k)
        return np.array(self._least[: k + 1], dtype=np.int32)

    def most(self, k: int) -> IntArray:
        """The most that 0, 1, ..., k sources in a row gain."""
        if self.patient:
            return self.last[: k + 1]
        self._fill(k)
        return np.array(self._most[: k + 1], dtype=np.int32)

    def _fill(self, k: int) -> None:
        for width in range(len(self._least), k + 1):
            in_a_row = self.first[width:] - self.first[:-width]
            self._least.append(int(in_a_row.min()))
            self._most.append(int(in_a_row.max()))


def has_priority(one: BlockProfile, other: BlockProfile) -> bool:
    """Whether (2.1) holds: to execute a source of the one whenever possible never costs anything.

    With x + y <= s1 it says that y sources in a row of the one gain no less than the first y of
    the other; with x + y > s1, that the last s1 - x of the one gain no less than as many sources
    in a row of the other.
    """
    k = min(one.sources, other.sources)
    return bool(
        np.all(other.first[: k + 1] <= one.least(k)) and np.all(other.most(k) <= one.last[: k + 1])
    )


def w_profile(a: int, d: int) -> BlockProfile:
    """W(a,d): every source completes d - 1 sinks, the last one d."""
    gains = np.full(a, d - 2)
    gains[-1] += 1
    return BlockProfile(gains)


def m_profile(a: int, d: int) -> BlockProfile:
    """M(a,d): the d-th source completes a sink, and then every (d-1)-th."""
    gains = np.full(a * (d - 1) + 1, -1)
    gains[d - 1 :: max(1, d - 1)] = 0
    return BlockProfile(gains, patient=True)


def n_profile(s: int) -> BlockProfile:
    """N(s): every source completes a sink."""
    return BlockProfile(np.zeros(s))


def k_profile(sources: int, sinks: int) -> BlockProfile:
    """All sources to all sinks, Q(s) where there are as many: the last source completes all."""
    gains = np.full(sources, -1)
    gains[-1] += sinks
    return BlockProfile(gains)


def c_profile(s: int) -> BlockProfile:
    """A cycle of s sources and s sinks: the second source completes a sink, the last one two."""
    gains = np.zeros(s)
    gains[0], gains[-1] = -1, 1
    return BlockProfile(gains)


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

    def profile(self) -> BlockProfile:
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
        """Where the walk through each block begins that has an end; -1: any order is as good."""
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
