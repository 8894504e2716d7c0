"""Trees that grow from one task or shrink to one."""

from __future__ import annotations

import numpy as np

from weft.errors import InputError
from weft.generators.graph import Graph, edge_list, family, numbered
from weft.generators.limits import MAX_TASKS, whole


@family
def out_tree(rng: np.random.Generator, depth: int = 4, arity: int = 2, tasks: int = 0) -> Graph:
    """Out-tree: one root, every task feeds `arity` others, `depth` levels.

    With `tasks` = n instead of 0, the first n tasks of the tree, level by level.
    """
    n, arity = _size(depth, arity, tasks)
    children = np.arange(1, n)
    producers, consumers = edge_list(((children - 1) // arity, children))
    return Graph(numbered("n", n), producers, consumers)


@family
def in_tree(rng: np.random.Generator, depth: int = 4, arity: int = 2, tasks: int = 0) -> Graph:
    """In-tree: the out-tree turned round, every task reads `arity` others, the last is the root."""
    n, arity = _size(depth, arity, tasks)
    children = np.arange(1, n)
    producers, consumers = edge_list((n - 1 - children, n - 1 - (children - 1) // arity))
    return Graph(numbered("n", n), producers, consumers)


def _size(depth: int, arity: int, tasks: int) -> tuple[int, int]:
    """The number of tasks, and the arity: a full tree unless the number is given."""
    depth = whole("depth", depth, 1)
    arity = whole("arity", arity, 1)
    given = whole("tasks", tasks, 0)
    if given:
        return given, arity
    if arity == 1:
        return depth, arity
    total, level = 1, 1
    for _ in range(depth - 1):
        level *= arity
        total += level
        if total > MAX_TASKS:
            raise InputError(
                f"a tree of {depth} levels and arity {arity} has more than {MAX_TASKS:,} tasks",
                place="depth",
            )
    return total, arity
