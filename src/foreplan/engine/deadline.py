"""A run's deadline: whether the plan is expected to end by it, and when to look again."""

from __future__ import annotations

import math

import numpy as np

from foreplan.errors import InputError
from foreplan.model import Schedule, Situation
from foreplan.scheduling.projection import ROUNDING, ends_earlier, projected_makespan

TOO_LATE = "the plan ends after the deadline"
STEP = 0.01  # of the deadline: the time between two looks, at least
REST = 0.02  # of the deadline: the time between two plans for its sake, at first


class Deadline:
    """When a run is to be over, by its own clock. One that is late goes on."""

    def __init__(self, at: float = math.inf) -> None:
        self.set(at)

    def set(self, at: float) -> None:
        """Another deadline: whether that can be kept is not known yet."""
        if not at > 0:
            raise InputError(f"the deadline must be a number of seconds above 0, not {at:g}")
        self.at, self.kept = at, at < math.inf  # whether there is one to keep
        self.late_at = math.nan  # when it was first known that it will not be kept
        self.projected = math.nan  # the end that was expected at the last look
        self.looks_at = 0.0  # when to look next, if nothing changes before
        self._rested, self._rest = 0.0, REST * at

    def is_passed_by(self, end: float) -> bool:
        """Whether this end is too late, by more than rounding."""
        return end > self.at * (1 + ROUNDING)

    def look(self, plan: Schedule, situation: Situation) -> bool:
        """Note when the plan is expected to end; whether that is too late.

        In so many seconds as there are to spare, no more delay than that can come up unnoticed.
        """
        self.projected = projected_makespan(plan, situation)
        spare = self.at - self.projected if math.isfinite(self.projected) else 0.0
        self.looks_at = situation.now + max(STEP * self.at, spare)
        return math.isfinite(self.projected) and self.is_passed_by(self.projected)

    def next_look(self, now: float) -> float:
        """When to look next; a look that was due and could not be taken is tried a step later."""
        return self.looks_at if self.looks_at > now else now + STEP * self.at

    def take_turn(self, now: float) -> bool:
        """Whether a plan may be asked for now; after every one it is waited twice as long."""
        if now < self._rested:
            return False
        self._rested, self._rest = now + self._rest, 2 * self._rest
        return True

    def allows(self, plan: Schedule, before: Schedule | None, situation: Situation) -> bool:
        """Whether a new plan is in time, or at least earlier than the one before."""
        if not self.is_passed_by(plan.makespan) or before is None:
            return True
        return ends_earlier(plan.makespan, projected_makespan(before, situation))

    def foresee(self, now: float) -> None:
        """It is going to be late, as far as is known."""
        if np.isnan(self.late_at):
            self.late_at = now
