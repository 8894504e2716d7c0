"""HBMCT: Sakellariou, Zhao, "A hybrid heuristic for DAG scheduling on heterogeneous systems"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import HBMCT
from foreplan.scheduling.planning import ListPlanner


@dataclass(frozen=True)
class Hbmct(ListPlanner):
    """Groups of independent tasks in rank order, each balanced by minimum completion time."""

    name: ClassVar[str] = "hbmct"
    kernel = HBMCT
