"""A flow: Python functions as tasks, written down as data; nothing runs here."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from weft.errors import InputError
from weft.formats.resources import REQUEST_FIELDS, request_from_fields
from weft.model import Call, Item, Ref, TaskSpec, Workflow
from weft.model.call import bare, qualified_name, refs

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
    *REQUEST_FIELDS,
)


@dataclass(frozen=True)
class Task:
    """A task of a flow; as an argument of a later task it stands for its result."""

    flow: Flow = field(repr=False)
    index: int
    name: str


@dataclass(frozen=True)
class _Entry:
    call: Call
    cost: float
    size: float
    spec: TaskSpec


class Flow:
    """A workflow of Python functions.

    >>> flow = Flow("sums")
    >>> small = flow.task(sum, [1, 2])
    >>> large = flow.task(max, [small, 10], cost=2)
    >>> workflow, calls = flow.build()
    >>> workflow.task_names
    ('sum', 'max')
    >>> calls[1].args
    ([Ref(task=0), 10],)

    Tasks are found in lists, tuples, sets and the values of dicts, nested as deep as you like. In
    an object of any other class they cannot be seen: that object is handed on as it is.
    """

    def __init__(self, name: str = "flow") -> None:
        self.name = name
        self._tasks: list[Task] = []
        self._entries: list[_Entry] = []
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}  # name -> how many tasks have asked for it
        self._readers: list[dict[int, None]] = []  # task -> the tasks that wait for it

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, {len(self)} task{'' if len(self) == 1 else 's'})"

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
        """
        options: dict[str, Any] = {"name": name, "cost": cost, "category": category}
        options |= {"retries": retries, "retry": retry, "wait": wait, "timeout": timeout}
        options |= {"size": size, "after": after}
        options |= {"cores": cores, "parallel": parallel, "memory": memory, "gpus": gpus}
        options |= {"resources": resources, "pools": pools, "on": on, "not_on": not_on}
        _check_arguments(function, args, kwargs, set(_said(options)))
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
        needs: dict[str, Any] = {"cores": cores, "parallel": parallel, "memory": memory}
        needs |= {"gpus": gpus, "resources": resources, "pools": pools, "on": on, "not_on": not_on}
        request = request_from_fields(_said(needs), place)
        if cost is None and request is not None and request.seconds:
            cost = request.seconds[0]
        entry = _Entry(
            Call(function, *self._arguments(function, args, kwargs or {}, place)),
            math.nan if cost is None else _number(cost, f"{place}: cost"),
            0.0 if size is None else _number(size, f"{place}: size"),
            TaskSpec(
                category or qualified_name(function),
                retries=None if retries is None else _whole(retries, f"{place}: retries"),
                timeout=None if timeout is None else _positive(timeout, f"{place}: timeout"),
                request=request,
                **_patience(wait, retry, place),
            ),
        )
        earlier = [self.index(t) for t in ([after] if isinstance(after, Task) else after)]
        task = Task(self, len(self._tasks), self._take_name(label))
        self._tasks.append(task)
        self._entries.append(entry)
        self._readers.append({})
        for source in refs(entry.call) + earlier:
            self._readers[source][task.index] = None
        return task

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
        """The task's number in the workflow, and that of its result among the items."""
        if not isinstance(task, Task):
            raise InputError(f"expected a task of the flow {self.name!r}, not {_short(task)}")
        if task.flow is not self:
            problem = f"the task {task.name!r} belongs to another flow, {task.flow.name!r}"
            raise InputError(f"{problem}; a flow uses only its own tasks")
        return task.index

    def build(self) -> tuple[Workflow, tuple[Call, ...]]:
        """The workflow, in which item i is the result of task i, and the call of each task."""
        if not self._tasks:
            raise InputError(f"the flow {self.name!r} has no tasks; add some with flow.task")
        workflow = Workflow.from_items(
            self.name,
            [task.name for task in self._tasks],
            [entry.cost for entry in self._entries],
            [
                Item(entry.size, i, sorted(readers))
                for i, (entry, readers) in enumerate(zip(self._entries, self._readers, strict=True))
            ],
            specs={i: entry.spec for i, entry in enumerate(self._entries)},
        )
        return workflow, tuple(entry.call for entry in self._entries)

    def _arguments(
        self, function: object, args: Iterable[Any], kwargs: Mapping[str, Any], place: str
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if isinstance(function, functools.partial):
            _refuse_tasks((function.args, function.keywords), "a functools.partial", place)
        positional = tuple(self._referring(value, place) for value in args)
        return positional, {key: self._referring(value, place) for key, value in kwargs.items()}

    def _referring(self, value: Any, place: str) -> Any:
        """The value with a Ref in the place of each task; itself if there is none."""
        if isinstance(value, Task):
            return Ref(self.index(value))
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            parts = [self._referring(part, place) for part in value]
            same = all(new is old for new, old in zip(parts, value, strict=True))
            return value if same else kind(parts)
        if kind is dict:
            _refuse_tasks(tuple(value), "a key of a dict", place)
            fields = {key: self._referring(part, place) for key, part in value.items()}
            return value if all(fields[key] is value[key] for key in value) else fields
        if isinstance(value, list | tuple | set | frozenset | dict):
            _refuse_tasks(value, f"a {kind.__name__}", place)
        return value

    def _take_name(self, wanted: str) -> str:
        name = wanted
        while name in self._names:
            self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            name = f"{wanted}-{self._numbers[wanted]}"
        self._names.add(name)
        return name


def _said(options: Mapping[str, Any]) -> dict[object, Any]:
    """The options that are given."""
    empty = [o for o, v in options.items() if isinstance(v, list | tuple) and not v]
    return {o: v for o, v in options.items() if v is not None and o not in empty}


def _refuse_tasks(value: Any, where: str, place: str) -> None:
    """A result cannot be put in there later, so say it now."""
    if isinstance(value, Task):
        problem = f"the task {value.name!r} is inside {where}, where its result cannot be put"
        hint = "give it as an argument, or in a plain list, tuple, set or value of a dict"
        raise InputError(f"{problem}; {hint}", place=place)
    if isinstance(value, dict):
        value = (*value, *value.values())
    if isinstance(value, list | tuple | set | frozenset):
        for part in value:
            _refuse_tasks(part, where, place)


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
    from weft.formats.fields import time_span
    from weft.formats.weft_workflow import retry_by_cause

    return {
        "wait": None if wait is None else time_span(wait, f"{place}: wait"),
        "retry": () if retry is None else retry_by_cause(retry, f"{place}: retry"),
    }


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
