"""A new plan before every task start (Zhao, Sakellariou, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from weft.contracts import Watch
from weft.kernels.decisions import EVERY_START, Conduct
from weft.model import Schedule, Situation
from weft.policies._late_starts import LateStarts, late_starts


@dataclass(frozen=True)
class Always(LateStarts):
    """Replans before every task start but the first."""

    name: ClassVar[str] = "always"

    def watch(self, plan: Schedule, situation: Situation) -> Watch:
        """Every start is late."""
        return Watch(np.full(plan.workflow.n_tasks, -np.inf))

    def conduct(self) -> Conduct:
        """The same as numbers, for the kernels."""
        return late_starts(EVERY_START)
