"""A dag as flat arrays: what the theory looks at, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from foreplan.arrays import IntArray, csr, frozen, row_of_each, sealed
from foreplan.errors import InputError
from foreplan.ic.kernels.pebbles import levels
from foreplan.model import Workflow

Result = TypeVar("Result")
STEP = 8  # steps of planning that one of these takes, and the kernels that follow in its wake
Indices = npt.ArrayLike


def places(order: IntArray) -> IntArray:
    """The place of each vertex in an order."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


@dataclass(frozen=True, eq=False)
class Dag:
    """Vertices 0 .. n-1 and their arcs: children and parents in compressed sparse rows."""

    n: int
    child_ptr: IntArray
    child: IntArray
    parent_ptr: IntArray
    parent: IntArray

    @staticmethod
    def from_arcs(n: int, tails: Indices, heads: Indices) -> Dag:
        """A dag from its arcs; an arc given twice counts once. A cycle is an InputError."""
        given = np.array([tails, heads], dtype=np.int64).reshape(2, -1)
        if given.min(initial=0) < 0 or given.max(initial=-1) >= n:
            raise InputError(f"an arc leads to or from a vertex outside 0 .. {n - 1}")
        arcs = np.unique(given[0] * max(n, 1) + given[1])
        tail, head = (part.astype(np.int32) for part in np.divmod(arcs, max(n, 1)))
        dag = Dag(n, *csr(tail, head, n), *csr(head, tail, n))
        if len(dag.order) < n:
            raise InputError("the arcs form a cycle")
        return dag

    @staticmethod
    def from_workflow(workflow: Workflow) -> Dag:
        """The dag of a workflow: its tasks, and an arc from each producer to each consumer."""
        _, producers, consumers = workflow.dependencies()
        return Dag.from_arcs(workflow.n_tasks, producers, consumers)

    @property
    def n_arcs(self) -> int:
        """The number of arcs."""
        return len(self.child)

    @property
    def tails(self) -> IntArray:
        """The tail of every arc, in the order of `child`."""
        return row_of_each(self.child_ptr)

    @cached_property
    def outdegree(self) -> IntArray:
        """The number of children of each vertex."""
        return sealed(np.diff(self.child_ptr))

    @cached_property
    def indegree(self) -> IntArray:
        """The number of parents of each vertex."""
        return sealed(np.diff(self.parent_ptr))

    @cached_property
    def _levels(self) -> tuple[IntArray, IntArray]:
        order, level = levels(self.child_ptr, self.child, self.indegree)
        return sealed(order), sealed(level)

    @property
    def order(self) -> IntArray:
        """A topological order."""
        return self._levels[0]

    @property
    def level(self) -> IntArray:
        """The length of the longest path to each vertex."""
        return self._levels[1]

    @cached_property
    def hops(self) -> IntArray:
        """The length of the longest path from each vertex."""
        return sealed(levels(self.parent_ptr, self.parent, self.outdegree)[1])

    @property
    def position(self) -> IntArray:
        """The place of each vertex in the topological order."""
        return places(self.order)

    def without(self, arcs: npt.NDArray[np.bool_]) -> Dag:
        """The same dag less some of its arcs, marked in the order of `child`."""
        tail, head = self.tails[~arcs], frozen(self.child[~arcs], np.int32)
        return Dag(self.n, *csr(tail, head, self.n), *csr(head, tail, self.n))
