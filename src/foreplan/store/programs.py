"""What a call of a function is, for the store: all of the program that it may lead to.

A function is its code, defaults and closure, and what its global names mean: data by its value, a
function or class of its own program by what that is in turn; so is a class by all that it is made
of, and a module that is handed on by all that is in it. They refer to each other in circles. So all
that a function leads to is looked at in rounds, in which each knows the others by what they were in
the round before, until no more of them can be told apart (colour refinement, as for automata). Then
a digest says the same for the same program, whatever was looked at before, and another as soon as
one name means something else.

Parts of a program that are in modules are imported anew where a function runs, and there they may
be others: `bindings.py` compares them.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foreplan.model import Call
from foreplan.model.call import MAINS
from foreplan.store.digests import (
    PLACES,
    PLAIN,
    Digesting,
    cells_of,
    is_installed,
    is_own,
    names_of,
)

VALUE = "value:"  # how contents begin that are of values, not of their pickles
MOST = 1_000_000  # things of one value that are taken apart; only knots have more
_FEW = 50_000  # things of a result; what has more is known by its pickle
_LONG = 64  # plain values from which on they are taken together
# what Python derives from the rest of a class, or keeps there for itself
_DERIVED = frozenset(
    {
        *PLACES, "__dict__", "__weakref__", "__doc__", "__static_attributes__", "_abc_impl",
        "__annotations_cache__", "__dataclass_fields__", "__dataclass_params__", "__match_args__",
        "__abstractmethods__", "__parameters__", "__orig_bases__", "__hash__",
        "__slotnames__",
    }
)  # fmt: skip
# what is in a module besides its content
OF_MODULES = frozenset(
    {
        "__name__", "__doc__", "__file__", "__path__", "__cached__", "__spec__", "__loader__",
        "__package__", "__builtins__", "__annotations__", "__warningregistry__",
    }
)  # fmt: skip
ABSENT = object()  # what an attribute is that is not there
_SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)
_OF_OBJECTS = ("_ATTR", "_METHOD", "IMPORT_FROM", "IMPORT_NAME")  # operations on names of others
_WITH_NAMES = frozenset((*dis.hasname, *dis.haslocal, *dis.hasfree))
# of all functions that choose by type
DISPATCHER: types.CodeType = vars(functools)["singledispatch"](len).__code__


class CallDigests:
    """Digests of the functions and arguments of many calls."""

    def __init__(self) -> None:
        self._digesting = DeepDigesting(MOST)

    def parts(self, call: Call) -> tuple[str, str]:
        """Digests of the function, and of the arguments without results.

        A ValueError says what cannot be compared.
        """
        digesting = self._digesting
        function = digesting.take(lambda: digesting.of(call.function))
        return digesting.hash("function", function).hex(), self._arguments(call).hex()

    def of(self, call: Call, contents: Mapping[int | str, str]) -> str:
        """The digest of a call, in which results of tasks, and files, count as their contents."""
        digesting = self._digesting
        function = digesting.take(lambda: digesting.of(call.function))
        digesting.contents = contents
        try:
            return digesting.hash("call", function, self._arguments(call)).hex()
        finally:
            digesting.contents = None

    def _arguments(self, call: Call) -> bytes:
        digesting = self._digesting
        return digesting.take(lambda: digesting.hash("arguments", *digesting.arguments(call)))


def content_of(value: Any) -> str | None:
    """What a result is, whatever process has pickled it; None if only its pickle can tell."""
    digesting = DeepDigesting(_FEW)
    try:
        return VALUE + digesting.take(lambda: digesting.of(value)).hex()
    except ValueError:
        return None


class DeepDigesting(Digesting):
    """Digests that see all of a program. What they depend on must not be what was met before."""

    size = 16

    def __init__(self, most: int) -> None:
        super().__init__()
        # of the results and files that arguments refer to
        self.contents: Mapping[int | str, str] | None = None
        self._most, self._taken = most, 0  # things that are taken apart
        self._loose = 0  # how often something was met that may mean something else elsewhere
        self._round: _Round | None = None  # while a program is looked at
        self._things: list[Any] = []  # functions and classes of the program that were met
        self._things_in: dict[int, list[Any]] = {}  # the same of what is known
        self._outer, self._inner = self._known, dict[int, bytes]()  # what is known then, and else

    def take(self, work: Callable[[], bytes]) -> bytes:
        """A digest; a ValueError says why there is none."""
        self._taken = 0
        try:
            return work()
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except Exception as error:  # code of the objects is called, which may raise anything
            raise ValueError(str(error) or type(error).__name__) from None
        finally:
            self._open, self._round, self._known = [], None, self._outer

    def of(self, value: Any) -> bytes:
        """The digest of a value."""
        self._taken += 1
        if self._taken > self._most:
            raise ValueError("it is too large, or too entangled")
        return super().of(value)

    def result(self, task: int) -> bytes:
        """The content of a task's result, where that is asked for."""
        self._loose += 1
        return b"ref" if self.contents is None else f"ref {self.contents[task]}".encode()

    def file(self, name: str) -> bytes:
        """A file by its name and content, where that is asked for."""
        self._loose += 1
        content = b"" if self.contents is None else self.contents[name].encode()
        return self.hash("file", super().file(name), content)

    def arguments(self, call: Call) -> list[bytes]:
        """The digests of a call's arguments; a function with `**` sees the order of names."""
        digests, names = super().arguments(call), list(call.kwargs)
        if names != sorted(names):
            others = _others(call.function, names)
            if others != sorted(others):
                digests.append(self.hash("order", self.of(others)))
        return digests

    def array(self, array: Any) -> bytes:
        """The digest of an array of numbers; Fortran's order can be seen, and outlives pickling."""
        if array.flags.fnc:
            return self.hash("in Fortran's order", super().array(array.T))
        return super().array(array)

    def of_object(self, value: Any) -> bytes:
        """The digest of what is not plain; it is remembered if it is the same everywhere."""
        if type(value) is _NameOfModule:
            return self.hash("module", value.encode())
        if type(value) in (types.FunctionType, types.ModuleType) or isinstance(value, type):
            return self._part_of_program(value)
        key = id(value)
        if key in self._known:
            self._things += self._things_in.get(key, ())
            return self._known[key]
        if key in self._open:
            self._loose += 1
            return self.hash("again", b"%d" % (len(self._open) - self._open.index(key)))
        loose, met = self._loose, len(self._things)
        self._open.append(key)
        digest = self.apart(value)
        self._open.pop()
        if self._loose == loose:
            self._known[key] = digest
            self._kept.append(value)
            if len(self._things) > met:
                self._things_in[key] = self._things[met:]
        return digest

    def apart(self, value: Any) -> bytes:
        """The digest of what a value is made of; the order of a dict can be seen, so it counts."""
        kind = type(value)
        if kind in (list, tuple) and len(value) > _LONG and PLAIN.issuperset(map(type, value)):
            text = repr(value).encode("utf-8", "surrogatepass")
            return self.hash(f"long {kind.__name__}", text)
        if kind is dict:
            both = (*value, *value.values())
            if len(value) > _LONG and PLAIN.issuperset(map(type, both)):
                return self.hash("long dict", repr(value).encode("utf-8", "surrogatepass"))
            return self.hash("dict", *[self.of(k) + self.of(v) for k, v in value.items()])
        if isinstance(value, set | frozenset) and kind not in (set, frozenset):
            parts = (kind, {*value}, getattr(value, "__dict__", None))
            return self.hash("set", *map(self.of, parts))
        if kind is types.CodeType:  # which part of the code an except clause is for
            return self.hash("code", self.code(value), getattr(value, "co_exceptiontable", b""))
        return super().apart(value)

    def named_global(self, value: Any, name: str) -> bytes:
        """What is pickled by its name; a function that it wraps, as a cache does, counts too."""
        digest = super().named_global(value, name)
        if inner := getattr(value, "__wrapped__", None):
            return self.hash("wrapped", digest, self.of(inner))
        home = str(getattr(value, "__module__", None) or type(value).__module__)
        try:
            found = functools.reduce(getattr, name.split("."), sys.modules[home])
        except (KeyError, AttributeError):
            found = None
        if found is not value:
            raise ValueError(f"{name} cannot be found by its name")
        return self.hash("global", digest, home.encode(), self.of(type(value)))

    # ---- functions and classes

    def _part_of_program(self, thing: Any) -> bytes:
        if not is_own(thing):
            is_module = type(thing) is types.ModuleType
            return super().apart(thing) if is_module else self.name(thing)
        if self._round is not None:
            self._loose += 1
            return self._round.colour(thing)
        self._things.append(thing)
        if id(thing) not in self._known:
            self._known[id(thing)] = self._program(thing)
            self._kept.append(thing)
        return self._known[id(thing)]

    def _program(self, thing: Any) -> bytes:
        """A function or a class, with all of its own program that it leads to."""
        opened, self._open, self._known = self._open, [], self._inner
        self._round = now = _Round({})
        now.colour(thing)
        told_apart = 0
        while True:
            before = now
            for part in before.things():  # in the first round there are more and more
                before.new[id(part)] = self._describe(part, before.old.get(id(part), b""))
            now = self._round = _Round(before.new, before.found)
            if len({*now.old.values()}) == told_apart:
                break
            told_apart = len({*now.old.values()})
        self._open, self._round, self._known = opened, None, self._outer
        return self.hash("program", now.old[id(thing)], *sorted(now.old.values()))

    def _describe(self, thing: Any, before: bytes) -> bytes:
        """A function or a class, by what is known of the others it leads to."""
        if type(thing) is types.ModuleType:
            return self._describe_module(thing, before)
        parts = _of_class(thing) if isinstance(thing, type) else _of_function(thing)
        name = thing.__qualname__.encode()
        return self.hash("part", before, name, *map(self.of, parts))

    def _describe_module(self, module: types.ModuleType, before: bytes) -> bytes:
        """A module that is handed on: nobody knows what of it is used, so all counts."""
        digests, name = list[bytes](), module.__name__
        for key in sorted(vars(module).keys() - OF_MODULES):
            try:
                digests += [self.of(key), self.of(vars(module)[key])]
            except Exception as error:
                raise ValueError(f"{key} of the module {name}: {error}") from None
        return self.hash("module part", before, name.encode(), *digests)


class _Round:
    """What is known of the parts of a program: from the round before, and by now."""

    def __init__(self, old: dict[int, bytes], found: dict[int, Any] | None = None) -> None:
        self.old, self.found = old, found if found is not None else {}
        self.new: dict[int, bytes] = {}

    def colour(self, thing: Any) -> bytes:
        """What another part is told of this one."""
        self.found.setdefault(id(thing), thing)
        return self.old.get(id(thing), b"")

    def things(self) -> Iterator[Any]:
        """All parts, with those that are met meanwhile."""
        done = 0
        while done < len(self.found):
            for thing in list(self.found.values())[done:]:
                done += 1
                yield thing


class _NameOfModule(str):
    """A module of which only what is named counts: that stands beside it."""


def _of_function(function: types.FunctionType) -> tuple[Any, ...]:
    """What a function is made of."""
    if function.__code__ is DISPATCHER:
        return (tuple(vars(function)["registry"].items()),)
    _check_loaded(function)
    named = _globals(function)
    for key, value in named.items():
        if type(value) is types.ModuleType:
            named[key] = _NameOfModule(value.__name__)
    named |= handed_on(function)
    given = (function.__defaults__, function.__kwdefaults__, cells_of(function))
    return (function.__code__, *given, function.__dict__, {k: named[k] for k in sorted(named)})


def _of_class(kind: type) -> tuple[Any, ...]:
    """What a class is made of."""
    made = {name: bare(value) for name, value in attributes_of(kind).items()}
    if metadata := metadata_of(kind):
        made["__dataclass_fields__"] = metadata
    return (type(kind), kind.__bases__, made)


def attributes_of(kind: type) -> dict[str, Any]:
    """Return the attributes of a class that Python does not derive from the others."""
    made = {name: vars(kind)[name] for name in sorted(vars(kind).keys() - _DERIVED)}
    if not made.get("__annotations__"):  # who only asks for them makes them
        made.pop("__annotations__", None)
    return {name: value for name, value in made.items() if not isinstance(value, _SLOTS)}


def metadata_of(kind: type) -> dict[str, Any]:
    """Return the metadata of the fields of a dataclass."""
    fields = vars(kind).get("__dataclass_fields__", {}).values()
    return {field.name: dict(field.metadata) for field in fields if field.metadata}


def bare(value: Any) -> Any:
    """What an attribute of a class is made of, as far as it hides that."""
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, staticmethod | classmethod):
        return (type(value), value.__func__)
    return value.func if isinstance(value, functools.cached_property) else value


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """What the global names mean that a function uses, those of the program's modules too."""
    known = function.__globals__
    found = {name: known[name] for name in used_names(function.__code__) if name in known}
    for module, name, value in module_attributes(function):
        if value is not ABSENT:
            found[f"{module.__name__}.{name}"] = value
    return found


def module_attributes(
    function: types.FunctionType,
) -> Iterator[tuple[types.ModuleType, str, Any]]:
    """Yield the attributes of modules that a function may read: module, name and value.

    Of a module of the program these are all that have a name which the code uses, and those that
    the code reads though they are absent. Of other modules, and of classes in them, only what the
    program has put there.
    """
    known = function.__globals__
    names = names_of(function.__code__)
    used = [known[name] for name in used_names(function.__code__) if name in known]
    todo = [value for value in (*used, *_loaded(function)) if type(value) is types.ModuleType]
    classes = {id(value): value for value in used if isinstance(value, type)}
    seen = set()
    while todo:
        module = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        own = is_own(module)
        for name in names & vars(module).keys():
            value = vars(module)[name]
            if type(value) is types.ModuleType:
                todo.append(value)
            elif isinstance(value, type):
                classes[id(value)] = value
            if own or is_replaced(module, name, value):
                yield module, name, value
    for kind in classes.values():
        home = sys.modules.get(kind.__module__)
        if home is not None and vars(home).get(kind.__qualname__) is kind and not is_own(kind):
            for name in names & vars(kind).keys():
                if is_replaced(home, f"{kind.__qualname__}.{name}", vars(kind)[name]):
                    yield home, f"{kind.__qualname__}.{name}", vars(kind)[name]
    yield from _missing_attributes(function)


def _missing_attributes(
    function: types.FunctionType,
) -> Iterator[tuple[types.ModuleType, str, Any]]:
    """Yield attributes that a function reads and its modules do not have, but for `__getattr__`."""
    chains = _handed(function.__code__)
    local = {module.__name__.rpartition(".")[2]: module for module in _loaded(function)}
    read = [(function.__globals__ if is_global else local, chain) for is_global, chain in chains]
    names = _names_imported(function.__code__)
    read += [(local, f"{short}.{name}") for short in local for name in names]
    for known, chain in read:
        first, *others = chain.split(".")
        value: Any = known.get(first)
        for name in others:
            if type(value) is not types.ModuleType or not is_own(value):
                break
            module, value = value, vars(value).get(name, ABSENT)
            if value is ABSENT:
                value = _get_lazily(module, name)
                yield module, name, value


def _get_lazily(module: types.ModuleType, name: str) -> Any:
    """Return the attribute that a module's `__getattr__` (PEP 562) makes; ABSENT if none."""
    if "__getattr__" not in vars(module):
        return ABSENT
    return getattr(module, name, ABSENT)


_replaced: set[tuple[str, str]] = set()  # attributes that were replaced at some time


def is_replaced(module: types.ModuleType, name: str, value: Any) -> bool:
    """Return whether the program has, or once had, put something else there than was installed."""
    if type(value) in (types.MethodType, staticmethod, classmethod):
        value = value.__func__
    elif type(value) is functools.partial:
        value = value.func
    thing = value if isinstance(value, types.FunctionType | type) else type(value)
    is_mock = thing is not value and thing.__module__ == "unittest.mock"
    if is_mock or (is_own(thing) and not is_built_in(thing)):
        _replaced.add((module.__name__, name))
    return (module.__name__, name) in _replaced


def is_built_in(thing: Any) -> bool:
    """Return whether the module of a thing has no file, as those that compilers make up."""
    is_module = type(thing) is types.ModuleType
    home = str(thing.__name__ if is_module else thing.__module__)
    return home not in MAINS and not getattr(sys.modules.get(home), "__file__", None)


def imported_as(thing: Any) -> str:
    """The module and name by which a part of a program is imported; empty if it travels itself."""
    is_module = type(thing) is types.ModuleType
    home = str(thing.__name__ if is_module else thing.__module__)
    module = sys.modules.get(home)
    if home in MAINS or module is None or home.partition(".")[0] in _by_value():
        return ""
    if is_module:
        return f"{home}:" if module is thing else ""
    name = str(thing.__qualname__)
    try:
        found = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        return ""
    if getattr(found, "__wrapped__", None) is thing:  # a cache around it is what is imported
        return f"{home}:{name}.__wrapped__"
    return f"{home}:{name}" if found is thing else ""


def _by_value() -> set[str]:
    """The packages that cloudpickle was told to take along."""
    pickling = sys.modules.get("cloudpickle")
    listed = pickling.list_registry_pickle_by_value() if pickling is not None else ()
    return {name.partition(".")[0] for name in listed}


@functools.lru_cache(maxsize=4096)
def used_names(code: types.CodeType) -> frozenset[str]:
    """The names that code, and what is nested in it, uses other than as attributes."""
    used = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opcode in dis.hasname and not step.opname.endswith(_OF_OBJECTS)
    }
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(used).union(*map(used_names, inner))


@functools.lru_cache(maxsize=4096)
def sets_globals(code: types.CodeType) -> bool:
    """Return whether code, or what is nested in it, sets or deletes a global variable."""
    steps = {step.opname for step in dis.get_instructions(code)}
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return not steps.isdisjoint(("STORE_GLOBAL", "DELETE_GLOBAL")) or any(map(sets_globals, inner))


def handed_on(function: types.FunctionType) -> dict[str, types.ModuleType]:
    """The modules of the program that a function does more with than take attributes of them."""
    imported = [module for module in _loaded(function) if is_own(module)]
    names = names_of(function.__code__) if imported else set()
    inside = {name: vars(m)[name] for m in imported for name in names & vars(m).keys()}
    inside |= {module.__name__.rpartition(".")[2]: module for module in imported}
    found = {}
    for is_global, name in _handed(function.__code__):
        first, *others = name.split(".")
        value = (function.__globals__ if is_global else inside).get(first)
        for other in others:
            value = vars(value).get(other) if type(value) is types.ModuleType else None
        if type(value) is types.ModuleType and is_own(value):
            found[value.__name__] = value
    return found


@functools.lru_cache(maxsize=4096)
def _handed(code: types.CodeType) -> frozenset[tuple[bool, str]]:
    """What code, and what is nested in it, uses as it is, `a` or `a.b`; and whether `a` is global.

    Of `a.b.c()` that is the last, not the modules before it.
    """
    found, is_global, name = set[tuple[bool, str]](), False, ""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            name += f".{step.argval}" if name else ""
        elif step.opname != "EXTENDED_ARG":
            found.add((is_global, name))
            name = ""
            if step.opname.startswith("LOAD_") and step.opcode in _WITH_NAMES:
                *more, name = step.argval if isinstance(step.argval, tuple) else (step.argval,)
                found.update((False, other) for other in more)
                is_global = step.opcode in dis.hasname
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(found).union(*map(_handed, inner))


def _others(function: Any, names: list[str]) -> list[str]:
    """The names of arguments that go to a function's `**`; all if nobody knows."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except Exception:  # some builtins have no signature, and objects may raise anything
        return names
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return []
    own = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return [name for name in names if name not in own]


def _loaded(function: types.FunctionType) -> list[types.ModuleType]:
    """Return the modules that a function imports when it runs, as far as they are loaded."""
    return [sys.modules[n] for names in _places(function) for n in names if n in sys.modules]


def _places(function: types.FunctionType) -> list[tuple[str, ...]]:
    """Return the names that each module may have that a function imports when it runs."""
    package = function.__globals__.get("__package__") or ""
    found = sorted(_imports(function.__code__))
    return [(n, f"{package}.{n}".strip(".")) if package else (n,) for n in found]


def _check_loaded(function: types.FunctionType) -> None:
    """Raise a ValueError if a function imports a module that cannot be looked at yet."""
    package = function.__globals__.get("__package__") or ""
    for names in _places(function):
        if not any(name in sys.modules for name in names) and _may_be_own(names[0], package):
            raise ValueError(f"it imports {names[0]} as it runs: import it with the program")


@functools.lru_cache(maxsize=4096)
def _names_imported(code: types.CodeType) -> frozenset[str]:
    """Return the names that code, and what is nested in it, imports from modules."""
    found = {
        str(step.argval) for step in dis.get_instructions(code) if step.opname == "IMPORT_FROM"
    }
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(found).union(*map(_names_imported, inner))


@functools.lru_cache(maxsize=4096)
def _imports(code: types.CodeType) -> frozenset[str]:
    """The names of modules that code, and what is nested in it, imports."""
    found = {
        str(step.argval) for step in dis.get_instructions(code) if step.opname == "IMPORT_NAME"
    }
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(found).union(*map(_imports, inner)) - {""}


def _may_be_own(name: str, package: str) -> bool:
    """Whether a module that is not imported yet may be of the user's program."""
    first = name.partition(".")[0]
    if package and _spec_of(f"{package}.{first}") is not None:
        return True
    if first in sys.stdlib_module_names:
        return False
    spec = _spec_of(first)  # None: it is not there, or found from a package above this one
    return bool(package) if spec is None else not is_installed(spec.origin or "")


def _spec_of(name: str) -> Any:
    from importlib.util import find_spec

    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None
