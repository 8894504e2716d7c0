"""Amounts as people write them: 8GB, 8GiB, 2GB + 1.5 * inputs; nothing else is evaluated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from foreplan.errors import InputError

UNITS = {
    "": 1.0,
    "B": 1.0,
    **{f"{letter}B": 1000.0 ** (k + 1) for k, letter in enumerate("kMGTP")},
    "KB": 1000.0,
    **{f"{letter}iB": 1024.0 ** (k + 1) for k, letter in enumerate("KMGTP")},
}
NAMES = ("inputs", "attempt")
_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*([A-Za-z]*)|([A-Za-z_]\w*)|(.))"
)
_LONGEST = 200  # characters of a formula
_LEAST_BARE = 1e6  # bytes of memory that are believed without a unit

Term = Callable[[float, int], float]


@dataclass(frozen=True)
class Amount:
    """An amount, or a formula of `inputs` (the bytes of the task's inputs) and `attempt`."""

    text: str

    def __post_init__(self) -> None:
        self.value(0.0, 1)

    def value(self, inputs: float, attempt: int = 1) -> float:
        """What it is for so many bytes of inputs, on this try: the first is 1."""
        try:
            found = self._term(inputs, attempt)
        except ZeroDivisionError:
            found = math.nan
        if not 0 <= found < math.inf:
            given = f"inputs = {inputs:g}, attempt = {attempt}"
            raise InputError(f"{self.text!r} is no amount ({given}): it must be 0 or more")
        return found

    @property
    def is_fixed(self) -> bool:
        """Whether it is the same whatever is read, and on every try."""
        return not any(name in self.text for name in NAMES)

    @property
    def by_inputs(self) -> bool:
        """Whether it depends on how many bytes are read."""
        return "inputs" in self.text

    @property
    def lacks_unit(self) -> bool:
        """Whether it is a number of bytes whose unit seems to be forgotten."""
        try:
            return 0 < float(self.text) < _LEAST_BARE
        except ValueError:
            return False

    @property
    def without_unit(self) -> str:
        """What is said of one that lacks its unit."""
        text = self.text
        return f"{text} without a unit is {text} bytes: write {text}GB, or {text}B if that is meant"

    @cached_property
    def _term(self) -> Term:
        return _Formula(self.text).read()

    def __str__(self) -> str:
        return self.text


class _Formula:
    """Reads sums of products of numbers with units, `inputs`, `attempt` and parentheses."""

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise InputError(f"a formula of {len(text)} characters is too long")
        self.text = text
        self.tokens = [match.groups() for match in _TOKEN.finditer(text.strip())]
        self.at = 0

    def read(self) -> Term:
        """All of it."""
        term = self._sum()
        if self.at < len(self.tokens):
            raise self._wrong()
        return term

    def _wrong(self) -> InputError:
        rest = "".join(part for part in self.tokens[self.at] if part) if self._left else "its end"
        return InputError(
            f"{self.text!r} is no amount: {rest!r} cannot stand there; write a number with a unit "
            "(8GB, 8GiB), or a formula of such numbers, inputs and attempt with + - * / ( )"
        )

    @property
    def _left(self) -> bool:
        return self.at < len(self.tokens)

    def _sign(self, *signs: str) -> str | None:
        if self._left and self.tokens[self.at][3] in signs:
            self.at += 1
            return str(self.tokens[self.at - 1][3])
        return None

    def _sum(self) -> Term:
        term = self._product()
        while sign := self._sign("+", "-"):
            term = _sum(term, self._product(), 1.0 if sign == "+" else -1.0)
        return term

    def _product(self) -> Term:
        term = self._factor()
        while sign := self._sign("*", "/"):
            term = _product(term, self._factor(), sign == "/")
        return term

    def _factor(self) -> Term:
        if self._sign("("):
            term = self._sum()
            if not self._sign(")"):
                raise self._wrong()
            return term
        if not self._left:
            raise self._wrong()
        number, unit, name, _ = self.tokens[self.at]
        if name in NAMES:
            self.at += 1
            return (lambda inputs, _: inputs) if name == "inputs" else (lambda _, a: float(a))
        if number is None:
            raise self._wrong()
        self.at += 1
        return _constant(float(number) * _unit(unit, self.text))


def _unit(unit: str, text: str) -> float:
    if unit not in UNITS:
        known = ", ".join(name for name in UNITS if name)
        raise InputError(f"{text!r}: unknown unit {unit!r}; known: {known}")
    return UNITS[unit]


def _constant(value: float) -> Term:
    return lambda inputs, attempt: value


def _sum(one: Term, other: Term, sign: float) -> Term:
    return lambda inputs, attempt: one(inputs, attempt) + sign * other(inputs, attempt)


def _product(one: Term, other: Term, divides: bool) -> Term:
    if divides:
        return lambda inputs, attempt: one(inputs, attempt) / other(inputs, attempt)
    return lambda inputs, attempt: one(inputs, attempt) * other(inputs, attempt)
