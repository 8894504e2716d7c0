"""GAIN3: Sakellariou et al., "Scheduling Workflows with Budget Constraints", 3.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.planners._budgeted import Gain


@dataclass(frozen=True)
class Gain3(Gain):
    """GAIN with weights of single tasks, worked out anew after every reassignment."""

    name: ClassVar[str] = "gain3"
    variant: ClassVar[int] = 3
