"""DLS: Sih, Lee, "A compile-time scheduling heuristic for interconnection-constrained ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import DLS
from foreplan.scheduling.planning import WidePlanner


@dataclass(frozen=True)
class Dls(WidePlanner):
    """The ready task and processor with the greatest dynamic level first.

    DL(i,p) = SL(i) - max(data ready, processor free) + (E*(i) - E(i,p)), E* the median over
    processors, SL the longest path of E* without communication. That is SL + E* less the finish,
    so a task's best processor is always the one on which it finishes first.
    """

    name: ClassVar[str] = "dls"
    kernel = DLS
