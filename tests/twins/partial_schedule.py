"""The schedule that the twins build: what is fixed, what is placed, and what would fit where."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isnan

from foreplan.errors import PlanningError
from foreplan.model import Situation

Placement = tuple[int, float, float]  # processor, start, finish


class PartialSchedule:
    """A situation as dicts and lists, and the tasks placed so far; facts are placed already."""

    def __init__(self, situation: Situation) -> None:
        workflow, platform, attempts = situation.workflow, situation.platform, situation.attempts
        self.now = float(situation.now)
        self.cost: list[list[float]] = situation.estimates.cost.tolist()
        self.size: list[float] = workflow.item_size.tolist()
        self.position: list[int] = workflow.position.tolist()
        self.host: list[int] = platform.host.tolist()
        self.leaves: list[float] = platform.leaves.tolist()
        self.startup: list[list[float]] = platform.startup.tolist()
        self.time_per_unit: list[list[float]] = platform.time_per_unit.tolist()
        here = situation.usable().tolist()
        self.usable = [p for p in range(platform.n_processors) if here[p]]

        self.inputs: list[list[tuple[int, int]]] = [[] for _ in range(workflow.n_tasks)]
        self.uses: list[list[tuple[int, int]]] = [[] for _ in range(workflow.n_tasks)]
        for item, producer, consumer in zip(
            *(column.tolist() for column in workflow.dependencies()), strict=True
        ):
            self.inputs[consumer].append((item, producer))  # (item, its producer)
            self.uses[producer].append((item, consumer))  # (item, one of its consumers)

        self.known: dict[tuple[int, int], float] = {}  # (item, host) -> when it is there
        copies, transfers = situation.copies, situation.transfers
        for item, host in zip(copies.item.tolist(), copies.host.tolist(), strict=True):
            self.known.setdefault((item, host), self.now)
        for item, host, arrival in zip(
            transfers.item.tolist(),
            transfers.host.tolist(),
            transfers.arrival.tolist(),
            strict=True,
        ):
            self.known.setdefault((item, host), arrival)

        self.placed: dict[int, Placement] = {}
        self.busy: dict[int, list[tuple[float, float]]] = {p: [] for p in self.usable}
        self.opens = dict.fromkeys(self.usable, self.now)  # nothing new before this
        for task, p, start, finish in zip(
            attempts.task.tolist(),
            attempts.processor.tolist(),
            attempts.start.tolist(),
            attempts.finish.tolist(),
            strict=True,
        ):
            if isnan(finish):
                finish = max(self.now, start + self.cost[task][p])
                if p in self.opens:
                    self.opens[p] = max(self.opens[p], finish)
            self.placed[task] = (p, start, finish)
        # Tasks without an attempt, producers before consumers.
        self.todo = [t for t in workflow.order.tolist() if t not in self.placed]
        if self.todo and not self.usable:
            raise PlanningError("no processor is present")

    def ready(self) -> list[int]:
        """The unplaced tasks whose producers are all placed, by position."""
        return [
            task
            for task in self.todo
            if task not in self.placed
            and all(producer in self.placed for _, producer in self.inputs[task])
        ]

    def transfer_time(self, item: int, p: int, q: int) -> float:
        """How long the item takes from processor p to processor q."""
        a, b = self.host[p], self.host[q]
        return 0.0 if a == b else self.startup[a][b] + self.size[item] * self.time_per_unit[a][b]

    def arrival(self, item: int, producer: int, p: int) -> float:
        """When the item, whose producer is placed, is on the host of processor p."""
        target = self.host[p]
        if (item, target) in self.known:
            return self.known[item, target]
        made_on, _, finish = self.placed[producer]
        source = self.host[made_on]
        if source == target:
            return finish
        sent = max(finish, self.now)
        return (
            sent
            + self.startup[source][target]
            + self.size[item] * self.time_per_unit[source][target]
        )

    def data_ready(self, task: int, p: int) -> float:
        """When all inputs of the task are on the host of processor p; not before now."""
        return max([self.now, *(self.arrival(i, producer, p) for i, producer in self.inputs[task])])

    def free(self, p: int) -> float:
        """When the processor has done all that is placed on it."""
        return max([self.opens[p], *(finish for _, finish in self.busy[p])])

    def start(self, task: int, p: int, insertion: bool) -> float:
        """The earliest start of the task on the processor: after all the rest, or in a gap."""
        if not insertion:
            return max(self.data_ready(task, p), self.free(p))
        start = max(self.data_ready(task, p), self.opens[p])
        for busy_from, busy_until in sorted(self.busy[p]):
            if start + self.cost[task][p] <= busy_from:
                break
            start = max(start, busy_until)
        return start

    def finish(self, task: int, p: int, insertion: bool) -> float:
        """The earliest finish of the task on the processor; infinite if that leaves before."""
        finish = self.start(task, p, insertion) + self.cost[task][p]
        return finish if finish <= self.leaves[p] else inf

    def place(self, task: int, p: int, insertion: bool) -> None:
        """Put the task on the processor, as early as it can be there."""
        if self.finish(task, p, insertion) == inf:
            raise PlanningError(f"task {task} does not fit on processor {p} before it leaves")
        start = self.start(task, p, insertion)
        finish = start + self.cost[task][p]
        self.placed[task] = (p, start, finish)
        self.busy[p].append((start, finish))

    def place_earliest(self, task: int, processors: Iterable[int], insertion: bool) -> None:
        """Put the task where it finishes first; the first such processor if several."""
        best = min(processors, key=lambda p: self.finish(task, p, insertion))
        self.place(task, best, insertion)
