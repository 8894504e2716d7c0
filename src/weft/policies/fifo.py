"""First in, first out: no plan, no estimates (Hall, Rosenberg, Venkataramani, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Line
from weft.model import Workflow
from weft.policies._lines import AS_IN_THE_FILE, Ties, all_alike, by_outdegree


@dataclass(frozen=True)
class Fifo:
    """Just in time: the task that became ready first goes to the fastest idle processor.

    Of those that became ready at once, the one that most tasks wait for goes first; `ties` decides
    between equals: `file`, or the seed of a random order.
    """

    name: ClassVar[str] = "fifo"
    min_min: ClassVar[bool] = False
    ties: Ties = AS_IN_THE_FILE

    def line(self, workflow: Workflow) -> Line:
        """First ready, first served."""
        return Line(all_alike(workflow), by_outdegree(workflow, self.ties))
