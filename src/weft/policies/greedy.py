"""Most children first: no plan, no estimates (Hall, Rosenberg, Venkataramani, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Line
from weft.model import Workflow
from weft.policies._lines import AS_IN_THE_FILE, Ties, outdegree


@dataclass(frozen=True)
class Greedy:
    """Just in time: the ready task that most others wait for goes to the fastest idle processor.

    Of equals, the first to become ready goes first; `ties` decides between those that became ready
    at once: `file`, or the seed of a random order.
    """

    name: ClassVar[str] = "greedy"
    min_min: ClassVar[bool] = False
    ties: Ties = AS_IN_THE_FILE

    def line(self, workflow: Workflow) -> Line:
        """By the number of children; among equals first ready, first served."""
        return Line(-outdegree(workflow), self.ties.places(workflow))
