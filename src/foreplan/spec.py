"""Spec strings: `name[key=value,...]`, the one way to write a planner or a strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from foreplan.errors import InputError


def parse_spec(text: str) -> tuple[str, dict[str, str]]:
    """The name and the raw options; values may hold brackets: `slack[planner=heft[k=v]]`."""
    name, bracket, rest = text.strip().partition("[")
    name = name.strip()
    if not name:
        raise InputError(f"{text!r} names nothing; write it like name[key=value]")
    if not bracket:
        if "]" in name or "=" in name:
            raise InputError(f"{text!r} is not of the form name[key=value,...]")
        return name, {}
    if not rest.endswith("]"):
        raise InputError(f"{text!r} lacks its closing bracket ]")
    options: dict[str, str] = {}
    for part in _split(rest[:-1], text):
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value:
            raise InputError(f"{part!r} in {text!r} is not of the form key=value")
        if key in options:
            raise InputError(f"{key!r} stands twice in {text!r}")
        options[key] = value
    return name, options


def split_specs(text: str) -> list[str]:
    """A comma-separated list of specs; commas inside brackets do not count."""
    return [part.strip() for part in _split(text, text)]


def spec_of(thing: Any, name_of: Callable[[Any], str] = lambda thing: str(thing.name)) -> str:
    """The spec string of a planner or strategy: its name, and the options that differ."""
    options = []
    if is_dataclass(thing):
        for f in fields(thing):
            value = getattr(thing, f.name)
            if f.init and _differs(value, f.default):
                shown = str(value).lower() if isinstance(value, bool) else str(value)
                if isinstance(value, float):
                    shown = shown.removesuffix(".0")
                if hasattr(value, "plan"):  # a planner within a planner, or within a strategy
                    shown = spec_of(getattr(value, "own", value), name_of)
                options.append(f"{f.name}={shown}")
    return name_of(thing) + (f"[{','.join(options)}]" if options else "")


def _differs(value: Any, default: Any) -> bool:
    try:
        return bool(value != default)
    except ValueError:  # arrays, among the fields of a planner of one's own
        return True


def _split(text: str, whole: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if depth < 0:
            raise InputError(f"{whole!r} has a ] too many")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise InputError(f"{whole!r} lacks a closing bracket ]")
    return [part for part in parts if part.strip()]
