"""The weft workflow: tasks, edges and files, as YAML and JSON hold them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from weft.arrays import FloatArray
from weft.errors import InputError
from weft.formats.fields import (
    check_fields,
    mapping,
    name,
    number,
    place_of,
    plain,
    sequence,
    shown,
    string,
    unknown,
    wrong,
)
from weft.model import Item, TaskSpec, Workflow
from weft.model.forgotten import check_listed
from weft.model.shell import shell_words

FIELDS = ("name", "shell", "tasks", "edges", "files")
TASK_FIELDS = (
    "cost",
    "category",
    "run",
    "shell",
    "retries",
    "timeout",
    "inputs",
    "outputs",
    "ignores",
)
_SPEC_FIELDS = frozenset({"category", "run", "shell", "retries", "timeout", "ignores"})
_MOST_COSTS = 1 << 27  # a table of tasks x processors of 1 GiB

Fields = Mapping[object, object]


def workflow_from_dict(content: Mapping[str, object]) -> Workflow:
    """A workflow from the content of a weft file."""
    document = mapping(content)
    if "processors" in document and "tasks" not in document:
        raise InputError("this is a platform, not a workflow")
    check_fields(document, FIELDS)
    if "tasks" not in document:
        raise InputError("the field 'tasks' is missing")
    index, bodies = _tasks(document["tasks"])
    names = list(index)
    items = _edges(document.get("edges"), index)
    items += _file_items(document.get("files"), names, bodies)
    base_cost, processor_cost = _costs(names, bodies)
    title = document.get("name", "")
    workflow = Workflow.from_items(
        name="" if title == "" else name(title, "name"),
        task_names=names,
        base_cost=base_cost,
        items=items,
        processor_cost=processor_cost,
        specs=_specs(names, bodies, _shell(document)),
    )
    check_listed(workflow)
    return workflow


def _tasks(section: object) -> tuple[dict[str, int], list[Fields]]:
    """Task names with their indices, and the fields of each task."""
    index: dict[str, int] = {}
    bodies: list[Fields] = []
    for key, body in mapping({} if section is None else section, "tasks").items():
        task = name(key, "tasks")
        if task in index:
            raise wrong(f"the task {shown(task)} is given twice", "tasks")
        index[task] = len(index)
        fields = mapping({} if body is None else body, "tasks", task)
        check_fields(fields, TASK_FIELDS, "tasks", task)
        bodies.append(fields)
    if not index:
        raise wrong("the workflow has no tasks", "tasks")
    return index, bodies


def _costs(names: list[str], bodies: list[Fields]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Seconds at speed 1, and seconds by processor; NaN where a task does not say."""
    base = np.full(len(names), np.nan)
    by_processor: dict[str, FloatArray] = {}
    for i, (task, fields) in enumerate(zip(names, bodies, strict=True)):
        if "cost" not in fields:
            continue
        cost = fields["cost"]
        if not isinstance(cost, Mapping):
            base[i] = number(cost, "tasks", task, "cost")
            continue
        if not cost:
            raise wrong("the cost names no processor", "tasks", task, "cost")
        for key, seconds in cost.items():
            processor = name(key, "tasks", task, "cost")
            column = by_processor.get(processor)
            if column is None:
                if (len(by_processor) + 1) * len(names) > _MOST_COSTS:
                    raise wrong("the costs name too many processors", "tasks", task, "cost")
                column = by_processor[processor] = np.full(len(names), np.nan)
            if not np.isnan(column[i]):
                raise wrong(f"{shown(processor)} is given twice", "tasks", task, "cost")
            column[i] = number(seconds, "tasks", task, "cost", processor)
    return base, by_processor


def _specs(names: list[str], bodies: list[Fields], shell: str | None) -> dict[int, TaskSpec]:
    specs: dict[int, TaskSpec] = {}
    for i, (task, fields) in enumerate(zip(names, bodies, strict=True)):
        if not _SPEC_FIELDS.isdisjoint(fields):
            category, run = (
                string(fields[key], "tasks", task, key) if key in fields else None
                for key in ("category", "run")
            )
            specs[i] = TaskSpec(
                category,
                run,
                _retries(fields, task),
                _timeout(fields, task),
                _shell(fields, "tasks", task) or (None if run is None else shell),
                _ignores(fields, task),
            )
    return specs


def _shell(fields: Fields, *place: str) -> str | None:
    if "shell" not in fields:
        return None
    shell = string(fields["shell"], *place, "shell")
    try:
        shell_words(shell)
    except InputError as error:
        raise error.at(place_of(*place, "shell")) from None
    return shell


def _ignores(fields: Fields, task: str) -> tuple[str, ...]:
    ignored = tuple(_file_list(fields, task, "ignores"))
    for field in ("inputs", "outputs") if ignored else ():
        both = set(ignored).intersection(_file_list(fields, task, field))
        if both:
            problem = f"{shown(min(both))} is listed under {field}, too"
            raise wrong(problem, "tasks", task, "ignores")
    return ignored


def _retries(fields: Fields, task: str) -> int | None:
    if "retries" not in fields:
        return None
    place = ("tasks", task, "retries")
    times = number(fields["retries"], *place)
    if not times.is_integer():
        raise wrong(f"expected a whole number, not {shown(fields['retries'])}", *place)
    return int(times)


def _timeout(fields: Fields, task: str) -> float | None:
    if "timeout" not in fields:
        return None
    place = ("tasks", task, "timeout")
    seconds = number(fields["timeout"], *place)
    if not seconds:
        raise wrong("the seconds must be more than 0; without the field there is no limit", *place)
    return seconds


def _edges(section: object, index: dict[str, int]) -> list[Item]:
    """Each edge is an item of its own, with one consumer and no name."""
    items: list[Item] = []
    seen: set[tuple[int, int]] = set()
    for i, entry in enumerate(sequence([] if section is None else section, "edges")):
        parts = sequence(entry, "edges", i)
        if len(parts) not in (2, 3):
            raise wrong(f"expected [from, to, volume], not {shown(entry)}", "edges", i)
        source, target = (_task_index(part, index, "edges", i) for part in parts[:2])
        if source == target:
            raise wrong(f"the task {shown(parts[0])} depends on itself", "edges", i)
        if (source, target) in seen:
            pair = f"{shown(parts[0])} to {shown(parts[1])}"
            raise wrong(f"the edge from {pair} is given twice", "edges", i)
        seen.add((source, target))
        volume = number(parts[2], "edges", i) if len(parts) == 3 else 0.0
        items.append(Item(volume, source, (target,)))
    return items


def _task_index(value: object, index: dict[str, int], *place: str | int) -> int:
    found = index.get(value) if isinstance(value, str) else None
    if found is None:
        found = index.get(task := name(value, *place))
        if found is None:
            raise unknown("task", task, index, *place)
    return found


def _file_items(section: object, names: list[str], bodies: list[Fields]) -> list[Item]:
    """Each file is one item: one producer or none, many consumers."""
    sizes = _file_sizes(section)
    producer: dict[str, int] = {}
    consumers: dict[str, list[int]] = {file: [] for file in sizes}
    for i, (task, fields) in enumerate(zip(names, bodies, strict=True)):
        for file in _file_list(fields, task, "outputs"):
            if file in producer:
                both = f"{shown(names[producer[file]])} and {shown(task)}"
                place = ("tasks", task, "outputs")
                raise wrong(f"the file {shown(file)} is made by both {both}", *place)
            producer[file] = i
            consumers.setdefault(file, [])
        for file in _file_list(fields, task, "inputs"):
            consumers.setdefault(file, []).append(i)
    for file, maker in producer.items():
        if maker in consumers[file]:
            place = ("tasks", names[maker], "inputs")
            raise wrong(f"the task reads its own output {shown(file)}", *place)
    return [
        Item(sizes.get(file, 0.0), producer.get(file), readers, file)
        for file, readers in consumers.items()
        if readers or file in producer
    ]


def _file_sizes(section: object) -> dict[str, float]:
    sizes: dict[str, float] = {}
    for key, size in mapping({} if section is None else section, "files").items():
        file = name(key, "files")
        if file in sizes:
            raise wrong(f"the file {shown(file)} is given twice", "files")
        sizes[file] = number(size, "files", file)
    return sizes


def _file_list(fields: Fields, task: str, field: str) -> Sequence[str]:
    if field not in fields:
        return ()
    place = ("tasks", task, field)
    files = [name(f, *place) for f in sequence(fields[field], *place)]
    if len(set(files)) < len(files):
        repeated = next(f for i, f in enumerate(files) if f in files[:i])
        raise wrong(f"the file {shown(repeated)} is listed twice", *place)
    return files


def workflow_to_dict(workflow: Workflow) -> dict[str, object]:
    """The content of a weft file; an item that no edge can say becomes a file."""
    files, inputs, outputs, edges = _split_items(workflow)
    shell = _common_shell(workflow)
    tasks: dict[str, dict[str, object]] = {}
    for i, task in enumerate(workflow.task_names):
        fields = tasks[task] = _cost_field(workflow, i)
        spec = workflow.spec(i)
        for key, value in (
            ("category", spec.category),
            ("run", spec.run),
            ("shell", None if spec.run is not None and spec.shell == shell else spec.shell),
            ("retries", spec.retries),
            ("timeout", None if spec.timeout is None else plain(float(spec.timeout))),
            ("inputs", inputs.get(i)),
            ("outputs", outputs.get(i)),
            ("ignores", list(spec.ignores) or None),
        ):
            if value is not None:
                fields[key] = value
    content: dict[str, object] = {"name": workflow.name} if workflow.name else {}
    content |= {} if shell is None else {"shell": shell}
    content["tasks"] = tasks
    content |= {"edges": edges} if edges else {}
    return content | ({"files": files} if files else {})


def _common_shell(workflow: Workflow) -> str | None:
    """The shell of all commands, if they have one in common."""
    shells = {spec.shell for spec in workflow.specs.values() if spec.run is not None}
    return shells.pop() if len(shells) == 1 else None


def _cost_field(workflow: Workflow, task: int) -> dict[str, object]:
    base = float(workflow.base_cost[task])
    cost = {
        processor: plain(float(column[task]))
        for processor, column in workflow.processor_cost.items()
        if not np.isnan(column[task])
    }
    if cost and not np.isnan(base):
        raise InputError(
            "a weft file gives a cost by processor or one for all, not both",
            place=place_of("tasks", workflow.task_names[task], "cost"),
        )
    if cost:
        return {"cost": cost}
    return {} if np.isnan(base) else {"cost": plain(base)}


_Files = dict[str, int | float]
_ByTask = dict[int, list[str]]


def _split_items(workflow: Workflow) -> tuple[_Files, _ByTask, _ByTask, list[list[object]]]:
    """The items as files (sizes, inputs and outputs by task) and as edges."""
    tasks, names, ends = workflow.task_names, workflow.item_names, workflow.use_ptr.tolist()
    readers, producers = workflow.use_task.tolist(), workflow.item_producer.tolist()
    taken = {given for given in names or () if given is not None}
    files: _Files = {}
    inputs: _ByTask = {}
    outputs: _ByTask = {}
    edges: list[list[object]] = []
    pairs: set[tuple[int, int]] = set()
    for item, size in enumerate(workflow.item_size.tolist()):
        producer, consumers = producers[item], readers[ends[item] : ends[item + 1]]
        file = names[item] if names is not None else None
        if file is None:
            pair = (producer, consumers[0] if len(consumers) == 1 else -1)
            if min(pair) >= 0 and pair not in pairs:
                pairs.add(pair)
                edges.append([tasks[producer], tasks[consumers[0]], plain(size)])
                continue
            file = unused_name(workflow.item_name(item), taken)
            taken.add(file)
        files[file] = plain(size)
        for task in dict.fromkeys(consumers):
            inputs.setdefault(task, []).append(file)
        if producer >= 0:
            outputs.setdefault(producer, []).append(file)
    return files, inputs, outputs, edges


def unused_name(wanted: str, taken: Container[str]) -> str:
    """The wanted name, numbered if it is taken: two nameless items may join the same tasks."""
    file, count = wanted, 1
    while file in taken:
        count += 1
        file = f"{wanted} ({count})"
    return file
