"""A schedule: the intent, where and when each task should run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, csr, frozen
from weft.model.money import Usage
from weft.model.platform import Platform
from weft.model.workflow import Workflow


@dataclass(frozen=True, eq=False)
class Schedule:
    """Processor, start and finish of every task; tasks begun before it was made included."""

    planner: str
    workflow: Workflow
    platform: Platform
    processor: IntArray
    start: FloatArray
    finish: FloatArray
    by: str = ""  # where a planner tries several ways: the one that was taken

    def __post_init__(self) -> None:
        object.__setattr__(self, "processor", frozen(self.processor, np.int32))
        object.__setattr__(self, "start", frozen(self.start, np.float64))
        object.__setattr__(self, "finish", frozen(self.finish, np.float64))

    @property
    def makespan(self) -> float:
        """When the last task finishes."""
        return float(self.finish.max(initial=0.0))

    @cached_property
    def usage(self) -> Usage:
        """The use of every processor, and what the transfers cost."""
        nothing = Usage.none(self.platform.n_processors)
        return nothing.and_then(self.processor, self.start, self.finish, self._transfers_cost())

    @property
    def cost(self) -> float:
        """The money: for the use of the processors, and for transfers."""
        return self.usage.cost(self.platform)

    def _transfers_cost(self) -> float:
        """Every item once to each host that reads it."""
        if not self.platform.link_price.any():
            return 0.0
        items, producers, consumers = self.workflow.dependencies()
        source = self.platform.host[self.processor[producers]]
        target = self.platform.host[self.processor[consumers]]
        keys = items.astype(np.int64) * self.platform.n_hosts + target
        _, once = np.unique(keys, return_index=True)
        sizes = self.workflow.item_size[items[once]]
        return float(np.dot(sizes, self.platform.link_price[source[once], target[once]]))

    @property
    def busy(self) -> FloatArray:
        """The seconds of use of every processor."""
        n = self.platform.n_processors
        used = np.bincount(self.processor, weights=self.finish - self.start, minlength=n)
        return used.astype(np.float64)

    @property
    def utilisation(self) -> float:
        """The share of the processors' time, while they are there, in which tasks run."""
        until = np.minimum(self.platform.leaves, self.makespan)
        there = float(np.maximum(0.0, until - self.platform.joins).sum())
        return float(self.busy.sum()) / there if there > 0 else 0.0

    @cached_property
    def in_time(self) -> IntArray:
        """All tasks by start, then finish, then topological position: who comes before whom."""
        keys = (self.workflow.position, self.finish, self.start)
        return np.lexsort(keys).astype(np.int32)

    @cached_property
    def queue(self) -> tuple[IntArray, IntArray]:
        """Each processor's tasks in their order: pointers and tasks."""
        return csr(self.processor[self.in_time], self.in_time, self.platform.n_processors)

    def queues(self, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """The same of some tasks only."""
        pointers, tasks = self.queue
        kept = chosen[tasks]
        before = np.zeros(len(tasks) + 1, dtype=np.int32)
        np.cumsum(kept, out=before[1:])
        return before[pointers], tasks[kept]

    def arrivals(
        self,
        items: IntArray,
        producers: IntArray,
        consumers: IntArray,
        now: float = 0.0,
        time_per_unit: FloatArray | None = None,
    ) -> FloatArray:
        """When each item is on its consumer's host: sent once it is made, and not before now.

        Links are as fast as the platform says, unless another time per unit is known.
        """
        platform, made = self.platform, self.finish[producers]
        per_unit = platform.time_per_unit if time_per_unit is None else time_per_unit
        source = platform.host[self.processor[producers]]
        target = platform.host[self.processor[consumers]]
        size = self.workflow.item_size[items]
        takes = platform.startup[source, target] + size * per_unit[source, target]
        sent: FloatArray = np.where(source == target, made, np.maximum(made, now) + takes)
        return sent

    def to_dict(self) -> dict[str, Any]:
        """What `weft plan --json` prints."""
        processors = [self.platform.processor_names[p] for p in self.processor.tolist()]
        rows = zip(
            self.workflow.task_names,
            processors,
            self.start.tolist(),
            self.finish.tolist(),
            strict=True,
        )
        return {
            "planner": self.planner,
            **({"by": self.by} if self.by else {}),
            "makespan": self.makespan,
            "cost": self.cost,
            "tasks": {
                task: {"processor": processor, "start": start, "finish": finish}
                for task, processor, start, finish in rows
            },
        }
