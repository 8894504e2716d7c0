"""The fast Fourier transform (Topcuoglu, Hariri, Wu, section 5.3.2)."""

from __future__ import annotations

import numpy as np

from weft.errors import InputError
from weft.generators.graph import Graph, edge_list, family, numbered
from weft.generators.limits import whole

MAX_POINTS = 1 << 19  # 11 million tasks


@family
def fft(rng: np.random.Generator, points: int = 16) -> Graph:
    """FFT of m points: a tree of 2m - 1 recursive calls, then m log2 m butterfly tasks.

    The tree's leaves feed the first of log2 m rows of butterflies; in row k, task i reads
    tasks i and i xor 2^(k-1) of the row before. One entry, m exits.
    """
    m = whole("points", points, 2, MAX_POINTS)
    if m & (m - 1):
        lower = 1 << (m.bit_length() - 1)
        raise InputError(
            f"must be a power of two ({lower} or {2 * lower}?), not {m}", place="points"
        )
    rows = m.bit_length() - 1
    calls = 2 * m - 1
    inner = np.arange(m - 1)
    row, column = np.divmod(np.arange(m * rows), m)
    reader = calls + np.arange(m * rows)
    before = m - 1 + row * m  # where the row before begins; row 0 reads the leaves
    producers, consumers = edge_list(
        (inner, 2 * inner + 1),
        (inner, 2 * inner + 2),
        (before + column, reader),
        (before + (column ^ (1 << row)), reader),
    )
    butterflies = [f"b{k}_{i}" for k in range(1, rows + 1) for i in range(m)]
    return Graph(numbered("r", calls) + butterflies, producers, consumers)
