"""A chart: what every writer draws. It knows nothing of schedules, files or pixels.

Bars lie in lanes of a row. A schedule fills one lane; a run has one for the plan and one for what
happened. A bar may take several rows of a host; what it holds beside them is in gauges below the
host's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.model import Workflow
from foreplan.quantities import amount, data_size

ROWS_PER_GAUGE = 5  # of a host with more rows than these, gauges are higher
OUTSIDE = -1  # the source of an input that no bar produces


@dataclass(frozen=True)
class Unit:
    """The unit of the time axis."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Row:
    """One processor: there from `begin` to `end` but while `away`."""

    name: str
    host: str
    begin: float
    end: float
    busy: float  # the share of that time
    away: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Lane:
    """A part of every row's height: `top` and `height` are shares of it.

    Where bars take several rows, it is a part of a host's height, with all of its rows in it.
    Bars that only show what was meant are pale, and have no inputs.
    """

    name: str = ""
    top: float = 0.0
    height: float = 1.0
    meant: bool = False


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of every bar as blocks of neighbouring ones: those of bar b are ptr[b]:ptr[b + 1].

    The one with the most rows comes first; it has the name of the bar, and lines go there.
    """

    ptr: IntArray
    row: IntArray  # the first of a block
    rows: IntArray  # how many


@dataclass(frozen=True, eq=False)
class Bars:
    """One entry per bar."""

    name: tuple[str, ...]
    row: IntArray
    lane: IntArray
    start: FloatArray
    finish: FloatArray
    category: IntArray
    blocks: Blocks | None = None  # None: each takes its row
    slack: FloatArray | None = None  # how much later it may end, and all ends when it does
    spare: FloatArray | None = None  # and nothing else starts later; None: nobody knows


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
class HeldLevel:
    """What is held over time, as steps; `meant` as of a lane."""

    name: str
    legend: str
    meant: bool
    time: FloatArray
    held: FloatArray
    line: bool = False  # only a line: it lies within another


@dataclass(frozen=True, eq=False)
class Gauge:
    """An amount that a host has, and what is held of it."""

    host: str
    kind: str
    size: float
    in_bytes: bool
    levels: tuple[HeldLevel, ...]

    @property
    def label(self) -> str:
        """What stands beside it."""
        size = data_size(self.size) if self.in_bytes else amount(self.size)
        return f"{self.kind} {size}"


@dataclass(frozen=True, eq=False)
class Places:
    """Where everything is from top to bottom; the unit is the height of a row."""

    row: FloatArray  # the top of each
    first: IntArray  # of each row: the first row of those whose lanes lie side by side
    count: IntArray  # and how many they are
    gauge: FloatArray  # the top of each
    gauge_height: FloatArray
    hosts: tuple[tuple[str, float, float], ...]  # name, top and bottom
    height: float  # of all


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
    gauges: tuple[Gauge, ...] = ()  # those of one host together, hosts in the order of the rows

    @property
    def palette(self) -> tuple[str, ...]:
        """The colour of each category."""
        return self.colours or PALETTE[: len(self.categories)]

    @property
    def grouped(self) -> bool:
        """Whether some host has several rows, so that hosts are worth showing."""
        return bool(self.gauges) or len({row.host for row in self.rows}) < len(self.rows)

    @property
    def apart(self) -> bool:
        """Whether the lanes of a host lie one below the other: bars take several of its rows."""
        return self.bars.blocks is not None and len(self.lanes) > 1

    @cached_property
    def places(self) -> Places:
        """Where rows and gauges are."""
        row, gauge, hosts, top = list[float](), list[tuple[float, float]](), [], 0.0
        first, count = list[int](), list[int]()
        for host, begin, after in self.groups():
            n, above = after - begin, top
            row += [top + k for k in range(n)]
            first += [begin] * n if self.apart else range(begin, after)
            count += [n if self.apart else 1] * n
            top += n
            for _ in (g for g in self.gauges if g.host == host):
                gauge.append((top, max(1.0, n / ROWS_PER_GAUGE)))
                top += gauge[-1][1]
            hosts.append((host, above, top))
        tops, heights = np.array(gauge, dtype=np.float64).reshape(-1, 2).T
        return Places(
            np.array(row, dtype=np.float64),
            np.array(first, dtype=np.int32),
            np.array(count, dtype=np.int32),
            tops,
            heights,
            tuple(hosts),
            top,
        )

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


# Pale enough for black names and dark outlines, and told apart without red-green vision.
PALETTE = (
    "#77aadd",
    "#ee8866",
    "#eedd88",
    "#44bb99",
    "#ffaabb",
    "#bbcc33",
    "#99ddff",
    "#aaaa00",
    "#b8a4e0",
    "#bbbbbb",
)
# Attempts that came to nothing, by how they ended.
LOST = {"failed": "#d64545", "cancelled": "#a06cd5", "rewound": "#8d8d8d"}
NO_CATEGORY = "(no category)"
OTHER = "(other)"


def categories_of(workflow: Workflow, weight: FloatArray) -> tuple[tuple[str, ...], IntArray]:
    """The categories in order of appearance, and each task's.

    Where a file gives none: the beginnings of the task names, if they form a few groups.
    More than the palette holds: those with the most weight, and the rest together.
    """
    n = workflow.n_tasks
    if any(spec.category for spec in workflow.specs.values()):
        labels = [workflow.spec(task).category or NO_CATEGORY for task in range(n)]
    else:
        labels = prefixes(workflow.task_names)
    index = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    of_task = np.array([index[label] for label in labels], dtype=np.int32)
    return _limited(tuple(index) or ("",), of_task, weight)


def prefixes(names: Sequence[str]) -> list[str]:
    """The names without their numbers; all alike if that gives too many groups to mean much."""
    prefixes = [without_number(name) for name in names]
    groups = set(prefixes)
    useful = 2 <= len(groups) <= min(len(PALETTE), len(names) // 2) and "" not in groups
    return prefixes if useful else [""] * len(names)


def without_number(name: str) -> str:
    """Return a name without the numbers and separators that it ends with."""
    return name.rstrip("0123456789_-.:/#[](), ")


def _limited(
    names: tuple[str, ...], of_task: IntArray, weight: FloatArray
) -> tuple[tuple[str, ...], IntArray]:
    """At most as many categories as there are colours; the last one takes the lightest."""
    most = len(PALETTE)
    if len(names) <= most:
        return names, of_task
    total = np.bincount(of_task, weights=weight, minlength=len(names))
    heaviest = np.sort(np.argsort(-total, kind="stable")[: most - 1])
    new = np.full(len(names), most - 1, dtype=np.int32)
    new[heaviest] = np.arange(most - 1, dtype=np.int32)
    return (*(names[i] for i in heaviest), OTHER), new[of_task]
