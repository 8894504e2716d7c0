"""The bindings of a program that a call uses, and their comparison with a worker.

A binding is an attribute of a module (`lib:CONFIG`) or of a class in one (`lib:Model.predict`). The
program may have set it since it imported the module, and a worker imports the module anew. So a
call travels with the digests of all bindings that its code can reach. The rules:

- A function or class that can be imported by name is compared at its own binding; elsewhere only
  its name is. Functions of the script and closures are compared by content.
- `lib:Model` stands for the bases, slots and fields of a class; `lib:Model.` and `lib:` stand for
  the names of all attributes.
- What cannot be compared, such as a lock, counts as its type. Modules without a file are skipped.
- A worker looks at a binding before every call, because tasks may set it, too. Of large data it
  only checks that it is the same object.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import os
import sys
import threading
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from foreplan.quantities import first_few
from foreplan.store.digests import PLAIN, cells_of, is_own
from foreplan.store.programs import (
    ABSENT,
    DISPATCHER,
    MOST,
    OF_MODULES,
    DeepDigesting,
    attributes_of,
    bare,
    handed_on,
    imported_as,
    is_built_in,
    metadata_of,
    module_attributes,
    used_names,
)

_LARGE = 1 << 20  # bytes, or things, of data that are not looked at again before every call
_MANY = 10_000
_OPAQUE = "opaque-"  # how the digest begins of what cannot be compared


class Bindings(NamedTuple):
    """The bindings of some calls: their digests by name, and one of all."""

    token: str
    digests: Mapping[str, str]
    has_classes: bool = False  # some classes travel, and may register themselves when they arrive


class Names(tuple[str, ...]):
    """The names of all attributes of a class or module."""

    __slots__ = ()


def name_of(thing: Any) -> str:
    """Return the binding by whose name a part of the program is imported; empty if it travels."""
    name = imported_as(thing)
    return "" if name.endswith(".__wrapped__") else name


def home_of(function: types.FunctionType) -> str:
    """Return the name of the module that holds a function's globals; empty if they travel."""
    home = str(function.__globals__.get("__name__") or "")
    module = sys.modules.get(home)
    if module is None or vars(module) is not function.__globals__:
        return ""
    return home if imported_as(module) and not is_built_in(module) else ""


def look_up(binding: str) -> Any:
    """Return the value of a binding in this process; ABSENT if there is none."""
    home, _, path = binding.partition(":")
    module = sys.modules.get(home) or importlib.import_module(home)
    value: Any = module
    for name in path.split("."):
        if not name:
            return _names_in(module) if value is module else Names(sorted(_attributes(value)))
        if not isinstance(value, types.ModuleType | type):
            return ABSENT
        lazy = value is module and name not in vars(module) and "__getattr__" in vars(module)
        value = getattr(module, name, ABSENT) if lazy else vars(value).get(name, ABSENT)
    return value


def _names_in(module: types.ModuleType) -> Names:
    """Return the names in a module but for its own modules, which come as others import them."""
    return Names(
        sorted(
            name
            for name in vars(module).keys() - OF_MODULES
            if getattr(vars(module)[name], "__name__", "") != f"{module.__name__}.{name}"
        )
    )


def _attributes(kind: type) -> dict[str, Any]:
    """Return the attributes of a class without the data that libraries keep there for themselves.

    That has names as `__mapper__` and is often made only when it is first needed.
    """
    return {
        name: value
        for name, value in attributes_of(kind).items()
        if not (name.startswith("__") and name.endswith("__")) or callable(bare(value))
    }


class _BindingDigesting(DeepDigesting):
    """The digest of one binding, in which parts of modules count by their names."""

    def __init__(self, binding: str) -> None:
        super().__init__(MOST)
        self._binding = binding
        self.bytes = 0
        self.is_fixed = False  # no task can change the value

    @property
    def things(self) -> list[Any]:
        """The parts of the program that were met."""
        return self._things

    @property
    def is_large(self) -> bool:
        """Return whether to look at the value before every call would take too long."""
        return self.bytes > _LARGE or self._taken > _MANY

    def hash(self, kind: str, *parts: bytes | memoryview) -> bytes:
        """One digest for several."""
        self.bytes += sum(map(len, parts))
        return super().hash(kind, *parts)

    def of_binding(self, value: Any) -> str:
        """Return the digest of the binding's value; of what cannot be compared, of its type."""
        self.is_fixed = _is_fixed(value)
        if value is ABSENT:
            return "absent"
        if type(value) is Names:
            return self.hash("names", *map(str.encode, value)).hex()
        if type(value) is types.ModuleType:
            return self.hash("module", value.__name__.encode()).hex()
        try:
            return self.take(lambda: self.of(bare(value))).hex()
        except ValueError:
            size = len(value) if type(value) in (list, tuple, set, dict) else 0
            kind = f"{type(value).__module__}.{type(value).__qualname__} {size}".encode()
            code = self.code(value.__code__) if type(value) is types.FunctionType else b""
            return _OPAQUE + self.hash("opaque", kind, code).hex()

    def _part_of_program(self, thing: Any) -> bytes:
        name = name_of(thing) if is_own(thing) else ""
        if name and is_built_in(thing):
            return self.hash("built in", name.encode())
        if not name:
            return super()._part_of_program(thing)
        self._things.append(thing)
        if name != self._binding:
            return self.hash("imported", name.encode())
        self._binding = ""  # a function may hold itself
        parts: tuple[Any, ...]
        if isinstance(thing, type):
            slots = vars(thing).get("__slots__")
            parts = (type(thing), thing.__bases__, metadata_of(thing), slots)
        elif thing.__code__ is DISPATCHER:
            parts = (tuple(vars(thing)["registry"].items()),)
        else:
            given = (thing.__defaults__, thing.__kwdefaults__, cells_of(thing))
            parts = (thing.__code__, *given, thing.__dict__)
        return self.hash("part", thing.__qualname__.encode(), *map(self.of, parts))


def _is_fixed(value: Any) -> bool:
    """Return whether no task can change a value but by putting another one in its place."""
    if isinstance(value, type):
        return not is_own(value) or bool(name_of(value))  # its attributes are bindings themselves
    if type(value) is not types.FunctionType:
        # a function that is compiled, or has a cache: that it was called cannot be seen
        is_wrapper = callable(value) and hasattr(value, "__wrapped__") and not is_own(type(value))
        return type(value) in PLAIN or type(value) in (types.ModuleType, Names) or is_wrapper
    if not home_of(value) and is_own(value):  # its globals have come with it
        return False
    given = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    return not (value.__closure__ or value.__dict__) and PLAIN.issuperset(map(type, given))


def digest_of(binding: str, value: Any) -> str:
    """Return the digest that a binding has with a value."""
    return _BindingDigesting(binding).of_binding(value)


class ProgramBindings:
    """The bindings that the calls of a run count on, as they are in this process."""

    def __init__(self) -> None:
        self._walked: dict[tuple[int, bool], tuple[dict[str, str], list[Any]]] = {}
        self._whole: dict[tuple[int, ...], Bindings] = {}
        self._kept: list[Any] = []  # so that no other object gets its id
        # what cannot be compared and was sent before is sent anew in every run
        self._mark = f"#{os.urandom(8).hex()}"
        self._lock = threading.Lock()

    def of(self, met: Iterable[Any], arguments: Any = ()) -> Bindings:
        """Return the bindings of a call, given the functions, classes and modules of its pickle."""
        own = {id(t): t for t in met if is_own(t) and not is_built_in(t)}
        has_modules = any(type(thing) is types.ModuleType for thing in own.values())
        given = {id(module): module for module in _modules_in(arguments)} if has_modules else {}
        key = (*own, 0, *given)
        with self._lock:
            if key not in self._whole:
                self._kept += own.values()
                self._whole[key] = self._find(list(own.values()), list(given.values()))
            return self._whole[key]

    def _find(self, pickled: list[Any], given: list[Any]) -> Bindings:
        found: dict[str, str] = {}
        # what travels has met with the pickle all that it leads to, but for what is in modules
        todo = [(thing, not name_of(thing)) for thing in (*_without_named(pickled), *given)]
        seen = set[int]()
        while todo:
            thing, travels = todo.pop()
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            bindings, more = self._walk(thing, travels)
            found |= bindings
            todo += [(part, False) for part in more]
        found = dict(sorted(found.items()))
        whole = hashlib.blake2b(repr(found).encode(), digest_size=16)
        has_classes = any(isinstance(thing, type) and not name_of(thing) for thing in pickled)
        return Bindings(whole.hexdigest() if found else "", found, has_classes)

    def _walk(self, thing: Any, travels: bool) -> tuple[dict[str, str], list[Any]]:
        """Return the bindings of one part of the program, and the parts that it leads to."""
        key = (id(thing), travels)
        if key not in self._walked:
            self._kept.append(thing)
            bindings, loose = _bindings_of(thing, travels)
            digests = dict[str, str]()
            more = list[Any]()
            for binding, value in bindings.items():
                digesting = _BindingDigesting(binding)
                found = digesting.of_binding(value)
                digests[binding] = found + self._mark if found.startswith(_OPAQUE) else found
                more += digesting.things
            for part in () if travels else loose:
                digesting = _BindingDigesting("")
                digesting.of_binding([part])
                more += digesting.things
            if travels:
                more += _modules_in(loose)
            self._walked[key] = digests, more
        return self._walked[key]


def _without_named(things: Sequence[Any]) -> list[Any]:
    """Return the things without the modules of which the functions among them only read names."""
    named = set[int]()
    for thing in things:
        if type(thing) is types.FunctionType:
            known = thing.__globals__
            named |= {id(known[n]) for n in used_names(thing.__code__) if n in known}
    return [t for t in things if type(t) is not types.ModuleType or id(t) not in named]


def _modules_in(value: Any) -> list[Any]:
    """Return the modules of the program in nested lists, tuples, sets and dicts."""
    found = list[Any]()
    todo, seen = [value], set[int]()
    while todo:
        part = todo.pop()
        if type(part) is types.ModuleType and is_own(part):
            found.append(part)
        elif type(part) in (list, tuple, set, frozenset, dict) and id(part) not in seen:
            seen.add(id(part))
            todo += part.values() if type(part) is dict else part
    return found


def _bindings_of(thing: Any, travels: bool) -> tuple[dict[str, Any], list[Any]]:
    """Return the bindings that a part of a program names, and what else it holds.

    A function that travels with the call, such as an inner one, takes its globals along.
    """
    if type(thing) is types.ModuleType:
        return _bindings_of_module(thing), []
    name = name_of(thing)
    if isinstance(thing, type):
        attributes = _attributes(thing)
        if not name:
            return {}, [*thing.__bases__, *map(bare, attributes.values())]
        own = {f"{name}.{key}": value for key, value in attributes.items()}
        return {name: thing, f"{name}.": Names(sorted(attributes)), **own}, []
    bindings = {name: look_up(name)} if name else {}  # a class may hold it as a static method
    home = "" if travels else home_of(thing)
    known = thing.__globals__
    used = used_names(thing.__code__)
    for key in used if home else ():
        if key in known or not hasattr(builtins, key):
            bindings[f"{home}:{key}"] = known.get(key, ABSENT)
    for module, key, value in module_attributes(thing):
        if not is_own(module) or (imported_as(module) and not is_built_in(module)):
            bindings[f"{module.__name__}:{key}"] = value
    loose: list[Any] = [*handed_on(thing).values()]
    if not name:
        loose += [thing.__defaults__, thing.__kwdefaults__, cells_of(thing), thing.__dict__]
    if not home:
        loose += [v for key in used if (v := known.get(key)) is not None and _is_data(v)]
    return bindings, loose


def _is_data(value: Any) -> bool:
    return type(value) not in PLAIN and type(value) is not types.ModuleType


def _bindings_of_module(module: types.ModuleType) -> dict[str, Any]:
    """Return the bindings of a module that is handed on: nobody knows what of it is used."""
    name = imported_as(module)
    if not name or is_built_in(module):
        return {}
    inside = {name + key: vars(module)[key] for key in sorted(vars(module).keys() - OF_MODULES)}
    return {name: _names_in(module), **inside}


# ---- in the worker


class _Accepted(NamedTuple):
    """A binding that was found, or made, to be as expected."""

    expected: str
    value: Any
    digest: str  # as this process finds it, which may differ for what came by a pickle
    is_settled: bool  # no task can change it, or it is too large to be looked at again


class ProgramError(Exception):
    """A worker has another program than a call counts on."""


class BindingDifference(NamedTuple):
    """A binding that is not as expected."""

    binding: str
    problem: str = ""  # why it cannot be looked at
    by_task: bool = False  # it was as expected before


def tell(
    differences: Sequence[BindingDifference], where: str, problem: str = "", how: str = ""
) -> str:
    """Return what differs, where, and what to do; `problem` is why it cannot be made the same."""
    for found in differences:
        if found.problem:
            module = found.binding.partition(":")[0]
            return f"{where} cannot import {module}, which the function needs: {found.problem}"
    names = first_few(found.binding.strip(".:").replace(":", ".") for found in differences)
    why = f" ({problem})" if problem else ""
    return (
        f"the program and {where} differ in {names}{why}: pass it as an argument, {how}or set it "
        "where the module is imported; mismatch='warn' calls the function all the same, and does "
        "not keep the result"
    )


WITH_OTHER_PROGRAM = "it was called though its worker and the program differ in"


def changes_of_tasks(task: str, bindings: Sequence[str]) -> str:
    """Return what to tell of bindings that tasks have changed in their worker process."""
    return (
        f"{task}: earlier tasks in its worker process have changed {first_few(bindings)}; every "
        "task begins with what the program has there. To keep something for later tasks, let a "
        "function of the module with functools.cache return it"
    )


class WorkerProgram:
    """The program as this worker process has it."""

    def __init__(self) -> None:
        self._bindings: dict[str, Mapping[str, str]] = {}
        self._accepted: dict[str, _Accepted] = {}
        self._originals: dict[str, Any] = {}
        self._lock = threading.Lock()

    def bindings(self, token: str, digests: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the bindings of a token, which come with it only the first time."""
        if digests is not None:
            self._bindings[token] = digests
        return self._bindings[token]

    def begin_run(self) -> None:
        """Look at everything again: tasks of other runs may have changed large data, too."""
        self._bindings.clear()
        for binding, known in self._accepted.items():
            self._accepted[binding] = known._replace(is_settled=False)

    def compare(self, expected: Mapping[str, str]) -> list[BindingDifference]:
        """Return the bindings that differ from what a call expects."""
        with self._lock:
            found = (self._compare(binding, digest) for binding, digest in expected.items())
            return [difference for difference in found if difference is not None]

    def _compare(self, binding: str, expected: str) -> BindingDifference | None:
        try:
            value = look_up(binding)
        except Exception as error:  # modules run code when they are imported
            return BindingDifference(binding, f"{type(error).__name__}: {error}")
        known = self._accepted.get(binding)
        if known is not None and known.expected != expected:
            known = None
        if known is not None and known.is_settled and _is_same(known.value, value):
            return None
        accepted = _accept(binding, value, expected)
        is_put = binding in self._originals and value is not self._originals[binding]
        wanted = expected if is_put else expected.partition("#")[0]
        if accepted.digest == (wanted if known is None else known.digest):
            self._accepted[binding] = accepted
            return None
        if is_put and digest_of(binding, self._originals[binding]) == expected:
            self.put(binding, self._originals[binding], expected)
            return None
        return BindingDifference(binding, by_task=known is not None)

    def put(self, binding: str, value: Any, expected: str) -> None:
        """Make a binding what it is in the program."""
        home, _, path = binding.partition(":")
        owner: Any = importlib.import_module(home)
        *outer, name = path.split(".")
        for key in outer:
            owner = vars(owner)[key]
        if type(value) is Names:
            extra = [key for key in look_up(binding) if key not in value]
            for key in extra:
                delattr(owner, key)
        else:
            self._originals.setdefault(binding, look_up(binding))
            if value is not ABSENT:
                setattr(owner, name, value)
            elif name in vars(owner):
                delattr(owner, name)
        self._accepted[binding] = _accept(binding, look_up(binding), expected)


def _is_same(known: Any, value: Any) -> bool:
    return known is value or (type(value) is Names and known == value)


def _accept(binding: str, value: Any, expected: str) -> _Accepted:
    digesting = _BindingDigesting(binding)
    digest = digesting.of_binding(value)
    is_settled = digesting.is_fixed or digesting.is_large
    return _Accepted(expected, value, digest, is_settled)


HERE = WorkerProgram()


def compare_program(
    bindings: Mapping[str, str], may_differ: bool, where: str
) -> tuple[str, tuple[str, ...]]:
    """Return what of the program differs here, and what tasks have changed; refuse the former.

    Nothing is put right: others use these modules, too.
    """
    if not bindings:
        return "", ()
    differences = HERE.compare(bindings)
    before = [found for found in differences if not found.by_task]
    if before and not may_differ:
        how = "have its module travel with cloudpickle.register_pickle_by_value, "
        raise ProgramError(tell(before, where, how=how))
    changed = tuple(found.binding for found in differences if found.by_task)
    return ", ".join(found.binding for found in before), changed
