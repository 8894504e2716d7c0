"""Tasks that hide where no result can be put: in objects, closures, defaults, globals.

Where a task may stand in the arguments of a call is said by `parts_of` of foreplan.model.call.
"""

from __future__ import annotations

import dis
import functools
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from foreplan.model.call import Handle
from foreplan.store.digests import PLAIN, is_own

_MOST = 2000  # objects that are looked at before a run; what is sent to a worker is all looked at
_FOREPLAN = "foreplan"
_BUILTIN = (types.BuiltinMethodType, types.MethodWrapperType)


def find_hidden(value: Any, where: str = "an object") -> tuple[Handle, str] | None:
    """Return a task or a file inside an object or a function, and where it stands there.

    `where` is what to call the value itself.
    """
    found: list[tuple[Any, str]] = [(value, where)]
    seen: dict[int, Any] = {}
    for _ in range(_MOST):
        if not found:
            return None
        part, where = found.pop()
        if issubclass(type(part), Handle):
            return part, where
        if type(part) not in PLAIN and id(part) not in seen:
            seen[id(part)] = part
            with suppress(Exception):  # code of the objects is called, which may raise anything
                found += islice(_parts(part, where), _MOST)
    return None


def describe_hidden(handle: Any, *values: Any) -> str:
    """Return why a task or a file cannot be sent to a worker; it was found in these values."""
    for value in values:
        if (found := find_hidden(value)) is not None and found[0] == handle:
            return refusal(*found)
    return refusal(handle, "an object")


def refusal(handle: Any, where: str) -> str:
    """Return the sentence that says which task or file is where, and what to do."""
    from_task = getattr(handle, "task", handle)  # of a part, the task
    kind = "file" if type(handle).__name__ == "File" else "task"
    return (
        f"the {kind} {from_task.name!r} is inside {where}, where its result cannot be put; give it "
        "as an argument of its own, or in a list, tuple, set, value of a dict or dataclass"
    )


def _parts(value: Any, where: str) -> Iterator[tuple[Any, str]]:
    """Yield the parts of a value, and where each is."""
    kind = type(value)
    if kind is types.FunctionType:
        yield from _parts_of_function(value)
    elif kind is functools.partial:
        yield value.func, where
        inside = (*value.args, *value.keywords.values())
        yield from ((part, "a functools.partial") for part in inside)
    elif kind is types.MethodType:
        yield value.__func__, where
        yield value.__self__, f"the object of the method {value.__name__}"
    elif isinstance(value, _BUILTIN):
        yield value.__self__, f"the object of the method {value.__name__}"
    elif isinstance(value, dict):
        yield from ((key, "a key of a dict") for key in value)
        place = where if kind is dict else f"a {kind.__name__}"
        yield from ((part, place) for part in value.values())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        plain = kind in (list, tuple, set, frozenset)
        yield from ((part, where if plain else f"a {kind.__name__}") for part in value)
    elif isinstance(value, type):
        if is_own(value):
            holder = f"the class {value.__name__}"
            yield from _attributes(dict(vars(value)), holder)
    elif not isinstance(value, types.ModuleType) and not _is_ours(kind):
        yield kind, where
        yield from _attributes(_state(value), f"an object of the class {kind.__name__}")


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _FOREPLAN


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[Any, str]]:
    of = f"of the function {function.__name__}"
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is empty
            yield cell.cell_contents, f"the closure variable {name!r} {of}"
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    given = dict(zip(reversed(names), reversed(defaults), strict=False))
    for name, value in (given | (function.__kwdefaults__ or {})).items():
        yield value, f"the default of {name!r} {of}"
    yield from _attributes(vars(function), f"the function {function.__name__}")
    if is_own(function):  # of others, no global is a task
        known = function.__globals__
        for name in _global_names(code):
            if name in known:
                yield known[name], f"the global variable {name!r} {of}"


def _attributes(values: dict[str, Any], holder: str) -> Iterator[tuple[Any, str]]:
    for name, value in values.items():
        inner = getattr(value, "__func__", None) if type(value) in _OF_CLASSES else value
        yield inner, f"the attribute {name!r} of {holder}"


_OF_CLASSES = (staticmethod, classmethod)


def _state(value: Any) -> dict[str, Any]:
    """The attributes of an object, those in slots too."""
    state = dict(getattr(value, "__dict__", None) or {})
    for kind in type(value).__mro__:
        for name, descriptor in vars(kind).items():
            if type(descriptor) is types.MemberDescriptorType and name != "__dict__":
                with suppress(AttributeError):  # it is not set
                    state[name] = descriptor.__get__(value)
    return state


@functools.lru_cache(maxsize=4096)
def _global_names(code: types.CodeType) -> frozenset[str]:
    """The global names that code, and what is nested in it, reads."""
    steps = dis.get_instructions(code)
    names = {str(step.argval) for step in steps if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(names).union(*map(_global_names, inner))
