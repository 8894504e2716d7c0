"""A workflow that grows: what a task has printed is added behind the tasks that there are.

Old tasks and items keep their numbers. What a task prints is a file that it makes, so whoever reads
that file waits for the expansion: for all that is added, and it reads what its patterns mean. A
function returns tasks; whoever reads of it waits for all of them, and reads those that it returned.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from foreplan.arrays import FloatArray, csr, row_of_each
from foreplan.errors import InputError
from foreplan.model.filenames import Holders, covers, fixed_folder, is_pattern, may_gather
from foreplan.model.resources import kinds_and_pools
from foreplan.model.workflow import TaskSpec, Workflow
from foreplan.quantities import shortened

FOLDER = ".foreplan/added"
_ODD = re.compile(r"[^A-Za-z0-9_.~ +,=@-]")
_LONGEST = 200  # characters of a name of a file


def expansion_file(task: str) -> str:
    """The file with the tasks that a task has printed."""
    name = _ODD.sub(lambda odd: "".join(f"%{byte:02X}" for byte in odd[0].encode()), task)
    if len(name) > _LONGEST:
        import hashlib  # which loads OpenSSL: only if it must

        name = hashlib.sha256(task.encode()).hexdigest()
    return f"{FOLDER}/{name}.yaml"


def adder_of(file: str) -> str:
    """The task that prints tasks into a file; empty if it is no such file."""
    folder, _, name = file.rpartition("/")
    if folder != FOLDER:
        return ""
    from urllib.parse import unquote

    return unquote(name.removesuffix(".yaml"))


def is_expansion_file(workflow: Workflow, item: int) -> bool:
    """Whether an item is what a task prints to add tasks."""
    maker, names = int(workflow.item_producer[item]), workflow.item_names
    name = None if names is None else names[item]
    if maker < 0:  # of a task that is up to date, and no part of this
        return name is not None and name.rpartition("/")[0] == FOLDER
    return workflow.spec(maker).expand and name == expansion_file(workflow.task_names[maker])


class _Items(NamedTuple):
    """Items behind those that there are, and who reads what of all of them."""

    names: list[str | None]
    sizes: list[float]
    producers: list[int]
    uses: list[tuple[int, int]]  # item, task


def files_of(workflow: Workflow) -> dict[str, str]:
    """The files of a workflow, each with the task that makes it; empty: none does."""
    makers = (workflow.task_names[t] if t >= 0 else "" for t in workflow.item_producer.tolist())
    files = zip(workflow.item_names or (), makers, strict=False)
    return {file: maker for file, maker in files if file is not None}


def check_apart(more: Workflow, tasks: Container[str], files: Mapping[str, str]) -> None:
    """Refuse to add what is called as another task, or makes what another makes or reads."""
    for task, name in enumerate(more.task_names):
        if name in tasks:
            raise more.task_error(task, f"there is a task {shortened(name)!r} already")
    for file, maker in files_of(more).items():
        if maker and file in files:
            whose = f"is made by {shortened(files[file])!r}" if files[file] else "is an input"
            problem = f"the file {shortened(file)!r} {whose} already"
            raise more.task_error(more.task_names.index(maker), problem, "outputs")


def grow(workflow: Workflow, by: int, more: Workflow) -> Workflow:
    """The workflow with what a task of it adds; an InputError if that cannot be."""
    check_apart(more, frozenset(workflow.task_names), files_of(workflow))
    _check_kinds(workflow, more)
    items = _added_items(workflow, more)
    _order_readers_of_parts(workflow, items)
    _let_wait(workflow, by, more, items)
    uses = np.array(items.uses, dtype=np.int32).reshape(-1, 2)
    rows = np.concatenate([row_of_each(workflow.use_ptr), uses[:, 0]]).astype(np.int32)
    tasks = np.concatenate([workflow.use_task, uses[:, 1]]).astype(np.int32)
    use_ptr, use_task = csr(rows, tasks, workflow.n_items + len(items.sizes))
    old_names = workflow.item_names or (None,) * workflow.n_items
    item_names = (*old_names, *items.names)
    n, name = workflow.n_tasks, workflow.task_names[by]
    return Workflow(
        name=workflow.name,
        task_names=(*workflow.task_names, *more.task_names),
        base_cost=np.concatenate([workflow.base_cost, more.base_cost]),
        item_size=np.concatenate([workflow.item_size, items.sizes]),
        item_producer=np.concatenate([workflow.item_producer, items.producers]).astype(np.int32),
        use_ptr=use_ptr,
        use_task=use_task,
        processor_cost=_processor_cost(workflow, more),
        item_names=item_names if any(item_names) else None,  # functions have no files
        specs={
            **workflow.specs,
            **{n + t: replace(more.spec(t), added_by=name) for t in range(more.n_tasks)},
        },
        pools=workflow.pools,
        notes=workflow.notes,
        origins=workflow.origins,
    )


def _check_kinds(workflow: Workflow, more: Workflow) -> None:
    """What is asked for must be counted from the start, and by one word on what there is."""
    if more.pools:
        pool = next(iter(more.pools))
        raise InputError(f"pools are those of the run: what a task adds has none, but {pool!r}")
    known, new = kinds_and_pools(workflow), kinds_and_pools(more)
    for had, asked, what in zip(known, new, ("resource", "pool"), strict=True):
        unknown = sorted(set(asked).difference(had))
        if unknown:
            raise InputError(
                f"an added task asks for the {what} {unknown[0]!r}, which no declared task asks for"
            )


def _added_items(workflow: Workflow, more: Workflow) -> _Items:
    """The items that are new; a file that there is keeps its number, and is read by more."""
    n, m = workflow.n_tasks, workflow.n_items
    known = {name: item for item, name in enumerate(workflow.item_names or ()) if name is not None}
    items, numbers = _Items([], [], [], []), list[int]()
    for item, maker in enumerate(more.item_producer.tolist()):
        name = more.item_names[item] if more.item_names is not None else None
        old = known.get(name) if name is not None else None
        if old is None:
            numbers.append(m + len(items.sizes))
            items.names.append(name)
            items.sizes.append(float(more.item_size[item]))
            items.producers.append(n + maker if maker >= 0 else maker)
            continue
        numbers.append(old)
    readers = zip(row_of_each(more.use_ptr).tolist(), more.use_task.tolist(), strict=True)
    items.uses.extend((numbers[item], n + task) for item, task in readers)
    return items


def _order_readers_of_parts(workflow: Workflow, items: _Items) -> None:
    """Put added tasks that read a file of a directory or pattern after the task that makes it.

    They are added when the whole is there. But if a run that is resumed makes it again, they must
    wait: else they would read the former files.
    """
    m = workflow.n_items
    names = workflow.item_names or ()
    makers = {name: int(workflow.item_producer[k]) for k, name in enumerate(names) if name}
    holders = Holders(name for name, maker in makers.items() if maker >= 0)
    if not holders:
        return
    after: dict[int, dict[int, None]] = {}  # readers, by maker
    for item, task in items.uses:
        name = items.names[item - m] if item >= m else names[item] if names else None
        maker = items.producers[item - m] if item >= m else int(workflow.item_producer[item])
        if name is None or maker >= 0:
            continue
        for whole in holders.of(name.rstrip("/")):
            after.setdefault(makers[whole], {})[task] = None
    for maker, readers in after.items():
        items.uses.extend((m + len(items.sizes), reader) for reader in readers)
        items.names.append(None)
        items.sizes.append(0.0)
        items.producers.append(maker)


def _let_wait(workflow: Workflow, by: int, more: Workflow, items: _Items) -> None:
    """Whoever waits for the expansion waits for all of it, and reads what it has asked for."""
    n, m, waiters = workflow.n_tasks, workflow.n_items, waiting_for(workflow, by)
    if not waiters:
        return
    _, producers, _ = more.dependencies()
    read_inside = set(producers.tolist())
    made = enumerate(zip(items.names, items.producers, strict=True))
    new = [(m + k, name, maker - n) for k, (name, maker) in made if maker >= n]
    if not _prints(workflow, by):
        given = {task for task in range(more.n_tasks) if more.spec(task).returned}
        given |= set(range(more.n_tasks)) - read_inside
        results = [m + k for k, maker in enumerate(items.producers) if maker - n in given]
        items.uses.extend((item, waiter) for item in results for waiter in waiters)
        return
    for waiter in waiters:
        patterns, read = workflow.spec(waiter).gathers, set[int]()
        for item, name, maker in new:
            if name is None:
                continue
            expands = more.spec(maker).expand and name == expansion_file(more.task_names[maker])
            if expands or any(may_gather(pattern, name) for pattern in patterns):
                items.uses.append((item, waiter))
                read.add(maker)
        for task in range(more.n_tasks):
            if task not in read and task not in read_inside:
                items.uses.append((m + len(items.sizes), waiter))
                items.names.append(None)
                items.sizes.append(0.0)
                items.producers.append(n + task)


def waiting_for(workflow: Workflow, task: int) -> list[int]:
    """The tasks that wait for the expansion of a task: of a function, all that read of it."""
    prints, found = _prints(workflow, task), dict[int, None]()
    for item in workflow.out_item[slice(*workflow.out_ptr[task : task + 2])].tolist():
        if not prints or is_expansion_file(workflow, item):
            readers = workflow.use_task[slice(*workflow.use_ptr[item : item + 2])].tolist()
            found |= dict.fromkeys(readers)
    return list(found)


def check_gathered(workflow: Workflow, waiter: int, added: Collection[str]) -> None:
    """An InputError where a pattern means nothing of what was added; `added`: who has added any.

    Where one that the task waits for has added nothing, or not yet, there may be nothing.
    """
    patterns, read = workflow.spec(waiter).gathers, list[str]()
    names = workflow.item_names or ()
    for item in workflow.in_item[slice(*workflow.in_ptr[waiter : waiter + 2])].tolist():
        if (name := names[item]) is None:
            continue
        if not is_expansion_file(workflow, item):
            read.append(name)
        elif (by := int(workflow.item_producer[item])) < 0:
            if not any(expansion_file(task) == name for task in added):
                return
        elif workflow.task_names[by] not in added:
            return
    for pattern in patterns:
        if not any(may_gather(pattern, name) for name in read):
            problem = f"no added task makes what {shortened(pattern)!r} is to gather"
            raise workflow.task_error(waiter, problem, "inputs")


def _prints(workflow: Workflow, task: int) -> bool:
    """Whether a task adds others by what it prints, not by what its function returns."""
    made = workflow.out_item[slice(*workflow.out_ptr[task : task + 2])].tolist()
    return any(is_expansion_file(workflow, item) for item in made)


@dataclass(frozen=True)
class _PassedBy:
    """Names, and all that patterns mean."""

    names: tuple[str, ...]
    patterns: tuple[str, ...]

    def __contains__(self, name: object) -> bool:
        return name in self.names or any(_is_of(pattern, str(name)) for pattern in self.patterns)


def _is_of(pattern: str, name: str) -> bool:
    """Whether a command that names this means what a pattern gathers, or the folder of that."""
    if f"{fixed_folder(pattern)}/".startswith(f"{name}/"):
        return True
    while not covers(pattern, name):
        name = name.rpartition("/")[0] if is_pattern(name) else ""  # `res/*/n.txt` for `res/*`
        if not name:
            return False
    return True


def passed_by(spec: TaskSpec) -> Container[str]:
    """What a command names that is not brought to it.

    What its patterns gather is listed: what else they mean is left of an earlier expansion.
    """
    return _PassedBy(spec.ignores, spec.gathers)


def _processor_cost(workflow: Workflow, more: Workflow) -> Mapping[str, FloatArray]:
    names = dict.fromkeys((*workflow.processor_cost, *more.processor_cost))
    silent = np.full(workflow.n_tasks, np.nan), np.full(more.n_tasks, np.nan)
    return {
        name: np.concatenate(
            [
                workflow.processor_cost.get(name, silent[0]),
                more.processor_cost.get(name, silent[1]),
            ]
        )
        for name in names
    }
