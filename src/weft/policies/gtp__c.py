"""GTP/C: Hernandez, Cole, "Reactive Scheduling of DAG Applications"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.model import Reuse
from weft.policies._gtp import GlobalPositioning


@dataclass(frozen=True)
class GtpC(GlobalPositioning):
    """As gtp, and fetches data from the cheapest copy."""

    name: ClassVar[str] = "gtp/c"
    reuse: ClassVar[Reuse] = Reuse.ANYWHERE
    conduct = GlobalPositioning.conduct
