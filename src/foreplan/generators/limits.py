"""Checks of options: a wrong one is an error that says what would be right."""

from __future__ import annotations

from numbers import Integral, Real

from foreplan.errors import InputError

MAX_TASKS = 20_000_000
MAX_EDGES = 100_000_000
MAX_COSTS = 500_000_000  # tasks x processors: 4 GB of numbers
MAX_NUMBER = 1e12  # keeps sums and products of costs and volumes far from overflow


def whole(name: str, value: object, least: int, most: int = MAX_TASKS) -> int:
    """The option as a whole number from least to most."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"must be a whole number, not {value!r}", place=name)
    result = int(value)
    _check_range(name, result, least, most)
    return result


def number(name: str, value: object, least: float = 0.0, most: float = MAX_NUMBER) -> float:
    """The option as a finite number from least to most."""
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        raise InputError(f"must be a number, not {value!r}", place=name)
    try:
        result = float(value)
    except OverflowError:  # a huge int
        raise InputError(f"must be from {least:,g} to {most:,g}", place=name) from None
    _check_range(name, result, least, most)
    return result


def positive(name: str, value: object, most: float = MAX_NUMBER) -> float:
    """The option as a finite number above 0."""
    result = number(name, value, 0.0, most)
    if result < 1 / MAX_NUMBER:
        raise InputError(f"must be above 0 (at least {1 / MAX_NUMBER:g})", place=name)
    return result


def flag(name: str, value: object) -> bool:
    """The option as true or false."""
    if not isinstance(value, bool):
        raise InputError(f"must be true or false, not {value!r}", place=name)
    return value


def check_size(what: str, amount: int, most: int) -> None:
    """Refuse what would not fit in memory before any of it is made."""
    if amount > most:
        raise InputError(f"this would make {amount:,} {what}; the most is {most:,}")


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if value < least:
        raise InputError(f"must be at least {least:,.15g}", place=name)
    if value > most:
        raise InputError(f"must be at most {most:,.15g}", place=name)
