"""FCP: Radulescu, van Gemund, "On the complexity of list scheduling algorithms"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import FCP
from foreplan.scheduling.planning import ListPlanner


@dataclass(frozen=True)
class Fcp(ListPlanner):
    """Ready tasks by upward rank; only the processor free first and the enabling one are tried.

    The paper has equal processors and takes the earlier start; on unequal ones we read it as the
    earlier finish, also among several that are free first.
    """

    name: ClassVar[str] = "fcp"
    kernel = FCP
