"""PEFT: Arabnejad, Barbosa, "List scheduling ... by an optimistic cost table"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import PEFT
from foreplan.scheduling.planning import WidePlanner


@dataclass(frozen=True)
class Peft(WidePlanner):
    """Each task where its finish plus the optimistic rest of its path is smallest."""

    name: ClassVar[str] = "peft"
    kernel = PEFT
