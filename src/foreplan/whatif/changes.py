"""Changes as they are asked for: `fast:2`, `fast[speed=4]:1..10`, and all their combinations."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from foreplan.errors import InputError, unknown_name
from foreplan.spec import parse_spec

EACH = "each"
MOST = 1_000  # alternatives in one question, and processors added in one of them
TINY = 1e-30  # of a speed or a billing unit: what is divided by it would overflow
NUMBERS = ("speed", "price", "billing")
OPTIONS = (*NUMBERS, "host")
_COUNT = re.compile(r"(?P<low>\d+)(\.\.(?P<high>\d+))?")


@dataclass(frozen=True)
class Machine:
    """A processor or host to add: like a known one, or described; None is the template's."""

    spec: str  # as it was written, without the count
    name: str
    template: int | None  # None: it is described
    speed: float | None = None
    price: float | None = None
    billing: float | None = None
    host: str | None = None  # one that is there; None: a host of its own
    cores: tuple[int, ...] = ()  # of the host that it is like, with all of them; else empty


@dataclass(frozen=True)
class Addition:
    """So many machines of one kind, from low to high."""

    machine: Machine
    low: int
    high: int

    @property
    def spans(self) -> bool:
        """Whether it is a range."""
        return self.high > self.low


@dataclass(frozen=True)
class Change:
    """One combined change: machines and how many of each, and the names of those that go."""

    add: tuple[tuple[Machine, int], ...] = ()
    remove: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"add {count} {machine.spec}" for machine, count in self.add if count]
        parts += [f"remove {name}" for name in self.remove]
        return ", ".join(parts) or "nothing"


@dataclass(frozen=True)
class Question:
    """All alternatives that are asked about; `k` of each where one range spans them."""

    changes: tuple[Change, ...]
    counts: tuple[int, ...] | None = None


def question(
    add: Sequence[str],
    remove: Sequence[str],
    names: Sequence[str],
    hosts: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Question:
    """What is asked for, on processors of these names, and hosts with these as their cores."""
    additions = [addition(text, names, hosts) for text in add]
    for text, same in itertools.groupby(sorted(a.machine.spec for a in additions)):
        if len(list(same)) > 1:
            raise InputError(f"{text!r} is to be added twice; give one number for both")
    if sum(a.high * max(1, len(a.machine.cores)) for a in additions) > MOST:
        raise InputError(f"at most {MOST:,} processors can be added at a time")
    removals = _removals(remove, names)
    many = math.prod(a.high - a.low + 1 for a in additions) * len(removals)
    if many > MOST:
        raise InputError(f"these are {many:,} alternatives; at most {MOST:,}: narrow the ranges")
    if not additions and removals == [()]:
        raise InputError("nothing is to be changed: say what with --add or --remove")
    ranges = [range(a.low, a.high + 1) for a in additions]
    changes = tuple(
        Change(tuple((a.machine, k) for a, k in zip(additions, counts, strict=True)), gone)
        for counts in itertools.product(*ranges)
        for gone in removals
    )
    spanning = [i for i, a in enumerate(additions) if a.spans]
    if len(spanning) != 1 or len(removals) != 1:
        return Question(changes)
    return Question(changes, tuple(change.add[spanning[0]][1] for change in changes))


def addition(
    text: str, names: Sequence[str], hosts: Mapping[str, tuple[int, ...]] = MappingProxyType({})
) -> Addition:
    """`fast:2`, `fast:1..10`, `fast[speed=4,price=2]:2`, `new[speed=2]:1`; without a count: 1."""
    spec, low, high = text.strip(), 1, 1
    head, colon, tail = spec.rpartition(":")
    if colon and spec not in names and spec not in hosts:
        count = _COUNT.fullmatch(tail.strip())
        if count is None and "]" not in tail:
            raise InputError(f"{tail!r} in --add {text!r} is not a number like 2, nor like 1..10")
        if count is not None:
            spec, low = head.strip(), int(count["low"])
            high = int(count["high"] or low)
            if high < max(low, 1):
                raise InputError(f"--add {text!r} adds nothing: {tail.strip()} is no such number")
    return Addition(_machine(spec, names, hosts), low, high)


def _machine(spec: str, names: Sequence[str], hosts: Mapping[str, tuple[int, ...]]) -> Machine:
    known = spec in names or spec in hosts
    name, raw = (spec, dict[str, str]()) if known else parse_spec(spec)
    for key in raw:
        if key not in OPTIONS:
            place = f"--add {spec!r}"
            raise InputError(unknown_name("option", key, OPTIONS), place=place)
    numbers: dict[str, Any] = {key: _number(raw[key], key, spec) for key in NUMBERS if key in raw}
    if name in hosts:
        if "host" in raw:
            raise InputError(f"{name!r} is a host, and cannot be on another: --add {spec!r}")
        return Machine(spec, name, hosts[name][0], cores=hosts[name], **numbers)
    if name not in names and "speed" not in numbers:
        raise InputError(
            f"{unknown_name('processor', name, [*names, *hosts])}; "
            f"to describe a new one, give its speed: --add '{name}[speed=2]:1'"
        )
    template = list(names).index(name) if name in names else None
    return Machine(spec, name, template, host=raw.get("host"), **numbers)


def _number(text: str, key: str, spec: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    tiny = value < TINY and (key == "speed" or (key == "billing" and value > 0))
    if not math.isfinite(value) or value < 0 or tiny:
        raise InputError(f"the {key} in --add {spec!r} is not such a number: {text!r}")
    return value


def _removals(remove: Sequence[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The names that go in each alternative; `each` is every one in turn."""
    each = EACH in remove and EACH not in names
    gone = [name for name in remove if not (each and name == EACH)]
    for name in gone:
        if name not in names:
            known = unknown_name("processor", name, names)
            raise InputError(f"{known}; --remove {EACH} removes each in turn")
        if gone.count(name) > 1:
            raise InputError(f"{name!r} is to be removed twice")
    if not each:
        return [tuple(gone)]
    return [(*gone, name) for name in names if name not in gone]
