"""What tasks need beside one core, and what hosts have: memory, GPUs, named amounts, pools.

Where every task needs one core and nothing else there are no `Needs` at all, and everything is as
in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, FrozenArrays, IntArray, row_of_each, sealed
from foreplan.errors import InputError
from foreplan.model.amounts import Amount
from foreplan.quantities import amount as plain_amount
from foreplan.quantities import data_size, first_few, shortened

if TYPE_CHECKING:
    from foreplan.model.platform import Platform
    from foreplan.model.workflow import Workflow

MEMORY, GPUS = "memory", "gpus"
UNLIMITED = frozenset({MEMORY})  # of what a host does not declare it has enough; else it has none


@dataclass(frozen=True)
class Request:
    """What a task asks for beside one core; silent where it asks for nothing.

    It takes one of the widths in `cores`, ascending. Its cost is that of the smallest; at others it
    goes by Amdahl's share that is `parallel`, or as the `seconds` by width say.
    """

    cores: tuple[int, ...] = (1,)
    parallel: float | None = None
    seconds: tuple[float, ...] = ()
    memory: Amount | None = None
    gpus: int = 0
    resources: tuple[tuple[str, Amount], ...] = ()  # named amounts of a host
    pools: tuple[tuple[str, float], ...] = ()  # shared by all hosts
    on: tuple[str, ...] = ()  # hosts or labels, with patterns
    not_on: tuple[str, ...] = ()

    def factors(self) -> tuple[float, ...]:
        """By width, the share of its cost that it takes (Amdahl's law, or what was measured)."""
        if self.seconds:
            return tuple(seconds / self.seconds[0] for seconds in self.seconds)
        if self.parallel is None:
            return (1.0,) * len(self.cores)
        times = [(1 - self.parallel) + self.parallel / width for width in self.cores]
        return tuple(time / times[0] for time in times)

    @property
    def by_inputs(self) -> bool:
        """Whether what it asks for depends on how many bytes the task reads."""
        named = any(amount.by_inputs for _, amount in self.resources)
        return named or (self.memory is not None and self.memory.by_inputs)

    def amounts(self, inputs: float, attempt: int = 1) -> dict[str, float]:
        """What it takes of a host, by kind, on this try; memory that nobody knows is none."""
        named = {name: amount.value(inputs, attempt) for name, amount in self.resources}
        given = {MEMORY: self.memory.value(inputs, attempt)} if self.memory else {}
        return {**given, **({GPUS: float(self.gpus)} if self.gpus else {}), **named}

    def admits(self, host: str, labels: Sequence[str]) -> bool:
        """Whether it may run on a host, by its name and labels."""
        names = (host, *labels)
        wanted = not self.on or any(fnmatchcase(n, p) for p in self.on for n in names)
        return wanted and not any(fnmatchcase(n, p) for p in self.not_on for n in names)


NOTHING = Request()


@dataclass(frozen=True)
class Host:
    """What a host has beside its processors, which are its cores."""

    name: str
    amounts: Mapping[str, float] = field(default_factory=dict)  # memory, gpus, named ones
    labels: tuple[str, ...] = ()
    whole_price: bool = False  # its price is of all of it: tasks pay their largest share

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to say of it."""
        return not (self.amounts or self.labels or self.whole_price)


@dataclass(frozen=True, eq=False)
class Cores(FrozenArrays):
    """The processors that each task or attempt holds: those of row r are processor[ptr[r]:]."""

    ptr: IntArray
    processor: IntArray

    @property
    def width(self) -> IntArray:
        """How many each holds."""
        return np.diff(self.ptr).astype(np.int32)

    def of(self, row: int) -> IntArray:
        """The processors of a row, the first of them first."""
        return self.processor[self.ptr[row] : self.ptr[row + 1]]

    def take(self, rows: IntArray) -> Cores:
        """Some rows only, in this order."""
        width = self.width[rows]
        ptr = np.concatenate([[0], np.cumsum(width)]).astype(np.int32)
        at = np.arange(int(ptr[-1])) - np.repeat(ptr[:-1], width) + np.repeat(self.ptr[rows], width)
        return Cores(ptr, self.processor[at])


def one_each(processor: IntArray) -> Cores:
    """Rows of one processor each."""
    return Cores(np.arange(len(processor) + 1, dtype=np.int32), processor)


def held(processor: IntArray, cores: Cores | None) -> tuple[IntArray, IntArray]:
    """Every row with every processor that it holds; without cores, each holds one."""
    if cores is None:
        return np.arange(len(processor), dtype=np.int32), processor
    return row_of_each(cores.ptr), cores.processor


@dataclass(frozen=True, eq=False)
class Needs(FrozenArrays):
    """What every task takes while it runs: cores by choice, and amounts of each kind.

    `amount` has a column for each of `kinds`, which hosts have, and each of `pools`. Task t may
    take width[k] cores for k in width_ptr[t]:width_ptr[t + 1]; it then takes factor[k] of its cost.
    """

    kinds: tuple[str, ...]
    pools: tuple[str, ...]
    amount: FloatArray  # tasks x (kinds, then pools)
    width_ptr: IntArray
    width: IntArray
    factor: FloatArray

    @property
    def most_cores(self) -> IntArray:
        """The largest width of each task."""
        return self.width[self.width_ptr[1:] - 1]

    def part(self, tasks: list[int]) -> Needs:
        """Those of some tasks only."""
        counts = np.diff(self.width_ptr)[tasks]
        ptr = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(ptr[-1]) + np.repeat(self.width_ptr[tasks] - ptr[:-1], counts)
        amount = sealed(self.amount[tasks])
        return Needs(self.kinds, self.pools, amount, ptr, self.width[at], self.factor[at])

    def of(self, kind: str) -> FloatArray:
        """What each task takes of a kind."""
        if kind not in self.kinds:
            return np.zeros(len(self.amount))
        return self.amount[:, self.kinds.index(kind)]

    def factor_of(self, task: IntArray, width: IntArray) -> FloatArray:
        """The share of its cost that each task takes on so many cores; NaN: it may not."""
        found = np.full(len(task), np.nan)
        for k, (t, wide) in enumerate(zip(task.tolist(), width.tolist(), strict=True)):
            first, last = self.width_ptr[t], self.width_ptr[t + 1]
            at = first + int(np.searchsorted(self.width[first:last], wide))
            if at < last and self.width[at] == wide:
                found[k] = self.factor[at]
        return found


def alike(known: Needs | None, new: Needs | None) -> bool:
    """Whether needs differ in amounts at most; where there were none, any will do."""
    if known is None or new is None:
        return known is None
    same = known.kinds == new.kinds and known.pools == new.pools
    same = same and np.array_equal(known.width_ptr, new.width_ptr)
    same = same and np.array_equal(known.width, new.width)
    return same and np.array_equal(known.factor, new.factor)


def declared_needs(
    workflow: Workflow, memory: FloatArray | None = None, sizes: FloatArray | None = None
) -> Needs | None:
    """What the tasks ask for on their first try; None: one core each, and nothing else.

    `memory` is what is learnt, NaN where nothing is: it counts for tasks that ask for less. `sizes`
    are the bytes that each task reads, if more is known of them than is declared.
    """
    requests = {t: s.request for t, s in workflow.specs.items() if s.request is not None}
    if not requests and memory is None:
        return None
    n = workflow.n_tasks
    sizes = input_sizes(workflow) if sizes is None else sizes
    rows = [requests.get(t, NOTHING) for t in range(n)]
    amounts = [_amounts(workflow, t, row, float(sizes[t])) for t, row in enumerate(rows)]
    if memory is not None:
        for t in np.flatnonzero(~np.isnan(memory)).tolist():
            amounts[t][MEMORY] = max(float(memory[t]), amounts[t].get(MEMORY, 0.0))
    kinds, pools = kinds_and_pools(workflow)
    amount = np.zeros((n, len(kinds) + len(pools)))
    for t, row in enumerate(rows):
        for kind, value in amounts[t].items():
            amount[t, kinds.index(kind)] = value
        for pool, tokens in row.pools:
            amount[t, len(kinds) + pools.index(pool)] = tokens
    ends = np.cumsum([0, *(len(row.cores) for row in rows)])
    return Needs(
        kinds,
        pools,
        sealed(amount),
        ends,
        np.array([width for row in rows for width in row.cores]),
        np.array([factor for row in rows for factor in row.factors()]),
    )


def grown_needs(workflow: Workflow, known: Needs | None, found: Needs | None) -> Needs | None:
    """What is known of tasks, and what was found of those that were added at the end."""
    if known is None:
        return found
    if found is None:
        found = declared_needs(workflow, np.full(workflow.n_tasks, np.nan))
        assert found is not None
    first = len(known.amount)
    new = found.part(list(range(first, workflow.n_tasks)))
    return Needs(
        known.kinds,
        known.pools,
        sealed(np.concatenate([known.amount, new.amount])),
        np.concatenate([known.width_ptr, known.width_ptr[-1] + new.width_ptr[1:]]),
        np.concatenate([known.width, new.width]),
        np.concatenate([known.factor, new.factor]),
    )


def kinds_and_pools(workflow: Workflow) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the columns of its needs are of, whatever is learnt of memory."""
    requests = [spec.request for spec in workflow.specs.values() if spec.request is not None]
    named = {name for request in requests for name, _ in request.resources}
    pools = {pool for request in requests for pool, _ in request.pools}
    if workflow.grows:  # what is added may take of them, if nothing that is left does
        pools.update(workflow.pools)
    return (MEMORY, GPUS, *sorted(named)), tuple(sorted(pools))


def _amounts(workflow: Workflow, task: int, request: Request, inputs: float) -> dict[str, float]:
    try:
        return request.amounts(inputs)
    except InputError as error:  # a formula that is below 0 for so many bytes
        raise workflow.task_error(task, error.problem) from None


def asks_by_inputs(workflow: Workflow) -> list[int]:
    """The tasks whose needs depend on how many bytes they read."""
    asked = ((task, spec.request) for task, spec in sorted(workflow.specs.items()))
    return [task for task, request in asked if request is not None and request.by_inputs]


def unsized(workflow: Workflow, known: Collection[int] = ()) -> dict[int, list[int]]:
    """By task that asks by them: the inputs whose sizes are neither known nor declared.

    What a command only waits for has none.
    """
    names, producer = workflow.item_names, workflow.item_producer
    found = dict[int, list[int]]()
    for task in asks_by_inputs(workflow):
        items = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]].tolist()
        blank = (i for i in items if i not in known and workflow.item_size[i] == 0)
        found[task] = [
            i
            for i in blank
            if (names is not None and names[i] is not None)
            or (producer[i] >= 0 and workflow.spec(int(producer[i])).run is None)
        ]
    return {task: items for task, items in found.items() if items}


def without_sizes(workflow: Workflow, found: Mapping[int, Iterable[int]]) -> list[str]:
    """What is said of tasks that ask by the size of inputs which nobody knows; nothing: no line."""
    if not found:
        return []
    tasks = first_few([workflow.task_names[task] for task in found])
    asked = f"{tasks} {'asks' if len(found) == 1 else 'ask'}"
    items = dict.fromkeys(item for items in found.values() for item in items)
    files = first_few(map(workflow.item_name, items))
    return [f"what {asked} for is computed without the size of {files}, which is not known"]


def input_sizes(workflow: Workflow, known: Mapping[int, float] | None = None) -> FloatArray:
    """The bytes that each task reads: of items whose sizes are known, else as declared."""
    of_item = workflow.item_size
    if known:
        of_item = of_item.copy()
        of_item[list(known)] = list(known.values())
    sizes = of_item[workflow.in_item]
    rows = row_of_each(workflow.in_ptr)
    total = np.bincount(rows, weights=sizes, minlength=workflow.n_tasks)
    return total.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Demand(FrozenArrays):
    """The needs of tasks beside what the hosts have: what kernels and validators are given.

    `capacity` has the kinds of every host, host by host, then the pools. `allowed` says where each
    task may run: its `on` and `not_on` admit the host, and the smallest width and every amount fit.
    """

    needs: Needs
    capacity: FloatArray
    allowed: BoolArray  # tasks x hosts
    paid: FloatArray  # tasks x hosts: the least cores that a task pays for there, by its shares

    @staticmethod
    def of(
        workflow: Workflow, platform: Platform, needs: Needs, tasks: list[int] | None = None
    ) -> Demand:
        """The demand of a workflow on a platform, all of its processors there; or of some tasks."""
        needs = needs if tasks is None else needs.part(tasks)
        hosts, kinds = platform.n_hosts, len(needs.kinds)
        table = np.empty((hosts, kinds))
        for k, kind in enumerate(needs.kinds):
            table[:, k] = platform.host_amounts(kind)
        cores = np.bincount(platform.host, minlength=hosts).astype(np.int32)
        fits = needs.width[needs.width_ptr[:-1]][:, None] <= cores
        fits &= (needs.amount[:, None, :kinds] <= table).all(axis=2)
        fits &= _admitted(workflow, platform, tasks)
        sizes = pools_of(workflow, platform)
        pools = np.array([sizes.get(pool, 0.0) for pool in needs.pools])
        enough: BoolArray = np.all(needs.amount[:, kinds:] <= pools, axis=1)
        fits &= enough[:, None]
        capacity = np.concatenate([table.reshape(-1), pools])
        return Demand(needs, capacity, fits, _paid(platform, needs, table, cores))

    def beyond(self, task: IntArray, host: IntArray, width: IntArray | int) -> FloatArray:
        """The cores that tasks on hosts pay for beyond those that they take."""
        more: FloatArray = np.maximum(0.0, self.paid[task, host] - width)
        return more


def pools_of(workflow: Workflow, platform: Platform) -> dict[str, float]:
    """The pools that are declared, and their sizes: the platform's word counts."""
    return {**workflow.pools, **platform.pools}


def _admitted(workflow: Workflow, platform: Platform, tasks: list[int] | None = None) -> BoolArray:
    """Where each task may run by name and label; or each of some."""
    n = workflow.n_tasks if tasks is None else len(tasks)
    admitted = np.ones((n, platform.n_hosts), dtype=np.bool_)
    specs = workflow.specs.items()
    for task, spec in specs if tasks is None else enumerate(map(workflow.spec, tasks)):
        request = spec.request
        if request is not None and (request.on or request.not_on):
            for host, name in enumerate(platform.host_names):
                admitted[task, host] = request.admits(name, platform.labels(host))
    return admitted


def _paid(platform: Platform, needs: Needs, capacity: FloatArray, cores: IntArray) -> FloatArray:
    """The largest share of a host that each task takes, in cores, where a price is of the whole."""
    paid = np.zeros((len(needs.amount), platform.n_hosts))
    for host in range(platform.n_hosts):
        if platform.hosts and platform.hosts[host].whole_price:
            has = capacity[host]
            counts = np.isfinite(has) & (has > 0)
            shares = needs.amount[:, : len(has)][:, counts] / has[counts]
            paid[:, host] = cores[host] * shares.max(axis=1, initial=0.0)
    return paid


def check_fits(workflow: Workflow, platform: Platform, needs: Needs | None) -> None:
    """Refuse a task that fits on no host, with what it needs and what the largest host has."""
    if needs is None:
        return
    _check_pools(workflow, platform, needs)
    demand = Demand.of(workflow, platform, needs)
    lost = np.flatnonzero(~demand.allowed.any(axis=1))
    if len(lost) == 0:
        return
    task = int(lost[0])
    name = workflow.task_names[task]
    admitted = _admitted(workflow, platform)[task]
    if not admitted.any():
        request = workflow.spec(task).request or NOTHING
        said = [f"on: {list(request.on)}"] if request.on else []
        said += [f"not_on: {list(request.not_on)}"] if request.not_on else []
        problem = f"no host is meant by {' and '.join(said)}; there are: "
        raise workflow.task_error(task, problem + first_few(platform.host_names, 10))
    width = int(needs.width[needs.width_ptr[task]])
    asked = {kind: float(needs.of(kind)[task]) for kind in needs.kinds if needs.of(kind)[task] > 0}
    cores, largest = _largest(platform, width, asked, admitted)
    has = {kind: float(platform.host_amounts(kind)[largest]) for kind in asked}
    problem = f"the task {shortened(name)!r} fits on no host: it needs {_in_words(width, asked)}"
    largest_host = f"the largest host, {platform.host_names[largest]!r}"
    has_words = _in_words(int(cores[largest]), has)
    raise workflow.task_error(task, f"{problem}; {largest_host}, has {has_words}")


def _largest(
    platform: Platform, width: int, asked: Mapping[str, float], admitted: BoolArray
) -> tuple[IntArray, int]:
    """The cores of every host, and the one that comes nearest: by what suffices, then by size."""
    cores = np.bincount(platform.host, minlength=platform.n_hosts).astype(np.int32)
    enough = (cores >= width).astype(np.int32)
    for kind, amount in asked.items():
        enough += platform.host_amounts(kind) >= amount
    others = [platform.host_amounts(kind) for kind in asked if kind != MEMORY]
    keys: list[Any] = [platform.host_amounts(MEMORY), cores, *others, enough, admitted]
    return cores, int(np.lexsort(keys)[-1])


def _check_pools(workflow: Workflow, platform: Platform, needs: Needs) -> None:
    sizes = pools_of(workflow, platform)
    for k, pool in enumerate(needs.pools):
        asked = needs.amount[:, len(needs.kinds) + k]
        task = int(asked.argmax())
        name = shortened(pool)
        if pool not in sizes:
            how = f"write `pools: {{{name}: 1}}` beside `tasks:`"
            problem = f"no one declares the pool {name!r}: {how}"
            raise workflow.task_error(task, problem, "pools")
        if asked.max(initial=0.0) > sizes[pool]:
            has, wants = sizes[pool], float(asked.max())
            problem = f"it takes {wants:g} of the pool {name!r}, which has {has:g}"
            raise workflow.task_error(task, problem, "pools")


def _in_words(cores: int, amounts: Mapping[str, float]) -> str:
    """Cores and amounts as people say them."""
    words = [f"{cores:,} core{'' if cores == 1 else 's'}"]
    for kind, value in amounts.items():
        shown = "any amount" if np.isinf(value) else plain_amount(value)
        words.append(f"{shown} {kind}" if kind != MEMORY else f"{data_size(value)} of memory")
    return " and ".join(", ".join(words).rsplit(", ", 1)) if len(words) > 1 else words[0]
