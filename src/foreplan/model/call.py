"""A call of a Python function as a task: data until an executor makes it."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreplan.errors import InputError

if TYPE_CHECKING:
    from foreplan.model.workflow import Workflow

MAIN = "__main__"
MAINS = (MAIN, "__mp_main__")  # the program itself, also in a child that multiprocessing spawned


class Handle:
    """Something of a flow that stands for a value until the flow has run: a task or a file."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse to be pickled: no worker could put a value in its place."""
        raise InputError(
            f"{self!r} belongs to its flow and cannot be sent to a worker or returned by a "
            "function; give it to a task as an argument"
        )


@dataclass(frozen=True)
class Ref:
    """The result of another task, or a part of it, where an argument is expected."""

    task: int
    path: tuple[Any, ...] = ()  # `result[path[0]][path[1]]`, and so on


@dataclass(frozen=True)
class FileRef:
    """A file of the data directory, where an argument is expected: the function gets its path."""

    name: str


@dataclass(frozen=True)
class Call:
    """A function and its arguments; Refs may be nested in them, see `parts_of`."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


# iterators of these packages, and generators, only stand for values; those of others may be objects
_LAZY = ("builtins", "itertools", "toolz", "cytoolz")
_ENDLESS = (itertools.count, itertools.cycle, itertools.repeat)


@dataclass(frozen=True, eq=False)
class Eager:
    """A function whose lazy result (a generator, `map`, `zip`) becomes a list, as in Dask's bags.

    An iterator can be read once and as a rule not be pickled; results are read by several tasks.
    """

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return listed(self.function(*args, **kwargs))


def listed(value: Any) -> Any:
    """Return a lazy iterator as a list, and a list of such iterators as a list of lists."""
    if _is_lazy(value):
        value = list(value)
    if type(value) is list and value and _is_lazy(value[0]):
        return [listed(part) for part in value]
    return value


def _is_lazy(value: Any) -> bool:
    if not isinstance(value, Iterator) or isinstance(value, _ENDLESS):
        return False
    return type(value).__module__.partition(".")[0] in _LAZY


def bare(function: Any) -> Any:
    """The function inside of partials, or the class of an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)


def qualified_name(function: Any) -> str:
    """The module, or program, and name by which a function is known from one run to the next."""
    inner = bare(function)
    home = getattr(inner, "__module__", None) or type(inner).__module__
    # or all programs would share the history of their main functions
    return f"{_program() if home in MAINS else f'{home}.'}{inner.__qualname__}"


def _program() -> str:
    """The directory and the name of what is run; a notebook and a package (`-m`) have the first."""
    file = getattr(sys.modules.get(MAIN), "__file__", None)
    name = MAIN if file is None else Path(file).stem
    try:
        place = Path.cwd() if file is None else Path(file).absolute().parent
    except OSError:  # the directory is gone
        place = Path(MAIN)
    return f"{place.name or MAIN}/" + ("" if name == MAIN else f"{name}.")


# the calls of a workflow's tasks; None where a task is a command
Calls = Sequence[Call | None]

# the first number of other tasks' results where tasks may be added: behind all of them
FAR = 1 << 40


@dataclass(frozen=True)
class ReturnedTasks:
    """What a function that adds tasks has given back: they, and what its readers get of them."""

    workflow: Workflow | None = None  # None: there are none
    calls: Calls = ()
    value: Any = None  # with a Ref in the place of each task
    problem: str = ""  # why they cannot be added


def refs(value: Any) -> list[int]:
    """The tasks whose results a value holds, each once, in order."""
    return list(dict.fromkeys(ref.task for ref in found_in(value, Ref)))


def parted(value: Any) -> list[int]:
    """The tasks of whose results a value holds a part."""
    return list(dict.fromkeys(ref.task for ref in found_in(value, Ref) if ref.path))


def files_of(value: Any) -> list[str]:
    """The files that a value holds, each once, in order."""
    return list(dict.fromkeys(ref.name for ref in found_in(value, FileRef)))


def found_in(value: Any, kind: type[Any] | tuple[type, ...]) -> list[Any]:
    """The things of a kind that a value holds, as deep as `parts_of` looks."""
    found: list[Any] = []
    _collect(value, kind, found, {})
    return found


def _collect(
    value: Any, kind: type[Any] | tuple[type, ...], found: list[Any], seen: dict[int, Any]
) -> None:
    if isinstance(value, kind):
        found.append(value)
    elif isinstance(value, Call):
        _collect(value.args, kind, found, seen)
        _collect(dict(value.kwargs), kind, found, seen)
    elif (parts := parts_of(value)) is not None and id(value) not in seen:  # some hold themselves
        seen[id(value)] = value  # kept, so that no other object gets its id
        for part in parts:
            _collect(part, kind, found, seen)


def parts_of(value: Any) -> Iterable[Any] | None:
    """The parts of a value in which Refs may stand; None if it is not looked into.

    Values that are looked into are lists, tuples, named tuples, sets, values of dicts, and the
    fields of dataclasses, but no other subclasses of these containers.
    """
    kind = type(value)
    if kind in _PLAIN:
        return None
    if kind in _CONTAINERS:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return value.values()  # type: ignore[no-any-return]
    if _is_named_tuple(kind):
        return value  # type: ignore[no-any-return]
    names = _field_names(kind)
    return [getattr(value, n) for n in names if hasattr(value, n)] if names else None


def with_parts(value: Any, parts: Iterable[Any]) -> Any:
    """The value with others in the place of its parts, given in the order of `parts_of`."""
    kind = type(value)
    if kind in _CONTAINERS:
        return kind(parts)
    if kind is dict:
        return dict(zip(value, parts, strict=True))
    if _is_named_tuple(kind):
        return kind._make(parts)
    new = copy(value)  # not made anew: some fields are no parameters, and it was checked before
    names = [name for name in _field_names(kind) if hasattr(value, name)]
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(new, name, part)  # it may be frozen
    return new


_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes})  # most values are
_CONTAINERS = frozenset({list, tuple, set, frozenset})


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make")


def _field_names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass; none of what is a container, or of a flow, beside that."""
    if not is_dataclass(kind) or issubclass(kind, _NOT_LOOKED_INTO):
        return ()
    return tuple(part.name for part in fields(kind))


_NOT_LOOKED_INTO = (list, tuple, set, frozenset, dict, Handle, Ref, FileRef, Call)


def calls_of_part(
    calls: Calls, numbers: Sequence[int], first: int | None = None, also: Iterable[int] = ()
) -> tuple[tuple[Call | None, ...], tuple[int, ...]]:
    """The calls of some tasks, renumbered; and the others whose results they, or `also` we, take.

    The numbers of these begin at `first`; without it, where those of the tasks end.
    """
    if len(numbers) == len(calls):
        return tuple(calls), ()
    new = {number: k for k, number in enumerate(numbers)}
    outer = sorted({*also, *(t for number in numbers for t in refs(calls[number]))} - new.keys())
    first = len(numbers) if first is None else first
    new |= {number: first + k for k, number in enumerate(outer)}
    return tuple(_renumbered(calls[number], new) for number in numbers), tuple(outer)


def _renumbered(call: Call | None, new: Mapping[int, int]) -> Call | None:
    if call is None or not refs(call):
        return call
    values = (call.args, dict(call.kwargs))
    args, kwargs = replaced(values, Ref, lambda ref: Ref(new[ref.task], ref.path))
    return Call(call.function, args, kwargs)


def calls_with(calls: Calls, by: int, added: ReturnedTasks, name: str) -> list[Call | None]:
    """The calls with those that a task adds behind them; who takes its result takes theirs."""
    n = len(calls)
    value = replaced(added.value, Ref, lambda ref: Ref(n + ref.task, ref.path))

    def put(ref: Ref) -> Any:
        return _part_to_come(value, ref.path, name) if ref.task == by else ref

    def taking(call: Call | None) -> Call | None:
        if call is None or by not in refs(call):
            return call
        return Call(call.function, *replaced((call.args, dict(call.kwargs)), Ref, put))

    new = {k: n + k for k in range(len(added.calls))}
    return [*map(taking, calls), *(_renumbered(call, new) for call in added.calls)]


def _part_to_come(value: Any, path: Sequence[Any], name: str) -> Any:
    """A part of what a task gives back, some of which is the result of others."""
    for k, key in enumerate(path):
        if isinstance(value, Ref):
            return Ref(value.task, (*value.path, *path[k:]))
        value = part_of(value, (key,), name)
    return value


def path_of(folder: str, name: str) -> Path | list[Path]:
    """The path of a file of the data directory; of a pattern, those of all that match it."""
    if {*name}.isdisjoint("*?["):  # no need to import more
        return Path(folder, name)
    from foreplan.model.filenames import is_pattern, matching_files

    if is_pattern(name):
        return [Path(folder, file) for file in matching_files(folder, name)]
    return Path(folder, name)


class NoPartError(LookupError):
    """A result does not have the part that is asked for."""


def part_of(result: Any, path: Sequence[Any], task: str) -> Any:
    """A part of a task's result."""
    part, done = result, ""
    for key in path:
        done += f"[{key!r}]"
        try:
            part = part[key]
        except Exception as error:  # whatever the object raises
            why = f"{type(error).__name__}: {error}"
            raise NoPartError(f"the result of {task!r} has no {done}: {why}") from None
    return part


def replaced(value: Any, kind: type[Any] | tuple[type, ...], put: Callable[[Any], Any]) -> Any:
    """The value with something else for each thing of a kind, as deep as `parts_of` looks.

    Parts that are one and the same object stay so.
    """
    return _replaced(value, kind, put, {})


def _replaced(
    value: Any,
    kind: type[Any] | tuple[type, ...],
    put: Callable[[Any], Any],
    known: dict[int, tuple[Any, Any]],
) -> Any:
    if isinstance(value, kind):
        return put(value)
    parts = parts_of(value)
    if parts is None:
        return value
    if id(value) not in known:
        known[id(value)] = (value, value)  # of one that holds itself, no part is of the kind
        old = list(parts)
        new = [_replaced(part, kind, put, known) for part in old]
        if not all(map(operator.is_, old, new)):
            known[id(value)] = (value, with_parts(value, new))
    return known[id(value)][1]
