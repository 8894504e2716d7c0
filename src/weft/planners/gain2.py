"""GAIN2: Sakellariou et al., "Scheduling Workflows with Budget Constraints", 3.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.planners._budgeted import Gain


@dataclass(frozen=True)
class Gain2(Gain):
    """GAIN with weights of the whole schedule, worked out once; what does not pay is undone."""

    name: ClassVar[str] = "gain2"
    variant: ClassVar[int] = 2
