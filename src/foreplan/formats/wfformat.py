"""WfFormat 1.5 and 1.6, the format of WfCommons traces; 1.6 is written.

A recorded runtime becomes the cost at speed 1, a file one item, and a parent without a connecting
file an edge of volume 0. The cores and the memory that a task had are what it asks for; a memory of
0 was not measured. Without an execution, no task has a cost. The machines are a platform of their
own. What foreplan has no word for (authors, metrics) is left out.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from foreplan.errors import InputError, place_of
from foreplan.formats.fields import (
    listed,
    mapping,
    name,
    number,
    plain,
    required,
    sequence,
    shown,
    string,
    unknown,
    wrong,
)
from foreplan.formats.foreplan_platform import platform_from_dict
from foreplan.formats.foreplan_workflow import file_items, unused_name, workflow_to_literals
from foreplan.formats.resources import request_fields, request_from_fields
from foreplan.formats.texts import parse_json
from foreplan.model import Item, Platform, TaskSpec, Workflow
from foreplan.model.resources import MEMORY, NOTHING, Request

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
    outer = mapping(required(document, "workflow"), "workflow")
    if "specification" not in outer and "tasks" in outer:
        raise wrong("this is an older WfFormat; foreplan reads versions 1.5 and 1.6", "workflow")
    specification = mapping(required(outer, "specification", "workflow"), *_SPECIFICATION)
    tasks = _tasks(required(specification, "tasks", *_SPECIFICATION))
    index = {task: i for i, task in enumerate(tasks)}
    recorded = _recorded(outer["execution"], index) if "execution" in outer else None
    bodies = list(tasks.values())
    files = file_items(
        _sizes(specification.get("files")),
        [fields["id"] for fields in bodies],
        ("outputFiles", "inputFiles"),
        lambda i, key: _names(bodies[i], key, i),
        lambda i: (*_SPECIFICATION, "tasks", i),
    )
    specs = {
        i: spec
        for i, (task, fields) in enumerate(tasks.items())
        if (spec := _spec(task, i, fields, (recorded or {}).get(task, {}))) != TaskSpec()
    }
    title = document.get("name", "")
    return Workflow.from_items(
        name="" if title == "" else name(title, "name"),
        task_names=list(tasks),
        base_cost=_runtimes(tasks, recorded),
        items=[*_bare_dependencies(tasks, index, files), *files],
        specs=specs,
    )


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
    for i, entry in enumerate(sequence(required(execution, "tasks", *_EXECUTION), *place)):
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


def _runtimes(tasks: Mapping[str, Fields], recorded: Mapping[str, Fields] | None) -> list[float]:
    if recorded is None:
        return [math.nan] * len(tasks)
    place = (*_EXECUTION, "tasks")
    return [number(recorded[t]["runtimeInSeconds"], *place, t, "runtimeInSeconds") for t in tasks]


def _sizes(section: object) -> dict[str, float]:
    place = (*_SPECIFICATION, "files")
    sizes: dict[str, float] = {}
    for i, entry in enumerate(listed(section, *place)):
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
    if "category" in fields:  # as foreplan writes it
        category = None if fields["category"] is None else string(fields["category"], *place)
    else:
        category = _category(task, string(fields.get("name", task), *place, "name"), program)
    request = _request(task, recorded)
    if program is None:
        return TaskSpec(category, request=request)
    run = string(program, *_EXECUTION, "tasks", task, "command")
    arguments = [
        string(argument, *_EXECUTION, "tasks", task, "command", "arguments", k)
        for k, argument in enumerate(sequence(command.get("arguments", []), *_EXECUTION, task))
    ]
    # a program without arguments may be a whole script: it stays as it is
    whole = shlex.join([run, *arguments]) if arguments else run
    return TaskSpec(category, whole, request=request)


def _request(task: str, recorded: Fields) -> Request | None:
    """The cores and the memory that it had; a share of a core is a core."""
    place = (*_EXECUTION, "tasks", task)
    asked: dict[object, object] = {}
    if "coreCount" in recorded:
        asked["cores"] = math.ceil(number(recorded["coreCount"], *place, "coreCount"))
        if asked["cores"] == 0:
            raise wrong("a task has at least 1 core, not 0", *place, "coreCount")
    memory = number(recorded.get("memoryInBytes", 0), *place, "memoryInBytes")
    return request_from_fields(asked | ({"memory": memory} if memory else {}), *place)


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
    _check_sayable(workflow)
    content = workflow_to_literals(workflow)
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
    inner: dict[str, object] = {
        "specification": {
            "tasks": specified,
            "files": [{"id": file, "sizeInBytes": size} for file, size in files.items()],
        }
    }
    if workflow.has_costs or any("run" in t or "cores" in t or MEMORY in t for t in tasks.values()):
        inner["execution"] = _execution(workflow, tasks)
    return {"name": workflow.name or "workflow", "schemaVersion": "1.6", "workflow": inner}


def _check_sayable(workflow: Workflow) -> None:
    """Refuse what WfFormat has no word for."""
    for task, spec in workflow.specs.items():
        place = ("tasks", workflow.task_names[task])
        if spec.shell is not None:
            problem = "WfFormat has no word for the shell that a command is given to"
            raise wrong(problem, *place, "shell")
        if spec.around is not None:
            problem = "WfFormat has no word for variables, containers and conda of tasks"
            raise wrong(problem, *place)
        if spec.temp or spec.protected:
            problem = "WfFormat has no word for temporary and protected outputs"
            raise wrong(problem, *place, "outputs")
        request = spec.request
        if request is None:
            continue
        if len(request.cores) > 1:
            raise wrong("WfFormat has no word for a choice of cores", *place, "cores")
        if request.memory is not None and not request.memory.is_fixed:
            raise wrong("WfFormat has no word for a formula", *place, MEMORY)
        for key in sorted(request_fields(request).keys() - {"cores", "parallel", MEMORY}):
            raise wrong(f"WfFormat has no word for {key}", *place, key)


def _execution(workflow: Workflow, tasks: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    """What is known of the tasks, as if they had been run."""
    executed = [
        _executed(task, fields, workflow.spec(i).request or NOTHING)
        for i, (task, fields) in enumerate(tasks.items())
    ]
    total = float(sum(entry["runtimeInSeconds"] for entry in executed))
    return {
        # the schema asks for both; nothing was run, so: one after another, at no time
        "makespanInSeconds": plain(min(total, sys.float_info.max)),
        "executedAt": "1970-01-01T00:00:00Z",
        "tasks": executed,
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


def _executed(task: str, fields: Mapping[str, object], request: Request) -> dict[str, Any]:
    cost = fields.get("cost")
    if not isinstance(cost, int | float):
        problem = "WfFormat needs one cost, in seconds at speed 1, for every task"
        raise wrong(problem, "tasks", task, "cost")
    entry: dict[str, Any] = {"id": task, "runtimeInSeconds": cost}
    if "run" in fields:
        entry["command"] = {"program": fields["run"], "arguments": []}
    if request.cores != (1,):
        entry["coreCount"] = request.cores[0]
    if request.memory is not None:
        entry["memoryInBytes"] = plain(request.memory.value(0.0))
    return entry


def platform_from_wfformat(content: Mapping[str, object]) -> Platform:
    """The machines of a trace as hosts, each with its cores and its memory."""
    outer = mapping(required(mapping(content), "workflow"), "workflow")
    execution = mapping(outer.get("execution", {}), *_EXECUTION)
    place = (*_EXECUTION, "machines")
    hosts: dict[str, dict[str, object]] = {}
    for i, entry in enumerate(listed(execution.get("machines"), *place)):
        fields = mapping(entry, *place, i)
        host = name(required(fields, "nodeName", *place, i), *place, i, "nodeName")
        cpu = mapping(fields.get("cpu", {}), *place, i, "cpu")
        cores = number(cpu.get("coreCount", 1), *place, i, "cpu", "coreCount")
        has: dict[str, object] = {"cores": cores}
        if "memoryInBytes" in fields:
            memory = number(fields["memoryInBytes"], *place, i, "memoryInBytes")
            has[MEMORY] = f"{plain(memory)}B"
        hosts.setdefault(host, has)
    if not hosts:
        raise wrong("this is a workflow that names no machines, not a platform", *place)
    try:
        return platform_from_dict({"hosts": hosts})
    except InputError as error:
        raise InputError(error.problem, place=place_of(*place) + f" ({error.place})") from None
