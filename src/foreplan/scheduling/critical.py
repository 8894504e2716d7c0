"""The critical path: the chain of tasks that determines when a schedule or a run ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.model import Schedule
from foreplan.model.resources import Cores, held


@dataclass(frozen=True, eq=False)
class Arrivals:
    """One entry per (item, producer, consumer) of the workflow; outside inputs are left out."""

    item: IntArray
    producer: IntArray
    consumer: IntArray
    sent: FloatArray  # the producer's finish
    arrival: FloatArray  # on the consumer's host; equals `sent` inside a host
    moves: BoolArray  # between two hosts

    def shown(self, schedule: Schedule) -> BoolArray:
        """One entry per item and host it moves to: the consumer there that starts first."""
        host = schedule.platform.host[schedule.processor[self.consumer]]
        start = schedule.start[self.consumer]
        order = np.lexsort((self.consumer, start, host, self.item, ~self.moves))
        item, host = self.item[order], host[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (item[1:] != item[:-1]) | (host[1:] != host[:-1])
        shown = np.zeros(len(order), dtype=np.bool_)
        shown[order] = first
        return shown & self.moves


def arrivals_of(schedule: Schedule) -> Arrivals:
    """The arrivals when every item leaves its producer's host as soon as it is made."""
    platform = schedule.platform
    items, producers, consumers = schedule.workflow.dependencies()
    source = platform.host[schedule.processor[producers]]
    target = platform.host[schedule.processor[consumers]]
    arrival = schedule.arrivals(items, producers, consumers)
    sent = schedule.finish[producers]
    return Arrivals(items, producers, consumers, sent, arrival, source != target)


TOLERANCE = 1e-9  # relative to the makespan, as in the check of schedules
NOBODY = -1


class Bound(Enum):
    """What a task on the critical path waited for."""

    NOTHING = "nothing"  # the beginning of the chain: no task held it back
    DATA = "data"  # an input from the task before it in the chain, transfer included
    PROCESSOR = "processor"  # the task before it in the chain, on one of its processors
    AMOUNTS = "amounts"  # memory, or something else, that the task before it in the chain held


@dataclass(frozen=True)
class Step:
    """One task of the critical path, what bound its start, and the item where it was data."""

    task: int
    bound: Bound
    item: int | None = None


@dataclass(frozen=True, eq=False)
class Spans:
    """Where and when tasks run, planned or in fact; `position` breaks ties in time.

    The first `kinds` columns of what they hold are of their hosts, the others of all.
    """

    processor: IntArray
    start: FloatArray
    finish: FloatArray
    position: IntArray
    host: IntArray
    cores: Cores | None = None
    amount: FloatArray | None = None
    kinds: int = 0


def critical_path(schedule: Schedule) -> list[int]:
    """The tasks that determine the makespan, in the order of time."""
    return [step.task for step in critical_steps(schedule)]


def critical_steps(schedule: Schedule, arrivals: Arrivals | None = None) -> list[Step]:
    """The critical path of a schedule, with what bound each start."""
    return chain(spans_of_plan(schedule), arrivals or arrivals_of(schedule))


def spans_of_plan(schedule: Schedule) -> Spans:
    """The tasks as they are planned."""
    needs = schedule.needs
    return Spans(
        schedule.processor,
        schedule.start,
        schedule.finish,
        schedule.workflow.position,
        schedule.platform.host[schedule.processor],
        schedule.cores,
        None if needs is None else needs.amount,
        0 if needs is None else len(needs.kinds),
    )


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
    data, items = _by_data(arrivals, (binding & prompt) | sent_after, len(begun))
    later, later_items = _by_data(arrivals, late, len(begun))
    bounds: tuple[tuple[Bound, Callable[[int], int], list[int] | None], ...] = (
        (Bound.DATA, data.__getitem__, items),
        (Bound.PROCESSOR, _by_processor(spans, begun, slop).__getitem__, None),
        (Bound.AMOUNTS, _by_amounts(spans, begun, slop), None),
        (Bound.DATA, later.__getitem__, later_items),
    )
    task = int(np.lexsort((spans.position, spans.start, spans.finish))[-1])
    steps: list[Step] = []
    # Within the tolerance, tasks of no duration could seem to wait for each other in a ring.
    seen = {task}
    while task != NOBODY:
        step, before = Step(task, Bound.NOTHING), NOBODY
        for bound, by, read in bounds:
            if (other := by(task)) != NOBODY and other not in seen:
                step, before = Step(task, bound, read[task] if read else None), other
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
    """Per task: the one before it on a processor of its, if it finished just when it was begun."""
    s = spans
    task, processor = held(s.processor, s.cores)
    order = np.lexsort((s.position[task], s.finish[task], s.start[task], processor))
    task, processor = task[order], processor[order]
    first, second = task[:-1], task[1:]
    binds = processor[:-1] == processor[1:]
    binds &= np.abs(begun[second] - s.finish[first]) <= slop
    before = np.full(len(s.start), NOBODY, dtype=np.int32)
    before[second[binds]] = first[binds]
    return before.tolist()


def _by_amounts(spans: Spans, begun: FloatArray, slop: float) -> Callable[[int], int]:
    """Of a task: the first that held what it needs, and finished just when it was begun."""
    if spans.amount is None:
        return lambda task: NOBODY
    order, holds = np.argsort(spans.finish, kind="stable"), spans.amount > 0
    ends = spans.finish[order]

    def found(task: int) -> int:
        first = np.searchsorted(ends, begun[task] - slop, side="left")
        last = np.searchsorted(ends, begun[task] + slop, side="right")
        near = np.sort(order[first:last])
        both = holds[near] & holds[task]
        shared = both[:, spans.kinds :].any(axis=1)  # pools
        here = spans.host[near] == spans.host[task]
        shared |= here & both[:, : spans.kinds].any(axis=1)
        others = near[shared & (near != task)]
        return int(others[0]) if len(others) else NOBODY

    return found
