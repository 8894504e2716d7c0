"""Dags that have an IC-optimal schedule (Hall, Rosenberg, Venkataramani, sections 2 and 4.1).

The trees of that paper are `out_tree` and `in_tree`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.errors import InputError, unknown_name
from weft.generators.graph import Graph, edge_list, family, numbered
from weft.generators.limits import whole

if TYPE_CHECKING:
    from weft.ic import Dag

MOST_ROWS, MOST_LEVELS = 19, 6_000  # 10 and 18 million tasks
MOST_COMPOSED = 200_000


@family
def butterfly(rng: np.random.Generator, rows: int = 4) -> Graph:
    """FFT dag: rows + 1 levels of 2^rows tasks, each reading two of the level before.

    It is composed of Q(2) alone. (`fft` has a tree of recursive calls before it.)
    """
    from weft.ic.shapes import butterfly as shape

    return _graph(shape(whole("rows", rows, 1, MOST_ROWS)))


@family
def evolving_mesh(rng: np.random.Generator, levels: int = 10) -> Graph:
    """Mesh that grows: level k has k tasks, and each task feeds two of the next."""
    from weft.ic.shapes import evolving_mesh as shape

    return _graph(shape(whole("levels", levels, 1, MOST_LEVELS)))


@family
def reduction_mesh(rng: np.random.Generator, levels: int = 10) -> Graph:
    """Mesh that shrinks: the growing one turned round."""
    from weft.ic.shapes import reduction_mesh as shape

    return _graph(shape(whole("levels", levels, 1, MOST_LEVELS)))


@family
def composition(rng: np.random.Generator, blocks: str = "wnm", tasks: int = 300) -> Graph:
    """Random composition of building blocks that is sure to have an IC-optimal schedule.

    Of W-dags ("w"), M-dags ("m"), W-dags, then N-dags, then M-dags ("wnm"), or copies of Q(2)
    ("q2"); about so many tasks.
    """
    from weft.ic.compositions import COMPOSITIONS, compose

    if not isinstance(blocks, str) or blocks not in COMPOSITIONS:
        raise InputError(unknown_name("composition", str(blocks), COMPOSITIONS), place="blocks")
    return _graph(compose(blocks, rng, whole("tasks", tasks, 1, MOST_COMPOSED)).dag)


def _graph(dag: Dag) -> Graph:
    """The dag, whose vertices stand in a topological order, as a graph."""
    return Graph(numbered("n", dag.n), *edge_list((dag.tails, dag.child)))
