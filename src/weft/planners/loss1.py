"""LOSS1: Sakellariou et al., "Scheduling Workflows with Budget Constraints", 3.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.planners._budgeted import Loss


@dataclass(frozen=True)
class Loss1(Loss):
    """LOSS with weights of single tasks, worked out once."""

    name: ClassVar[str] = "loss1"
    variant: ClassVar[int] = 1
