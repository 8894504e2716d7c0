"""From a spec string to an object: `heft[insertion=false]`. Classes are found, not listed.

A name is that of a class in a room of foreplan, of one that another package declares by an entry
point, or `module:Class`. What is not foreplan's own is wrapped (`foreplan.extensions`).
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, cast, get_args, get_origin, get_type_hints

from foreplan.errors import InputError, did_you_mean, unknown_name
from foreplan.spec import parse_spec, spec_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from foreplan.contracts import Order, Planner, Policy


@dataclass(frozen=True)
class _Kind:
    """Planners or strategies: the word for one, and where they are found."""

    word: str
    room: str  # within foreplan
    group: str  # of the entry points by which other packages declare theirs


PLANNERS = _Kind("planner", "scheduling.planners", "foreplan.planners")
STRATEGIES = _Kind("strategy", "engine.policies", "foreplan.strategies")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_OBJECT = "object of "  # before the class of one that no spec string can make again


def planner_names() -> list[str]:
    """Return the names of all planners: those of foreplan, and those that packages declare."""
    return _names(PLANNERS)


def strategy_names() -> list[str]:
    """Return the names of all strategies: those of foreplan, and those that packages declare."""
    return _names(STRATEGIES)


def planner_class(name: str) -> type[Planner]:
    """The planner of that name; if a file is called so, only that one is imported."""
    return cast("type[Planner]", _class(PLANNERS, name))


def strategy_class(name: str) -> type[Policy | Order]:
    """The strategy of that name; if a file is called so, only that one is imported."""
    return cast("type[Policy | Order]", _class(STRATEGIES, name))


def planner(spec: str | Planner) -> Planner:
    """The planner that a spec string asks for, or the one that is given."""
    return cast("Planner", _choose(PLANNERS, spec))


def within_budget(chosen: Planner) -> Planner:
    """A planner that keeps a budget: itself, or the best affordable one from what it plans."""
    if _has_option(chosen, "budget"):
        return chosen
    afford: Any = planner_class("best-affordable")
    return cast("Planner", afford(start=chosen, quick=True))


def in_time(chosen: Planner, deadline: float) -> Planner:
    """A planner that looks for the cheapest way by a deadline, from what this one plans."""
    if _has_option(chosen, "deadline"):
        return _with_deadline(chosen, deadline)
    cheapest: Any = planner_class("cheapest-in-time")
    return cast("Planner", cheapest(deadline=deadline, start=chosen))


def at_latest(chosen: Planner, deadline: float) -> Planner:
    """Return the planner with this deadline, if it has one and that is later."""
    if not _has_option(chosen, "deadline"):
        return chosen
    return _with_deadline(chosen, min(deadline, _inner(chosen).deadline))


def _with_deadline(chosen: Planner, deadline: float) -> Planner:
    return planner(replace(_inner(chosen), deadline=deadline))


def _has_option(chosen: Planner, name: str) -> bool:
    inner = _inner(chosen)
    return is_dataclass(inner) and any(f.name == name for f in fields(inner))


def _inner(chosen: Any) -> Any:
    """Return the object that was given, of one that is wrapped."""
    return getattr(chosen, "own", chosen)


def strategy(
    spec: str | Policy | Order, budgeted: bool = False
) -> tuple[Policy | Order, Planner | None]:
    """The strategy that is asked for or given, and the planner it plans with, if any."""
    from foreplan.contracts import Order

    chosen = _choose(STRATEGIES, spec)
    if isinstance(chosen, Order):
        if budgeted:
            shown = spec if isinstance(spec, str) else spec_of(chosen)
            raise InputError(
                f"`{shown}` makes no plan, so it cannot keep a budget; take a planned strategy, "
                "such as `adaptive`"
            )
        return chosen, None
    plans = planner(chosen.planner)
    return chosen, within_budget(plans) if budgeted else plans


def recorded_spec(chosen: str | Policy | Order) -> str:
    """Return a spec string by which a journal knows a strategy.

    If no spec string makes the same object again, the text says so and `strategy` refuses it.
    """
    if isinstance(chosen, str):
        return chosen
    given = _inner(chosen)
    spec = spec_of(given, _address)
    try:
        if _is_same(given, _inner(strategy(spec)[0])):
            return spec
    except Exception:  # comparing calls code of the object, which may raise anything
        pass
    return f"{_OBJECT}{_address(given)}"


def is_recorded(spec: str) -> bool:
    """Return whether a recorded spec string makes the strategy again."""
    return not spec.startswith(_OBJECT)


def _address(thing: Any) -> str:
    """Return the name of a class of foreplan's, or `module:Class`."""
    kind = type(thing)
    for room in (PLANNERS, STRATEGIES):
        if kind.__module__.startswith(f"foreplan.{room.room}.") and _is_ours(room, kind):
            return str(thing.name)
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_same(given: Any, read: Any) -> bool:
    """Return whether an object was made again from its spec string, with all that it holds."""
    if isinstance(read, str) and not isinstance(given, str):
        read = planner(read)
    given, read = _inner(given), _inner(read)
    if isinstance(given, int) and type(read) is float:  # 2 for 2.0
        return given == read
    if type(given) is not type(read):
        return False
    if is_dataclass(given):
        names = [f.name for f in fields(given)]
        return all(_is_same(getattr(given, name), getattr(read, name)) for name in names)
    return bool(given == read) or (hasattr(given, "__dict__") and vars(given) == vars(read))


def _files(room: str) -> list[str]:
    """The modules of a room; those that begin with _ are helpers."""
    modules = (module.name for module in pkgutil.iter_modules([str(_folder(room))]))
    return [name for name in modules if not name.startswith("_")]


def _folder(room: str) -> Path:
    return Path(__file__).parent.joinpath(*room.split("."))


def _likely(room: str, name: str) -> Iterator[str]:
    """The modules of a room: that of this name, those that mention it, all others."""
    own, folder = name.replace("-", "_"), _folder(room)
    if own.isidentifier() and not own.startswith("_") and (folder / f"{own}.py").exists():
        yield own
    sources = {file: folder / f"{file}.py" for file in _files(room) if file != own}
    mentions = {
        file: f'"{name}"' in s.read_text("utf-8") for file, s in sources.items() if s.exists()
    }
    yield from sorted(sources, key=lambda file: not mentions.get(file, False))


def _classes(room: str, file: str) -> dict[str, type[Any]]:
    """What a file has to offer, by name."""
    module = importlib.import_module(f"foreplan.{room}.{file}")
    classes: list[Any] = [c for c in vars(module).values() if isinstance(c, type)]
    own = (c for c in classes if c.__module__ == module.__name__)
    return {c.name: c for c in own if isinstance(getattr(c, "name", None), str)}


def _names(kind: _Kind) -> list[str]:
    own = {name for file in _files(kind.room) for name in _classes(kind.room, file)}
    return sorted(own.union(entry.name for entry in _declared(kind)))


def _declared(kind: _Kind) -> list[EntryPoint]:
    """Return the entry points by which other packages declare theirs."""
    from importlib.metadata import entry_points

    return list(entry_points(group=kind.group))


def _class(kind: _Kind, name: str) -> type[Any]:
    """The class of that name; no more files are imported than need be."""
    if name.startswith(_OBJECT):
        raise InputError(
            f"the {kind.word} was an {name}, which cannot be made again from its name: only a "
            "dataclass of a module can, with options that are numbers, texts, true or false"
        )
    if ":" in name:
        return _import_class(kind, name, name)
    found = _own_class(kind, name)
    if found is not None:
        return found
    for entry in _declared(kind):
        if entry.name == name:
            return _import_class(kind, entry.value, f"{name} ({entry.value})")
    raise InputError(unknown_name(kind.word, name, _names(kind)))


@cache
def _own_class(kind: _Kind, name: str) -> type[Any] | None:
    """The class of that name in foreplan's room."""
    for file in _likely(kind.room, name):
        found = _classes(kind.room, file).get(name)
        if found is not None:
            return found
    return None


def _is_ours(kind: _Kind, cls: type) -> bool:
    """Return whether a class is one of foreplan's planners, or strategies."""
    name = getattr(cls, "name", None)
    return isinstance(name, str) and _own_class(kind, name) is cls


def _import_class(kind: _Kind, address: str, shown: str) -> type[Any]:
    """The class at `module:Class`; modules are found in the current directory, too."""
    from foreplan.extensions import describe_error

    module, _, path = (part.strip() for part in address.partition(":"))
    if not module or not path:
        raise InputError(f"{address!r} is not of the form module:Class")
    if module == "__main__" and not hasattr(sys.modules[module], path.partition(".")[0]):
        raise InputError(
            f"{kind.word} {shown} is defined in another program than this one: use that program, "
            "or put the class into a module"
        )
    here = _look_here()
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever the module does
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise InputError(
                f"{kind.word} {shown}: there is no module {error.name!r} in {here} or where Python "
                "looks for modules"
            ) from None
        raise InputError(
            f"{kind.word} {shown}: the module fails: {describe_error(error)}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, (name for name in vars(found) if not name.startswith("_")))
            raise InputError(f"{kind.word} {shown}: {module!r} has no {part!r}{hint}")
        found = getattr(found, part)
    if not isinstance(found, type):
        raise InputError(f"{kind.word} {shown}: it is not a class but {type(found).__name__}")
    return found


def _look_here() -> str:
    """Find modules in the current directory, as `python -m` does; return its name."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return "the current directory"
    if not sys.flags.safe_path and not {"", here}.intersection(sys.path):
        sys.path.insert(0, here)
    return here


def _choose(kind: _Kind, spec: Any) -> Any:
    """Return the object that a spec string names, or the given one; wrap what is not foreplan's."""
    made = _build(kind, spec) if isinstance(spec, str) else spec
    if _is_ours(kind, type(made)):
        return made
    from foreplan import extensions

    if isinstance(made, extensions.OwnPlanner | extensions.OwnPolicy | extensions.OwnOrder):
        return made
    wrap = extensions.wrap_planner if kind is PLANNERS else extensions.wrap_strategy
    wrapped = wrap(made)
    if _own_class(kind, made.name) is not None:
        raise InputError(
            f"{type(made).__module__}.{type(made).__qualname__} has the name {made.name!r} of a "
            f"{kind.word} of foreplan: give it another `name`"
        )
    return wrapped


def _build(kind: _Kind, spec: str) -> Any:
    name, raw = parse_spec(spec)
    cls = _class(kind, name)
    options = _read_options(cls, name, raw) if raw else {}
    if _is_ours(kind, cls):
        return cls(**options)
    from foreplan.extensions import describe_error

    try:
        return cls(**options)
    except InputError:
        raise
    except Exception as error:  # whatever its class does
        raise InputError(f"{kind.word} {spec} cannot be made: {describe_error(error)}") from error


def _read_options(cls: type[Any], name: str, raw: dict[str, str]) -> dict[str, Any]:
    """The options of a spec string, by the types of the fields."""
    if not is_dataclass(cls):
        raise InputError(f"{name} has no options: only a dataclass has, which are its fields")
    types = get_type_hints(cls)
    known = {f.name: types[f.name] for f in fields(cls) if f.init}
    options = {}
    for key, text in raw.items():
        if key not in known:
            raise InputError(unknown_name(f"option of {name}", key, known))
        options[key] = _value(text, known[key], f"{name}[{key}]")
    return options


def _value(text: str, kind: Any, place: str) -> Any:
    """The text of an option as the type its field declares."""
    from foreplan.contracts import Planner

    if kind is Planner:
        return planner(text)
    if get_origin(kind) in (Union, UnionType):  # `str | Planner`, or `float | None`
        kind = str if str in get_args(kind) else get_args(kind)[0]
    try:
        return _WORDS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError, TypeError):
        known = {bool: "true or false", int: "a whole number", float: "a number"}
        expected = known.get(kind) or getattr(kind, "EXPECTED", getattr(kind, "__name__", kind))
        raise InputError(f"{text!r} is not {expected}", place=place) from None
