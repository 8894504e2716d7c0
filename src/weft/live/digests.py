"""What a call of a function is, in a few letters that another process finds again.

Pickles will not do: sets stand in them in the order of the hash seed, functions of a script with
the lines that they stand on. So values are taken apart: what has a structure of its own by that,
all else as `copyreg` takes it apart for pickling. A function is its code with its constants,
defaults, closure, and the functions and plain constants of its own program that it names. What
cannot be taken apart cannot be compared.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from weft.errors import InputError
from weft.model import Call, Ref

PYTHON = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"  # code is its own
_SIZE = 8  # bytes of a digest
_PLACES = ("__module__", "__firstlineno__", "__qualname__")
_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis)})
_SHORT = 40  # bytes that stand for themselves


def digests_of(calls: Sequence[Call]) -> list[str | None]:
    """A digest of each call; None where it cannot be taken apart."""
    digesting = _Digesting()
    return [digesting.of_call(call) for call in calls]


def check_calls(
    names: Sequence[str],
    known: Mapping[int, str | None],
    calls: Sequence[Call],
    is_used: Callable[[int], bool],
    run: str,
) -> dict[int, str | None]:
    """Refuse calls that are not what they were where their results are used; what has changed else.

    A task that is still to run may change: nothing of it is kept.
    """
    new = digests_of(calls)
    changed = {t: d for t, d in enumerate(new) if d != known.get(t)}
    wrong = [t for t in changed if is_used(t) and known.get(t) is not None]
    if not wrong:
        return changed
    listed = ", ".join(repr(names[t]) for t in wrong[:5]) + (", ..." if wrong[5:] else "")
    raise InputError(
        f"the function or the arguments of {listed} have changed since run {run} began, and what "
        "came out of them then would be used beside what comes out now: undo the change, or begin "
        "a new run (without resume)"
    )


class _Digesting:
    """Digests of many values, each object but once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._alones: dict[int, bytes] = {}
        self._kept: list[Any] = []  # so that no other object gets its id
        self._open: list[int] = []  # what is being taken apart: a value may hold itself

    def of_call(self, call: Call) -> str | None:
        """The digest of a call; None if it cannot be taken apart."""
        try:
            named = [self.of(key) + self.of(call.kwargs[key]) for key in sorted(call.kwargs)]
            given = map(self.of, call.args)
            return _hash("call", self.of(call.function), *given, b"", *named).hex()
        except Exception:  # taking apart calls code of the objects, which may raise anything
            self._open.clear()
            return None

    def of(self, value: Any) -> bytes:
        """The digest of a value."""
        kind = type(value)
        if kind in _PLAIN:
            text = f"{kind.__name__} {value!r}".encode("utf-8", "surrogatepass")
            return text if len(text) <= _SHORT else _hash("plain", text)
        if kind is Ref:
            return b"ref %d" % value.task
        key = id(value)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            return _hash("again", b"%d" % (len(self._open) - self._open.index(key)))
        self._open.append(key)
        digest = self._apart(value)
        self._open.pop()
        self._known[key] = digest
        self._kept.append(value)
        return digest

    def _apart(self, value: Any) -> bytes:
        kind = type(value)
        if kind in (list, tuple):
            return _hash(kind.__name__, *map(self.of, value))
        if isinstance(value, set | frozenset):
            return _hash(kind.__name__, *sorted(map(self.of, value)))
        if kind is dict:
            return _hash("dict", *sorted(self.of(k) + self.of(v) for k, v in value.items()))
        if kind is types.FunctionType or isinstance(value, type):
            return self._program(value)
        if kind is types.CodeType:
            return self._code(value)
        if kind is types.MethodType:
            return _hash("method", self.of(value.__self__), self.of(value.__func__))
        if kind is functools.partial:
            return _hash("partial", *map(self.of, (value.func, value.args, value.keywords)))
        if kind is types.ModuleType:
            return _hash("module", value.__name__.encode())
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and not value.dtype.hasobject:
            return _hash("array", repr((value.dtype, value.shape)).encode(), value.tobytes())
        return self._reduced(value)

    def _program(self, thing: Any) -> bytes:
        """A function or a class, with all of its own program that it leads to."""
        if not _is_own(thing):
            return _named(thing)
        seen: dict[int, bytes] = {}
        todo = [thing]
        while todo:
            part = todo.pop()
            if id(part) not in seen:
                seen[id(part)] = self._alone(part)
                todo += [other for other in _leads_to(part) if _is_own(other)]
        return _hash("program", self._alone(thing), *sorted(seen.values()))

    def _alone(self, thing: Any) -> bytes:
        """A function or a class by itself: what it leads to by name only."""
        if id(thing) not in self._alones:
            self._kept.append(thing)
            self._alones[id(thing)] = b""  # it may hold itself
            make = self._class if isinstance(thing, type) else self._function
            self._alones[id(thing)] = make(thing)
        return self._alones[id(thing)]

    def _function(self, function: types.FunctionType) -> bytes:
        cells = [_content(cell) for cell in function.__closure__ or ()]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, cells)
        named = {name: value for name, value in _globals(function).items() if _is_constant(value)}
        return _hash("function", function.__qualname__.encode(), *map(self.of, (*parts, named)))

    def _class(self, kind: type) -> bytes:
        plain = {k: v for k, v in vars(kind).items() if _is_constant(v) and k not in _PLACES}
        methods = {name: self._alone(method) for name, method in _methods(kind).items()}
        bases = [_named(base) for base in kind.__bases__]
        return _hash("class", kind.__qualname__.encode(), *bases, self.of((plain, methods)))

    def _code(self, code: types.CodeType) -> bytes:
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return _hash("code", code.co_code, *map(self.of, (numbers, names, code.co_consts)))

    def _reduced(self, value: Any) -> bytes:
        """As it is taken apart to be pickled."""
        reduce = copyreg.dispatch_table.get(type(value))
        reduced: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        if isinstance(reduced, str):  # a global name
            return _hash("named", f"{getattr(value, '__module__', '')}.{reduced}".encode())
        make, arguments, *more = reduced
        state, items, pairs = (*more[:3], *[None] * 3)[:3]
        parts = (make, arguments, state, _listed(items), _listed(pairs))
        return _hash("object", *map(self.of, parts))


def _hash(kind: str, *parts: bytes) -> bytes:
    whole = hashlib.blake2b(kind.encode(), digest_size=_SIZE)
    for part in parts:
        whole.update(b"%d:" % len(part))
        whole.update(part)
    return whole.digest()


def _listed(items: Iterable[Any] | None) -> list[Any] | None:
    return None if items is None else list(items)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def _leads_to(thing: Any) -> list[Any]:
    """The functions and classes that a function names, or that a class is made of."""
    if isinstance(thing, type):
        return [*thing.__bases__, *_methods(thing).values()]
    return [v for v in _globals(thing).values() if isinstance(v, types.FunctionType | type)]


def _methods(kind: type) -> dict[str, types.FunctionType]:
    found = {}
    for name, value in vars(kind).items():
        bare = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if type(bare) is types.FunctionType:
            found[name] = bare
    return found


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """What the global names mean that a function uses."""
    known = function.__globals__
    return {name: known[name] for name in _names(function.__code__) if name in known}


def _names(code: types.CodeType) -> set[str]:
    """The global names that code, and what is nested in it, may use."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _is_constant(value: Any) -> bool:
    """Whether it cannot change while the program runs."""
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_constant, value)))


def _named(thing: Any) -> bytes:
    return _hash("named", f"{thing.__module__}.{thing.__qualname__}".encode())


def _is_own(thing: Any) -> bool:
    """Whether it is of the user's program: others change with their versions only."""
    home = str(getattr(thing, "__module__", None) or "")
    if home.partition(".")[0] in sys.stdlib_module_names and home != "__main__":
        return False
    file = getattr(sys.modules.get(home), "__file__", None) or ""
    return not ("site-packages" in file or "dist-packages" in file)
