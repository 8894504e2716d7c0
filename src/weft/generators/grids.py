"""Regular graphs of linear algebra and differential equations."""

from __future__ import annotations

import numpy as np

from weft.generators.graph import Graph, edge_list, family
from weft.generators.limits import whole

MAX_SIDE = 4_000  # 16 million tasks
MAX_MATRIX = 6_000  # 18 million tasks


@family
def laplace(rng: np.random.Generator, size: int = 10) -> Graph:
    """Laplace equation solver: an m x m grid, a diamond of wavefronts from corner to corner.

    Task (r, c) feeds (r + 1, c) and (r, c + 1): m^2 tasks, 2m(m - 1) edges, one entry, one exit.
    """
    m = whole("size", size, 1, MAX_SIDE)
    grid = np.arange(m * m, dtype=np.int32).reshape(m, m)
    producers, consumers = edge_list((grid[:-1], grid[1:]), (grid[:, :-1], grid[:, 1:]))
    names = [f"t{r}_{c}" for r in range(m) for c in range(m)]
    return Graph(names, producers, consumers)


@family
def gaussian(rng: np.random.Generator, size: int = 10) -> Graph:
    """Gaussian elimination of an m x m matrix (Topcuoglu, Hariri, Wu, section 5.3.1).

    In step k a pivot task feeds the updates of columns k + 1 .. m; the update of column j feeds
    whatever handles column j in step k + 1: (m^2 + m - 2) / 2 tasks, m^2 - m - 1 edges.
    """
    m = whole("size", size, 2, MAX_MATRIX)
    per_step = m - np.arange(m - 1)
    pivots = np.cumsum(per_step) - per_step
    step = np.repeat(np.arange(m - 1), per_step)
    task = np.arange(len(step))
    column = task - pivots[step] + step
    update = column > step
    goes_on = update & (step < m - 2)
    following = pivots[step[goes_on] + 1] + column[goes_on] - step[goes_on] - 1
    producers, consumers = edge_list(
        (pivots[step[update]], task[update]), (task[goes_on], following)
    )
    names = [f"t{k + 1}_{j + 1}" for k in range(m - 1) for j in range(k, m)]
    return Graph(names, producers, consumers)
