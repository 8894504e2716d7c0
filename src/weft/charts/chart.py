"""A chart: what every writer draws. It knows nothing of schedules, files or pixels.

Bars lie in lanes of a row. A schedule fills one lane; a run has one for the plan and one for what
happened.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.charts.colours import PALETTE

OUTSIDE = -1  # the source of an input that no bar produces


@dataclass(frozen=True)
class Unit:
    """The unit of the time axis."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Row:
    """One processor: there from `begin` to `end` but while `away`, and busy for a share of it."""

    name: str
    host: str
    begin: float
    end: float
    utilisation: float
    away: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Lane:
    """A part of every row's height: `top` and `height` are shares of it.

    Bars that only show what was meant are pale, and have no inputs.
    """

    name: str = ""
    top: float = 0.0
    height: float = 1.0
    meant: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """One entry per bar."""

    name: tuple[str, ...]
    row: IntArray
    lane: IntArray
    start: FloatArray
    finish: FloatArray
    category: IntArray


@dataclass(frozen=True, eq=False)
class Inputs:
    """One entry per item read by a bar: which bar made it, and when it is there."""

    item: tuple[str, ...]  # empty where the item has no name of its own
    source: IntArray  # a bar, or OUTSIDE
    target: IntArray
    sent: FloatArray
    arrival: FloatArray
    size: FloatArray
    shown: BoolArray  # drawn as a transfer: one entry per item and host


@dataclass(frozen=True, eq=False)
class Chart:
    """Rows, bars, transfers and the critical path, with what to write above them."""

    title: str
    facts: tuple[str, ...]
    unit: Unit
    end: float
    rows: tuple[Row, ...]
    lanes: tuple[Lane, ...]
    categories: tuple[str, ...]  # one entry: all bars alike, and no legend
    bars: Bars
    inputs: Inputs
    critical: tuple[int, ...]  # bars
    bound: tuple[str, ...]  # what bound each of them: data, processor or nothing
    moments: tuple[float, ...] = ()  # when a new plan was taken
    colours: tuple[str, ...] = ()  # one per category; the palette's where none are given

    @property
    def palette(self) -> tuple[str, ...]:
        """The colour of each category."""
        return self.colours or PALETTE[: len(self.categories)]

    @property
    def grouped(self) -> bool:
        """Whether some host has several rows, so that hosts are worth showing."""
        return len({row.host for row in self.rows}) < len(self.rows)

    def groups(self) -> list[tuple[str, int, int]]:
        """The hosts from top to bottom: name, first row, and the row after the last."""
        hosts = [row.host for row in self.rows]
        edges = [i for i in range(len(hosts)) if i == 0 or hosts[i] != hosts[i - 1]]
        ends = [*edges[1:], len(hosts)]
        return [(hosts[a], a, b) for a, b in zip(edges, ends, strict=True)]

    @property
    def span(self) -> float:
        """The length of the time axis, never zero."""
        return self.end if self.end > 0 else 1.0


def unit_for(span: float) -> Unit:
    """The unit in which a span of seconds reads well."""
    for name, seconds, enough in _UNITS:
        if span >= enough:
            return Unit(name, seconds)
    return Unit("s", 1.0)


_UNITS = (
    ("days", 86400.0, 4 * 86400.0),
    ("h", 3600.0, 3 * 3600.0),
    ("min", 60.0, 300.0),
    ("s", 1.0, 1.0),
    ("ms", 1e-3, 1e-9),
)
