"""What a transfer between two machines is expected to take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.arrays import FloatArray
from weft.history.levels import NOISE
from weft.history.medians import deviation, robust_line
from weft.history.records import History
from weft.model import Link

ENOUGH = 8  # records before the startup is told from the time per byte


@dataclass(frozen=True)
class LinkEstimate:
    """A link in seconds and bytes, its relative standard deviation, and how much it rests on."""

    link: Link
    spread: float
    count: int

    @property
    def bandwidth(self) -> float:
        """Bytes per second, the startup aside."""
        per_byte = self.link.time_per_unit
        return 1 / per_byte if per_byte > 0 else float("inf")


def predict_links(source: str, target: str, records: History) -> LinkEstimate | None:
    """The link from one machine to the other by their newest transfers; None without any.

    Where nothing went this way, what went the other way tells.
    """
    known = records.between(source, target) or records.between(target, source)
    size = np.array([record.size for record in known])
    seconds = np.array([record.seconds for record in known])
    moved = size > 0
    if not moved.any():
        return None
    startup, per_byte = _line(size, seconds)
    expected = startup + per_byte * size[moved]
    wrong = seconds[moved][expected > 0] / expected[expected > 0]
    spread = max(NOISE / len(known), deviation(wrong)) if len(wrong) > 1 else NOISE
    return LinkEstimate(Link(per_byte, startup), spread, len(known))


def _line(size: FloatArray, seconds: FloatArray) -> tuple[float, float]:
    """Startup and seconds per byte."""
    moved = size > 0
    rate = seconds[moved] / size[moved]
    if len(size) < ENOUGH:
        return 0.0, float(np.median(rate))
    line = robust_line(size, seconds)
    if line is not None:
        return line
    # sizes tell nothing: all startup, but for the best rate seen, so that much still takes long
    return float(np.median(seconds)), float(np.quantile(rate, 0.1))
