"""DLS/sr: DLS with selective rescheduling, GTP's competitor (Hernandez, Cole: section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.policies.spare import Spare


@dataclass(frozen=True)
class DlsSr(Spare):
    """DLS, and a new plan when a task starts later than its minimal spare time allows."""

    name: ClassVar[str] = "dls/sr"
    planner: str = "dls"
    conduct = Spare.conduct
