"""Errors a user can do something about; the command line prints them and exits with 2."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any, ClassVar

from foreplan.quantities import amount, duration, first_few, quoted, shortened


class ForeplanError(Exception):
    """The base of all errors that foreplan explains to its user."""


class InputError(ForeplanError):
    """Bad input: what is wrong, in which file, at which place; `key` is the entry there."""

    def __init__(self, problem: str, *, place: str = "", source: str = "", key: str = "") -> None:
        self.problem, self.place, self.source, self.key = problem, place, source, key
        super().__init__(": ".join(part for part in (source, place, problem) if part))

    def at(self, place: str) -> InputError:
        """The same error with a place, if it has none yet."""
        return InputError(self.problem, place=self.place or place, source=self.source, key=self.key)

    def in_file(self, source: str) -> InputError:
        """The same error with the file it was found in, if it has none yet."""
        return InputError(
            self.problem, place=self.place, source=self.source or source, key=self.key
        )


class PlanningError(ForeplanError):
    """No plan exists: for example, every processor leaves before the work is done."""


class UnaffordableError(PlanningError):
    """No plan was found within the budget; `cheapest` is one that costs as little as was found."""

    def __init__(
        self, budget: float, cost: float, makespan: float, cheapest: Any, whole: float | None = None
    ) -> None:
        self.budget, self.cost, self.cheapest = budget, cost, cheapest
        less = "" if whole is None else f", the budget of {amount(whole)} less its reserve"
        super().__init__(
            f"no plan costs at most {amount(budget)}{less}: the cheapest found costs "
            f"{rounded_up(cost)} (and ends at {duration(makespan)})"
        )


class TooLateError(PlanningError):
    """No plan was found that ends by the deadline; `fastest` is the one that ends first."""

    def __init__(self, deadline: float, makespan: float, cost: float, fastest: Any) -> None:
        self.deadline, self.makespan, self.fastest = deadline, makespan, fastest
        super().__init__(
            f"no plan ends by {duration(deadline, 3)}: the fastest found ends at "
            f"{in_seconds(makespan)} (and costs {amount(cost)})"
        )


def rounded_up(value: float, digits: int = 6) -> str:
    """A number with so many digits, and no smaller than it is: it can be asked for."""
    if not math.isfinite(value) or value <= 0:
        return f"{value:.{digits}g}"
    from decimal import ROUND_CEILING, Decimal

    unit = Decimal(1).scaleb(Decimal(value).adjusted() - digits + 1)
    up = (Decimal(value) / unit * (1 - Decimal("1e-12"))).to_integral_value(ROUND_CEILING) * unit
    return f"{up.normalize():f}"


def in_seconds(makespan: float) -> str:
    """An end in words, and in seconds that can be asked for as a deadline."""
    asked = f"{rounded_up(makespan)} s"
    return asked if makespan < 60 else f"{duration(makespan)} ({asked})"


class RulesBrokenError(ForeplanError):
    """What is checked breaks rules; `violations` names each one."""

    what: ClassVar[str]

    def __init__(self, violations: list[str], by: str = "") -> None:
        self.violations = violations
        shown = violations[:10]
        more = f"\n... and {len(violations) - 10} more" if len(violations) > 10 else ""
        made = f" made by {by}" if by else ""
        super().__init__(f"invalid {self.what}{made}:\n" + "\n".join(shown) + more)


class InvalidScheduleError(RulesBrokenError):
    """A schedule breaks a rule; `violations` names each one."""

    what = "schedule"


def place_of(*parts: str | int) -> str:
    """A place in a document: ("tasks", "n3", "cost") is tasks.n3.cost, ("edges", 4) edges[4]."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            short = shortened(part if part.isprintable() else repr(part)[1:-1])
            text += f".{short}" if text else short
    return text


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A message for an unknown name: the nearest known one, and the list."""
    names = sorted(known)
    hint = did_you_mean(name, names)
    return f"unknown {kind} {quoted(name)}{hint}; known: {first_few(names, 30) or 'none'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question about the known name nearest to this one, or nothing if none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
