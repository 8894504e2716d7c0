"""What a drawn scenario is asked for: how much machines and links vary, and how often they fail."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

from foreplan.errors import InputError
from foreplan.quantities import duration

# How often each processor and each link changes in the time that the run should take.
EVENT_RATE = 2.0
MOST_EVENTS = 200_000  # changes of one scenario; after them everything stays as it is


@dataclass(frozen=True)
class Scenario:
    """Random events, the same for the same seed. Rates are per planned makespan.

    Each processor and each link changes `event_rate` times on average, to a value between
    1 - `variability` and 1 of its peak. So many different processors fail once (`failures`), or
    each again and again (`failure_rate`), and are back after so many seconds (`return_after`).
    """

    variability: float = 0.0
    event_rate: float = EVENT_RATE
    failures: int = 0
    failure_rate: float = 0.0
    return_after: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.variability < 1:
            raise _wrong("variability", "from 0 to below 1", self.variability)
        if not 0 <= self.event_rate < math.inf:
            raise _wrong("event rate", "0 or more", self.event_rate)
        if not isinstance(self.failures, Integral) or self.failures < 0:
            raise _wrong("number of failures", "a whole number, 0 or more", self.failures)
        if not 0 <= self.failure_rate < math.inf:
            raise _wrong("failure rate", "0 or more", self.failure_rate)
        if not self.return_after > 0:
            raise _wrong("time of a return after a failure", "more than 0", self.return_after)
        if self.return_after < math.inf and not self.fails:
            raise InputError(
                f"machines are to return {duration(self.return_after)} after they fail, but none "
                "does: give a number of failures, or a failure rate"
            )

    @property
    def varies(self) -> bool:
        """Whether speeds change."""
        return self.variability > 0 and self.event_rate > 0

    @property
    def fails(self) -> bool:
        """Whether processors die."""
        return self.failures > 0 or self.failure_rate > 0

    @property
    def calm(self) -> bool:
        """Whether nothing happens at all."""
        return not self.varies and not self.fails

    def to_dict(self) -> dict[str, Any]:
        """Plain data; no return is None."""
        never = {"return_after": None} if math.isinf(self.return_after) else {}
        return {**asdict(self), **never}

    def __str__(self) -> str:
        """In words, for a title: `variability 40%, 2 failures`."""
        parts = []
        if self.variability > 0:
            rate = "" if self.event_rate == EVENT_RATE else f" at rate {self.event_rate:g}"
            parts.append(f"variability {self.variability * 100:.6g}%{rate}")
        if self.failures:
            parts.append(f"{self.failures} failure{'s' if self.failures != 1 else ''}")
        if self.failure_rate > 0:
            parts.append(f"failure rate {self.failure_rate:g}")
        if self.return_after < math.inf:
            parts.append(f"back after {duration(self.return_after)}")
        return ", ".join(parts)


def _wrong(what: str, wanted: str, value: float) -> InputError:
    return InputError(f"the {what} must be {wanted}, not {value:g}")
