"""A call of a Python function as a task: data until an executor makes it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


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
    main = sys.modules.get("__main__")
    if home == "__main__" and (file := getattr(main, "__file__", None)):
        home = Path(file).stem  # or all scripts would share the history of their main functions
    return f"{home}.{inner.__qualname__}"


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


def filled(value: Any, results: Mapping[int, Any]) -> Any:
    """The value with results in the place of Refs."""
    if isinstance(value, Ref):
        return results[value.task]
    if type(value) in (list, tuple, set, frozenset):
        return type(value)(filled(part, results) for part in value)
    if type(value) is dict:
        return {key: filled(part, results) for key, part in value.items()}
    return value
