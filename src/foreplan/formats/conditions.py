"""Conditions of `if:` and `only:`: a parameter or loop variable, alone or compared with a value."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from foreplan.errors import InputError
from foreplan.formats.fields import shown, wrong
from foreplan.formats.texts import parse_yaml, plain_scalar

_CONDITION = re.compile(
    r"(?P<no>not\s+)?(?P<left>\$[A-Za-z_][\w.]*)"
    r"(?:\s*(?P<sign>==|!=|<=|>=|<|>|\bnot\s+in\b|\bin\b)\s*(?P<right>\S.*))?",
    re.DOTALL,
)
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_HOW = "write $name, not $name, $name == value (or !=, <, <=, >, >=), $name in [a, b]"


class Condition(NamedTuple):
    """A comparison; without a sign, something that is true or false."""

    left: str  # a reference: name, or name.field
    sign: str = ""
    right: object = None  # a value, or a reference if it begins with $
    negated: bool = False

    def holds(self, left: object, right: object, *place: str | int) -> bool:
        """Whether it holds for these values."""
        return self._compare(left, right, *place) is not self.negated

    def _compare(self, left: object, right: object, *place: str | int) -> bool:
        if not self.sign:
            truth = plain_scalar(left) if isinstance(left, str) else left
            if not isinstance(truth, bool):
                raise wrong(f"${self.left} is {shown(left)}, neither true nor false", *place)
            return truth
        if self.sign in ("in", "not in"):
            if not isinstance(right, list | tuple):
                raise wrong(f"expected a list after {self.sign!r}, not {shown(right)}", *place)
            found = any(_same(left, one) for one in right)
            return found is (self.sign == "in")
        if self.sign in ("==", "!="):
            return _same(left, right) is (self.sign == "==")
        numbers = [_number(value) for value in (left, right)]
        if numbers[0] is None or numbers[1] is None:
            raise wrong(f"{shown(left)} {self.sign} {shown(right)} compares no numbers", *place)
        return _SIGNS[self.sign](numbers[0], numbers[1])


def conditions_of(section: object, *place: str | int) -> list[Condition | bool]:
    """A condition, or a list of them, which must all hold."""
    listed = section if isinstance(section, list | tuple) else [section]
    return [_condition(one, *place) for one in listed]


def _condition(text: object, *place: str | int) -> Condition | bool:
    if isinstance(text, bool):
        return text
    found = _CONDITION.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise wrong(f"{shown(text)} is no condition: {_HOW}", *place)
    sign = " ".join((found["sign"] or "").split())
    right: object = found["right"]
    if isinstance(right, str) and not right.startswith("$"):
        try:
            right = parse_yaml(right)
        except InputError:
            raise wrong(f"{shown(right)} is no value to compare with: {_HOW}", *place) from None
    return Condition(found["left"][1:], sign, right, bool(found["no"]))


def _number(value: object) -> float | None:
    value = plain_scalar(value) if isinstance(value, str) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _same(one: object, other: object) -> bool:
    """Whether two values are the same: numbers as numbers, all else as text."""
    numbers = _number(one), _number(other)
    if None not in numbers:
        return numbers[0] == numbers[1]
    texts = [str(v).lower() if isinstance(v, bool) else v for v in (one, other)]
    return texts[0] == texts[1]
