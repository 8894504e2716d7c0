"""GTP/C/R: Hernandez, Cole, "Reactive Scheduling of DAG Applications"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.model import Reuse
from weft.policies._gtp import GlobalPositioning


@dataclass(frozen=True)
class GtpCR(GlobalPositioning):
    """As gtp/c, and rewinds what a lost processor took with it and no copy has."""

    name: ClassVar[str] = "gtp/c/r"
    reuse: ClassVar[Reuse] = Reuse.ANYWHERE
    conduct = GlobalPositioning.conduct
