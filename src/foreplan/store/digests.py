"""What a call of a function is, in a few letters that another process finds again.

Pickles are not enough: sets stand in them in the order of the hash seed, functions of a script with
the lines that they stand on. So values are taken apart: what has a structure of its own by that,
all else as `copyreg` takes it apart for pickling. A function is its code with its constants,
defaults, closure, and the functions and plain constants of its own program that it names. What
cannot be taken apart cannot be compared. This is for a run that is resumed; the store, which
outlives changes of the program, looks closer (`programs.py`).
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from foreplan.errors import InputError
from foreplan.model.call import MAINS, Call, Calls, FileRef, Ref
from foreplan.quantities import first_few

PYTHON = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"  # code is its own
PLACES = ("__module__", "__firstlineno__", "__qualname__")
PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis)})
_SHORT = 40  # bytes that stand for themselves
_LARGE = 1 << 20  # bytes of an array that are not copied


def digests_of(calls: Calls) -> list[str | None]:
    """A digest of each call; None where it cannot be taken apart, or is a command."""
    digesting = Digesting()
    return [None if call is None else digesting.of_call(call) for call in calls]


def check_calls(
    names: Sequence[str],
    known: Mapping[int, str | None],
    calls: Calls,
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
    listed = first_few(repr(names[t]) for t in wrong)
    raise InputError(
        f"the function or the arguments of {listed} have changed since run {run} began, and what "
        "came out of them then would be used beside what comes out now: undo the change, or begin "
        "a new run (without resume)"
    )


class Digesting:
    """Digests of many values, each object but once."""

    size = 8  # bytes of a digest

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._alones: dict[int, bytes] = {}
        self._kept: list[Any] = []  # so that no other object gets its id
        self._open: list[int] = []  # what is being taken apart: a value may hold itself

    def of_call(self, call: Call) -> str | None:
        """The digest of a call; None if it cannot be taken apart."""
        try:
            return self.hash("call", self.of(call.function), *self.arguments(call)).hex()
        except Exception:  # taking apart calls code of the objects, which may raise anything
            self._open.clear()
            return None

    def arguments(self, call: Call) -> list[bytes]:
        """The digests of a call's arguments."""
        named = [self.of(key) + self.of(call.kwargs[key]) for key in sorted(call.kwargs)]
        return [*map(self.of, call.args), b"", *named]

    def hash(self, kind: str, *parts: bytes | memoryview) -> bytes:
        """One digest for several."""
        whole = hashlib.blake2b(kind.encode(), digest_size=self.size)
        for part in parts:
            whole.update(b"%d:" % len(part))
            whole.update(part)
        return whole.digest()

    def of(self, value: Any) -> bytes:
        """The digest of a value."""
        kind = type(value)
        if kind in PLAIN:
            text = f"{kind.__name__} {value!r}".encode("utf-8", "surrogatepass")
            return text if len(text) <= _SHORT else self.hash("plain", text)
        if kind is Ref:
            whole = self.result(value.task)
            return self.hash("part", whole, self.of(value.path)) if value.path else whole
        if kind is FileRef:
            return self.file(value.name)
        return self.of_object(value)

    def result(self, task: int) -> bytes:
        """What stands for the result of another task."""
        return b"ref %d" % task

    def file(self, name: str) -> bytes:
        """What stands for a file of the data directory."""
        return self.hash("file", name.encode("utf-8", "surrogateescape"))

    def of_object(self, value: Any) -> bytes:
        """The digest of what is not plain."""
        key = id(value)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            return self.hash("again", b"%d" % (len(self._open) - self._open.index(key)))
        self._open.append(key)
        digest = self._known[key] = self.apart(value)
        self._open.pop()
        self._kept.append(value)
        return digest

    def apart(self, value: Any) -> bytes:
        """The digest of what a value is made of."""
        kind = type(value)
        if kind in (list, tuple):
            return self.hash(kind.__name__, *map(self.of, value))
        if isinstance(value, set | frozenset):
            return self.hash(kind.__name__, *sorted(map(self.of, value)))
        if kind is dict:
            return self.hash("dict", *sorted(self.of(k) + self.of(v) for k, v in value.items()))
        if kind is types.FunctionType or isinstance(value, type):
            return self._program(value)
        if kind is types.CodeType:
            return self.code(value)
        if kind is types.MethodType:
            return self.hash("method", self.of(value.__self__), self.of(value.__func__))
        if kind is functools.partial:
            return self.hash("partial", *map(self.of, (value.func, value.args, value.keywords)))
        if kind is types.ModuleType:
            return self.hash("module", value.__name__.encode())
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and not value.dtype.hasobject:
            return self.array(value)
        return self._reduced(value)

    def array(self, array: Any) -> bytes:
        """The digest of an array of numbers, in the order of C."""
        return self.hash("array", repr((array.dtype, array.shape)).encode(), _bytes_of(array))

    def _program(self, thing: Any) -> bytes:
        """A function or a class, with all of its own program that it leads to."""
        if not is_own(thing):
            return self.name(thing)
        seen: dict[int, bytes] = {}
        todo = [thing]
        while todo:
            part = todo.pop()
            if id(part) not in seen:
                seen[id(part)] = self._alone(part)
                todo += [other for other in _leads_to(part) if is_own(other)]
        return self.hash("program", self._alone(thing), *sorted(seen.values()))

    def _alone(self, thing: Any) -> bytes:
        """A function or a class by itself: what it leads to by name only."""
        if id(thing) not in self._alones:
            self._kept.append(thing)
            self._alones[id(thing)] = b""  # it may hold itself
            make = self._class if isinstance(thing, type) else self._function
            try:
                self._alones[id(thing)] = make(thing)
            except BaseException:
                del self._alones[id(thing)]  # it cannot be taken apart the next time either
                raise
        return self._alones[id(thing)]

    def _function(self, function: types.FunctionType) -> bytes:
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__)
        named = {name: value for name, value in _globals(function).items() if _is_constant(value)}
        digests = map(self.of, (*parts, cells_of(function), named))
        return self.hash("function", function.__qualname__.encode(), *digests)

    def _class(self, kind: type) -> bytes:
        plain = {k: v for k, v in vars(kind).items() if _is_constant(v) and k not in PLACES}
        methods = {name: self._alone(method) for name, method in methods_of(kind).items()}
        bases = [self.name(base) for base in kind.__bases__]
        return self.hash("class", kind.__qualname__.encode(), *bases, self.of((plain, methods)))

    def code(self, code: types.CodeType) -> bytes:
        """The digest of code: what it does, not where it stands."""
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return self.hash("code", code.co_code, *map(self.of, (numbers, names, code.co_consts)))

    def _reduced(self, value: Any) -> bytes:
        """As it is taken apart to be pickled."""
        reduce = copyreg.dispatch_table.get(type(value))
        reduced: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        if isinstance(reduced, str):
            return self.named_global(value, reduced)
        make, arguments, *more = reduced
        state, items, pairs = (*more[:3], *[None] * 3)[:3]
        parts = (make, arguments, state, _listed(items), _listed(pairs))
        return self.hash("object", *map(self.of, parts))

    def named_global(self, value: Any, name: str) -> bytes:
        """What is pickled by its name."""
        return self.hash("named", f"{getattr(value, '__module__', '')}.{name}".encode())

    def name(self, thing: Any) -> bytes:
        """The digest of a name."""
        return self.hash("named", f"{thing.__module__}.{thing.__qualname__}".encode())


def _bytes_of(array: Any) -> bytes | memoryview:
    """What an array holds; a large one is not copied for that."""
    if array.nbytes < _LARGE or not array.flags.c_contiguous:
        content: bytes = array.tobytes()
        return content
    return memoryview(array.reshape(-1).view("u1"))


def _listed(items: Iterable[Any] | None) -> list[Any] | None:
    return None if items is None else list(items)


def cells_of(function: types.FunctionType) -> list[Any]:
    """What a function has closed over."""
    return [_content(cell) for cell in function.__closure__ or ()]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing yet
        return None


def methods_of(kind: type) -> dict[str, types.FunctionType]:
    """The functions that a class is made of, by name."""
    found = {}
    for name, value in vars(kind).items():
        bare = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if type(bare) is types.FunctionType:
            found[name] = bare
    return found


def _leads_to(thing: Any) -> list[Any]:
    """The functions and classes that a function names, or that a class is made of."""
    if isinstance(thing, type):
        return [*thing.__bases__, *methods_of(thing).values()]
    named = _globals(thing).values()
    return [value for value in named if isinstance(value, types.FunctionType | type)]


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """What the global names mean that a function uses."""
    known = function.__globals__
    return {name: known[name] for name in names_of(function.__code__) if name in known}


def names_of(code: types.CodeType) -> set[str]:
    """The global names that code, and what is nested in it, may use."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(names_of, inner))


def _is_constant(value: Any) -> bool:
    """Whether it cannot change while the program runs."""
    return type(value) in PLAIN or (type(value) is tuple and all(map(_is_constant, value)))


def is_own(thing: Any) -> bool:
    """Whether it is of the user's program: others change with their versions only."""
    is_module = type(thing) is types.ModuleType
    home = thing.__name__ if is_module else str(getattr(thing, "__module__", None) or "")
    if home in MAINS:  # in a worker process too, where that is another file
        return True
    top = home.partition(".")[0]
    if top in sys.stdlib_module_names or top == "foreplan":
        return False
    file = getattr(sys.modules.get(home), "__file__", None) or ""
    return not is_installed(file)


def is_installed(file: str) -> bool:
    """Whether a file is of a package that somebody has installed."""
    return "site-packages" in file or "dist-packages" in file
