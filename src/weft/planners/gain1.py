"""GAIN1: Sakellariou et al., "Scheduling Workflows with Budget Constraints", 3.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.planners._budgeted import Gain


@dataclass(frozen=True)
class Gain1(Gain):
    """GAIN with weights of single tasks, worked out once."""

    name: ClassVar[str] = "gain1"
    variant: ClassVar[int] = 1
