"""The critical path: the chain of tasks that determines when a schedule ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from weft.charts.transfers import Arrivals, arrivals_of
from weft.model import Schedule

TOLERANCE = 1e-9  # relative to the makespan, as in the check of schedules
NOBODY = -1


class Bound(Enum):
    """What a task on the critical path waited for."""

    NOTHING = "nothing"  # the beginning of the chain: no task held it back
    DATA = "data"  # an input from the task before it in the chain, transfer included
    PROCESSOR = "processor"  # the task before it in the chain, on the same processor


@dataclass(frozen=True)
class Step:
    """One task of the critical path, what bound its start, and the item where it was data."""

    task: int
    bound: Bound
    item: int | None = None


def critical_path(schedule: Schedule) -> list[int]:
    """The tasks that determine the makespan, in the order of time."""
    return [step.task for step in critical_steps(schedule)]


def critical_steps(schedule: Schedule, arrivals: Arrivals | None = None) -> list[Step]:
    """The critical path with what bound each start.

    From the task that finishes last (ties: the latest start, then the topologically last) back
    through what bound its start, until a task bound by no other. An input goes before the
    processor, and the producer with the smallest index before its like.
    """
    if schedule.workflow.n_tasks == 0:
        return []
    arrivals = arrivals or arrivals_of(schedule)
    slop = TOLERANCE * max(1.0, schedule.makespan)
    by_data, items = _bound_by_data(schedule, arrivals, slop)
    by_processor = _bound_by_processor(schedule, slop)
    keys = (schedule.workflow.position, schedule.start, schedule.finish)
    task = int(np.lexsort(keys)[-1])
    steps: list[Step] = []
    # Within the tolerance, tasks of no duration could seem to wait for each other in a ring.
    seen = {task}
    while task != NOBODY:
        step, before = Step(task, Bound.NOTHING), NOBODY
        if by_data[task] != NOBODY and by_data[task] not in seen:
            step, before = Step(task, Bound.DATA, items[task]), by_data[task]
        elif by_processor[task] != NOBODY and by_processor[task] not in seen:
            step, before = Step(task, Bound.PROCESSOR), by_processor[task]
        steps.append(step)
        seen.add(before)
        task = before
    return steps[::-1]


def _bound_by_data(
    schedule: Schedule, arrivals: Arrivals, slop: float
) -> tuple[list[int], list[int]]:
    """Per task: the producer whose item arrived just at its start, and the item."""
    n = schedule.workflow.n_tasks
    # An arrival after the start held nothing back: the task read a copy that was there before.
    wait = np.abs(schedule.start[arrivals.consumer] - arrivals.arrival)
    binding = np.flatnonzero(wait <= slop)
    keys = (arrivals.item[binding], arrivals.producer[binding], arrivals.consumer[binding])
    binding = binding[np.lexsort(keys)]
    consumers, first = np.unique(arrivals.consumer[binding], return_index=True)
    producer = np.full(n, NOBODY, dtype=np.int32)
    item = np.full(n, NOBODY, dtype=np.int32)
    producer[consumers] = arrivals.producer[binding[first]]
    item[consumers] = arrivals.item[binding[first]]
    return producer.tolist(), item.tolist()


def _bound_by_processor(schedule: Schedule, slop: float) -> list[int]:
    """Per task: the one before it on its processor, if it finished just at the start."""
    s = schedule
    order = np.lexsort((s.workflow.position, s.finish, s.start, s.processor))
    first, second = order[:-1], order[1:]
    binds = s.processor[first] == s.processor[second]
    binds &= np.abs(s.start[second] - s.finish[first]) <= slop
    before = np.full(s.workflow.n_tasks, NOBODY, dtype=np.int32)
    before[second[binds]] = first[binds]
    return before.tolist()
