"""A call of a Python function as a task: data until an executor makes it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAIN = "__main__"


@dataclass(frozen=True)
class Ref:
    """The result of another task, where an argument is expected."""

    task: int


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
    """The module and name by which a function is known from one run to the next."""
    inner = bare(function)
    home = getattr(inner, "__module__", None) or type(inner).__module__
    # or all programs would share the history of their main functions
    return f"{_program() if home == MAIN else home}.{inner.__qualname__}"


def _program() -> str:
    """What is run: a script, a package (`python -m`), or in a notebook a directory's programs."""
    file = getattr(sys.modules.get(MAIN), "__file__", None)
    if file and Path(file).stem != MAIN:
        return Path(file).stem
    try:
        return (Path(file).parent if file else Path.cwd()).name or MAIN
    except OSError:  # the directory is gone
        return MAIN


def refs(value: Any) -> list[int]:
    """The tasks whose results a value holds, each once, in order."""
    found: dict[int, None] = {}
    _collect(value, found)
    return list(found)


def _collect(value: Any, found: dict[int, None]) -> None:
    if isinstance(value, Ref):
        found[value.task] = None
    elif isinstance(value, Call):
        _collect(value.args, found)
        _collect(dict(value.kwargs), found)
    elif type(value) in (list, tuple, set, frozenset):  # as `filled` does
        for part in value:
            _collect(part, found)
    elif type(value) is dict:
        for part in value.values():
            _collect(part, found)


def calls_of_part(
    calls: Sequence[Call], numbers: Sequence[int]
) -> tuple[tuple[Call, ...], tuple[int, ...]]:
    """The calls of some tasks, renumbered; and the others whose results they take.

    The numbers of these begin where those of the tasks end.
    """
    if len(numbers) == len(calls):
        return tuple(calls), ()
    new = {number: k for k, number in enumerate(numbers)}
    outer = sorted({t for number in numbers for t in refs(calls[number])} - new.keys())
    new |= {number: len(numbers) + k for k, number in enumerate(outer)}
    return tuple(_renumbered(calls[number], new) for number in numbers), tuple(outer)


def _renumbered(call: Call, new: Mapping[int, int]) -> Call:
    if not refs(call):
        return call
    args, kwargs = replaced((call.args, dict(call.kwargs)), Ref, lambda ref: Ref(new[ref.task]))
    return Call(call.function, args, kwargs)


def filled(value: Any, results: Mapping[int, Any]) -> Any:
    """The value with results in the place of Refs."""
    return replaced(value, Ref, lambda ref: results[ref.task])


def replaced(value: Any, kind: type[Any], put: Callable[[Any], Any]) -> Any:
    """The value with something else for each thing of a kind, in lists, tuples, sets and dicts."""
    if isinstance(value, kind):
        return put(value)
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(replaced(part, kind, put) for part in value)
    if type(value) is dict:
        return {key: replaced(part, kind, put) for key, part in value.items()}
    return value
