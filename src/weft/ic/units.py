"""Blocks as units of a schedule: the order of their sources, and what each is worth."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray, csr
from weft.ic.structure import Structure
from weft.kernels.densities import source_densities


class Units:
    """The sources of every unit in one order: IC-optimal where the block has such an order.

    The others, and the blocks of a circle together, go in the order of a `guide`: a place for
    each vertex.
    """

    def __init__(self, structure: Structure, guide: IntArray) -> None:
        self.structure = structure
        scheduled, parsing = structure.scheduled, structure.parsing
        place = np.empty(structure.dag.n, dtype=np.int64)
        place[scheduled.sources] = np.arange(len(scheduled.sources))
        nonsinks = np.flatnonzero(parsing.source_of >= 0)
        block = parsing.source_of[nonsinks]
        guided = structure.in_circle[block] | (scheduled.type_of[block] < 0)
        place[nonsinks[guided]] = guide[nonsinks[guided]]
        unit = structure.unit[block]
        order = np.lexsort((place[nonsinks], unit))
        self.sources: IntArray = nonsinks[order].astype(np.int32)
        self.unit: IntArray = unit[order]
        self.ptr, _ = csr(self.unit, self.unit, len(structure.units))

    def keys(self, ahead: bool) -> tuple[IntArray | FloatArray, ...]:
        """Keys for an order by density: for every vertex, the least important first."""
        structure = self.structure
        n, parsing = structure.dag.n, structure.parsing
        level, unit, place = (np.zeros(n, dtype=np.int32) for _ in range(3))
        worth = np.zeros(n)
        level[self.sources] = structure.level[parsing.source_of[self.sources]]
        unit[self.sources] = self.unit
        place[self.sources] = np.arange(len(self.sources))
        worth[self.sources] = -self.densities(ahead)
        return place, unit, level, worth

    def densities(self, ahead: bool) -> FloatArray:
        """What each source is worth; see the kernel."""
        structure = self.structure
        dag, units = structure.dag, structure.units
        place = np.empty(dag.n, dtype=np.int32)
        place[self.sources] = np.arange(len(self.sources))
        heads = np.flatnonzero(dag.indegree > 0)
        # every vertex is rendered ELIGIBLE by the last of its parents in its unit
        last = (
            np.maximum.reduceat(place[dag.parent], dag.parent_ptr[heads]) if len(heads) else heads
        )
        enabled_ptr, enabled = csr(last.astype(np.int32), heads.astype(np.int32), len(self.sources))
        unit_of = np.full(dag.n, -1, dtype=np.int32)
        unit_of[self.sources] = self.unit
        internal = self.unit[dag.indegree[self.sources] > 0]
        entries = np.maximum(1, np.bincount(internal, minlength=len(units))).astype(np.int32)
        upward = units[::-1].copy()
        rows = self.ptr, self.sources, upward, enabled_ptr, enabled, unit_of, entries
        return source_densities(*rows, ahead)
