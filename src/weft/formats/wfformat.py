"""WfFormat 1.5, the format of WfCommons traces.

A recorded runtime becomes the cost at speed 1, a file one item, and a parent without a connecting
file an edge of volume 0. What weft has no word for (machines, memory, authors) is left out.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from weft.formats.fields import (
    mapping,
    name,
    number,
    plain,
    sequence,
    shown,
    string,
    unknown,
    wrong,
)
from weft.formats.json_text import parse_json
from weft.formats.weft_workflow import unused_name, workflow_to_dict
from weft.model import Item, TaskSpec, Workflow

_NUMBERED = re.compile(r"(.+)_ID[0-9]+", re.DOTALL)
_SPECIFICATION = ("workflow", "specification")
_EXECUTION = ("workflow", "execution")

Fields = Mapping[object, object]


def parse_wfformat(text: str, name: str) -> Workflow:
    """A workflow from the text of a WfFormat file."""
    return workflow_from_wfformat(mapping(parse_json(text)))  # type: ignore[arg-type]


def dump_wfformat(workflow: Workflow) -> str:
    """The text of a WfFormat file."""
    return json.dumps(workflow_to_wfformat(workflow), ensure_ascii=False, indent=1) + "\n"


def workflow_from_wfformat(content: Mapping[str, object]) -> Workflow:
    """A workflow from the content of a WfFormat file."""
    document = mapping(content)
    outer = mapping(_required(document, "workflow"), "workflow")
    if "specification" not in outer and "tasks" in outer:
        raise wrong("this is an older WfFormat; weft reads version 1.5", "workflow")
    specification = mapping(_required(outer, "specification", "workflow"), *_SPECIFICATION)
    tasks = _tasks(_required(specification, "tasks", *_SPECIFICATION))
    index = {task: i for i, task in enumerate(tasks)}
    recorded = _recorded(_required(outer, "execution", "workflow"), index)
    files = _files(specification.get("files"), list(tasks.values()))
    specs = {
        i: spec
        for i, (task, fields) in enumerate(tasks.items())
        if (spec := _spec(task, i, fields, recorded[task])) != TaskSpec()
    }
    title = document.get("name", "")
    return Workflow.from_items(
        name="" if title == "" else name(title, "name"),
        task_names=list(tasks),
        base_cost=_runtimes(tasks, recorded),
        items=[*_bare_dependencies(tasks, index, files), *files],
        specs=specs,
    )


def _required(fields: Fields, key: str, *place: str) -> object:
    if key not in fields:
        raise wrong(f"the field {key!r} is missing", *place)
    return fields[key]


def _tasks(section: object) -> dict[str, Fields]:
    tasks: dict[str, Fields] = {}
    for i, entry in enumerate(sequence(section, *_SPECIFICATION, "tasks")):
        place = (*_SPECIFICATION, "tasks", i)
        fields = mapping(entry, *place)
        if "id" not in fields:
            raise wrong("the task has no id", *place)
        task = name(fields["id"], *place, "id")
        if task in tasks:
            raise wrong(f"the task {shown(task)} is given twice", *place)
        tasks[task] = fields
    if not tasks:
        raise wrong("the workflow has no tasks", *_SPECIFICATION, "tasks")
    return tasks


def _recorded(section: object, index: Mapping[str, int]) -> dict[str, Fields]:
    """What was recorded of each task; every task must be there."""
    execution = mapping(section, *_EXECUTION)
    place = (*_EXECUTION, "tasks")
    recorded: dict[str, Fields] = {}
    for i, entry in enumerate(sequence(_required(execution, "tasks", *_EXECUTION), *place)):
        fields = mapping(entry, *place, i)
        task = name(fields.get("id"), *place, i, "id")
        if task not in index:
            raise unknown("task", task, index, *place, i)
        if task in recorded:
            raise wrong(f"the task {shown(task)} is given twice", *place, i)
        recorded[task] = fields
    for task in index:
        if "runtimeInSeconds" not in recorded.get(task, {}):
            raise wrong(f"the task {shown(task)} has no runtimeInSeconds", *place)
    return recorded


def _runtimes(tasks: Mapping[str, Fields], recorded: Mapping[str, Fields]) -> list[float]:
    place = (*_EXECUTION, "tasks")
    return [number(recorded[t]["runtimeInSeconds"], *place, t, "runtimeInSeconds") for t in tasks]


def _files(section: object, tasks: list[Fields]) -> list[Item]:
    """Each file is one item, in the order of the list of files."""
    sizes = _sizes(section)
    producer: dict[str, int] = {}
    consumers: dict[str, list[int]] = {file: [] for file in sizes}
    for i, fields in enumerate(tasks):
        for file in _names(fields, "outputFiles", i):
            if producer.setdefault(file, i) != i:
                both = f"{shown(tasks[producer[file]]['id'])} and {shown(fields['id'])}"
                place = (*_SPECIFICATION, "tasks", i, "outputFiles")
                raise wrong(f"the file {shown(file)} is made by both {both}", *place)
            consumers.setdefault(file, [])
        for file in _names(fields, "inputFiles", i):
            consumers.setdefault(file, []).append(i)
    for file, maker in producer.items():
        if maker in consumers[file]:
            place = (*_SPECIFICATION, "tasks", maker, "inputFiles")
            raise wrong(f"the task reads its own output {shown(file)}", *place)
    return [
        Item(sizes.get(file, 0.0), producer.get(file), readers, file)
        for file, readers in consumers.items()
        if readers or file in producer
    ]


def _sizes(section: object) -> dict[str, float]:
    place = (*_SPECIFICATION, "files")
    sizes: dict[str, float] = {}
    for i, entry in enumerate(sequence([] if section is None else section, *place)):
        fields = mapping(entry, *place, i)
        file = name(fields.get("id"), *place, i, "id")
        size = number(fields.get("sizeInBytes", 0), *place, i, "sizeInBytes")
        if sizes.setdefault(file, size) != size:
            raise wrong(f"the file {shown(file)} is given twice, with two sizes", *place, i)
    return sizes


def _names(fields: Fields, key: str, task: int) -> dict[str, None]:
    """The names in a list, each once."""
    place = (*_SPECIFICATION, "tasks", task, key)
    return dict.fromkeys(name(entry, *place) for entry in sequence(fields.get(key, []), *place))


def _bare_dependencies(
    tasks: Mapping[str, Fields], index: Mapping[str, int], files: list[Item]
) -> list[Item]:
    """Parents and children without a file between them, as edges of volume 0."""
    joined = {(file.producer, task) for file in files for task in file.consumers}
    pairs: dict[tuple[int, int], None] = {}
    for i, fields in enumerate(tasks.values()):
        for key in ("parents", "children"):
            for other in _names(fields, key, i):
                place = (*_SPECIFICATION, "tasks", i, key)
                if other not in index:
                    raise unknown("task", other, index, *place)
                if index[other] == i:
                    raise wrong(f"the task {shown(other)} depends on itself", *place)
                pairs[(index[other], i) if key == "parents" else (i, index[other])] = None
    return [Item(0.0, p, (c,)) for p, c in pairs if (p, c) not in joined]


def _spec(task: str, i: int, fields: Fields, recorded: Fields) -> TaskSpec:
    place = (*_SPECIFICATION, "tasks", i)
    command = mapping(recorded.get("command", {}), *_EXECUTION, "tasks", task, "command")
    program = command.get("program")
    if "category" in fields:  # as weft writes it
        category = None if fields["category"] is None else string(fields["category"], *place)
    else:
        category = _category(task, string(fields.get("name", task), *place, "name"), program)
    if program is None:
        return TaskSpec(category)
    run = string(program, *_EXECUTION, "tasks", task, "command")
    arguments = [
        string(argument, *_EXECUTION, "tasks", task, "command", "arguments", k)
        for k, argument in enumerate(sequence(command.get("arguments", []), *_EXECUTION, task))
    ]
    # a program without arguments may be a whole script: it stays as it is
    return TaskSpec(category, shlex.join([run, *arguments]) if arguments else run)


def _category(task: str, title: str, program: object) -> str | None:
    """The kind of task: its name if that is not the id; else of mAdd_ID07, the program or mAdd."""
    numbered = _NUMBERED.fullmatch(title)
    if title != task or numbered is None:
        stem = numbered[1] if numbered else title
        return stem if title and title != task else None
    is_word = isinstance(program, str) and program != "" and not re.search(r"\s", program)
    return str(program) if is_word else numbered[1]


def workflow_to_wfformat(workflow: Workflow) -> dict[str, object]:
    """The content of a WfFormat file; an edge with a volume becomes a file of that size."""
    for task, spec in workflow.specs.items():
        if spec.shell is not None:
            problem = "WfFormat has no word for the shell that a command is given to"
            raise wrong(problem, "tasks", workflow.task_names[task], "shell")
    content = workflow_to_dict(workflow)
    tasks: Any = content["tasks"]
    files: Any = content.get("files", {})
    edges: Any = content.get("edges", [])
    for source, target, volume in edges:
        if volume > 0:
            file = unused_name(f"{source} -> {target}", files)
            files[file] = volume
            tasks[source].setdefault("outputs", []).append(file)
            tasks[target].setdefault("inputs", []).append(file)
    parents, children = _neighbours(workflow)
    specified = [
        _specified(task, fields, parents[task], children[task]) for task, fields in tasks.items()
    ]
    executed = [_executed(task, fields) for task, fields in tasks.items()]
    total = float(sum(entry["runtimeInSeconds"] for entry in executed))
    return {
        "name": workflow.name or "workflow",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": specified,
                "files": [{"id": file, "sizeInBytes": size} for file, size in files.items()],
            },
            "execution": {
                # the schema asks for both; nothing was run, so: one after another, at no time
                "makespanInSeconds": plain(min(total, sys.float_info.max)),
                "executedAt": "1970-01-01T00:00:00Z",
                "tasks": executed,
            },
        },
    }


def _neighbours(workflow: Workflow) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The parents and the children of every task, each once."""
    names = workflow.task_names
    parents: dict[str, list[str]] = {task: [] for task in names}
    children: dict[str, list[str]] = {task: [] for task in names}
    _, producers, consumers = workflow.dependencies()
    for p, c in sorted(set(zip(producers.tolist(), consumers.tolist(), strict=True))):
        parents[names[c]].append(names[p])
        children[names[p]].append(names[c])
    return parents, children


def _specified(
    task: str, fields: Mapping[str, object], parents: list[str], children: list[str]
) -> dict[str, object]:
    category = fields.get("category")
    title = category or task
    entry: dict[str, object] = {
        "name": title,
        "id": task,
        "parents": parents,
        "children": children,
        "inputFiles": fields.get("inputs", []),
        "outputFiles": fields.get("outputs", []),
    }
    # beyond the standard, and only where a reader would guess another category from the name
    guessed = _category(task, str(title), fields.get("run"))
    return entry | ({"category": category} if guessed != category else {})


def _executed(task: str, fields: Mapping[str, object]) -> dict[str, Any]:
    cost = fields.get("cost")
    if not isinstance(cost, int | float):
        problem = "WfFormat needs one cost, in seconds at speed 1, for every task"
        raise wrong(problem, "tasks", task, "cost")
    entry: dict[str, Any] = {"id": task, "runtimeInSeconds": cost}
    if "run" in fields:
        entry["command"] = {"program": fields["run"], "arguments": []}
    return entry
