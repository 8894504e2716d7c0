"""Jobs on so many equal slots: what the longest way to the end is, and when a run would end."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from foreplan.arrays import FloatArray, sealed
from foreplan.ic.dag import Dag


def longest_ways(dag: Dag, seconds: FloatArray) -> FloatArray:
    """What is left from the start of each vertex on, by the longest way: its upward rank."""
    ways = np.asarray(seconds, dtype=np.float64).tolist()
    ptr, child = dag.child_ptr.tolist(), dag.child.tolist()
    for vertex in reversed(dag.order.tolist()):
        ways[vertex] += max((ways[c] for c in child[ptr[vertex] : ptr[vertex + 1]]), default=0.0)
    return sealed(np.array(ways, dtype=np.float64))


def makespan(dag: Dag, seconds: FloatArray, priority: npt.NDArray[np.int64], slots: int) -> float:
    """When the last vertex ends if every free slot takes, of what is ready, the highest priority.

    Of equals, what was ready first goes first, and then the first by its number. With a second
    for each vertex it is the number of phases of `slots` clients who all come at once.
    """
    rank, took = (-priority).tolist(), np.asarray(seconds, dtype=np.float64).tolist()
    ptr, child, waits = dag.child_ptr.tolist(), dag.child.tolist(), dag.indegree.tolist()
    ready: list[tuple[int, float, int]] = []
    for vertex in np.flatnonzero(dag.indegree == 0).tolist():
        heappush(ready, (rank[vertex], 0.0, vertex))
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < slots:
            _, _, vertex = heappop(ready)
            heappush(running, (now + took[vertex], vertex))
        now = running[0][0]
        while running and running[0][0] == now:
            _, vertex = heappop(running)
            for c in child[ptr[vertex] : ptr[vertex + 1]]:
                waits[c] -= 1
                if waits[c] == 0:
                    heappush(ready, (rank[c], now, c))
    return now
