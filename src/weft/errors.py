"""Errors a user can do something about; the command line prints them and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """The base of all errors that weft explains to its user."""


class InputError(WeftError):
    """Bad input: what is wrong, in which file, at which place."""

    def __init__(self, problem: str, *, place: str = "", source: str = "") -> None:
        self.problem, self.place, self.source = problem, place, source
        super().__init__(": ".join(part for part in (source, place, problem) if part))

    def at(self, place: str) -> InputError:
        """The same error with a place, if it has none yet."""
        return InputError(self.problem, place=self.place or place, source=self.source)

    def in_file(self, source: str) -> InputError:
        """The same error with the file it was found in, if it has none yet."""
        return InputError(self.problem, place=self.place, source=self.source or source)


class PlanningError(WeftError):
    """No plan exists: for example, every processor leaves before the work is done."""


class InvalidScheduleError(WeftError):
    """A schedule breaks a rule; `violations` names each one."""

    def __init__(self, violations: list[str]) -> None:
        self.violations = violations
        shown = violations[:10]
        more = f"\n... and {len(violations) - 10} more" if len(violations) > 10 else ""
        super().__init__("invalid schedule:\n" + "\n".join(shown) + more)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A message for an unknown name: the nearest known one, and the list."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    listed = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
    return f"unknown {kind} {name!r}{hint}; known: {listed or 'none'}"
