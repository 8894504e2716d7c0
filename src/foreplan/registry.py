"""From a spec string to an object: `heft[insertion=false]`. Classes are found, not listed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from foreplan.errors import InputError, unknown_name
from foreplan.spec import parse_spec

if TYPE_CHECKING:
    from foreplan.contracts import Order, Planner, Policy

PLANNERS, POLICIES = "scheduling.planners", "engine.policies"  # the rooms
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def planner_names() -> list[str]:
    """The names of all planners: the classes in scheduling/planners that have a name."""
    return _names(PLANNERS)


def strategy_names() -> list[str]:
    """The names of all strategies: the classes in engine/policies that have a name."""
    return _names(POLICIES)


def planner_class(name: str) -> type[Planner]:
    """The planner of that name; if a file is called so, only that one is imported."""
    return cast("type[Planner]", _class(PLANNERS, "planner", name))


def strategy_class(name: str) -> type[Policy | Order]:
    """The strategy of that name; if a file is called so, only that one is imported."""
    return cast("type[Policy | Order]", _class(POLICIES, "strategy", name))


def planner(spec: str) -> Planner:
    """The planner that a spec string asks for."""
    return cast("Planner", _build(PLANNERS, "planner", spec))


def within_budget(chosen: Planner) -> Planner:
    """A planner that keeps a budget: itself, or the best affordable one from what it plans."""
    if any(f.name == "budget" for f in fields(cast(Any, chosen))):
        return chosen
    afford: Any = planner_class("best-affordable")
    return cast("Planner", afford(start=chosen, quick=True))


def in_time(chosen: Planner, deadline: float) -> Planner:
    """A planner that looks for the cheapest way by a deadline, from what this one plans."""
    if any(f.name == "deadline" for f in fields(cast(Any, chosen))):
        return cast("Planner", replace(cast(Any, chosen), deadline=deadline))
    cheapest: Any = planner_class("cheapest-in-time")
    return cast("Planner", cheapest(deadline=deadline, start=chosen))


def strategy(spec: str, budgeted: bool = False) -> tuple[Policy | Order, Planner | None]:
    """The strategy that a spec string asks for, and the planner it plans with, if any."""
    from foreplan.contracts import Order

    chosen = _build(POLICIES, "strategy", spec)
    if isinstance(chosen, Order):
        if budgeted:
            raise InputError(
                f"`{spec}` makes no plan, so it cannot keep a budget; take a planned strategy, "
                "such as `adaptive`"
            )
        return chosen, None
    plans = planner(chosen.planner)
    return chosen, within_budget(plans) if budgeted else plans


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


def _names(room: str) -> list[str]:
    return sorted(name for file in _files(room) for name in _classes(room, file))


@cache
def _class(room: str, kind: str, name: str) -> type[Any]:
    """The class of that name; no more files are imported than need be."""
    for file in _likely(room, name):
        found = _classes(room, file).get(name)
        if found is not None:
            return found
    raise InputError(unknown_name(kind, name, _names(room)))


def _build(room: str, kind: str, spec: str) -> Any:
    name, raw = parse_spec(spec)
    cls = _class(room, kind, name)
    if not raw:
        return cls()
    types = get_type_hints(cls)
    known = {f.name: types[f.name] for f in fields(cls)}
    options = {}
    for key, text in raw.items():
        if key not in known:
            raise InputError(unknown_name(f"option of {name}", key, known))
        options[key] = _value(text, known[key], f"{name}[{key}]")
    return cls(**options)


def _value(text: str, kind: type, place: str) -> Any:
    """The text of an option as the type its field declares."""
    from foreplan.contracts import Planner

    if kind is Planner:
        return planner(text)
    try:
        return _WORDS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        known = {bool: "true or false", int: "a whole number", float: "a number"}
        expected = known.get(kind) or getattr(kind, "EXPECTED", kind.__name__)
        raise InputError(f"{text!r} is not {expected}", place=place) from None
