"""What tasks ask for and what hosts have, as files and Python write it; and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from foreplan.errors import InputError, place_of
from foreplan.formats.fields import (
    divisor,
    name,
    named,
    number,
    one_or_more,
    plain,
    sane,
    sequence,
    shown,
    whole_number,
    wrong,
)
from foreplan.model.amounts import Amount
from foreplan.model.resources import GPUS, MEMORY, Request

REQUEST_FIELDS = ("cores", "parallel", MEMORY, GPUS, "resources", "pools", "on", "not_on")
_REQUEST_FIELDS = frozenset(REQUEST_FIELDS)
_OWN_FIELDS = ("cores", MEMORY, GPUS)  # which no named resource may be called
_MOST_CORES = 1_000_000
_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6))

Fields = Mapping[object, object]
Place = str | int


def request_from_fields(fields: Fields, *place: Place) -> Request | None:
    """What a task asks for; None if that is one core and nothing else."""
    if _REQUEST_FIELDS.isdisjoint(fields):
        return None
    cores = _widths(fields["cores"], *place, "cores") if "cores" in fields else (1,)
    parallel, seconds = _speed_up(fields, cores, *place)
    request = Request(
        cores=cores,
        parallel=parallel,
        seconds=seconds,
        memory=amount_of(fields[MEMORY], *place, MEMORY) if MEMORY in fields else None,
        gpus=whole_number(fields[GPUS], *place, GPUS) if GPUS in fields else 0,
        resources=_resources(fields, *place),
        pools=tuple(pools_of(fields, *place).items()),
        on=names_of(fields, "on", *place),
        not_on=names_of(fields, "not_on", *place),
    )
    return None if request == Request() else request


def request_fields(request: Request) -> dict[str, Any]:
    """The fields of a file that read back as this request."""
    fields: dict[str, Any] = {}
    if request.cores != (1,):
        fields["cores"] = request.cores[0] if len(request.cores) == 1 else list(request.cores)
    if request.seconds:
        by_width = zip(request.cores, request.seconds, strict=True)
        fields["parallel"] = {str(width): plain(seconds) for width, seconds in by_width}
    elif request.parallel is not None:
        fields["parallel"] = plain(request.parallel)
    if request.memory is not None:
        fields[MEMORY] = memory_field(request.memory)
    if request.gpus:
        fields[GPUS] = request.gpus
    if request.resources:
        fields["resources"] = {kind: amount_field(some) for kind, some in request.resources}
    if request.pools:
        fields["pools"] = {pool: plain(tokens) for pool, tokens in request.pools}
    for key in ("on", "not_on"):
        if getattr(request, key):
            fields[key] = list(getattr(request, key))
    return fields


def _widths(value: object, *place: Place) -> tuple[int, ...]:
    several = isinstance(value, list | tuple)
    given = sequence(value) if several else [value]
    widths = tuple(whole_number(width, *place) for width in given)
    if not widths:
        raise wrong("no number of cores is given", *place)
    if min(widths) < 1 or max(widths) > _MOST_CORES:
        raise wrong(f"a task takes 1 to {_MOST_CORES:,} cores, not {shown(value)}", *place)
    if any(one >= other for one, other in pairwise(widths)):
        raise wrong(f"the numbers of cores must ascend, but are {shown(value)}", *place)
    return widths


def _speed_up(
    fields: Fields, cores: tuple[int, ...], *place: Place
) -> tuple[float | None, tuple[float, ...]]:
    """Amdahl's share, or the seconds by width."""
    if "parallel" not in fields:
        if len(cores) > 1:
            how = "its parallel share (parallel: 0.9) or its seconds by cores"
            problem = f"a task that may take {shown(list(cores))} cores must say {how}"
            raise wrong(f"{problem} (parallel: {{{cores[0]}: 60, {cores[1]}: 35}})", *place)
        return None, ()
    at, value = (*place, "parallel"), fields["parallel"]
    if not isinstance(value, Mapping):
        share = number(value, *at)
        if share > 1:
            raise wrong(f"a share is from 0 to 1, not {shown(value)}", *at)
        return share, ()
    given = {_width(key, *at): number(seconds, *at, key) for key, seconds in value.items()}
    if len(given) < len(value) or sorted(given) != list(cores):
        problem = f"seconds are needed for the cores that it may take, {shown(list(cores))}"
        raise wrong(f"{problem}, and for no others; given: {shown(list(value))}", *at)
    if not min(given.values()):
        raise wrong("the seconds must be more than 0", *at)
    return None, tuple(divisor(given[width], *at) for width in cores)


def _width(key: object, *place: Place) -> int:
    text = name(key, *place)
    if not text.isdecimal() or len(text) > 7:
        raise wrong(f"a number of cores is a whole number, not {shown(key)}", *place)
    return int(text)


def amount_of(value: object, *place: Place) -> Amount:
    """An amount: a number, a number with a unit, or a formula."""
    try:
        if isinstance(value, str):
            amount = _amount(value)
            sane(amount.value(0.0), *place)
            return amount
        return _amount(str(plain(number(value, *place))))
    except InputError as error:
        raise error.at(place_of(*place)) from None


@lru_cache(maxsize=1024)  # thousands of tasks say the same
def _amount(text: str) -> Amount:
    return Amount(text)


def check_memory(fields: Fields, *place: Place) -> None:
    """Refuse `memory: 8`: nobody means eight bytes."""
    amount = amount_of(fields[MEMORY], *place, MEMORY) if MEMORY in fields else None
    if amount is not None and amount.lacks_unit:
        raise wrong(amount.without_unit, *place, MEMORY)


def fixed_amount(value: object, *place: Place) -> float:
    """What a host has: a number, or one with a unit."""
    amount = amount_of(value, *place)
    if not amount.is_fixed:
        raise wrong(f"what a host has is a number with a unit, not {shown(value)}", *place)
    return amount.value(0.0)


def amount_field(amount: Amount) -> int | float | str:
    """An amount as a file shows it."""
    try:
        value = plain(float(amount.text))
    except ValueError:
        return amount.text
    return value if str(value) == amount.text else amount.text


def memory_field(amount: Amount) -> int | float | str:
    """An amount of memory as a file shows it."""
    return f"{amount.text}B" if amount.lacks_unit else amount_field(amount)


def size_field(value: float) -> int | float | str:
    """Bytes that a host has, in the unit that says them best: 64GB."""
    for unit, size in _UNITS:
        text = f"{value / size:g}"
        if value >= size and "e" not in text and Amount(text + unit).value(0.0) == value:
            return text + unit
    return plain(value)


def named_amounts(fields: Fields, *place: Place) -> dict[str, Amount]:
    """The field `resources`: named amounts, sorted by their names."""
    found = {}
    entries = named(fields.get("resources"), "the resource", *place, "resources")
    for kind, value in sorted(entries.items()):
        at = (*place, "resources", kind)
        if kind in _OWN_FIELDS:
            raise wrong(f"{kind} is a field of its own: write it beside resources", *at)
        found[kind] = amount_of(value, *at)
    return found


def _resources(fields: Fields, *place: Place) -> tuple[tuple[str, Amount], ...]:
    return tuple(named_amounts(fields, *place).items())


def pools_of(fields: Fields, *place: Place) -> dict[str, float]:
    """The field `pools`: tokens by name, sorted."""
    entries = sorted(named(fields.get("pools"), "the pool", *place, "pools").items())
    return {pool: number(tokens, *place, "pools", pool) for pool, tokens in entries}


def names_of(fields: Fields, key: str, *place: Place) -> tuple[str, ...]:
    """Names or patterns: one, or a list of them."""
    names = [name(one, *place, key) for one in one_or_more(fields.get(key, ()), *place, key)]
    return tuple(dict.fromkeys(names))
