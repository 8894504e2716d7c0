"""The knee of a falling curve: from there on, more buys less."""

from __future__ import annotations

import math
from collections.abc import Sequence

ROUNDING = 1e-9  # of the first value: what differs by less is the same


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """The index of the point that lies farthest below the chord from the first to the last one.

    Measured straight down; with both axes scaled to 1, the distance to the chord has its greatest
    value at the same point. None if the last is no better than the first, or none lies below.
    """
    if len(x) < 3 or not all(map(math.isfinite, (*x, *y))) or x[-1] <= x[0]:
        return None
    if not y[-1] < y[0] * (1 - ROUNDING):
        return None
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    below = [y[0] + slope * (x_k - x[0]) - y_k for x_k, y_k in zip(x, y, strict=True)]
    best = max(range(len(below)), key=below.__getitem__)  # the first of equals
    return best if below[best] > ROUNDING * y[0] else None
