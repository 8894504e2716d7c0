"""A workflow: tasks, and the data items that flow between them, as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, csr, frozen, row_of_each, side_by_side
from weft.errors import InputError
from weft.model.topology import topological_order

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


@dataclass(frozen=True)
class Item:
    """A data item as readers name it: one producer (or None), any number of consumers."""

    size: float
    producer: int | None
    consumers: Sequence[int]
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Workflow:
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
    # derived
    cost_matrix: FloatArray = field(init=False)  # the columns of processor_cost
    in_ptr: IntArray = field(init=False)  # task -> the items it reads
    in_item: IntArray = field(init=False)
    out_ptr: IntArray = field(init=False)  # task -> the items it writes
    out_item: IntArray = field(init=False)
    order: IntArray = field(init=False)  # a topological order, file order where it can be
    position: IntArray = field(init=False)  # task -> its place in that order

    def __post_init__(self) -> None:
        derive = object.__setattr__
        for name, dtype in _ARRAYS.items():
            derive(self, name, frozen(getattr(self, name), dtype))
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
        order = topological_order(self)
        position = np.empty(n, dtype=np.int32)
        position[order] = np.arange(n, dtype=np.int32)
        derive(self, "order", frozen(order, np.int32))
        derive(self, "position", frozen(position, np.int32))

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

    @staticmethod
    def from_items(
        name: str,
        task_names: Sequence[str],
        base_cost: Iterable[float],
        items: Iterable[Item],
        processor_cost: Mapping[str, FloatArray] | None = None,
        specs: Mapping[int, TaskSpec] | None = None,
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
_ARRAYS: dict[str, type] = {
    "base_cost": np.float64,
    "item_size": np.float64,
    "item_producer": np.int32,
    "use_ptr": np.int32,
    "use_task": np.int32,
}
