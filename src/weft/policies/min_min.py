"""Dynamic Min-Min: a task is mapped once its producers are done (Yu, Shi, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Line
from weft.model import Workflow
from weft.policies._lines import all_alike


@dataclass(frozen=True)
class MinMin:
    """Just in time: of the ready tasks, the one done soonest is mapped first, and so on."""

    name: ClassVar[str] = "min-min"
    min_min: ClassVar[bool] = True

    def line(self, workflow: Workflow) -> Line:
        """Among equals, first ready, first served."""
        return Line(all_alike(workflow), workflow.position)
