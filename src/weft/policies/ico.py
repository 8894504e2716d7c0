"""Keep them busy: no plan, no estimates, an order by ICO (Hall, Rosenberg, Venkataramani)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.contracts import Line
from weft.model import Workflow


@dataclass(frozen=True)
class Ico:
    """Just in time, in an order that makes many tasks ready early.

    The order is IC-optimal where ICO finds one: at every step as many tasks are ready as can be.
    """

    name: ClassVar[str] = "ico"
    min_min: ClassVar[bool] = False

    def line(self, workflow: Workflow) -> Line:
        """By the place in the order."""
        from weft.ic import Dag, best_order, places

        rank = places(best_order(Dag.from_workflow(workflow)))
        return Line(rank, rank)
