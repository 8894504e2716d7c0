"""The answer: what is expected of each alternative, and where adding more stops to pay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.knee import knee as knee_of


@dataclass(frozen=True)
class Outlook:
    """What is expected: when all is done, and the money; infinite if it cannot be done."""

    makespan: float
    cost: float
    taken: bool | None = None  # whether by another plan than the present one; None: there is none

    def to_dict(self) -> dict[str, Any]:
        """The figures, null where there are none."""
        return {"makespan": _finite(self.makespan), "cost": _finite(self.cost)}


@dataclass(frozen=True)
class Alternative:
    """A change, and what is expected then."""

    change: str
    add: dict[str, int]
    remove: tuple[str, ...]
    makespan: float
    cost: float
    saves: float  # seconds of the present makespan; negative: it takes longer
    taken: bool | None  # whether the plan would change; None: no plan is followed

    def to_dict(self) -> dict[str, Any]:
        """What `weft what-if --json` prints of it."""
        return {
            "change": self.change,
            "add": self.add,
            "remove": list(self.remove),
            "makespan": _finite(self.makespan),
            "cost": _finite(self.cost),
            "saves": _finite(self.saves),
            "taken": self.taken,
        }


@dataclass(frozen=True)
class WhatIf:
    """All alternatives beside what is expected if nothing changes."""

    name: str  # of the workflow, or the id of the run
    status: str | None  # of the run; None before its start
    by: str  # the planner, or the strategy that was simulated
    now: float
    at: float
    tasks: dict[str, int]  # how many are done, running, waiting, given up
    present: Outlook
    replanned: Outlook  # the best without a change: a new plan may help by itself
    alternatives: tuple[Alternative, ...]
    counts: tuple[int, ...] | None  # by alternative, where they are a range of one kind
    knee: int | None  # of the counts
    notes: tuple[str, ...] = ()

    @property
    def is_next(self) -> bool:
        """Whether the run has finished, and this is about the next one like it."""
        return self.status == "finished"

    @property
    def before_start(self) -> bool:
        """Whether nothing of it has begun."""
        return self.status is None or self.is_next

    def to_dict(self) -> dict[str, Any]:
        """What `weft what-if --json` prints."""
        return {
            "name": self.name,
            "status": self.status,
            "by": self.by,
            "now": self.now,
            "at": self.at,
            "tasks": self.tasks,
            "present": self.present.to_dict(),
            "replanned": {**self.replanned.to_dict(), "taken": self.replanned.taken},
            "alternatives": [alternative.to_dict() for alternative in self.alternatives],
            "knee": self.knee,
            "notes": list(self.notes),
        }


def knee(counts: Sequence[int], makespans: Sequence[float]) -> int | None:
    """The count from which on more machines buy less time; None if there is none."""
    at = knee_of(counts, makespans)
    return None if at is None else counts[at]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
