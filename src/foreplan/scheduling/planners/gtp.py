"""GTP: Hernandez, Cole, "Reactive Scheduling of DAG Applications ... (GTP)", section 3."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.model import Freedom, Schedule, Situation
from foreplan.scheduling.kernels.list_planners import GTP
from foreplan.scheduling.kernels.ranks import mean_cost, upward_rank
from foreplan.scheduling.planning import EFFICIENCY, Planning, check_efficiency, planning_of


@dataclass(frozen=True)
class Gtp:
    """Highest upward rank first, each task where it finishes earliest, running ones included."""

    name: ClassVar[str] = "gtp"
    kernel = GTP
    efficiency: float = field(default=EFFICIENCY, kw_only=True)

    def __post_init__(self) -> None:
        check_efficiency(self.name, self.efficiency)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by global task positioning, from what has really been done."""
        planning = planning_of(situation, freedom)
        order = planning.by_rank(_rank(planning, self.efficiency))
        return planning.schedule(self, planning.position(order, self.efficiency))


def _rank(planning: Planning, efficiency: float) -> FloatArray:
    """Equations 1 and 2: means of the costs at full availability, and of the transfer times."""
    cost = np.ascontiguousarray(planning.situation.estimates.cost[:, planning.usable])
    if planning.fitting is None:
        mean = mean_cost(cost.reshape(-1), *cost.shape)
    else:
        mean = planning.fitting.mean_times(efficiency, cost.reshape(-1))
    return upward_rank(planning.problem, mean, *planning.mean_link)
