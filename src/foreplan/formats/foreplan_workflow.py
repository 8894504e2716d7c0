"""The foreplan workflow: tasks, edges and files, as YAML and JSON hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.errors import InputError, place_of
from foreplan.formats.fields import (
    as_list,
    as_placeholder,
    check_fields,
    command,
    listed,
    mapping,
    name,
    named,
    number,
    one_or_more,
    plain,
    required,
    sequence,
    shown,
    string,
    time_span,
    unknown,
    whole_number,
    wrong,
)
from foreplan.formats.growing import NO_TASKS, Expansions, as_written
from foreplan.formats.origins import NOWHERE, SourceText
from foreplan.formats.parts import Expansion, literal_workflow, plain_workflow
from foreplan.formats.placeholders import escape_document, references_in
from foreplan.formats.resources import (
    REQUEST_FIELDS,
    check_memory,
    pools_of,
    request_fields,
    request_from_fields,
)
from foreplan.formats.surroundings import (
    AROUND_FIELDS,
    filled_around,
    surroundings_fields,
    surroundings_from_fields,
)
from foreplan.model import Item, TaskSpec, Workflow
from foreplan.model.causes import CAUSES
from foreplan.shell import check_listed, shell_words

if TYPE_CHECKING:
    from foreplan.formats.deferred import MadeFiles

OUTPUT_MARKS = ("temp", "protected")  # of outputs, or of a task for all of its outputs
_MARKS = frozenset(OUTPUT_MARKS)
FIELDS = (
    "name", "include", "params", "shell", "pools", "defaults", "tasks", "edges", "files"
)  # fmt: skip
TASK_FIELDS = (
    "foreach",
    "if",
    "cost",
    "category",
    "run",
    "shell",
    "retries",
    "retry",
    "wait",
    "timeout",
    "inputs",
    "outputs",
    "ignores",
    "cache",
    *OUTPUT_MARKS,
    *AROUND_FIELDS,
    "expand",
    "after",
    *REQUEST_FIELDS,
)
# what a command of a flow may say, beside its files
COMMAND_FIELDS = tuple(
    field
    for field in TASK_FIELDS
    if field not in ("foreach", "if", "run", "inputs", "outputs", "expand", "after")
)
_SPEC_FIELDS = frozenset(TASK_FIELDS) - {
    "foreach", "if", "cost", "inputs", "outputs", *OUTPUT_MARKS
}  # fmt: skip
# what `defaults:` may say for all tasks that do not say it themselves
DEFAULT_FIELDS = ("retries", "retry", "wait", "timeout", *AROUND_FIELDS, *REQUEST_FIELDS)
CATEGORIES = "categories"  # in `defaults:`, what it says for the tasks of one category
_MOST_COSTS = 1 << 27  # a table of tasks x processors of 1 GiB

Fields = Mapping[object, object]


def workflow_from_dict(
    content: Mapping[str, object],
    params: Mapping[str, object] | None = None,
    directory: Path = Path(),
    origin: SourceText = NOWHERE,
    others: Collection[str] = (),
    made: MadeFiles | None = None,
) -> Workflow:
    """A workflow from the content of a foreplan file, with these values of its parameters.

    What loops go over is looked for in the directory, that of the data. Of what a task has printed,
    `others` are the outputs of other tasks, and `made` the files that it loops over.
    """
    document = mapping(content)
    known = (FIELDS, TASK_FIELDS)
    if ("processors" in document or "hosts" in document) and "tasks" not in document:
        raise InputError("this is a platform, not a workflow")
    expansion = None if params else plain_workflow(document, origin, known)
    if expansion is None:
        from foreplan.formats.expansion import expand

        expansion = expand(document, origin, params or {}, directory, known, others, made)
    with expansion.reading():
        return _read(expansion)


def workflow_from_literals(content: Mapping[str, object]) -> Workflow:
    """Read a document in which every text means itself: it has no loops and no placeholders."""
    expansion = literal_workflow(mapping(content), NOWHERE, (FIELDS, TASK_FIELDS))
    with expansion.reading():
        return _read(expansion)


def _read(expansion: Expansion) -> Workflow:
    """A workflow from plain documents, one per file; shells and defaults are of their own files."""
    if not any("tasks" in part.content for part in expansion.parts):
        required(expansion.parts[-1].content, "tasks")
    bodies: dict[str, Fields] = {}
    shells: list[str | None] = []  # the shell of each task's file
    sizes: dict[str, float] = {}
    pools: dict[str, float] = {}
    for part in expansion.parts:
        with part.reading():
            defaults, shell = _defaults(part.content.get("defaults")), _shell(part.content)
            for task, body in part.tasks.items():
                bodies[task] = _filled(body, defaults)
                shells.append(shell)
            _unite(sizes, _file_sizes(part.content.get("files")), "files")
            _unite(pools, pools_of(part.content), "pools")
    if not bodies:
        raise wrong(NO_TASKS, "tasks")
    names = list(bodies)
    index = {task: i for i, task in enumerate(names)}
    items: list[Item] = []
    seen: set[tuple[int, int]] = set()
    for part in expansion.parts:
        with part.reading():
            items += _edges(part.content.get("edges"), index, seen)
            called = part.content.get("name", "")
            title = "" if called == "" else name(called, "name")
    expansions = Expansions(bodies)
    items += expansions.edges(index, items) if expansions.any else []

    def files(i: int, key: str) -> Sequence[str]:
        listed = _file_list(bodies[names[i]], names[i], key)
        return expansions.files(names[i], key, listed) if expansions.any else listed

    def label(i: int) -> str:
        line = expansion.origins.find_line(names[i])
        return f"{shown(names[i])} ({line})" if line else shown(names[i])

    def advise(i: int, j: int) -> str:
        if key := expansion.origins.find_template(names[i], names[j]):
            held = " and ".join(dict.fromkeys(f"{{{one}}}" for one in references_in(key)))
            return f"put {held} into the name of the file"
        return "only one task can make a file"

    keys = ("outputs", "inputs")
    items += file_items(sizes, names, keys, files, lambda i: ("tasks", names[i]), label, advise)
    base_cost, processor_cost = _costs(bodies)
    specs = _specs(bodies, shells, expansions)
    for i, spec in specs.items():  # seconds by width are a cost
        if spec.request is not None and spec.request.seconds and "cost" not in bodies[names[i]]:
            base_cost[i] = spec.request.seconds[0]
    try:
        workflow = Workflow.from_items(
            name=title,
            task_names=names,
            base_cost=base_cost,
            items=items,
            processor_cost=processor_cost,
            specs=specs,
            pools=pools,
            origins=expansion.origins,
        )
        check_listed(workflow)
    except InputError as error:  # of a task
        raise error.at(place_of("tasks", error.key) if error.key else "") from None
    return workflow


def _unite(into: dict[str, float], more: Mapping[str, float], section: str) -> None:
    """Take over what a file says, unless one that it includes says otherwise."""
    for key, value in more.items():
        if into.setdefault(key, value) != value:
            problem = f"{shown(key)} is {plain(value)} here, and {plain(into[key])} in another file"
            raise wrong(problem, section, key)


Defaults = Mapping[str | None, Fields]  # by category; None: of all tasks


def _defaults(section: object) -> Defaults:
    """Read the fields for tasks that do not set them, by category."""
    whole = mapping({} if section is None else section, "defaults")
    known = (*DEFAULT_FIELDS, CATEGORIES)
    found: dict[str | None, Fields] = {None: _default(whole, known, "defaults")}
    place = ("defaults", CATEGORIES)
    for category, fields in named(whole.get(CATEGORIES), "the category", *place).items():
        own = mapping({} if fields is None else fields, *place, category)
        found[category] = _default(own, DEFAULT_FIELDS, *place, category)
    return found


def _default(fields: Fields, known: Sequence[str], *place: str) -> Fields:
    check_fields(fields, known, *place)
    check_memory(fields, *place)
    fields = {key: v for key, v in fields.items() if key != CATEGORIES}
    request_from_fields(fields, *place)
    _retries(fields, *place)
    _timeout(fields, *place)
    _wait(fields, *place)
    retry_by_cause(fields.get("retry", {}), *place, "retry")
    surroundings_from_fields(fields, *place)
    return fields


def _filled(body: Fields, defaults: Defaults) -> Fields:
    """Return the fields of a task with the defaults; a parallel share goes with the cores."""
    if len(defaults) > 1 and isinstance(category := body.get("category"), str):
        body = _over(defaults.get(category, {}), body)
    return _over(defaults[None], body)


def _over(defaults: Fields, body: Fields) -> Fields:
    if not defaults:
        return body
    without = {"parallel"} if "cores" in body else set()
    return filled_around(body, {key: v for key, v in defaults.items() if key not in without})


def _costs(bodies: dict[str, Fields]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Seconds at speed 1, and seconds by processor; NaN where a task does not say."""
    n = len(bodies)
    base = np.full(n, np.nan)
    by_processor: dict[str, FloatArray] = {}
    for i, (task, fields) in enumerate(bodies.items()):
        if "cost" not in fields:
            continue
        cost = fields["cost"]
        if not isinstance(cost, Mapping) or as_placeholder(cost):
            base[i] = number(cost, "tasks", task, "cost")
            continue
        if not cost:
            raise wrong("the cost names no processor", "tasks", task, "cost")
        for key, seconds in cost.items():
            processor = name(key, "tasks", task, "cost")
            column = by_processor.get(processor)
            if column is None:
                if (len(by_processor) + 1) * n > _MOST_COSTS:
                    raise wrong("the costs name too many processors", "tasks", task, "cost")
                column = by_processor[processor] = np.full(n, np.nan)
            if not np.isnan(column[i]):
                raise wrong(f"{shown(processor)} is given twice", "tasks", task, "cost")
            column[i] = number(seconds, "tasks", task, "cost", processor)
    return base, by_processor


def _specs(
    bodies: dict[str, Fields],
    shells: Sequence[str | None],
    expansions: Expansions,
) -> dict[int, TaskSpec]:
    """Return the specs of tasks that have one, with the shells of their files."""
    specs: dict[int, TaskSpec] = {}
    for i, (task, fields) in enumerate(bodies.items()):
        check_memory(fields, "tasks", task)
        request = request_from_fields(fields, "tasks", task)
        marks = _output_marks(fields, task)
        if request is not None or marks or not _SPEC_FIELDS.isdisjoint(fields):
            category, run = (
                read(fields[key], "tasks", task, key) if key in fields else None
                for key, read in (("category", string), ("run", command))
            )
            specs[i] = TaskSpec(
                category,
                run,
                _retries(fields, "tasks", task),
                _timeout(fields, "tasks", task),
                _shell(fields, "tasks", task) or (None if run is None else shells[i]),
                _ignores(fields, task),
                _cache(fields, task),
                wait=_wait(fields, "tasks", task),
                retry=retry_by_cause(fields["retry"], "tasks", task, "retry")
                if "retry" in fields
                else (),
                request=request,
                around=surroundings_from_fields(fields, "tasks", task),
                temp=marks.get("temp", ()),
                protected=marks.get("protected", ()),
                **(
                    expansions.said(task, partial(_file_list, fields, task, "inputs"))
                    if expansions.any
                    else {}
                ),
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


def _cache(fields: Fields, task: str) -> bool:
    return _is_said(fields, "cache", "tasks", task)


def _is_said(fields: Fields, key: str, *place: str | int, default: bool = False) -> bool:
    value = fields.get(key, default)
    if not isinstance(value, bool):
        how = f"; for one of the outputs write {{path: FILE, {key}: true}}" if key in _MARKS else ""
        raise wrong(f"expected true or false, not {shown(value)}{how}", *place, key)
    return value


def _output_marks(fields: Fields, task: str) -> dict[str, tuple[str, ...]]:
    """The outputs that are temporary or protected: each says so, or the task for all of them."""
    outputs = as_list(fields.get("outputs"))
    if _MARKS.isdisjoint(fields) and all(type(entry) is str for entry in outputs):
        return {}
    whole = {key: _is_said(fields, key, "tasks", task) for key in OUTPUT_MARKS}
    if not any(whole.values()) and not any(isinstance(entry, Mapping) for entry in outputs):
        return {}
    if not outputs:
        key = next(key for key, is_so in whole.items() if is_so)
        raise wrong("it has no outputs that could be so", "tasks", task, key)
    found: dict[str, list[str]] = {key: [] for key in OUTPUT_MARKS}
    for i, entry in enumerate(outputs):
        place = ("tasks", task, "outputs", i)
        path, own = _output_path(entry, *place), entry if isinstance(entry, Mapping) else {}
        marks = [k for k in OUTPUT_MARKS if _is_said(own, k, *place, default=whole[k])]
        if len(marks) > 1:
            problem = f"{shown(path)} cannot be both temporary and protected"
            raise wrong(problem, "tasks", task, "outputs")
        for key in marks:
            found[key].append(path)
    return {key: tuple(paths) for key, paths in found.items() if paths}


def _output_path(entry: object, *place: str | int) -> str:
    """The name of an output, alone or among what else is said of it."""
    if not isinstance(entry, Mapping) or as_placeholder(entry):
        return name(entry, *place)
    check_fields(entry, ("path", *OUTPUT_MARKS), *place)
    return name(required(entry, "path", *place), *place, "path")


def _retries(fields: Fields, *place: str) -> int | None:
    return whole_number(fields["retries"], *place, "retries") if "retries" in fields else None


def _wait(fields: Fields, *place: str) -> float | None:
    return time_span(fields["wait"], *place, "wait") if "wait" in fields else None


def retry_by_cause(section: object, *place: str) -> tuple[tuple[str, int], ...]:
    """How often a task is tried again, by the cause of its failure."""
    if not isinstance(section, Mapping):
        problem = f"expected causes and how often each, as {{exit: 1}}, not {shown(section)}"
        raise wrong(f"{problem}; for all causes together there is `retries`", *place)
    causes = named(section, "the cause", *place)
    for cause in causes:
        if cause not in CAUSES:
            raise unknown("cause", cause, CAUSES, *place)
    found = ((cause, whole_number(times, *place, cause)) for cause, times in causes.items())
    return tuple(sorted(found))


def _timeout(fields: Fields, *place: str) -> float | None:
    if "timeout" not in fields:
        return None
    place = (*place, "timeout")
    seconds = number(fields["timeout"], *place)
    if not seconds:
        raise wrong("the seconds must be more than 0; without the field there is no limit", *place)
    return seconds


def _edges(section: object, index: dict[str, int], seen: set[tuple[int, int]]) -> list[Item]:
    """Each edge is an item of its own, with one consumer and no name."""
    items: list[Item] = []
    for i, entry in enumerate(listed(section, "edges")):
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


def file_items(
    sizes: Mapping[str, float],
    tasks: Sequence[object],
    keys: tuple[str, str],
    files: Callable[[int, str], Iterable[str]],
    place: Callable[[int], tuple[str | int, ...]],
    label: Callable[[int], str] | None = None,
    advise: Callable[[int, int], str] | None = None,
) -> list[Item]:
    """Each file is one item, one producer or none, many consumers; in the order of the sizes.

    The keys are those of the files that a task writes and reads, each named once. For messages,
    `label` returns the name of a task, and `advise` what to do about two tasks that make a file.
    """
    written, read = keys
    producer: dict[str, int] = {}
    consumers: dict[str, list[int]] = {file: [] for file in sizes}
    for i, task in enumerate(tasks):
        for file in files(i, written):
            if producer.setdefault(file, i) != i:
                maker = producer[file]
                both = f"{label(maker) if label else shown(tasks[maker])} and {shown(task)}"
                problem = f"the file {shown(file)} is made by both {both}"
                how = advise(maker, i) if advise else ""
                raise wrong(f"{problem}{how and ': '}{how}", *place(i), written)
            consumers.setdefault(file, [])
        for file in files(i, read):
            consumers.setdefault(file, []).append(i)
    for file, maker in producer.items():
        if maker in consumers[file]:
            raise wrong(f"the task reads its own output {shown(file)}", *place(maker), read)
    return [
        Item(sizes.get(file, 0.0), producer.get(file), readers, file)
        for file, readers in consumers.items()
        if readers or file in producer
    ]


def _file_sizes(section: object) -> dict[str, float]:
    sizes = named(section, "the file", "files")
    return {file: number(size, "files", file) for file, size in sizes.items()}


def _file_list(fields: Fields, task: str, field: str) -> Sequence[str]:
    if field not in fields:
        return ()
    place = ("tasks", task, field)
    path = _output_path if field == "outputs" else name
    files = [path(f, *place) for f in one_or_more(fields[field], *place)]
    if len(set(files)) < len(files):
        repeated = next(f for i, f in enumerate(files) if f in files[:i])
        raise wrong(f"the file {shown(repeated)} is listed twice", *place)
    return files


def workflow_to_dict(workflow: Workflow) -> dict[str, object]:
    """Return the content of a foreplan file, with text that looks like a placeholder escaped."""
    return escape_document(workflow_to_literals(workflow))


def workflow_to_literals(workflow: Workflow) -> dict[str, object]:
    """Return the fields of a workflow as they are; an item that no edge can be becomes a file."""
    files, inputs, outputs, edges = _split_items(workflow)
    shell = _common_shell(workflow)
    tasks: dict[str, dict[str, object]] = {}
    for i, task in enumerate(workflow.task_names):
        fields = tasks[task] = _cost_field(workflow, i)
        spec = workflow.spec(i)
        written = as_written(workflow, i, inputs.get(i), outputs.get(i))
        for key, value in (
            ("category", spec.category),
            ("run", spec.run),
            ("shell", None if spec.run is not None and spec.shell == shell else spec.shell),
            ("retries", spec.retries),
            ("retry", dict(spec.retry) or None),
            ("wait", None if spec.wait is None else plain(float(spec.wait))),
            ("timeout", None if spec.timeout is None else plain(float(spec.timeout))),
            ("inputs", written["inputs"]),
            *_output_fields(written["outputs"], spec),
            ("after", written.get("after")),
            ("expand", spec.expand or None),
            ("ignores", list(spec.ignores) or None),
            ("cache", spec.cache or None),
        ):
            if value is not None:
                fields[key] = value
        if spec.around is not None:
            fields |= surroundings_fields(spec.around)
        if spec.request is not None:
            fields |= request_fields(spec.request)
    content: dict[str, object] = {"name": workflow.name} if workflow.name else {}
    content |= {} if shell is None else {"shell": shell}
    if workflow.pools:
        content["pools"] = {pool: plain(float(size)) for pool, size in workflow.pools.items()}
    content["tasks"] = tasks
    content |= {"edges": edges} if edges else {}
    return content | ({"files": files} if files else {})


def _output_fields(outputs: list[str] | None, spec: TaskSpec) -> list[tuple[str, object]]:
    """The outputs, and what is said of all of them or of some."""
    if outputs is None or not (spec.temp or spec.protected):
        return [("outputs", outputs)]
    marked = {key: {*getattr(spec, key)} for key in OUTPUT_MARKS}
    for key, names in marked.items():
        if names == {*outputs}:
            return [("outputs", outputs), (key, True)]
    said = [{key: True for key, names in marked.items() if file in names} for file in outputs]
    listed_ = [{"path": f, **marks} if marks else f for f, marks in zip(outputs, said, strict=True)]
    return [("outputs", listed_)]


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
            "a foreplan file gives a cost by processor or one for all, not both",
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
