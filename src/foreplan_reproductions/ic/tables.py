"""The tables of the IC experiments: what was played, by dag, and what follows for families."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.comparison import t_quantile
from foreplan_reproductions.ic.cases import FAMILIAR, FFT, WORKFLOW, workflow_files
from foreplan_reproductions.ic.plays import (
    HEURISTICS,
    ICO,
    KNOWN,
    MEANS,
    MERGED,
    SINKS_LAST,
    Columns,
)
from foreplan_reproductions.ic.units import (
    AREA,
    EVERY,
    OTHERS,
    PHASES,
    READINGS,
    VOLUNTEERS,
    Settings,
    units,
)
from foreplan_reproductions.ic.volunteers import STRATEGIES, Volunteers
from foreplan_reproductions.reports import Figure, mean_of

LOWEST, HIGHEST = -2.0, 8.0  # the exponents that are tried
GRID = 401
ROUNDS = 80  # of the golden section


@dataclass(frozen=True)
class Fit:
    """The curve a v^b that is nearest to some points, and half the 95% interval of b."""

    a: float
    b: float
    margin: float
    points: int


def fitted(v: FloatArray, y: FloatArray) -> Fit | None:
    """By least squares, not of logarithms: what Levenberg and Marquardt's method finds.

    For every b the best a is known, so that only b is searched for. None if there is nothing to
    fit: fewer than two sizes, or nothing above 0.
    """
    if len(np.unique(v)) < 2 or not (y > 0).any():
        return None
    scale = float(v.max())
    x = v / scale

    def off(b: float) -> float:
        return float(((y - _factor(x, y, b) * x**b) ** 2).sum())

    b = _least(off)
    factor = _factor(x, y, b)
    return Fit(factor / scale**b, b, _margin(x, y, factor, b), len(v))


def _factor(x: FloatArray, y: FloatArray, b: float) -> float:
    powers = x**b
    return float((y * powers).sum() / (powers * powers).sum())


def _least(off: Callable[[float], float]) -> float:
    """Where a function is least: the best of a grid, then a golden section around it."""
    grid = np.linspace(LOWEST, HIGHEST, GRID)
    best = int(np.argmin([off(b) for b in grid.tolist()]))
    low, high = float(grid[max(0, best - 1)]), float(grid[min(GRID - 1, best + 1)])
    ratio = (sqrt(5) - 1) / 2
    for _ in range(ROUNDS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if off(left) <= off(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _margin(x: FloatArray, y: FloatArray, factor: float, b: float) -> float:
    """Half the interval of b, from the curvature at the best fit; NaN for two points."""
    free = len(x) - 2
    if free < 1:
        return float("nan")
    powers = x**b
    slopes = np.column_stack([powers, factor * powers * np.log(x)])
    variance = float(((y - factor * powers) ** 2).sum()) / free
    spread = np.linalg.pinv(slopes.T @ slopes)[1, 1]
    return t_quantile(free) * sqrt(max(0.0, variance * float(spread)))


def lower_hull(v: FloatArray, y: FloatArray) -> list[int]:
    """The points on the lower envelope of the convex hull, from the least v to the greatest."""
    hull: list[int] = []
    for k in np.lexsort((y, v)).tolist():
        if hull and v[hull[-1]] == v[k]:
            continue  # above the lowest point of this size
        while len(hull) > 1 and _turns_down(v, y, hull[-2], hull[-1], k):
            hull.pop()
        hull.append(k)
    return hull


def _turns_down(v: FloatArray, y: FloatArray, one: int, two: int, three: int) -> bool:
    """Whether the middle point is on or above the line between the others."""
    rise = (v[two] - v[one]) * (y[three] - y[one])
    return bool(rise <= (y[two] - y[one]) * (v[three] - v[one]))


def ratio_of(one: FloatArray, other: FloatArray) -> Figure:
    """The ratio of two means over the same plays, with half its 95% interval."""
    count, base = len(one), float(other.mean())
    ratio = float(one.mean()) / base
    if count < 2:
        return Figure(ratio, float("nan"), count)
    rest = float((one - ratio * other).std(ddof=1))
    return Figure(ratio, t_quantile(count - 1) * rest / sqrt(count) / base, count)


FITTED, HULL = "all dags", "lower hull"
PER_LEVEL = "all dags, per level"  # a reading of Figure 4: the difference over the FFT's levels


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
    real: bool  # of a file

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


@dataclass(frozen=True)
class ReadingRow:
    """How far a heuristic is behind on compositions that merge at least such a share, in %."""

    family: str
    merged: float
    heuristic: str
    behind: float
    margin: float
    sources: float
    dags: int


@dataclass
class Tables:
    """All that was measured."""

    areas: list[AreaRow] = field(default_factory=list)
    phases: list[PhaseRow] = field(default_factory=list)
    every: dict[str, Columns] = field(default_factory=dict)
    others: list[OtherRow] = field(default_factory=list)
    runs: list[RunRow] = field(default_factory=list)
    readings: list[ReadingRow] = field(default_factory=list)

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
                if family == FFT:
                    v, y = self.points(family, heuristic)
                    yield from _row(family, heuristic, PER_LEVEL, v, y / levels(v))
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
    others: dict[tuple[str, bool], list[Columns]] = {}
    readings: dict[str, list[Columns]] = {}
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
            real = unit.case.family == WORKFLOW
            name = f"{unit.case.family}, {unit.case.size}"
            if real:
                name = workflow_files(settings.workflows)[unit.case.number].stem
            others.setdefault((name, real), []).append(columns)
        elif unit.part == READINGS:
            readings.setdefault(unit.case.family, []).append(columns)
    found.others = [other_row(name, real, some) for (name, real), some in others.items()]
    found.readings = [row for name, some in readings.items() for row in reading_rows(name, some)]
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


def other_row(name: str, real: bool, some: list[Columns]) -> OtherRow:
    """The means over some dags of the same name."""
    schedulers = {}
    for scheduler in (ICO, *KNOWN):
        area = np.mean([np.mean(columns[scheduler]) / columns["n"][0] for columns in some])
        polls = np.mean([columns[f"{scheduler}|{mean}"] for columns in some for mean in MEANS])
        schedulers[scheduler] = (float(area), float(polls))
    return OtherRow(
        name,
        float(np.mean([columns["n"][0] for columns in some])),
        len(some),
        int(sum(columns["optimal"][0] for columns in some)),
        schedulers,
        real,
    )


def reading_rows(family: str, some: list[Columns]) -> Iterator[ReadingRow]:
    """The means over some compositions."""
    for merged in MERGED:
        sources = float(np.mean([columns[f"sources|{merged}"] for columns in some]))
        for name in (*HEURISTICS, SINKS_LAST):
            behind = mean_of(np.array([columns[f"{name}|{merged}"][0] for columns in some]))
            row = behind.value, behind.margin, sources, behind.graphs
            yield ReadingRow(family, merged, name, *row)


def levels(vertices: FloatArray) -> FloatArray:
    """How many levels FFTs of so many vertices have."""
    rows = np.arange(21)
    nearest = np.abs(((rows + 1) << rows) - vertices[:, None]).argmin(axis=1)
    found: FloatArray = (nearest + 1).astype(np.float64)
    return found


def _row(
    family: str, heuristic: str, through: str, v: FloatArray, y: FloatArray
) -> Iterator[FitRow]:
    fit: Fit | None = fitted(v, y)
    if fit is not None:
        per_vertex = fitted(v, y / v)
        b = per_vertex.b if per_vertex is not None else float("nan")
        yield FitRow(family, heuristic, through, fit.points, fit.a, fit.b, fit.margin, b)


USUAL = ""  # not a sweep


@dataclass(frozen=True)
class RunRow:
    """One run: its makespan in spans, and the attempts that were lost."""

    workflow: str
    tasks: int
    world: int
    sweep: str
    processors: int
    churn: float
    error: float
    seen: bool
    strategy: str
    makespan: float
    lost: int

    @property
    def point(self) -> tuple[str, int, int, float, bool]:
        """What two runs in the same world have in common; estimates do not change a world."""
        return self.workflow, self.world, self.processors, self.churn, self.seen


def runs_of(settings: Settings, done: Mapping[int, Columns]) -> Iterator[RunRow]:
    """All runs among volunteers."""
    for unit in units(settings):
        if unit.part == VOLUNTEERS and unit.volunteers is not None:
            yield from _rows(unit.volunteers, unit.sweep, done[unit.number])


def _rows(case: Volunteers, sweep: str, columns: Columns) -> Iterator[RunRow]:
    for name in STRATEGIES:
        if f"{name}|makespan" in columns:
            yield RunRow(
                case.workflow, int(columns["n"][0]), case.world, sweep, case.processors,
                case.churn, case.error, case.seen, name, columns[f"{name}|makespan"][0],
                int(columns[f"{name}|lost"][0]),
            )  # fmt: skip


def usual(runs: Sequence[RunRow], workflow: str = "") -> list[RunRow]:
    """The runs on the usual platform, of one workflow or of all."""
    return [r for r in runs if r.sweep == USUAL and workflow in ("", r.workflow)]


def workflows(runs: Sequence[RunRow]) -> list[str]:
    """The workflows, as they were run."""
    return list(dict.fromkeys(run.workflow for run in runs))


def against(runs: Sequence[RunRow], strategy: str, base: Sequence[RunRow] | None = None) -> Figure:
    """By how much the mean makespan is above that of `ico` in the same worlds, in %.

    Of several workflows each counts alike, however many worlds it has. `base` are the runs among
    which that of `ico` is found: all of them, if it is not given. The mean of the worlds' ratios
    would be above 1 for two strategies that are alike: a short run counts more as the divisor.
    """
    mine = {run.point: run.makespan for run in base or runs if run.strategy == ICO}
    pairs: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        if run.strategy == strategy and run.point in mine:
            pairs.setdefault(run.workflow, []).append((run.makespan, mine[run.point]))
    if not pairs:
        return Figure(np.nan, np.nan, 0)
    count, variance, means = sum(map(len, pairs.values())), 0.0, []
    for some in pairs.values():
        theirs, ours = np.array(some).T
        ratio = theirs.mean() / ours.mean()
        means.append(100 * (ratio - 1))
        rest = (theirs - ratio * ours).var(ddof=1) if len(some) > 1 else np.nan
        variance += 100**2 * float(rest) / len(some) / ours.mean() ** 2
    free = max(1, count - len(pairs))
    margin = t_quantile(free) * sqrt(variance) / len(pairs)
    return Figure(float(np.mean(means)), margin, count)
