"""Min-Min and Max-Min as planners: Ibarra, Kim, on the tasks whose parents are placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import MAX_MIN, MIN_MIN
from foreplan.scheduling.planning import WidePlanner


@dataclass(frozen=True)
class MinMin(WidePlanner):
    """Of the tasks whose parents are placed, the one that can finish first goes first."""

    name: ClassVar[str] = "min-min"
    kernel = MIN_MIN


@dataclass(frozen=True)
class MaxMin(WidePlanner):
    """Of the tasks whose parents are placed, the one whose earliest finish is latest goes first."""

    name: ClassVar[str] = "max-min"
    kernel = MAX_MIN
