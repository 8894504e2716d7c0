"""GTP/R: Hernandez, Cole, "Reactive Scheduling of DAG Applications"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.policies._gtp import GlobalPositioning


@dataclass(frozen=True)
class GtpR(GlobalPositioning):
    """As gtp, and rewinds what a lost processor took with it."""

    name: ClassVar[str] = "gtp/r"
    conduct = GlobalPositioning.conduct
