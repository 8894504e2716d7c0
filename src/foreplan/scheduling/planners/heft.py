"""HEFT, CPOP: Topcuoglu, Hariri, Wu, "Performance-effective and low-complexity ..."."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foreplan.scheduling.kernels.list_planners import CPOP, HEFT, HEFT_AT_THE_END
from foreplan.scheduling.planning import WidePlanner


@dataclass(frozen=True)
class Heft(WidePlanner):
    """Highest upward rank first, each task where it finishes earliest, filling gaps."""

    name: ClassVar[str] = "heft"
    insertion: bool = True

    @property
    def kernel(self) -> int:
        """Which of the kernels' list planners it is."""
        return HEFT if self.insertion else HEFT_AT_THE_END


@dataclass(frozen=True)
class Cpop(WidePlanner):
    """The critical path on the processor that runs it fastest, the rest by earliest finish."""

    name: ClassVar[str] = "cpop"
    kernel = CPOP
