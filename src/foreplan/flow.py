"""A flow: Python functions and commands as tasks, written down as data; nothing runs here."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any

from foreplan.errors import InputError
from foreplan.executors.calls import await_result
from foreplan.executors.hidden import find_hidden, refusal
from foreplan.formats.resources import REQUEST_FIELDS, check_memory, pools_of, request_from_fields
from foreplan.lazy import drawn_by
from foreplan.model import Call, Item, Ref, TaskSpec, Workflow
from foreplan.model.call import (
    FileRef,
    Handle,
    ReturnedTasks,
    bare,
    files_of,
    found_in,
    parts_of,
    qualified_name,
    refs,
    with_parts,
)
from foreplan.store.digests import PLAIN

_OPTIONS = (
    "name",
    "cost",
    "category",
    "retries",
    "retry",
    "wait",
    "timeout",
    "size",
    "after",
    "expand",
    "keep",
    *REQUEST_FIELDS,
)


@dataclass(frozen=True)
class Task(Handle):
    """A task of a flow; as an argument of a later task it stands for its result.

    `task[0]`, `task["a"]` stand for a part of it.
    """

    flow: Flow = field(repr=False)
    index: int
    name: str

    def __getitem__(self, key: Any) -> Any:
        return ResultPart(self, (key,))

    def __iter__(self) -> Iterator[Any]:
        raise _not_iterable(self.name)


@dataclass(frozen=True)
class CommandTask(Task):
    """A command of a flow; its result are the paths of its outputs."""

    outputs: tuple[File, ...] = field(repr=False)

    @property
    def output(self) -> File:
        """Its only output."""
        if len(self.outputs) != 1:
            problem = f"the command {self.name!r} has {len(self.outputs) or 'no'} outputs"
            raise InputError(f"{problem}: `.output` is for one; `.outputs` are all of them")
        return self.outputs[0]

    def __getitem__(self, key: Any) -> Any:
        return self.outputs[key]


@dataclass(frozen=True)
class ResultPart(Handle):
    """A part of a task's result, where that is an argument of a later task."""

    task: Task
    path: tuple[Any, ...]

    def __getitem__(self, key: Any) -> ResultPart:
        return ResultPart(self.task, (*self.path, key))

    def __iter__(self) -> Iterator[Any]:
        raise _not_iterable(self.task.name)


@dataclass(frozen=True)
class File(Handle):
    """A file of the data directory; a function that has it as an argument gets its path."""

    flow: Flow = field(repr=False)
    name: str


def _not_iterable(name: str) -> TypeError:
    return TypeError(
        f"the result of {name!r} is not known before the flow has run, so there is nothing to go "
        "through: name its parts, as in t[0] and t['a'], or give all of it to one task"
    )


@dataclass(frozen=True)
class _Entry:
    call: Call | None  # None: it is a command
    cost: float
    size: float
    spec: TaskSpec
    reads: Sequence[str] = ()  # files
    makes: Sequence[str] = ()


_OPEN = object()  # stands for the copy of what is being copied


class _Copies:
    """What lists, sets and dicts were when they were last given to a task.

    Thousands of tasks may be given the same large one: there is one copy as long as it is the same.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}  # the original is kept, and so its id

    def __reduce__(self) -> tuple[type[_Copies], tuple[()]]:
        return _Copies, ()  # elsewhere ids are others

    def of(self, value: Any, copy: Any) -> Any:
        """The copy that was made before, if this one is the same."""
        _, known = self._known.get(id(value), (None, None))
        if known is not None and len(known) == len(copy) and all(map(operator.is_, known, copy)):
            if not isinstance(copy, dict):
                return known
            if all(map(operator.is_, known.values(), copy.values())):
                return known
        self._known[id(value)] = (value, copy)
        return copy


class Flow:
    """A workflow of Python functions, and of commands beside them.

    >>> flow = Flow("sums")
    >>> small = flow.task(sum, [1, 2])
    >>> large = flow.task(max, [small, 10], cost=2)
    >>> workflow, calls = flow.build()
    >>> workflow.task_names
    ('sum', 'max')
    >>> calls[1].args
    ([Ref(task=0), 10],)

    Tasks are found in lists, tuples, named tuples, sets, the values of dicts and the fields of
    dataclasses, nested as deep as you like. In an object of another class, or in a function, they
    are refused. Lists, sets and dicts are taken as they are when the task is added: what changes in
    them later does not count. `pools` are tokens that tasks share, where the platform has none of
    the name.
    """

    def __init__(self, name: str = "flow", *, pools: Mapping[str, float] | None = None) -> None:
        self.name = name
        self._pools = pools_of({"pools": pools}, f"flow {name!r}")
        self._tasks: list[Task] = []
        self._entries: list[_Entry] = []
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}  # name -> how many tasks have asked for it
        self._readers: list[dict[int, None]] = []  # task -> the tasks that wait for it
        self._copies = _Copies()
        self._looked_into: dict[int, Any] = {}  # functions and objects in which no task hides

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the tasks, which a pickle of a call may not hold."""
        outputs = [task.outputs if isinstance(task, CommandTask) else None for task in self._tasks]
        named = [None if files is None else [file.name for file in files] for files in outputs]
        tasks = [(task.name, files) for task, files in zip(self._tasks, named, strict=True)]
        return {**vars(self), "_tasks": tasks, "_looked_into": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the tasks again."""
        vars(self).update(state)
        self._tasks = []
        for index, (name, files) in enumerate(state["_tasks"]):
            made = None if files is None else tuple(File(self, file) for file in files)
            new = Task(self, index, name) if made is None else CommandTask(self, index, name, made)
            self._tasks.append(new)

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, {len(self)} task{'' if len(self) == 1 else 's'})"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_flow")

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, in the order in which they were added."""
        return tuple(self._tasks)

    def task(
        self,
        function: Callable[..., Any],
        /,
        *args: Any,
        name: str | None = None,
        cost: float | None = None,
        category: str | None = None,
        retries: int | None = None,
        retry: Mapping[str, int] | None = None,
        wait: float | str | None = None,
        timeout: float | None = None,
        size: float | None = None,
        after: Task | Iterable[Task] = (),
        expand: bool = False,
        keep: bool | None = None,
        cores: int | Sequence[int] | None = None,
        parallel: float | Mapping[int, float] | None = None,
        memory: float | str | None = None,
        gpus: int | None = None,
        resources: Mapping[str, float | str] | None = None,
        pools: Mapping[str, float] | None = None,
        on: str | Sequence[str] = (),
        not_on: str | Sequence[str] = (),
        **kwargs: Any,
    ) -> Task:
        """Add the call `function(*args, **kwargs)`; tasks among the arguments come first.

        `cost` is seconds at speed 1 and `size` bytes of the result, if known; tasks of one
        `category` (default: the function) take about as long as each other. `after` names tasks
        to wait for without using their results. `retry` says how often by the cause of a failure,
        where that is not `retries`, and `wait` how long ("10s") it rests before it is tried again,
        twice as long each time. A `name` that is taken is numbered. It takes
        `cores` of one host (or one of several numbers, by its `parallel` share), `memory` and other
        `resources` ("8GB"), `gpus`, and tokens of `pools`, `on` hosts with these names or labels. A
        parameter of the function with the name of one of these options is given through `call`.
        With `expand` the function returns a flow, or tasks of one, which are added to the run: who
        takes its result waits for them, and takes theirs. With `keep` its result is kept however
        large it is, on Dask as well, where only results under 1 MB are if other tasks read them.
        """
        options: dict[str, Any] = {"name": name, "cost": cost, "category": category}
        options |= {"retries": retries, "retry": retry, "wait": wait, "timeout": timeout}
        options |= {"size": size, "after": after, "expand": expand or None, "keep": keep}
        options |= {"cores": cores, "parallel": parallel, "memory": memory, "gpus": gpus}
        options |= {"resources": resources, "pools": pools, "on": on, "not_on": not_on}
        _check_arguments(function, args, kwargs, set(_said(options)))
        options["expand"] = expand
        return self.call(function, args, kwargs, **options)

    def call(
        self,
        function: Callable[..., Any],
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        cost: float | None = None,
        category: str | None = None,
        retries: int | None = None,
        retry: Mapping[str, int] | None = None,
        wait: float | str | None = None,
        timeout: float | None = None,
        size: float | None = None,
        after: Task | Iterable[Task] = (),
        expand: bool = False,
        keep: bool | None = None,
        cores: int | Sequence[int] | None = None,
        parallel: float | Mapping[int, float] | None = None,
        memory: float | str | None = None,
        gpus: int | None = None,
        resources: Mapping[str, float | str] | None = None,
        pools: Mapping[str, float] | None = None,
        on: str | Sequence[str] = (),
        not_on: str | Sequence[str] = (),
    ) -> Task:
        """The same as `task`, with the function's arguments kept apart from the options."""
        if not callable(function):
            problem = f"a task needs a function, not {_short(function)}"
            raise InputError(f"{problem}; write flow.task(f, x), not flow.task(f(x))")
        for text in (name, category):
            if not isinstance(text, str | None):
                raise InputError(f"names and categories of tasks are strings, not {_short(text)}")
        label = name or _name_of(function)
        place = f"task {label!r}"
        _refuse_generator(function, place)
        needs: dict[str, Any] = {"cores": cores, "parallel": parallel, "memory": memory}
        needs |= {"gpus": gpus, "resources": resources, "pools": pools, "on": on, "not_on": not_on}
        said = _said(needs)
        check_memory(said, place)
        request = request_from_fields(said, place)
        if cost is None and request is not None and request.seconds:
            cost = request.seconds[0]
        for option, given in (("expand", expand), ("keep", keep)):
            if not isinstance(given, bool | None):
                problem = f"expected True or False, not {_short(given)}"
                raise InputError(problem, place=f"{place}: {option}")
        called = functools.partial(call_expanding, function) if expand else function
        made = Call(called, *self._arguments(function, args, kwargs or {}, place))
        entry = _Entry(
            made,
            math.nan if cost is None else _number(cost, f"{place}: cost"),
            0.0 if size is None else _number(size, f"{place}: size"),
            TaskSpec(
                category or qualified_name(function),
                retries=None if retries is None else _whole(retries, f"{place}: retries"),
                timeout=None if timeout is None else _positive(timeout, f"{place}: timeout"),
                request=request,
                expand=bool(expand),
                keep=bool(keep),
                **_patience(wait, retry, place),
            ),
            files_of(made),
        )
        earlier = refs(made) + self._earlier(after)
        task = Task(self, len(self._tasks), self._take_name(label))
        self._add(task, entry, earlier)
        return task

    def command(
        self,
        run: str,
        /,
        *,
        inputs: Any = (),
        outputs: Any = (),
        name: str | None = None,
        after: Task | Iterable[Task] = (),
        **options: Any,
    ) -> CommandTask:
        """Add a shell command, as a task of a workflow's file is one.

        `inputs` and `outputs` are files of the data directory: their names, `flow.file(...)`, or
        outputs of other commands. They stand in the command as `{input}`, `{inputs}`, `{inputs[0]}`
        and so on, quoted for the shell. What reads a file waits for the command that makes it,
        whichever of them was added first; `after` names tasks to wait for beside these. It has the
        options of a task of a file: `cost`, `category`, `retries`, `timeout`, `cores`, `memory`,
        `shell`, `env` and all others.
        """
        if not isinstance(run, str):
            raise InputError(f"a command is a text for the shell, not {_short(run)}")
        if not isinstance(name, str | None):
            raise InputError(f"names of tasks are strings, not {_short(name)}")
        label = name or _program_of(run)
        reads, makes = self._files(inputs, "inputs", label), self._files(outputs, "outputs", label)
        spec, cost = _read_command(run, label, reads, makes, _said(options))
        earlier, index = self._earlier(after), len(self._tasks)
        files = tuple(File(self, file) for file in makes)
        task = CommandTask(self, index, self._take_name(label), files)
        self._add(task, _Entry(None, cost, 0.0, spec, reads, makes), earlier)
        return task

    def file(self, name: str | PathLike[str]) -> File:
        """A file of the data directory, as an argument of a function or an input of a command."""
        return File(self, _file_name(name))

    def _files(self, given: Any, what: str, label: str) -> list[str]:
        """The names of files, given one by one or all outputs of a command together."""
        if isinstance(given, str | PathLike | File | Task):
            given = [given]
        names: list[str] = []
        for file in given:
            if isinstance(file, CommandTask):
                self.index(file)
                names += [output.name for output in file.outputs]
            elif isinstance(file, File):
                names.append(self._own_file(file).name)
            elif isinstance(file, Task | ResultPart):
                problem = "the result of a function is no file"
                hint = "let the function write one that the command reads, and wait for it: after="
                raise InputError(f"{problem}; {hint}", place=f"task {label!r}: {what}")
            else:
                names.append(_file_name(file, f"task {label!r}: {what}"))
        return names

    def _own_file(self, file: File) -> File:
        if file.flow is not self:
            problem = f"the file {file.name!r} is of another flow, {file.flow.name!r}"
            raise InputError(f"{problem}; a flow uses only its own")
        return file

    def _earlier(self, after: Task | Iterable[Task]) -> list[int]:
        return [self.index(t) for t in ([after] if isinstance(after, Task) else after)]

    def _add(self, task: Task, entry: _Entry, earlier: Iterable[int]) -> None:
        self._tasks.append(task)
        self._entries.append(entry)
        self._readers.append({})
        for source in earlier:
            self._readers[source][task.index] = None

    def edge(self, before: Task, after: Task) -> None:
        """Let `after` wait for `before` without using its result.

        The result counts as needed where `after` runs, so this is for tasks with small ones.
        """
        first, second = self.index(before), self.index(after)
        if first >= second:
            problem = f"{after.name!r} cannot wait for {before.name!r}, which was not added earlier"
            raise InputError(f"{problem}; an edge goes from an earlier task to a later one")
        self._readers[first][second] = None

    def index(self, task: Task) -> int:
        """The task's number in the workflow."""
        if not isinstance(task, Task):
            raise InputError(f"expected a task of the flow {self.name!r}, not {_short(task)}")
        if task.flow is not self:
            problem = f"the task {task.name!r} belongs to another flow, {task.flow.name!r}"
            raise InputError(f"{problem}; a flow uses only its own tasks")
        return task.index

    def build(self) -> tuple[Workflow, tuple[Call | None, ...]]:
        """The workflow, and the call of each task; None of one that is a command.

        Items are the results of functions, in their order, and behind them files. A command has
        a nameless one, too, if a task waits for it without reading its files.
        """
        if not self._tasks:
            raise InputError(f"the flow {self.name!r} has no tasks; add some with flow.task")
        names, entries = [task.name for task in self._tasks], self._entries
        items = [
            Item(entry.size, i, sorted(readers))
            for i, (entry, readers) in enumerate(zip(entries, self._readers, strict=True))
            if entry.call is not None or readers
        ]
        if any(entry.reads or entry.makes for entry in entries):
            from foreplan.formats.foreplan_workflow import file_items

            items += file_items(
                {},
                names,
                ("outputs", "inputs"),
                lambda i, key: entries[i].makes if key == "outputs" else entries[i].reads,
                lambda i: ("tasks", names[i]),
            )
        workflow = Workflow.from_items(
            self.name,
            names,
            [entry.cost for entry in entries],
            items,
            specs={i: entry.spec for i, entry in enumerate(entries)},
            pools=self._pools,
        )
        return workflow, tuple(entry.call for entry in self._entries)

    def _arguments(
        self, function: object, args: Iterable[Any], kwargs: Mapping[str, Any], place: str
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        self._refuse_hidden(function, place)
        known: dict[int, tuple[Any, Any]] = {}
        positional = tuple(self._referring(value, place, known) for value in args)
        named = {key: self._referring(value, place, known) for key, value in kwargs.items()}
        return positional, named

    def _referring(self, value: Any, place: str, known: dict[int, tuple[Any, Any]]) -> Any:
        """The value with a Ref in the place of each task; what can change is copied.

        Of each object there is one copy, which is known from then on.
        """
        if type(value) in PLAIN:
            return value
        if isinstance(value, Handle):
            return self._reference(value, place)
        parts = parts_of(value)
        if parts is None:
            self._refuse_hidden(value, place)
            return value
        if id(value) not in known:
            known[id(value)] = (value, _OPEN)
            known[id(value)] = (value, self._with_references(value, parts, place, known))
        new = known[id(value)][1]
        if new is not _OPEN:
            return new
        if found_in(value, Handle):
            problem = f"a {type(value).__name__} holds itself and a task"
            raise InputError(f"{problem}; give the task as an argument of its own", place=place)
        return value

    def _with_references(
        self, value: Any, parts: Iterable[Any], place: str, known: dict[int, tuple[Any, Any]]
    ) -> Any:
        kind = type(value)
        if kind is dict:
            keys = [key for key in value if type(key) not in PLAIN]
            self._refuse_hidden(keys, place, "a key of a dict")
        elif kind not in (list, tuple, set, frozenset) and not found_in(value, Handle):
            self._refuse_hidden(value, place)
            return value
        old = list(parts)
        new = [self._referring(part, place, known) for part in old]
        if kind in (list, set, dict):
            return self._copies.of(value, with_parts(value, new))
        return value if all(map(operator.is_, old, new)) else with_parts(value, new)

    def _reference(self, value: Handle, place: str) -> Any:
        """Return the reference that stands for a task, a part of its result, or a file."""
        if isinstance(value, CommandTask):
            self.index(value)
            if not value.outputs:
                problem = f"the command {value.name!r} has no outputs, so it stands for nothing"
                raise InputError(f"{problem}; to wait for it, say after=", place=place)
            return tuple(FileRef(file.name) for file in value.outputs)
        if isinstance(value, Task):
            return Ref(self.index(value))
        if isinstance(value, ResultPart):
            return Ref(self.index(value.task), value.path)
        assert isinstance(value, File)
        return FileRef(self._own_file(value).name)

    def _refuse_hidden(self, value: Any, place: str, where: str = "") -> None:
        """Refuse tasks where no result can be put."""
        if id(value) in self._looked_into:
            return
        if (hidden := find_hidden(value, where or "an object")) is not None:
            raise InputError(refusal(*hidden), place=place)
        if not where:  # a value of the user's, whose id stays its own
            self._looked_into[id(value)] = value

    def _take_name(self, wanted: str) -> str:
        name = wanted
        while name in self._names:
            self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            name = f"{wanted}-{self._numbers[wanted]}"
        self._names.add(name)
        return name


def call_expanding(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> ReturnedTasks:
    """Call a function that adds tasks; what it returns as plain data."""
    given = await_result(function(*args, **kwargs))
    try:
        return _returned(given)
    except InputError as error:
        return ReturnedTasks(problem=str(error))


def _returned(given: Any) -> ReturnedTasks:
    handles, others = list[Any](), list[Any]()
    _sort_leaves(given, handles, others)
    if isinstance(given, Flow):
        flow, given = given, list(given.tasks)
    elif handles:
        first = handles[0]
        flow = first.task.flow if isinstance(first, ResultPart) else first.flow
    elif others:
        raise InputError(
            f"it has returned {_short(given)}, which is no task; a function with expand=True "
            "returns a foreplan.Flow, or tasks of one: nothing else says what to add"
        )
    else:  # a list of no tasks
        return ReturnedTasks(value=given)
    if not len(flow):
        return ReturnedTasks(value=given)
    _check_added(flow)
    value = flow._referring(given, "what it has returned", {})
    if files_of(value):
        raise InputError("it has returned a file; only functions of results can be added")
    workflow, calls = flow.build()
    given_back = set(refs(value))
    specs = {
        # of a function that says nothing, who adds it tells the category: here runs a worker
        n: replace(spec, category=_said_category(spec, calls[n]), returned=n in given_back)
        for n, spec in workflow.specs.items()
    }
    return ReturnedTasks(replace(workflow, specs=specs), calls, value)


def _check_added(flow: Flow) -> None:
    """Refuse what cannot be added in a run."""
    for task, entry in zip(flow.tasks, flow._entries, strict=True):
        if entry.spec.expand:
            raise InputError(f"the task {task.name!r} says expand=True: added ones may not")
        if entry.call is None or entry.reads:
            problem = f"the task {task.name!r} is a command, or takes a file"
            raise InputError(f"{problem}: only functions of results can be added")


def _said_category(spec: TaskSpec, call: Call | None) -> str | None:
    follows = call is not None and spec.category == qualified_name(call.function)
    return None if follows else spec.category


def _sort_leaves(value: Any, handles: list[Any], others: list[Any]) -> None:
    """Find the tasks, and all else, in what is looked into."""
    if (parts := parts_of(value)) is not None:
        for part in parts:
            _sort_leaves(part, handles, others)
    else:
        (handles if isinstance(value, Handle) else others).append(value)


def _said(options: Mapping[str, Any]) -> dict[object, Any]:
    """The options that are given."""
    empty = [o for o, v in options.items() if isinstance(v, list | tuple) and not v]
    return {o: v for o, v in options.items() if v is not None and o not in empty}


def _refuse_generator(function: Any, place: str) -> None:
    """Refuse functions whose results could not be kept."""
    while isinstance(function, functools.partial):
        function = function.func
    called = function if hasattr(function, "__qualname__") else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        problem = f"{_name_of(function)} is a generator function, and generators cannot be kept"
        raise InputError(f"{problem}; let it return a list of what it yields", place=place)


def _check_arguments(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: set[object]
) -> None:
    """Find a wrong call now rather than in the run, and an option that could be an argument."""
    signature = _signature(function)
    if signature is None:
        return
    name = _name_of(function)
    teach = f"flow.call({name}, args, kwargs, ...) keeps its arguments and the options apart"
    try:
        bound = set(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        taken = options & set(signature.parameters)
        hint = f"; {teach}" if taken else f"; options of a task are {', '.join(_OPTIONS)}"
        raise InputError(f"{name} cannot be called like this: {error}{hint}") from None
    for option in sorted((set(signature.parameters) & options) - bound):
        problem = f"{option!r} is an option of flow.task and also a parameter of {name}"
        raise InputError(f"{problem}; {teach}")


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return _signature_of(function)
    except TypeError:  # it cannot be hashed, or is no function
        return None


@functools.lru_cache(maxsize=256)
def _signature_of(function: Any) -> inspect.Signature | None:
    try:
        # a wrapper may take other arguments than the function that it wraps
        return inspect.signature(function, follow_wrapped=False)
    except ValueError:  # some builtins have none
        return None


def _name_of(function: Any) -> str:
    return str(getattr(bare(function), "__name__", "task")).strip("<>")


def _program_of(run: str) -> str:
    """What a command is called if nobody says it: the first word that could be a program."""
    words = (word for word in run.split() if re.fullmatch(r"[\w./+-]*\w", word))
    return next(words, "command").rpartition("/")[2]


def _file_name(name: Any, place: str = "") -> str:
    if not isinstance(name, str | PathLike) or not isinstance(fspath(name), str):
        raise InputError(f"expected the name of a file, not {_short(name)}", place=place)
    return str(fspath(name))


def _read_command(
    run: str, label: str, reads: list[str], makes: list[str], options: Mapping[object, Any]
) -> tuple[TaskSpec, float]:
    """A command as the file of a workflow would have it, by its reader; and its cost."""
    from foreplan.formats.fields import check_fields
    from foreplan.formats.foreplan_workflow import COMMAND_FIELDS, workflow_from_literals
    from foreplan.formats.templates import Variables, fill_command

    place = ("tasks", label)
    check_fields(options, COMMAND_FIELDS, *place)
    files = {"input": reads, "inputs": reads, "output": makes, "outputs": makes}
    shell = options.get("shell")
    text = fill_command(run, Variables({}, files=files), shell, *place, "run")
    fields = {"run": text, "inputs": reads, "outputs": makes, **options}
    one = workflow_from_literals({"tasks": {label: fields}})
    if one.processor_cost:
        raise InputError("the cost of a command of a flow is one number, in seconds", place=label)
    return one.spec(0), float(one.base_cost[0])


def _number(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputError(f"expected a number, not {_short(value)}", place=place)
    if not (0 <= float(value) <= 1e30):
        raise InputError(f"expected a number from 0 to 1e30, not {value}", place=place)
    return float(value)


def _positive(value: Any, place: str) -> float:
    seconds = _number(value, place)
    if not seconds:
        raise InputError("the seconds must be more than 0; None: no limit", place=place)
    return seconds


def _whole(value: Any, place: str) -> int:
    if not isinstance(value, Integral):
        raise InputError(f"expected a whole number, not {_short(value)}", place=place)
    return int(_number(value, place))


def _patience(wait: Any, retry: Any, place: str) -> dict[str, Any]:
    """What a task says of the time between tries, and of causes; few do."""
    if wait is None and retry is None:
        return {}
    from foreplan.formats.fields import time_span
    from foreplan.formats.foreplan_workflow import retry_by_cause

    return {
        "wait": None if wait is None else time_span(wait, f"{place}: wait"),
        "retry": () if retry is None else retry_by_cause(retry, f"{place}: retry"),
    }


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
