"""LMT: Iverson, Ozguner, Follen, "Parallelizing existing applications in a distributed ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import LMT
from foreplan.scheduling.planning import ListPlanner


@dataclass(frozen=True)
class Lmt(ListPlanner):
    """Level by level, the costliest task first, each where it finishes earliest.

    The paper merges the tasks of a level until there are no more than processors; we read it
    after Topcuoglu et al., who leave the tasks apart.
    """

    name: ClassVar[str] = "lmt"
    kernel = LMT
