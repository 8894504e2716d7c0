"""What was measured: records of tasks and transfers, and a history of them in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from weft.arrays import FloatArray, IntArray, sealed
from weft.history.origins import Level, Origin, Row

NEWEST = 25  # so many records of a category on a machine count; a change is believed after half


@dataclass(frozen=True)
class TaskRecord:
    """A task that finished: when (seconds since 1970), what, where, how long, on how much."""

    at: float
    run: str
    workflow: str
    category: str
    machine: str
    seconds: float
    size: float = math.nan  # bytes of input; NaN where it is not known
    directory: str = ""  # of the data; empty where it was not kept
    command: str = ""  # a mark of it, see `commands_of`


@dataclass(frozen=True)
class TransferRecord:
    """An item that arrived: when, between which machines, how many bytes, how long."""

    at: float
    run: str
    source: str
    target: str
    size: float
    seconds: float


class Measured(NamedTuple):
    """One measurement in a history; in this order they are sorted."""

    at: float
    seconds: float
    size: float
    run: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """The records of tasks that count, as flat arrays sorted by row, machine and age."""

    rows: tuple[Row, ...]
    machines: tuple[str, ...]
    category: IntArray  # the row of every record
    machine: IntArray
    seconds: FloatArray
    size: FloatArray

    @property
    def categories(self) -> tuple[str, ...]:
        """The category of every row."""
        return tuple(row.category for row in self.rows)


class History:
    """Records in memory: what a predictor looks at. It knows no database and can go on learning.

    They are told apart by how near they are to the origin of who asks; without one all are its own.
    """

    def __init__(
        self,
        tasks: Iterable[TaskRecord] = (),
        transfers: Iterable[TransferRecord] = (),
        origin: Origin | None = None,
    ) -> None:
        self._tasks: dict[tuple[Row, str], list[Measured]] = {}
        self._transfers: dict[tuple[str, str], list[Measured]] = {}
        self._latest = 0.0
        self._table: Table | None = None
        for t in tasks:
            row = Row(Level.OWN, t.category)
            if origin is not None:
                row = origin.row(t.category, t.command, t.directory, t.workflow)
            self._note(row, t.machine, t.seconds, t.size, t.at, t.run)
        for move in transfers:
            self.observe_transfer(move.source, move.target, move.size, move.seconds, move.at)

    def observe(
        self,
        category: str,
        machine: str,
        seconds: float,
        size: float = math.nan,
        at: float | None = None,
        run: str = "",
    ) -> None:
        """A task of one's own took so long; without `at` it is newer than all before."""
        self._note(Row(Level.OWN, category), machine, seconds, size, at, run)

    def _note(
        self,
        row: Row,
        machine: str,
        seconds: float,
        size: float,
        at: float | None,
        run: str = "",
    ) -> None:
        if is_measured(seconds):
            known = self._tasks.setdefault((row, machine), [])
            known.append(Measured(self._age(at), seconds, _bytes(size), run))
            _prune(known)
            self._table = None

    def observe_transfer(
        self, source: str, target: str, size: float, seconds: float, at: float | None = None
    ) -> None:
        """A transfer between two machines took so long."""
        if is_measured(seconds) and is_measured(size):
            known = self._transfers.setdefault((source, target), [])
            known.append(Measured(self._age(at), seconds, _bytes(size)))
            _prune(known)

    def between(self, source: str, target: str) -> list[Measured]:
        """The transfers from one machine to the other that count."""
        return newest(self._transfers.get((source, target), []))

    def has_run(self, run: str) -> bool:
        """Whether anything that this run measured is here."""
        return any(record.run == run for records in self._tasks.values() for record in records)

    def n_runs(self, rows: Iterable[Row]) -> int:
        """How many runs the records of these rows come from."""
        wanted, runs = set(rows), set[str]()
        for (row, _), records in self._tasks.items():
            if row in wanted:
                runs.update(record.run for record in newest(records))
        return len(runs)

    def table(self) -> Table:
        """The records of tasks that count."""
        if self._table is None:
            self._table = _table(self._tasks)
        return self._table

    def _age(self, at: float | None) -> float:
        if at is None or not math.isfinite(at):
            at = math.nextafter(self._latest, math.inf)
        self._latest = max(self._latest, at)
        return at


def is_measured(value: float) -> bool:
    """Whether a clock or a scale can have given this."""
    return math.isfinite(value) and value >= 0


def _bytes(size: float) -> float:
    """Whole bytes: sizes that differ by less do not differ."""
    return float(round(size)) if is_measured(size) else math.nan


def newest(records: list[Measured]) -> list[Measured]:
    """The newest records in order, with all that are as old as the last of them."""
    ordered = sorted(records, key=_order) if len(records) > 1 else records
    if len(ordered) <= NEWEST:
        return ordered
    oldest = ordered[-NEWEST].at
    return [record for record in ordered if record.at >= oldest]


def _order(record: Measured) -> tuple[float, float, float]:
    # NaN has no place in an order
    return record.at, record.seconds, -1.0 if math.isnan(record.size) else record.size


def _prune(records: list[Measured]) -> None:
    # now and then, so that a history that learns for days does not grow for days
    if len(records) % (4 * NEWEST) == 0:
        records[:] = newest(records)


def _table(cells: dict[tuple[Row, str], list[Measured]]) -> Table:
    rows = tuple(sorted({row for row, _ in cells}))
    machines = tuple(sorted({machine for _, machine in cells}))
    lines = {row: index for index, row in enumerate(rows)}
    columns = {name: index for index, name in enumerate(machines)}
    ordered = sorted((lines[r], columns[m], newest(records)) for (r, m), records in cells.items())
    counts = [len(records) for _, _, records in ordered]
    measured = [record for _, _, records in ordered for record in records]

    def spread(index: int) -> IntArray:
        of_cell = np.array([cell[index] for cell in ordered], dtype=np.int32)
        return sealed(np.repeat(of_cell, np.array(counts, dtype=np.int64)))

    return Table(
        rows=rows,
        machines=machines,
        category=spread(0),
        machine=spread(1),
        seconds=sealed(np.array([r.seconds for r in measured], dtype=np.float64)),
        size=sealed(np.array([r.size for r in measured], dtype=np.float64)),
    )
