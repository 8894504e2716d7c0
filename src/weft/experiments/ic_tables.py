"""The tables of the IC experiments: what was played, by dag, and what follows for families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from weft.arrays import FloatArray
from weft.experiments.gtp_tables import Figure
from weft.experiments.ic_cases import FAMILIAR, WORKFLOW, workflow_files
from weft.experiments.ic_fits import Fit, fitted, lower_hull, mean_of, ratio_of
from weft.experiments.ic_plays import HEURISTICS, ICO, MEANS, Columns
from weft.experiments.ic_units import AREA, EVERY, OTHERS, PHASES, Settings, units
from weft.experiments.ic_volunteer_tables import RunRow, runs_of

FITTED, HULL = "all dags", "lower hull"


@dataclass(frozen=True)
class AreaRow:
    """One heuristic on one dag: by how much ICO's area is larger, with half the 95% interval.

    `difference` is of the areas, `normalised` the same per vertex: the paper's Delta.
    """

    family: str
    vertices: int
    heuristic: str
    ico: float
    difference: float
    margin: float
    normalised: float
    least: float  # of all plays
    optimal: bool
    plays: int


@dataclass(frozen=True)
class FitRow:
    """The curve a v^b through the differences of one heuristic on one family."""

    family: str
    heuristic: str
    through: str
    points: int
    a: float
    b: float
    margin: float
    b_normalised: float


@dataclass(frozen=True)
class PhaseRow:
    """The phase ratio of one heuristic on one dag for one mean of the request sizes."""

    family: str
    dag: int
    vertices: int
    mean: int
    heuristic: str
    ico: float
    phases: float
    ratio: float
    margin: float


@dataclass(frozen=True)
class OtherRow:
    """Normalised areas and phases on dags that nobody made for ICO; of random ones the means."""

    dag: str
    vertices: float
    dags: int
    optimal: int
    schedulers: dict[str, tuple[float, float]]  # normalised area, phases over all request sizes
    behind: int  # dags on which FIFO's mean area is larger

    def lines(self) -> Iterator[OtherLine]:
        """A line for each scheduler."""
        for name, (area, polls) in self.schedulers.items():
            yield OtherLine(self.dag, self.vertices, self.dags, self.optimal, name, area, polls)


@dataclass(frozen=True)
class OtherLine:
    """The same of one scheduler."""

    dag: str
    vertices: float
    dags: int
    optimal: int
    scheduler: str
    normalised_area: float
    phases: float


@dataclass
class Tables:
    """All that was measured."""

    areas: list[AreaRow] = field(default_factory=list)
    phases: list[PhaseRow] = field(default_factory=list)
    every: dict[str, Columns] = field(default_factory=dict)
    others: list[OtherRow] = field(default_factory=list)
    runs: list[RunRow] = field(default_factory=list)

    def points(self, family: str, heuristic: str) -> tuple[FloatArray, FloatArray]:
        """Sizes and differences of areas, one per dag."""
        rows = [r for r in self.areas if (r.family, r.heuristic) == (family, heuristic)]
        return np.array([float(r.vertices) for r in rows]), np.array([r.difference for r in rows])

    def hull(self, family: str, heuristic: str) -> tuple[FloatArray, FloatArray]:
        """Those of them on the lower envelope."""
        v, y = self.points(family, heuristic)
        kept = lower_hull(v, y)
        return v[kept], y[kept]

    @cached_property
    def fits(self) -> list[FitRow]:
        """Curves through all dags of a family and, for compositions, through the hull."""
        return list(self._fits())

    def fit(self, family: str, heuristic: str, through: str = FITTED) -> FitRow | None:
        """One of them, if there was anything to fit."""
        wanted = (family, heuristic, through)
        return next((f for f in self.fits if (f.family, f.heuristic, f.through) == wanted), None)

    def _fits(self) -> Iterator[FitRow]:
        for family in dict.fromkeys(row.family for row in self.areas):
            for heuristic in HEURISTICS:
                yield from _row(family, heuristic, FITTED, *self.points(family, heuristic))
                if family not in FAMILIAR:
                    yield from _row(family, heuristic, HULL, *self.hull(family, heuristic))

    def gap(self, family: str, one: str, other: str) -> Figure:
        """By how much the normalised area of one heuristic is larger, in % of ICO's, by dag."""
        shares: dict[str, list[float]] = {one: [], other: []}
        for row in self.areas:
            if row.family == family and row.heuristic in shares:
                shares[row.heuristic].append(100 * row.difference / row.ico)
        return mean_of(np.array(shares[other]) - np.array(shares[one]))


def tables(settings: Settings, done: Mapping[int, Columns]) -> Tables:
    """All tables, from the units' figures."""
    found = Tables(runs=list(runs_of(settings, done)))
    others: dict[str, list[Columns]] = {}
    for unit in units(settings):
        columns = done[unit.number]
        if unit.part == AREA:
            found.areas += area_rows(unit.case.family, columns)
        elif unit.part == PHASES:
            found.phases += phase_rows(unit.case.family, unit.number, columns)
        elif unit.part == EVERY:
            sizes = found.every.setdefault(unit.cases[0].family, {})
            for name, values in columns.items():
                sizes.setdefault(name, []).extend(values)
        elif unit.part == OTHERS:
            name = unit.case.family
            if name == WORKFLOW:
                name = workflow_files(settings.workflows)[unit.case.number].stem
            else:
                name = f"{name}, {unit.case.size}"
            others.setdefault(name, []).append(columns)
    found.others = [other_row(name, some) for name, some in others.items()]
    return found


def area_rows(family: str, columns: Columns) -> Iterator[AreaRow]:
    """One dag, each heuristic."""
    n, mine = columns["n"][0], columns[ICO][0]
    for heuristic in HEURISTICS:
        ahead = mine - np.array(columns[heuristic])
        difference = mean_of(ahead)
        yield AreaRow(
            family, int(n), heuristic, mine, difference.value, difference.margin,
            difference.value / n, float(ahead.min()), bool(columns["optimal"][0]), len(ahead),
        )  # fmt: skip


def phase_rows(family: str, dag: int, columns: Columns) -> Iterator[PhaseRow]:
    """One dag, each heuristic and mean of the request sizes."""
    for heuristic in HEURISTICS:
        for mean in MEANS:
            mine = np.array(columns[f"{ICO}|{mean}"])
            theirs = np.array(columns[f"{heuristic}|{mean}"])
            ratio = ratio_of(theirs, mine)
            yield PhaseRow(
                family, dag, int(columns["n"][0]), mean, heuristic, float(mine.mean()),
                float(theirs.mean()), ratio.value, ratio.margin,
            )  # fmt: skip


def other_row(name: str, some: list[Columns]) -> OtherRow:
    """The means over some dags of the same name."""
    schedulers = {}
    for scheduler in (ICO, *HEURISTICS):
        area = np.mean([np.mean(columns[scheduler]) / columns["n"][0] for columns in some])
        polls = np.mean([columns[f"{scheduler}|{mean}"] for columns in some for mean in MEANS])
        schedulers[scheduler] = (float(area), float(polls))
    return OtherRow(
        name,
        float(np.mean([columns["n"][0] for columns in some])),
        len(some),
        int(sum(columns["optimal"][0] for columns in some)),
        schedulers,
        sum(bool(columns[ICO][0] < np.mean(columns["fifo"])) for columns in some),
    )


def _row(
    family: str, heuristic: str, through: str, v: FloatArray, y: FloatArray
) -> Iterator[FitRow]:
    fit: Fit | None = fitted(v, y)
    if fit is not None:
        per_vertex = fitted(v, y / v)
        b = per_vertex.b if per_vertex is not None else float("nan")
        yield FitRow(family, heuristic, through, fit.points, fit.a, fit.b, fit.margin, b)
