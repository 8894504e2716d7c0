"""How much memory a task needs, by what tasks of its category had; see decision 034."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.history.levels import robust_line
from foreplan.history.records import History, Level, Measured, MeasuredRow
from foreplan.quantities import data_size, many

SMALL = 128e6  # bytes; what is only known to be no more than this is taken for it
ENOUGH, DIFFERENT = 5, 3  # records with a size, and sizes among them, before a line is tried
BETTER = 0.7  # the spread that a line must leave, at most, of the one without
SPIKE = 2.0  # times the second largest: what one of many had alone is not what the others need
MANY = 5  # records of which one may be a spike
HIGH = 0.95  # the quantile of many records
MARGIN, FIRST_MARGIN, SPREAD_MARGIN = 0.05, 0.5, 0.7  # over it: always, by one record, by spread
FARTHEST = 2.0  # times the largest size seen: beyond, a line is not believed to go on


class Need(NamedTuple):
    """What a task is expected to need."""

    memory: float  # bytes, with a margin
    records: int  # that it rests on
    most: float  # the most memory that one of them had
    cores: float | None = None  # that they kept busy, as far as that was measured


@dataclass(frozen=True, eq=False)
class MemoryModel:
    """What the records of a category say of memory: a constant or a line, and a factor over it."""

    records: int
    most: float
    start: float
    slope: float  # 0: the size of the inputs tells nothing
    largest: float  # the largest size that was seen
    factor: float
    cores: float | None = None

    @staticmethod
    def fit(memory: FloatArray, size: FloatArray, cores: float | None = None) -> MemoryModel | None:
        """The model of records, of which the size may be NaN; None if there are none."""
        n = len(memory)
        if n == 0:
            return None
        start, slope = float(np.median(memory)), 0.0
        sized = ~np.isnan(size)
        line = _line(memory[sized], size[sized]) if sized.sum() == n else None
        if line is not None:
            start, slope = line
        expected = np.maximum(start + slope * np.where(sized, size, 0.0), 1.0)
        factor = high(memory / expected)
        largest = float(size[sized].max()) if sized.any() else 0.0
        return MemoryModel(n, float(memory.max()), start, slope, largest, factor, cores)

    def need(self, size: float = math.nan) -> Need:
        """What a task with inputs of this size needs; where that is unknown, as the largest."""
        known = size if math.isfinite(size) else self.largest
        grown = self.start + self.slope * min(known, FARTHEST * self.largest)
        return Need(self.factor * max(grown, 1.0), self.records, self.most, self.cores)


def high(ratios: FloatArray) -> float:
    """A high quantile of what records had for each byte that was expected, with a margin.

    One spike among many is let be. The fewer records there are and the more they differ, the more
    is added.
    """
    n, ordered = len(ratios), np.sort(ratios)
    if n >= MANY and ordered[-1] > SPIKE * ordered[-2]:
        ordered = ordered[:-1]
    spread = float(np.std(np.log(np.maximum(ordered, 1e-9))))
    margin = MARGIN + FIRST_MARGIN / n + SPREAD_MARGIN * spread
    return float(np.quantile(ordered, HIGH, method="higher")) * (1 + margin)


def _line(memory: FloatArray, size: FloatArray) -> tuple[float, float] | None:
    """Start and slope, if memory plainly grows with the size of the inputs."""
    if len(memory) < ENOUGH or len(np.unique(size)) < DIFFERENT:
        return None
    line = robust_line(size, memory)
    if line is None:
        return None
    expected = line[0] + line[1] * size
    flat = np.median(np.abs(memory - np.median(memory)))
    return line if np.median(np.abs(memory - expected)) <= BETTER * flat else None


WORTH_SAYING = 100e6  # bytes; who needs less need not ask
FAR_OFF = 1.2  # times what would do: so much more is worth saying


@dataclass(frozen=True)
class Suggestion:
    """What the tasks of a category had of memory, what they asked for, and what would do."""

    category: str
    runs: int  # of tasks that it rests on
    most: float  # bytes
    enough: float  # bytes, in figures that a workflow file can have
    asked: float | None = None
    by_size: bool = False  # it is what the largest inputs needed

    @property
    def matters(self) -> bool:
        """Whether there is anything to say: of little memory, only if much was asked for."""
        return max(self.most, self.asked or 0.0) >= WORTH_SAYING

    @property
    def words(self) -> str:
        """One line."""
        used = f"used {data_size(self.most)} at most in {many(self.runs, 'run')}"
        would_do = f"memory: {_written(self.enough)} would do"
        would_do += " (for the largest inputs)" if self.by_size else ""
        if self.asked is None:
            return f"{self.category}: {used}: {would_do}"
        text = f"{self.category}: asked {data_size(self.asked)}, {used}"
        fits = self.most <= self.asked <= FAR_OFF * self.enough
        return text if fits else f"{text}: {would_do}"


def suggestion(category: str, model: MemoryModel, asked: float | None = None) -> Suggestion:
    """What could be asked for; rounded up to two figures."""
    need = model.need()
    step = 10.0 ** (math.floor(math.log10(max(need.memory, 1e6))) - 1)
    enough = math.ceil(need.memory / step - 1e-9) * step
    return Suggestion(category, need.records, need.most, enough, asked, model.slope > 0)


def _written(size: float) -> str:
    """Bytes as a workflow file has them: 3GB."""
    return data_size(size).replace(" ", "")


class MemoryNeeds:
    """What is known of the memory of a workflow's tasks, the nearest records first."""

    def __init__(self, records: History) -> None:
        self._by_row: dict[MeasuredRow, list[Measured]] = {}
        for row, measured in records.by_row():
            self._by_row.setdefault(row, []).extend(measured)
        self._models: dict[MeasuredRow, MemoryModel | None] = {}

    def need(self, category: str, command: str = "", size: float = math.nan) -> Need | None:
        """What a task of this category needs; None if nothing is known."""
        for row in self._rows(category, command):
            if row not in self._models:
                self._models[row] = model_of(self._by_row.get(row, ()))
            model = self._models[row]
            if model is not None:
                return model.need(size)
        return None

    def _rows(self, category: str, command: str) -> Sequence[MeasuredRow]:
        far = [MeasuredRow(Level.FAR, category, command)] if command else []
        near = [MeasuredRow(level, category) for level in (Level.OWN, Level.NEAR)]
        return [*near, *far]


def model_of(records: Iterable[Measured]) -> MemoryModel | None:
    """The model of these records, as far as they tell of memory."""
    listed = list(records)
    known = [r for r in listed if not math.isnan(r.memory) and (not r.at_most or r.memory <= SMALL)]
    memory = np.array([r.memory for r in known], dtype=np.float64)
    size = np.array([r.size for r in known], dtype=np.float64)
    return MemoryModel.fit(memory, size, cores_of(listed))


def cores_of(records: Iterable[Measured]) -> float | None:
    """How many cores these tasks kept busy, all in all; None if nobody has measured it."""
    known = [r for r in records if not math.isnan(r.cpu) and r.seconds > 0]
    seconds = math.fsum(r.seconds for r in known)
    return math.fsum(r.cpu for r in known) / seconds if seconds > 0 else None
