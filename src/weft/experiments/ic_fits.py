"""Curves a v^b through points, lower convex hulls of points, and means with their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from weft.arrays import FloatArray
from weft.experiments.comparison import t_quantile
from weft.experiments.gtp_tables import Figure

LOWEST, HIGHEST = -2.0, 8.0  # the exponents that are tried
GRID = 401
ROUNDS = 80  # of the golden section


@dataclass(frozen=True)
class Fit:
    """The curve a v^b that is nearest to some points, and half the 95% interval of b."""

    a: float
    b: float
    margin: float
    points: int


def fitted(v: FloatArray, y: FloatArray) -> Fit | None:
    """By least squares, not of logarithms: what Levenberg and Marquardt's method finds.

    For every b the best a is known, so that only b is searched for. None if there is nothing to
    fit: fewer than two sizes, or nothing above 0.
    """
    if len(np.unique(v)) < 2 or not (y > 0).any():
        return None
    scale = float(v.max())
    x = v / scale

    def off(b: float) -> float:
        return float(((y - _factor(x, y, b) * x**b) ** 2).sum())

    b = _least(off)
    factor = _factor(x, y, b)
    return Fit(factor / scale**b, b, _margin(x, y, factor, b), len(v))


def _factor(x: FloatArray, y: FloatArray, b: float) -> float:
    powers = x**b
    return float((y * powers).sum() / (powers * powers).sum())


def _least(off: Callable[[float], float]) -> float:
    """Where a function is least: the best of a grid, then a golden section around it."""
    grid = np.linspace(LOWEST, HIGHEST, GRID)
    best = int(np.argmin([off(b) for b in grid.tolist()]))
    low, high = float(grid[max(0, best - 1)]), float(grid[min(GRID - 1, best + 1)])
    ratio = (sqrt(5) - 1) / 2
    for _ in range(ROUNDS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if off(left) <= off(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _margin(x: FloatArray, y: FloatArray, factor: float, b: float) -> float:
    """Half the interval of b, from the curvature at the best fit; NaN for two points."""
    free = len(x) - 2
    if free < 1:
        return float("nan")
    powers = x**b
    slopes = np.column_stack([powers, factor * powers * np.log(x)])
    variance = float(((y - factor * powers) ** 2).sum()) / free
    spread = np.linalg.pinv(slopes.T @ slopes)[1, 1]
    return t_quantile(free) * sqrt(max(0.0, variance * float(spread)))


def lower_hull(v: FloatArray, y: FloatArray) -> list[int]:
    """The points on the lower envelope of the convex hull, from the least v to the greatest."""
    hull: list[int] = []
    for k in np.lexsort((y, v)).tolist():
        if hull and v[hull[-1]] == v[k]:
            continue  # above the lowest point of this size
        while len(hull) > 1 and _turns_down(v, y, hull[-2], hull[-1], k):
            hull.pop()
        hull.append(k)
    return hull


def _turns_down(v: FloatArray, y: FloatArray, one: int, two: int, three: int) -> bool:
    """Whether the middle point is on or above the line between the others."""
    rise = (v[two] - v[one]) * (y[three] - y[one])
    return bool(rise <= (y[two] - y[one]) * (v[three] - v[one]))


def mean_of(values: FloatArray) -> Figure:
    """The mean, half its 95% interval, and the number of values."""
    count = len(values)
    if count < 2:
        return Figure(float(values.mean()) if count else float("nan"), float("nan"), count)
    half = t_quantile(count - 1) * float(values.std(ddof=1)) / sqrt(count)
    return Figure(float(values.mean()), half, count)


def ratio_of(one: FloatArray, other: FloatArray) -> Figure:
    """The ratio of two means over the same plays, with half its 95% interval."""
    count, base = len(one), float(other.mean())
    ratio = float(one.mean()) / base
    if count < 2:
        return Figure(ratio, float("nan"), count)
    rest = float((one - ratio * other).std(ddof=1))
    return Figure(ratio, t_quantile(count - 1) * rest / sqrt(count) / base, count)
