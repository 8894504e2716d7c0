"""Robust statistics: medians by group, and a line through points that may be wild."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.arrays import FloatArray

Indices = npt.NDArray[np.integer[Any]]  # of any width

TO_DEVIATION = 1.4826  # the median absolute deviation times this is a normal standard deviation
MAX_POINTS = 100  # of a line: their pairs are what it costs


def group_medians(values: FloatArray, groups: Indices, n: int) -> FloatArray:
    """The median of each group; NaN for one without values."""
    counts = np.bincount(groups, minlength=n)
    medians = np.full(n, np.nan)
    some = counts > 0
    if not some.any():
        return medians
    ordered = values[np.lexsort((values, groups))]
    first = np.cumsum(counts) - counts
    low = (first + (counts - 1) // 2)[some]
    high = (first + counts // 2)[some]
    medians[some] = (ordered[low] + ordered[high]) / 2
    return medians


def group_deviations(
    values: FloatArray, centres: FloatArray, groups: Indices, n: int
) -> FloatArray:
    """The robust standard deviation of each group about its centre."""
    return TO_DEVIATION * group_medians(np.abs(values - centres[groups]), groups, n)


def deviation(values: FloatArray) -> float:
    """The robust standard deviation about the median."""
    return TO_DEVIATION * float(np.median(np.abs(values - np.median(values))))


def robust_line(x: FloatArray, y: FloatArray) -> tuple[float, float] | None:
    """Start and slope of the line by Theil and Sen; it rises, and starts at 0 or above, or is None.

    The slope is the median of those of all pairs of points; of many points some are taken.
    """
    if len(x) > MAX_POINTS:
        some = np.linspace(0, len(x) - 1, MAX_POINTS).astype(np.intp)
        x, y = x[some], y[some]
    a, b = np.triu_indices(len(x), 1)
    run = x[b] - x[a]
    apart = run != 0
    if not apart.any():
        return None
    slope = float(np.median((y[b] - y[a])[apart] / run[apart]))
    if slope <= 0:
        return None
    start = float(np.median(y - slope * x))
    if start >= 0:
        return start, slope
    known = x > 0
    slope = float(np.median(y[known] / x[known]))
    return (0.0, slope) if slope > 0 else None
