"""A schedule: the intent, where and when each task should run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, FrozenArrays, IntArray, csr
from foreplan.files import one_line
from foreplan.lazy import drawn_by
from foreplan.model.estimates import Estimates
from foreplan.model.money import Bill, Usage
from foreplan.model.platform import Platform
from foreplan.model.resources import MEMORY, Cores, Demand, Needs, held
from foreplan.model.workflow import Workflow
from foreplan.quantities import amount, duration, many


@dataclass(frozen=True, eq=False)
class ProcessorTime:
    """Where the time of the processors goes, in seconds of each: utilisation is asked of this."""

    present: FloatArray  # it is there, as long as the plan or the run goes
    busy: FloatArray  # tasks run
    overhead: (
        FloatArray  # foreplan itself takes: starting tasks, fetching files, bringing them back
    )

    @property
    def utilisation(self) -> float:
        """The share of the processors' time, while they are there, in which tasks run."""
        return self._share(self.busy)

    @property
    def overhead_share(self) -> float:
        """The share of it that foreplan itself takes."""
        return self._share(self.overhead)

    @property
    def utilisations(self) -> FloatArray:
        """The share of each processor's time, while it is there, in which tasks run."""
        there = self.present > 0
        shares: FloatArray = np.where(there, self.busy / np.where(there, self.present, 1.0), 0.0)
        return shares

    def _share(self, seconds: FloatArray) -> float:
        there = float(self.present.sum())
        return float(seconds.sum()) / there if there > 0 else 0.0

    def __repr__(self) -> str:
        return f"<ProcessorTime: {self}>"

    def __str__(self) -> str:
        tasks, foreplan = self.utilisation, self.overhead_share
        return (
            f"tasks ran {tasks:.0%} of the time, foreplan itself took {foreplan:.0%} "
            f"(starting them, moving files), idle {max(0.0, 1 - tasks - foreplan):.0%}"
        )


@dataclass(frozen=True, eq=False)
class Schedule(FrozenArrays):
    """Processor, start and finish of every task; tasks begun before it was made included.

    A task that takes several cores has them all in `cores`, and the first of them as `processor`.
    """

    planner: str
    workflow: Workflow
    platform: Platform
    processor: IntArray
    start: FloatArray
    finish: FloatArray
    by: str = ""  # where a planner tries several ways: the one that was taken
    cores: Cores | None = None  # None: each task takes its processor
    needs: Needs | None = None  # that it was made with; None: one core each, and nothing else

    def __repr__(self) -> str:
        name = one_line(self.workflow.name) or "a workflow"
        on = many(self.platform.n_processors, "processor")
        ends = f"makespan {duration(self.makespan)}, cost {amount(self.cost)}"
        size = f"{many(self.workflow.n_tasks, 'task')} on {on}"
        return f"<Schedule of {name} by {self.planner}: {size}, {ends}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_schedule")

    @property
    def makespan(self) -> float:
        """When the last task finishes."""
        return float(self.finish.max(initial=0.0))

    @cached_property
    def usage(self) -> Usage:
        """The use of every processor, and what the transfers cost."""
        nothing = Usage.none(self.platform.n_processors)
        tasks, processors = held(self.processor, self.cores)
        more = self._transfers_cost() + self.shares_cost(np.ones(len(self.start), dtype=np.bool_))
        return nothing.and_then(processors, self.start[tasks], self.finish[tasks], more)

    @cached_property
    def demand(self) -> Demand | None:
        """What the tasks need beside what the hosts have; None: one core each."""
        if self.needs is None:
            return None
        return Demand.of(self.workflow, self.platform, self.needs)

    def shares_cost(self, tasks: BoolArray) -> float:
        """What these tasks pay beyond their cores, where a price is of the whole host."""
        if self.demand is None or not self.demand.paid.any():
            return 0.0
        which = np.flatnonzero(tasks).astype(np.int32)
        beyond = self._beyond(self.demand, which)
        return float(np.dot(beyond, self.finish[which] - self.start[which]))

    def _beyond(self, demand: Demand, which: IntArray) -> FloatArray:
        """What a second of tasks costs beyond their cores."""
        first, width = self.processor[which], 1 if self.cores is None else self.cores.width[which]
        return demand.beyond(which, self.platform.host[first], width) * self.platform.price[first]

    @property
    def bill(self) -> Bill:
        """What the tasks on each processor cost, and the transfers."""
        return Bill.of(self.usage, self.platform, self._shares())

    def _shares(self) -> FloatArray:
        shares = np.zeros(self.platform.n_processors)
        if self.demand is not None and self.demand.paid.any():
            which = np.arange(len(self.start), dtype=np.int32)
            paid = self._beyond(self.demand, which) * (self.finish - self.start)
            np.add.at(shares, self.processor, paid)
        return shares

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
        tasks, processors = held(self.processor, self.cores)
        n, seconds = self.platform.n_processors, (self.finish - self.start)[tasks]
        used = np.bincount(processors, weights=seconds, minlength=n)
        return used.astype(np.float64)

    @cached_property
    def processor_time(self) -> ProcessorTime:
        """Where the time of the processors goes."""
        until = np.minimum(self.platform.leaves, self.makespan)
        there = np.maximum(0.0, until - self.platform.joins)
        return ProcessorTime(there, self.busy, np.zeros(len(there)))

    @property
    def utilisation(self) -> float:
        """The share of the processors' time, while they are there, in which tasks run."""
        return self.processor_time.utilisation

    @cached_property
    def in_time(self) -> IntArray:
        """All tasks by start, then finish, then topological position: who comes before whom."""
        keys = (self.workflow.position, self.finish, self.start)
        return np.lexsort(keys).astype(np.int32)

    @cached_property
    def queue(self) -> tuple[IntArray, IntArray]:
        """Each processor's tasks in their order: pointers and tasks; a wide one on each core."""
        tasks, processors = self.in_time, self.processor[self.in_time]
        if self.cores is not None:
            rows, processors = held(processors, self.cores.take(self.in_time))
            tasks = self.in_time[rows]
        return csr(processors, tasks, self.platform.n_processors)

    def queues(self, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """The same of some tasks only."""
        pointers, tasks = self.queue
        kept = chosen[tasks]
        before = np.zeros(len(tasks) + 1, dtype=np.int32)
        np.cumsum(kept, out=before[1:])
        return before[pointers], tasks[kept]

    def with_tasks(self, workflow: Workflow, estimates: Estimates) -> Schedule:
        """The plan of a workflow that has grown since: what was added has no time of its own in it.

        That stands at the end, where it would be fastest, until there is a plan with it.
        """
        new = np.arange(self.workflow.n_tasks, workflow.n_tasks)
        where = estimates.cost[new].argmin(axis=1).astype(np.int32)
        last, cores = np.full(len(new), self.makespan), self.cores
        if cores is not None:
            ptr = np.concatenate([cores.ptr, cores.ptr[-1] + 1 + np.arange(len(new))])
            cores = Cores(ptr, np.concatenate([cores.processor, where]))
        return replace(
            self,
            workflow=workflow,
            processor=np.concatenate([self.processor, where]),
            start=np.concatenate([self.start, last]),
            finish=np.concatenate([self.finish, last]),
            cores=cores,
            needs=estimates.needs,
        )

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
        """What `foreplan plan --json` prints, but for slack and the like."""
        platform, n = self.platform, self.workflow.n_tasks
        memory = np.zeros(n) if self.needs is None else self.needs.of(MEMORY)
        rows = zip(
            self.workflow.task_names,
            (platform.processor_names[p] for p in self.processor.tolist()),
            (platform.host_names[h] for h in platform.host[self.processor].tolist()),
            [1] * n if self.cores is None else self.cores.width.tolist(),
            memory.tolist(),
            self.start.tolist(),
            self.finish.tolist(),
            strict=True,
        )
        names = ("processor", "host", "cores", "memory", "start", "finish")
        return {
            "planner": self.planner,
            **({"by": self.by} if self.by else {}),
            "makespan": self.makespan,
            "cost": self.cost,
            "tasks": {task: dict(zip(names, fields, strict=True)) for task, *fields in rows},
        }
