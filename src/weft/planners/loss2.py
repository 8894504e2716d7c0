"""LOSS2: Sakellariou et al., "Scheduling Workflows with Budget Constraints", 3.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.planners._budgeted import Loss


@dataclass(frozen=True)
class Loss2(Loss):
    """LOSS with weights of the whole schedule, worked out once."""

    name: ClassVar[str] = "loss2"
    variant: ClassVar[int] = 2
