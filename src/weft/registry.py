"""From a spec string to an object: `heft[insertion=false]`. Files are found, not listed."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from weft.errors import InputError, unknown_name
from weft.spec import parse_spec

if TYPE_CHECKING:
    from weft.contracts import Order, Planner, Policy

_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def planner_names() -> list[str]:
    """The names of all planners: one file of weft.planners each, `min_min.py` is min-min."""
    return _names("planners")


def strategy_names() -> list[str]:
    """The names of all strategies: one file of weft.policies each, `gtp__c.py` is gtp/c."""
    return _names("policies")


def planner_class(name: str) -> type[Planner]:
    """The planner of that name; only its own file is imported."""
    return cast("type[Planner]", _class("planners", "planner", name))


def strategy_class(name: str) -> type[Policy | Order]:
    """The strategy of that name; only its own file is imported."""
    return cast("type[Policy | Order]", _class("policies", "strategy", name))


def planner(spec: str) -> Planner:
    """The planner that a spec string asks for."""
    return cast("Planner", _build("planners", "planner", spec))


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
    from weft.contracts import Order

    chosen = _build("policies", "strategy", spec)
    if isinstance(chosen, Order):
        if budgeted:
            raise InputError(
                f"`{spec}` makes no plan, so it cannot keep a budget; take a planned strategy, "
                "such as `adaptive`"
            )
        return chosen, None
    plans = planner(chosen.planner)
    return chosen, within_budget(plans) if budgeted else plans


def _names(room: str) -> list[str]:
    modules = (m.name for m in pkgutil.iter_modules([str(Path(__file__).with_name(room))]))
    names = (name for name in modules if not name.startswith("_"))
    return sorted(name.replace("__", "/").replace("_", "-") for name in names)


@cache
def _class(room: str, kind: str, name: str) -> type[Any]:
    file = f"weft.{room}.{name.replace('/', '__').replace('-', '_')}"
    try:
        module = importlib.import_module(file)
    except ModuleNotFoundError as error:
        if error.name is None or not file.startswith(error.name):
            raise
        raise InputError(unknown_name(kind, name, _names(room))) from None
    for value in vars(module).values():
        if isinstance(value, type) and getattr(value, "name", None) == name:
            return value
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
    from weft.contracts import Planner

    if kind is Planner:
        return planner(text)
    try:
        return _WORDS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        known = {bool: "true or false", int: "a whole number", float: "a number"}
        expected = known.get(kind) or getattr(kind, "EXPECTED", kind.__name__)
        raise InputError(f"{text!r} is not {expected}", place=place) from None
