"""Fields of a document, checked: each error says what is wrong at which place."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from foreplan.errors import InputError, place_of, unknown_name
from foreplan.quantities import LONGEST, quoted, shortened

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = LONGEST
_short.maxlevel, _short.maxdict, _short.maxlist = 2, 3, 3


LARGEST = 1e30  # of any cost, size, speed, price or time


def shown(value: object) -> str:
    """A value as a message shows it: short, whatever it is."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(shortened(value, LONGEST - 2))
    try:
        return shortened(_short.repr(value))
    except ValueError:  # Python refuses to print an integer of thousands of digits
        return "a huge number"


QUOTE_COMMAND = "quote the command, or write `run: |` and the command, indented, on the next line"


def as_placeholder(value: object) -> str:
    """Return `{s}` for what YAML makes of it without quotes, a mapping; else nothing."""
    if isinstance(value, Mapping) and len(value) == 1:
        key, inner = next(iter(value.items()))
        if inner is None and isinstance(key, str):
            return f"{{{shortened(key)}}}"
    return ""


def mistaken(expected: str, value: object, *place: str | int) -> InputError:
    """Return the error for a value of another kind, with advice where YAML has misread a text."""
    if text := as_placeholder(value):
        return wrong(f'{expected}, not a mapping: quote text that begins with {{: "{text}"', *place)
    return wrong(f"{expected}, not {shown(value)}", *place)


def wrong(problem: str, *place: str | int) -> InputError:
    """An error at a place."""
    return InputError(problem, place=place_of(*place))


def wrong_line(problem: str, line: int) -> InputError:
    """An error at a line."""
    return InputError(problem, place=f"line {line}")


def unknown(kind: str, name: str, known: Iterable[str], *place: str | int) -> InputError:
    """An unknown name at a place, with the nearest known one; long names are kept short."""
    near = [k for k in known if len(k) <= LONGEST]
    return wrong(unknown_name(kind, shortened(name), near), *place)


def mapping(value: object, *place: str | int) -> Mapping[object, object]:
    """The value, which must be a mapping."""
    if isinstance(value, Mapping):
        return value
    is_list_of_names = isinstance(value, list) and value and isinstance(value[0], Mapping)
    how = ": leave out the dash before each name" if is_list_of_names else ""
    raise wrong(f"expected a mapping, not {shown(value)}{how}", *place)


def sequence(value: object, *place: str | int) -> Sequence[object]:
    """The value, which must be a list."""
    if isinstance(value, list | tuple):
        return value
    raise mistaken("expected a list", value, *place)


def listed(section: object, *place: str | int) -> Sequence[object]:
    """The entries of a section, which may be empty."""
    return sequence([] if section is None else section, *place)


def as_list(value: object) -> Sequence[object]:
    """Return the entries of a field that takes one entry or a list of them."""
    if value is None:
        return []
    return value if isinstance(value, list | tuple) else [value]


def one_or_more(value: object, *place: str | int) -> Sequence[object]:
    """Return the entries of a field that must have a value: one entry, or a list of them."""
    if value is None:
        raise wrong("expected a name or a list of names, not null; for none, leave it out", *place)
    return as_list(value)


def named(section: object, kind: str, *place: str | int) -> dict[str, object]:
    """The entries of a section, which may be empty, by their names, each given once."""
    entries: dict[str, object] = {}
    for key, value in mapping({} if section is None else section, *place).items():
        entry = name(key, *place)
        if entry in entries:
            raise wrong(f"{kind} {shown(entry)} is given twice".lstrip(), *place)
        entries[entry] = value
    return entries


def required(fields: Mapping[object, object], key: str, *place: str | int) -> object:
    """A field that must be there."""
    if key not in fields:
        raise wrong(f"the field {key!r} is missing", *place)
    return fields[key]


def name(value: object, *place: str | int) -> str:
    """A name: a string, or an integer taken as one."""
    if type(value) is str and value and value.isascii():  # nearly all are
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError:
            raise wrong("a name is a string, not a huge number", *place) from None
    if as_placeholder(value):
        raise mistaken("a name is a string", value, *place)
    if isinstance(value, Mapping):
        raise wrong(f"expected a name, not a mapping: {_advise_on_mapping(value)}", *place)
    if not isinstance(value, str):
        raise wrong(
            f"a name is a string, not {shown(value)}; if that is the name, quote it", *place
        )
    if not value:
        raise wrong("a name must not be empty", *place)
    return string(value, *place)


def _advise_on_mapping(value: Mapping[object, object]) -> str:
    """Return what to write where a name is expected, and YAML has read a mapping."""
    pairs = [f"{key}: {inner}" for key, inner in value.items()]
    if len(pairs) == 1 and "\n" not in pairs[0]:
        return f"if `{shortened(pairs[0])}` is the name, quote it; if not, write the name alone"
    return "write the names alone, as [a, b]"


def string(value: object, *place: str | int) -> str:
    """The value, which must be a string that UTF-8 can write."""
    if not isinstance(value, str):
        raise mistaken("expected a string", value, *place)
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise wrong(f"{shown(value)} holds half of a surrogate pair", *place) from None
    return value


def command(value: object, *place: str | int) -> str:
    """Return the value, which must be a command."""
    if not isinstance(value, str):
        raise wrong(f"expected a command, not {shown(value)}: {QUOTE_COMMAND}", *place)
    return string(value, *place)


def number(value: object, *place: str | int) -> float:
    """A finite number that is not negative."""
    if text := as_placeholder(value):
        how = f"for the value of a parameter write ${text[1:-1]}"
        raise wrong(f"expected a number, not {text}: {how}", *place)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise wrong(f"expected a number, not {shown(value)}", *place)
    try:
        result = float(value)
    except OverflowError:
        raise wrong(f"the number is too large: {shown(value)}", *place) from None
    if not math.isfinite(result):
        raise wrong(f"expected a finite number, not {result}", *place)
    if result < 0:
        raise wrong(f"must not be negative, but is {shown(value)}", *place)
    return sane(result, *place) + 0.0  # so that -0.0 becomes 0.0


def whole_number(value: object, *place: str | int) -> int:
    """A whole number that is not negative."""
    found = number(value, *place)
    if not found.is_integer():
        raise wrong(f"expected a whole number, not {shown(value)}", *place)
    return int(found)


_SPAN = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)", re.ASCII)
_SPAN_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def time_span(value: object, *place: str | int) -> float:
    """A time in seconds: a number of them, or a text with its unit."""
    if not isinstance(value, str):
        return number(value, *place)
    found = _SPAN.fullmatch(value.strip())
    if found is None or found[2] not in _SPAN_UNITS:
        known = ", ".join(_SPAN_UNITS)
        raise wrong(f"expected seconds, or a time such as 10s (units: {known}), not {shown(value)}",
                    *place)  # fmt: skip
    return number(float(found[1]) * _SPAN_UNITS[found[2]], *place)


def sane(value: float, *place: str | int) -> float:
    """Not so large that sums and products of such numbers would overflow."""
    if value > LARGEST:
        raise wrong(f"the number is out of range: {value:g} (at most {LARGEST:g})", *place)
    return value


def divisor(value: float, *place: str | int) -> float:
    """Not so small, unless it is 0, that a division by it would overflow."""
    if 0 < value < 1 / LARGEST:
        raise wrong(f"the number is out of range: {value:g} (at least {1 / LARGEST:g})", *place)
    return value


def amount(text: str, what: str, *place: str | int) -> float:
    """A finite number that is not negative, from text."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value >= 0 and "_" not in text:
        return sane(value, *place) + 0.0
    problem = f"{what} must be a finite number that is not negative, not {shown(text)}"
    raise wrong(problem, *place)


def check_fields(fields: Mapping[object, object], known: Sequence[str], *place: str | int) -> None:
    """Every key must be a known one."""
    for key in fields:
        if key not in known:
            called = key if isinstance(key, str) else shown(key)
            problem = unknown("field", called, known).problem
            if fields[key] is None and "did you mean" not in problem:
                problem += "; if it is part of the text before it, quote that text"
            raise InputError(problem, place=place_of(*place), key=called)


def plain(value: float) -> int | float:
    """A number as a file shows it best: 14 rather than 14.0."""
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
