"""A workflow: tasks, and the data items that flow between them, as flat arrays."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from foreplan.arrays import (
    BoolArray,
    FloatArray,
    FrozenArrays,
    IntArray,
    csr,
    frozen,
    row_of_each,
    side_by_side,
)
from foreplan.errors import InputError, place_of
from foreplan.files import one_line
from foreplan.lazy import drawn_by
from foreplan.model.resources import Request
from foreplan.model.surroundings import Surroundings
from foreplan.quantities import many, shortened

EXTERNAL = -1  # the producer of an item that no task makes


@dataclass(frozen=True)
class TaskSpec:
    """What a task is, beyond its cost: how it is run and what it is like."""

    category: str | None = None
    run: str | None = None  # a shell command
    retries: int | None = None  # how often a failed task is tried again; None: as the run says
    timeout: float | None = None  # seconds
    shell: str | None = None  # the words that the command is given to; None: bash, or sh
    ignores: tuple[str, ...] = ()  # what the command names, but does not mean as a file of others
    cache: bool = False  # without outputs it need not be run by every run
    request: Request | None = None  # what it needs beside one core; None: nothing
    wait: float | None = None  # seconds before it is tried again; twice as many each time
    retry: tuple[tuple[str, int], ...] = ()  # by cause, how often, where that is not `retries`
    around: Surroundings | None = None  # its environment; None: that of the run
    temp: tuple[str, ...] = ()  # outputs that go when their last reader is done
    protected: tuple[str, ...] = ()  # outputs that are not replaced unless it is asked for
    expand: bool = False  # what it prints, or returns, are tasks that are added when it is done
    gathers: tuple[str, ...] = ()  # patterns of what it reads of the expansions that it waits for
    added_by: str | None = None  # the task that added it; None: it is declared
    returned: bool = False  # who reads of the function that added it gets its result
    keep: bool = False  # the result of this function is kept, however large it is


@dataclass(frozen=True)
class Item:
    """A data item as readers name it: one producer (or None), any number of consumers."""

    size: float
    producer: int | None
    consumers: Sequence[int]
    name: str | None = None


class TaskLocator(Protocol):
    """Knows the files that tasks were read from."""

    def locate(self, error: InputError) -> InputError:
        """Return the error with the file and line of the task that it is about."""

    def find_line(self, task: str) -> str:
        """Return the line of a task, and its file if there are several; empty if not known."""


@dataclass(frozen=True, eq=False)
class Workflow(FrozenArrays):
    """A DAG of tasks. Tasks and items are indices here; the names are kept beside them.

    `base_cost` is seconds at speed 1 and `processor_cost[name]` seconds on that processor;
    NaN where a task does not say. Items hold one producer (EXTERNAL for an outside input).
    """

    name: str
    task_names: tuple[str, ...]
    base_cost: FloatArray
    item_size: FloatArray
    item_producer: IntArray
    use_ptr: IntArray  # item -> the tasks that read it
    use_task: IntArray
    processor_cost: Mapping[str, FloatArray] = field(default_factory=dict)
    item_names: tuple[str | None, ...] | None = None  # None: every item is a plain edge
    specs: Mapping[int, TaskSpec] = field(default_factory=dict)
    pools: Mapping[str, float] = field(default_factory=dict)  # where the platform has none
    notes: tuple[str, ...] = ()  # what its reader could not take over
    origins: TaskLocator | None = None  # None: it was not read from a file with lines
    # derived
    cost_matrix: FloatArray = field(init=False)  # the columns of processor_cost
    in_ptr: IntArray = field(init=False)  # task -> the items it reads
    in_item: IntArray = field(init=False)
    out_ptr: IntArray = field(init=False)  # task -> the items it writes
    out_item: IntArray = field(init=False)
    order: IntArray = field(init=False)  # a topological order, file order where it can be
    position: IntArray = field(init=False)  # task -> its place in that order

    def __post_init__(self) -> None:
        super().__post_init__()
        derive = object.__setattr__
        n = len(self.task_names)
        matrix = side_by_side(tuple(self.processor_cost.values()), n)
        derive(self, "cost_matrix", matrix)
        columns = {name: matrix[:, p] for p, name in enumerate(self.processor_cost)}
        derive(self, "processor_cost", MappingProxyType(columns))
        in_ptr, in_item = csr(self.use_task, row_of_each(self.use_ptr), n)
        made = np.flatnonzero(self.item_producer >= 0).astype(np.int32)
        out_ptr, out_item = csr(self.item_producer[made], made, n)
        derive(self, "in_ptr", in_ptr)
        derive(self, "in_item", in_item)
        derive(self, "out_ptr", out_ptr)
        derive(self, "out_item", out_item)
        _, producers, consumers = self.dependencies()
        order, cycle = topological_order(producers, consumers, n)
        if cycle:
            raise cycle_error("tasks", [self.task_names[t] for t in cycle])
        position = np.empty(n, dtype=np.int32)
        position[order] = np.arange(n, dtype=np.int32)
        derive(self, "order", frozen(order, np.int32))
        derive(self, "position", frozen(position, np.int32))

    def __repr__(self) -> str:
        edges = many(self.n_edges, "dependency", "dependencies")
        name = f"Workflow {one_line(self.name)}".strip()
        return f"<{name}: {many(self.n_tasks, 'task')}, {edges}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_workflow")

    @property
    def n_tasks(self) -> int:
        """The number of tasks."""
        return len(self.task_names)

    @property
    def has_costs(self) -> bool:
        """Whether any task says what it costs; those of a DAGMan file never do."""
        return bool(self.processor_cost) or not np.isnan(self.base_cost).all()

    @property
    def silent(self) -> BoolArray:
        """The tasks that do not say what they cost anywhere."""
        silent: BoolArray = np.isnan(self.base_cost)
        for cost in self.processor_cost.values():
            silent = silent & np.isnan(cost)
        return silent

    @property
    def grows(self) -> bool:
        """Whether tasks may add others while it runs."""
        return any(spec.expand for spec in self.specs.values())

    @property
    def n_items(self) -> int:
        """The number of data items."""
        return len(self.item_size)

    @property
    def n_edges(self) -> int:
        """The number of (producer, consumer) pairs, counted once per item."""
        from_task = self.item_producer >= 0
        return int(np.diff(self.use_ptr)[from_task].sum())

    @cached_property
    def widest_fan(self) -> int:
        """The most consumers that the outputs of one task have, counted per item."""
        uses = np.diff(self.use_ptr)[self.out_item]
        fans = np.bincount(row_of_each(self.out_ptr), weights=uses, minlength=1)
        return int(fans.max())

    @cached_property
    def level(self) -> IntArray:
        """The number of tasks before each on the longest way to it."""
        level = np.zeros(self.n_tasks, dtype=np.int32)
        _, producers, consumers = self.dependencies()
        by_producer = np.argsort(self.position[producers], kind="stable")
        for e in by_producer.tolist():
            level[consumers[e]] = max(level[consumers[e]], level[producers[e]] + 1)
        level.flags.writeable = False
        return level

    def spec(self, task: int) -> TaskSpec:
        """What the task is, beyond its cost."""
        return self.specs.get(task, _PLAIN)

    def task_error(self, task: int, problem: str, field: str = "") -> InputError:
        """Return an error about a task or one of its fields, with its file and line if known."""
        name = self.task_names[task]
        place = place_of("tasks", name, *([field] if field else []))
        error = InputError(problem, place=place, key=name)
        if self.origins is None or self.spec(task).added_by is not None:
            return error
        return self.origins.locate(error)

    def name_task(self, task: int) -> str:
        """Return the name of a task for a message about another one, with its line if known."""
        name = self.task_names[task]
        is_added = self.spec(task).added_by is not None
        line = "" if self.origins is None or is_added else self.origins.find_line(name)
        return f"{shortened(name)} ({line})" if line else shortened(name)

    def sizes_made(self, task: int, told: Mapping[Any, Any] | None) -> dict[int, float]:
        """The bytes of what a task has made, by item, as its machine tells them by name."""
        found = dict[int, float]()
        for item in self.out_item[slice(*self.out_ptr[task : task + 2])].tolist() if told else ():
            assert told is not None
            name = None if self.item_names is None else self.item_names[item]
            size = told.get(name, told.get(str(item), told.get(item)))
            if isinstance(size, int | float):
                found[item] = float(size)
        return found

    def item_name(self, item: int) -> str:
        """The item's name; an edge is called by its two ends."""
        given = self.item_names[item] if self.item_names is not None else None
        if given is not None:
            return given
        ends = [self.task_names[t] for t in self.use_task[slice(*self.use_ptr[item : item + 2])]]
        producer = int(self.item_producer[item])
        source = self.task_names[producer] if producer >= 0 else "outside"
        return f"{source} -> {', '.join(ends) or 'nobody'}"

    def dependencies(self) -> tuple[IntArray, IntArray, IntArray]:
        """Every dependency as (item, producer, consumer); external inputs are left out."""
        items = row_of_each(self.use_ptr)
        producers = self.item_producer[items]
        inner = producers >= 0
        return items[inner], producers[inner], self.use_task[inner]

    def part(self, tasks: BoolArray) -> Workflow:
        """These tasks alone, in their order; what others made for them comes from outside."""
        if tasks.all():
            return self
        number = np.cumsum(tasks, dtype=np.int32) - 1
        item_of, uses = row_of_each(self.use_ptr), tasks[self.use_task]
        read = np.bincount(item_of[uses], minlength=self.n_items)
        made = (self.item_producer >= 0) & tasks[self.item_producer]
        names = self.item_names or (None,) * self.n_items
        named = np.array([name is not None for name in names], dtype=np.bool_)
        stays = made | (named & (read > 0))
        items, kept = np.flatnonzero(stays), np.flatnonzero(tasks).tolist()
        return Workflow(
            name=self.name,
            task_names=tuple(self.task_names[t] for t in kept),
            base_cost=self.base_cost[tasks],
            item_size=self.item_size[items],
            item_producer=np.where(made, number[self.item_producer], EXTERNAL)[items],
            use_ptr=np.concatenate([[0], np.cumsum(read[items])]),
            use_task=number[self.use_task[uses & stays[item_of]]],
            processor_cost={name: cost[tasks] for name, cost in self.processor_cost.items()},
            item_names=self.item_names and tuple(names[i] for i in items.tolist()),
            specs={int(number[t]): self.specs[t] for t in kept if t in self.specs},
            pools=self.pools,
            origins=self.origins,
        )

    def without_requests(self) -> Workflow:
        """The same, where every task takes one core and nothing else."""
        if not self.pools and all(spec.request is None for spec in self.specs.values()):
            return self
        bare = {task: replace(spec, request=None) for task, spec in self.specs.items()}
        specs = {task: spec for task, spec in bare.items() if spec != _PLAIN}
        return replace(self, specs=specs, pools={})

    @staticmethod
    def from_items(
        name: str,
        task_names: Sequence[str],
        base_cost: Iterable[float],
        items: Iterable[Item],
        processor_cost: Mapping[str, FloatArray] | None = None,
        specs: Mapping[int, TaskSpec] | None = None,
        pools: Mapping[str, float] | None = None,
        origins: TaskLocator | None = None,
    ) -> Workflow:
        """A workflow from its items, as a reader of files finds them."""
        listed = list(items)
        named = any(item.name is not None for item in listed)
        ends = [len(item.consumers) for item in listed]
        return Workflow(
            name=name,
            task_names=tuple(task_names),
            base_cost=np.array(list(base_cost), dtype=np.float64),
            item_size=np.array([item.size for item in listed], dtype=np.float64),
            item_producer=np.array(
                [EXTERNAL if i.producer is None else i.producer for i in listed], dtype=np.int32
            ),
            use_ptr=np.concatenate([[0], np.cumsum(ends)]).astype(np.int32),
            use_task=np.array([t for item in listed for t in item.consumers], dtype=np.int32),
            processor_cost=processor_cost or {},
            item_names=tuple(item.name for item in listed) if named else None,
            specs=specs or {},
            pools=pools or {},
            origins=origins,
        )

    @staticmethod
    def from_edges(
        name: str,
        task_names: Sequence[str],
        producers: IntArray,
        consumers: IntArray,
        volumes: FloatArray,
        base_cost: FloatArray | None = None,
        processor_cost: Mapping[str, FloatArray] | None = None,
        specs: Mapping[int, TaskSpec] | None = None,
        notes: tuple[str, ...] = (),
    ) -> Workflow:
        """A workflow whose items are the papers' edges: (from, to, data volume)."""
        n = len(task_names)
        return Workflow(
            name=name,
            task_names=tuple(task_names),
            base_cost=np.full(n, np.nan) if base_cost is None else base_cost,
            item_size=volumes,
            item_producer=producers,
            use_ptr=np.arange(len(producers) + 1, dtype=np.int32),
            use_task=consumers,
            processor_cost=processor_cost or {},
            specs=specs or {},
            notes=notes,
        )


def index_names(names: Sequence[str], kind: str) -> dict[str, int]:
    """Names become indices here, once; a name given twice is an error."""
    index: dict[str, int] = {}
    for name in names:
        if name in index:
            raise InputError(f"{kind} {name!r} is given twice")
        index[name] = len(index)
    return index


_PLAIN = TaskSpec()


SHOWN = 12  # tasks of a cycle that are named


def topological_order(
    producers: IntArray, consumers: IntArray, n: int
) -> tuple[IntArray, list[int]]:
    """The topological order nearest to that of the numbers: the smallest that is ready.

    Numbers that already stand in a topological order keep it, at no cost. Where there is none, a
    cycle, its smallest number first.
    """
    if bool(np.all(producers < consumers)):
        return np.arange(n, dtype=np.int32), []
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
    cycle = _cycle(producers, consumers, waiting) if len(order) < n else []
    return np.array(order, dtype=np.int32), cycle


def _cycle(producers: IntArray, consumers: IntArray, waiting: list[int]) -> list[int]:
    """One cycle among those that never became ready."""
    before: dict[int, int] = {}
    for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
        if waiting[producer] > 0 and waiting[consumer] > 0:
            before.setdefault(consumer, producer)
    task = min(before)
    path: dict[int, None] = {}
    while task not in path:
        path[task] = None
        task = before[task]
    way = list(path)
    cycle = way[way.index(task) :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def cycle_error(kind: str, names: list[str], place: str = "") -> InputError:
    """An error that names what forms a cycle; of a long one both ends."""
    first = names[0]
    names = [shortened(name) for name in (*names, first)]
    if len(names) > SHOWN:
        names[SHOWN // 2 : -SHOWN // 2] = [f"... ({len(names) - SHOWN} more) ..."]
    return InputError(f"the {kind} form a cycle: {' -> '.join(names)}", place=place, key=first)
