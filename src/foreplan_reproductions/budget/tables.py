"""The tables of the budget experiment: average normalised differences, and runs over budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from foreplan.arrays import FloatArray
from foreplan_reproductions.budget.cases import FAMILIES, FAMILY_NAMES, KS, STARTS
from foreplan_reproductions.budget.runs import (
    FAITHFUL,
    GAINS,
    LOSSES,
    MAKESPAN,
    MOVED,
    SECONDS,
    VARIANTS,
    Columns,
    careful,
    ends_of,
)
from foreplan_reproductions.budget.units import (
    BESIDE,
    FIGURES,
    READINGS,
    RUNS,
    SWEEP,
    SWEEP_KS,
    Settings,
    units,
)
from foreplan_reproductions.reports import Figure, mean_of

AND = "and"  # the average normalised difference, equation 7
EVERY = tuple(FAMILIES)
SAME = 1e-9  # of the metric: what differs by less is rounding


@dataclass(frozen=True)
class Row:
    """One variant on one type of DAGs at one budget: the AND, tasks moved, median time."""

    dag: str
    variant: str
    k: float
    dags: int
    value: float
    margin: float
    median: float
    moved: float


@dataclass(frozen=True)
class TimeRow:
    """The median time of a plan."""

    dag: str
    variant: str
    k: float
    plans: int
    milliseconds: float


@dataclass(frozen=True)
class Careful:
    """By how much a default's metric is above the faithful variant's, DAG by DAG."""

    variant: str
    dag: str
    k: float
    faithful: float
    careful: float
    difference: float
    margin: float
    better: int
    same: int
    worse: int
    verdict: str


@dataclass(frozen=True)
class SweepRow:
    """One variant under one reading of what the paper leaves open."""

    reading: str
    variant: str
    k: float
    dags: int
    degenerate: int
    value: float
    margin: float
    median: float


@dataclass
class Part:
    """The plans of one part: by variant, type and metric an array of DAGs x budgets."""

    ks: tuple[float, ...]
    lists: dict[tuple[str, str, str], list[list[float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    dags: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    degenerate: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    plans: int = 0
    over: int = 0

    def add(self, family: str, columns: Columns) -> None:
        """The figures of one DAG."""
        self.dags[family] += 1
        self.over += int(columns["over"][0])
        for start in STARTS:
            self.degenerate[family, start] += ends_of(columns, start).degenerate
        for name, variant in VARIANTS.items():
            if f"{name}|{MAKESPAN}" in columns:
                ends, found = ends_of(columns, variant.start), columns[f"{name}|{MAKESPAN}"]
                values = ends.normalised(np.array(found))
                self.lists[name, family, AND].append(values.tolist())
                for metric in (SECONDS, MOVED):
                    self.lists[name, family, metric].append(columns[f"{name}|{metric}"])
                self.plans += len(found)

    def values(
        self,
        variant: str,
        families: Iterable[str] = EVERY,
        ks: Sequence[float] = (),
        metric: str = AND,
    ) -> FloatArray:
        """DAGs x budgets; of all budgets, if none are named."""
        columns = [self.ks.index(k) for k in ks or self.ks]
        rows = [row for family in families for row in self.lists.get((variant, family, metric), [])]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.ks))[:, columns]

    def mean(
        self, variant: str, families: Iterable[str] = EVERY, ks: Sequence[float] = ()
    ) -> Figure:
        """The AND; of several budgets, their mean."""
        return mean_of(self.values(variant, families, ks).mean(axis=1))

    def ahead(
        self, one: str, other: str, families: Iterable[str] = EVERY, ks: Sequence[float] = ()
    ) -> Figure:
        """By how much the AND of one is above another's under the same budgets, DAG by DAG."""
        families = tuple(families)
        difference = self.values(one, families, ks) - self.values(other, families, ks)
        return mean_of(difference.mean(axis=1))

    def rows(self, variants: Sequence[str]) -> Iterator[Row]:
        """Figures 3, 4 and 5."""
        for family in EVERY:
            for name in variants:
                for k in KS:
                    values = self.values(name, (family,), (k,))[:, 0]
                    moved = self.values(name, (family,), (k,), MOVED)
                    figure = mean_of(values)
                    yield Row(
                        FAMILY_NAMES[family], name, k, figure.graphs, figure.value, figure.margin,
                        float(np.median(values)), float(moved.mean()),
                    )  # fmt: skip

    def seconds(self, variant: str, k: float, families: Iterable[str] = ("fft",)) -> float:
        """The median time of a plan."""
        return float(np.median(self.values(variant, families, (k,), SECONDS)))


@dataclass(frozen=True)
class Tables:
    """Everything that was measured."""

    figures: Part  # on related machines
    beside: Part  # on unrelated ones
    sweep: dict[str, Part]
    runs: list[Columns]

    def times(self) -> Iterator[TimeRow]:
        """Figure 6, and the same for the other types."""
        for family in EVERY:
            for name in VARIANTS:
                for k in KS:
                    milliseconds = 1000 * self.figures.seconds(name, k, (family,))
                    plans = len(self.figures.values(name, (family,), (k,)))
                    yield TimeRow(FAMILY_NAMES[family], name, k, plans, milliseconds)

    def careful(self) -> Iterator[Careful]:
        """The defaults against the faithful variants, cell by cell."""
        for name in FAITHFUL:
            for family in EVERY:
                for k in KS:
                    yield _compared(self.figures, name, family, k)

    def sweep_rows(self) -> Iterator[SweepRow]:
        """What the readings do to the ANDs."""
        for reading, part in self.sweep.items():
            degenerate = sum(part.degenerate[family, "heft"] for family in EVERY)
            for name in (*LOSSES, *GAINS):
                for k in part.ks:
                    values = part.values(name, EVERY, (k,))[:, 0]
                    figure = mean_of(values)
                    median = float(np.median(values)) if len(values) else np.nan
                    yield SweepRow(
                        reading, name, k, figure.graphs, degenerate, figure.value, figure.margin,
                        median,
                    )  # fmt: skip


def _compared(part: Part, name: str, family: str, k: float) -> Careful:
    letter, ours = (part.values(v, (family,), (k,))[:, 0] for v in (name, careful(name)))
    difference = ours - letter
    figure = mean_of(difference)
    better, worse = (int(np.count_nonzero(s * difference > SAME)) for s in (1, -1))
    verdict = "better" if figure.above else "worse" if figure.below else "alike"
    return Careful(
        name, FAMILY_NAMES[family], k, float(letter.mean()), float(ours.mean()), figure.value,
        figure.margin, better, len(difference) - better - worse, worse, verdict,
    )  # fmt: skip


def tables(settings: Settings, done: Mapping[int, Columns]) -> Tables:
    """The figures of all units, by part."""
    measured = Tables(Part(KS), Part(KS), {name: Part(SWEEP_KS) for name in READINGS}, [])
    for unit in units(settings):
        columns = done[unit.number]
        if unit.part == FIGURES:
            measured.figures.add(unit.dag.family, columns)
        elif unit.part == BESIDE:
            measured.beside.add(unit.dag.family, columns)
        elif unit.part == SWEEP:
            measured.sweep[unit.name].add(unit.dag.family, columns)
        elif unit.part == RUNS:
            measured.runs.append(columns)
    return measured
