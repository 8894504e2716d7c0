"""First in, first out: no plan, no estimates (Hall, Rosenberg, Venkataramani, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.model import Workflow


@dataclass(frozen=True)
class Fifo:
    """Just in time: the task that became ready first goes to the fastest idle processor."""

    name: ClassVar[str] = "fifo"
    min_min: ClassVar[bool] = False

    def line(self, workflow: Workflow) -> None:
        """First ready, first served."""
