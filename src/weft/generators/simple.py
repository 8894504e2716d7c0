"""The plainest graphs: fork-join, chain, independent tasks."""

from __future__ import annotations

import numpy as np

from weft.arrays import IntArray
from weft.generators.graph import Graph, edge_list, family, numbered
from weft.generators.limits import MAX_TASKS, check_size, whole


@family
def fork_join(rng: np.random.Generator, stages: int = 3, width: int = 8) -> Graph:
    """Fork-join: in every stage one task feeds `width` others, which feed the next single task.

    A stage's join is the next stage's fork: 1 + stages (width + 1) tasks, 2 stages width edges.
    """
    stages = whole("stages", stages, 1)
    width = whole("width", width, 1)
    check_size("tasks", 1 + stages * (width + 1), MAX_TASKS)
    hub = np.arange(stages)[:, None] * (width + 1)
    work = hub + np.arange(1, width + 1)[None, :]
    fork = np.broadcast_to(hub, work.shape)
    producers, consumers = edge_list((fork, work), (work, fork + width + 1))
    names = ["hub0"]
    for stage in range(stages):
        names += [f"work{stage}_{i}" for i in range(width)]
        names.append(f"hub{stage + 1}")
    return Graph(names, producers, consumers)


@family
def chain(rng: np.random.Generator, tasks: int = 10) -> Graph:
    """Chain: every task waits for the one before."""
    n = whole("tasks", tasks, 1)
    return Graph(numbered("n", n), _range(0, n - 1), _range(1, n))


@family
def independent(rng: np.random.Generator, tasks: int = 10) -> Graph:
    """Independent tasks: a bag without edges; the CCR means nothing here."""
    n = whole("tasks", tasks, 1)
    return Graph(numbered("n", n), _range(0, 0), _range(0, 0))


def _range(start: int, stop: int) -> IntArray:
    return np.arange(start, stop, dtype=np.int32)
