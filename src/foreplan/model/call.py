"""A call of a Python function as a task: data until an executor makes it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreplan.model.workflow import Workflow

MAIN = "__main__"


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
    """A function and its arguments; Refs may be nested in lists, tuples and dicts."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


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
    return f"{_program() if home == MAIN else f'{home}.'}{inner.__qualname__}"


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
    return list(dict.fromkeys(ref.task for ref in _found(value, Ref)))


def parted(value: Any) -> list[int]:
    """The tasks of whose results a value holds a part."""
    return list(dict.fromkeys(ref.task for ref in _found(value, Ref) if ref.path))


def files_of(value: Any) -> list[str]:
    """The files that a value holds, each once, in order."""
    return list(dict.fromkeys(ref.name for ref in _found(value, FileRef)))


def _found(value: Any, kind: type[Any] | tuple[type, ...]) -> list[Any]:
    found: list[Any] = []
    _collect(value, kind, found)
    return found


def values_in(value: Any, kinds: tuple[type, ...]) -> list[Any]:
    """The values of these kinds that a value holds where it may hold Refs, in order."""
    return _found(value, kinds)


def _collect(value: Any, kind: type[Any] | tuple[type, ...], found: list[Any]) -> None:
    if isinstance(value, kind):
        found.append(value)
    elif isinstance(value, Call):
        _collect(value.args, kind, found)
        _collect(dict(value.kwargs), kind, found)
    elif type(value) in (list, tuple, set, frozenset):  # as `filled` does
        for part in value:
            _collect(part, kind, found)
    elif type(value) is dict:
        for part in value.values():
            _collect(part, kind, found)


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


def filled(
    value: Any, results: Mapping[int, Any], names: Mapping[int, str] | None = None, folder: str = ""
) -> Any:
    """The value with results in the place of Refs, and with paths in that of files.

    `names` are those of the tasks, for whoever asks for a part that is not there.
    """
    paths = replaced(value, FileRef, lambda ref: path_of(folder, ref.name))
    return replaced(
        paths,
        Ref,
        lambda ref: part_of(results[ref.task], ref.path, (names or {}).get(ref.task, "")),
    )


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
    """The value with something else for each thing of a kind, in lists, tuples, sets and dicts."""
    if isinstance(value, kind):
        return put(value)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(replaced(part, kind, put) for part in value)
    if type(value) is dict:
        return {key: replaced(part, kind, put) for key, part in value.items()}
    return value
