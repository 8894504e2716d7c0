"""The critical path: the chain of tasks that determines when a schedule or a run ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
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


@dataclass(frozen=True, eq=False)
class Spans:
    """Where and when tasks run, planned or in fact; `position` breaks ties in time."""

    processor: IntArray
    start: FloatArray
    finish: FloatArray
    position: IntArray


def critical_path(schedule: Schedule) -> list[int]:
    """The tasks that determine the makespan, in the order of time."""
    return [step.task for step in critical_steps(schedule)]


def critical_steps(schedule: Schedule, arrivals: Arrivals | None = None) -> list[Step]:
    """The critical path of a schedule, with what bound each start."""
    spans = Spans(schedule.processor, schedule.start, schedule.finish, schedule.workflow.position)
    return chain(spans, arrivals or arrivals_of(schedule))


def chain(spans: Spans, arrivals: Arrivals) -> list[Step]:
    """The spans that determine the end, in the order of time.

    From the task that finishes last (ties: the latest start, then the topologically last) back
    through what bound its start, until a task bound by no other. An input goes before the
    processor, and the producer with the smallest index before its like. An input that was sent
    only some time after it was made did not bind: what it was sent after did.
    """
    if len(spans.start) == 0:
        return []
    slop = TOLERANCE * max(1.0, float(spans.finish.max()))
    # An arrival after the start held nothing back: the task read a copy that was there before.
    binding = np.abs(spans.start[arrivals.consumer] - arrivals.arrival) <= slop
    prompt = arrivals.sent <= spans.finish[arrivals.producer] + slop
    late = binding & ~prompt
    begun = spans.start.copy()  # when the start was decided: before the transfers, if they waited
    np.minimum.at(begun, arrivals.consumer[late], arrivals.sent[late])
    sent_after = np.abs(spans.finish[arrivals.producer] - begun[arrivals.consumer]) <= slop
    bounds = (
        (Bound.DATA, *_by_data(arrivals, (binding & prompt) | sent_after, len(begun))),
        (Bound.PROCESSOR, _by_processor(spans, begun, slop), None),
        (Bound.DATA, *_by_data(arrivals, late, len(begun))),
    )
    task = int(np.lexsort((spans.position, spans.start, spans.finish))[-1])
    steps: list[Step] = []
    # Within the tolerance, tasks of no duration could seem to wait for each other in a ring.
    seen = {task}
    while task != NOBODY:
        step, before = Step(task, Bound.NOTHING), NOBODY
        for bound, by, items in bounds:
            if by[task] != NOBODY and by[task] not in seen:
                step, before = Step(task, bound, items[task] if items else None), by[task]
                break
        steps.append(step)
        seen.add(before)
        task = before
    return steps[::-1]


def _by_data(arrivals: Arrivals, which: BoolArray, n: int) -> tuple[list[int], list[int]]:
    """Per task: the producer of the first of these arrivals, and the item."""
    binding = np.flatnonzero(which)
    keys = (arrivals.item[binding], arrivals.producer[binding], arrivals.consumer[binding])
    binding = binding[np.lexsort(keys)]
    consumers, first = np.unique(arrivals.consumer[binding], return_index=True)
    producer = np.full(n, NOBODY, dtype=np.int32)
    item = np.full(n, NOBODY, dtype=np.int32)
    producer[consumers] = arrivals.producer[binding[first]]
    item[consumers] = arrivals.item[binding[first]]
    return producer.tolist(), item.tolist()


def _by_processor(spans: Spans, begun: FloatArray, slop: float) -> list[int]:
    """Per task: the one before it on its processor, if it finished just when it was begun."""
    s = spans
    order = np.lexsort((s.position, s.finish, s.start, s.processor))
    first, second = order[:-1], order[1:]
    binds = s.processor[first] == s.processor[second]
    binds &= np.abs(begun[second] - s.finish[first]) <= slop
    before = np.full(len(s.start), NOBODY, dtype=np.int32)
    before[second[binds]] = first[binds]
    return before.tolist()
