"""Categories whose time grows with the size of their input, where that is plain to see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.history.levels import SHORTEST
from weft.history.medians import deviation, robust_line
from weft.history.records import Table

ENOUGH = 10  # records with a size, and
DIFFERENT = 4  # sizes among them, before a line is tried
BETTER = 0.7  # the deviation that a line must leave, at most, of the one without


@dataclass(frozen=True, eq=False)
class Shapes:
    """Of each category: seconds grow as start + slope x bytes; NaN where size tells nothing."""

    start: FloatArray
    slope: FloatArray

    @property
    def used(self) -> BoolArray:
        """The categories that depend on size."""
        return ~np.isnan(self.slope)

    def log(self, category: IntArray, size: FloatArray) -> FloatArray:
        """The logarithm of the seconds at slowness 0; NaN where size tells nothing."""
        grown = self.start[category] + self.slope[category] * size
        logs: FloatArray = np.log(np.maximum(grown, SHORTEST))  # NaN stays NaN
        return logs


def find_shapes(table: Table, values: FloatArray, slowness: FloatArray, asked: BoolArray) -> Shapes:
    """The line through each category that is asked for, if it is much nearer than a constant."""
    n = len(table.rows)
    start, slope = np.full(n, np.nan), np.full(n, np.nan)
    use = asked[table.category] & ~np.isnan(table.size)
    category, size = table.category[use], table.size[use]
    seconds = np.exp(values[use] - slowness[table.machine[use]])
    first = np.searchsorted(category, np.arange(n + 1))
    for index in np.flatnonzero(_worth_trying(category, size, n)):
        own = slice(first[index], first[index + 1])
        line = _line(size[own], seconds[own])
        if line is not None:
            start[index], slope[index] = line
    return Shapes(start, slope)


def _worth_trying(category: IntArray, size: FloatArray, n: int) -> BoolArray:
    """Categories with enough records of different sizes."""
    order = np.lexsort((size, category))
    ordered, sizes = category[order], size[order]
    new = np.ones(len(ordered), dtype=np.bool_)
    new[1:] = (ordered[1:] != ordered[:-1]) | (sizes[1:] != sizes[:-1])
    different = np.bincount(ordered[new], minlength=n)
    worth: BoolArray = (np.bincount(category, minlength=n) >= ENOUGH) & (different >= DIFFERENT)
    return worth


def _line(size: FloatArray, seconds: FloatArray) -> tuple[float, float] | None:
    line = robust_line(size, seconds)
    if line is None:
        return None
    left = deviation(seconds - (line[0] + line[1] * size))
    return line if left < BETTER * deviation(seconds) else None
