"""When every input of a task arrives where the schedule puts the task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.model import Schedule


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
