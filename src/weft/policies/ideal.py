"""Planned post mortem, with the durations as they turned out (Zhao, Sakellariou, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.policies.static import Static


@dataclass(frozen=True)
class Ideal(Static):
    """Planned with the true durations: a plan by the same heuristic, not a lower bound."""

    name: ClassVar[str] = "ideal"
