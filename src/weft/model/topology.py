"""The order of a graph, and its cycles."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from weft.arrays import IntArray, csr
from weft.errors import InputError

if TYPE_CHECKING:
    from weft.model.workflow import Workflow

SHOWN = 12  # tasks of a cycle that are named


def topological_order(workflow: Workflow) -> IntArray:
    """The topological order nearest to the order in the file (the smallest index that is ready).

    A file whose tasks already stand in a topological order keeps it, at no cost.
    """
    _, producers, consumers = workflow.dependencies()
    n = workflow.n_tasks
    if bool(np.all(producers < consumers)):
        return np.arange(n, dtype=np.int32)
    pointers, columns = csr(producers, consumers, n)
    ptr, successors = pointers.tolist(), columns.tolist()
    waiting = np.bincount(consumers, minlength=n).tolist()
    ready = [task for task in range(n) if waiting[task] == 0]  # sorted, hence a heap
    order: list[int] = []
    while ready:
        task = heapq.heappop(ready)
        order.append(task)
        for successor in successors[ptr[task] : ptr[task + 1]]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                heapq.heappush(ready, successor)
    if len(order) < n:
        names = [workflow.task_names[t] for t in _cycle(producers, consumers, waiting)]
        if len(names) > SHOWN:
            names[SHOWN // 2 : -SHOWN // 2] = [f"... ({len(names) - SHOWN} more) ..."]
        raise InputError(f"the tasks form a cycle: {' -> '.join(names)}")
    return np.array(order, dtype=np.int32)


def _cycle(producers: IntArray, consumers: IntArray, waiting: list[int]) -> list[int]:
    """One cycle among the tasks that never became ready, first task repeated at the end."""
    before: dict[int, int] = {}
    for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
        if waiting[producer] > 0 and waiting[consumer] > 0:
            before.setdefault(consumer, producer)
    task, seen = min(before), dict[int, int]()
    path: list[int] = []
    while task not in seen:
        seen[task] = len(path)
        path.append(task)
        task = before[task]
    cycle = path[seen[task] :][::-1]
    first = cycle.index(min(cycle))
    cycle = cycle[first:] + cycle[:first]
    return [*cycle, cycle[0]]
