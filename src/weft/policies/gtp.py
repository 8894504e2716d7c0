"""GTP: Hernandez, Cole, "Reactive Scheduling of DAG Applications"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.policies._gtp import GlobalPositioning


@dataclass(frozen=True)
class Gtp(GlobalPositioning):
    """Replans at rescheduling points; what it migrates begins from scratch."""

    name: ClassVar[str] = "gtp"
    conduct = GlobalPositioning.conduct
