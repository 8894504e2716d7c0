"""Which tasks are computed again after processors have died (Hernandez, Cole: section 5).

The paper's rule has gaps; it is read here as follows:

- An unfinished task placed on a dead processor is rewound, successors or not. One that is placed
  nowhere is not: nothing of it is lost.
- A finished task on a dead processor is rewound if a successor that is unfinished, or rewound
  itself, cannot have its result. Other successors need nothing any more.
- An unfinished successor that is not rewound has the result if the edge is in `transferred`. A
  rewound one has lost its place, and with it all that had arrived there.
- Where copies are reused, a whole copy on any processor that is not dead serves both.
- A finished task on a living processor is never rewound: its result is still there.

A processor that died earlier counts like one that dies now, and a transfer that the failure cut
counts as not begun: only whole items can be had.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from foreplan.errors import InputError
from foreplan.model.workflow import cycle_error, topological_order

Task = TypeVar("Task", bound=Hashable)
Processor = TypeVar("Processor", bound=Hashable)
Label = TypeVar("Label", bound=Hashable)
Edges = Iterable[tuple[Task, Task] | Sequence[Task]]


def rewind_set(
    edges: Edges[Task],
    place: Mapping[Task, Processor | None],
    done: Iterable[Task],
    transferred: Edges[Task],
    copies: Mapping[tuple[Task, Task], Iterable[Processor]],
    dead: Iterable[Processor],
    reuse_copies: bool,
) -> list[Task]:
    """The tasks to compute again after processors died, successors before their predecessors.

    `place` says where each task is placed (None: nowhere), `transferred` which edges are complete
    at the consumer's present place, `copies` which processors hold an edge's data whole, and
    `dead` which processors died, now or earlier. Without `reuse_copies` copies do not matter.
    The order is the reverse of the topological order that takes the tasks as `place`, then
    `edges`, names them.
    """
    pairs = list(dict.fromkeys(_pairs("edges", edges)))
    finished, lost = _labels("done", done), _labels("dead", dead)
    arrived = set(_pairs("transferred", transferred))
    if reuse_copies:  # a living copy is as good as a living producer, wherever the consumer goes
        spared = {edge for edge, at in copies.items() if _labels("copies", at) - lost}
    else:
        spared = set()
    successors = _successors(place, pairs)
    rewound: dict[Task, None] = {}  # in order
    for task in reversed(_order(successors)):
        processor = place.get(task)
        if processor is None or processor not in lost:
            continue
        if task not in finished or any(
            after in rewound or (after not in finished and (task, after) not in arrived)
            for after in successors[task]
            if (task, after) not in spared
        ):
            rewound[task] = None
    return list(rewound)


def _successors(tasks: Iterable[Task], edges: list[tuple[Task, Task]]) -> dict[Task, list[Task]]:
    """The successors of every task; the tasks in order of their first appearance."""
    successors: dict[Task, list[Task]] = {task: [] for task in tasks}
    for producer, consumer in edges:
        successors.setdefault(producer, []).append(consumer)
        successors.setdefault(consumer, [])
    return successors


def _order(successors: Mapping[Task, list[Task]]) -> list[Task]:
    """The topological order that always takes the first of the tasks that are ready."""
    tasks = list(successors)
    number = {task: i for i, task in enumerate(tasks)}
    pairs = [(number[task], number[a]) for task, after in successors.items() for a in after]
    ends = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    order, cycle = topological_order(ends[:, 0], ends[:, 1], len(tasks))
    if cycle:
        raise cycle_error("tasks", [str(tasks[i]) for i in cycle], place="edges")
    return [tasks[i] for i in order.tolist()]


def _pairs(argument: str, edges: Edges[Task]) -> Iterable[tuple[Task, Task]]:
    return (_pair(argument, edge) for edge in edges)


def _pair(argument: str, edge: tuple[Task, Task] | Sequence[Task]) -> tuple[Task, Task]:
    """The edge as a tuple; JSON has only lists."""
    if isinstance(edge, str) or len(edge) != 2:
        problem = f"an edge is a pair of tasks (producer, consumer), not {edge!r}"
        raise InputError(problem, place=argument)
    return edge[0], edge[1]


def _labels(argument: str, labels: Iterable[Label]) -> set[Label]:
    """The labels as a set; a lone name would be taken apart letter by letter."""
    if isinstance(labels, str):
        problem = f"must be several, as in [{labels!r}], not the text {labels!r}"
        raise InputError(problem, place=argument)
    return set(labels)
