"""What a source is worth: the density of the run of sources that it is part of.

Without regard to what follows, the best order of chains is by the densities of their runs (Sidney;
Horn): a run is executed as a whole, and each gains less per step than the one before.
"""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.native import compiled


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
