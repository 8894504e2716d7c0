"""What was measured, where that was, and how near to who asks; a history of it in memory."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from os import PathLike
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import numpy as np

from foreplan.arrays import FloatArray, IntArray, sealed
from foreplan.files import printable
from foreplan.model import Workflow
from foreplan.model.call import Calls, bare, qualified_name

_WORDS = re.compile(r"([^\w./-]+)")  # what stands between words of a command, kept by split
_FILE = "\0"  # in the place of a file's name: no command has it


class Level(IntEnum):
    """How near a measurement is to who asks, the nearest first."""

    OWN = 0  # the same workflow in the same directory
    NEAR = 1  # another workflow of that directory
    FAR = 2  # another directory: there the same name need not mean the same work


class MeasuredRow(NamedTuple):
    """Measurements of one kind: of a category, as near as this.

    Far ones are marked by their command: else one project's `align` would pass for another's.
    """

    level: Level
    category: str
    mark: str = ""


@dataclass(frozen=True)
class Origin:
    """Who measures or asks: a workflow by its name, in a data directory."""

    directory: str
    workflow: str

    @staticmethod
    def of(workflow: Workflow, directory: str | PathLike[str]) -> Origin:
        """The origin of what a workflow does in a directory, whatever way leads there."""
        return Origin(printable(Path(directory).resolve()), printable(workflow.name))

    def row(self, category: str, command: str, directory: str, workflow: str) -> MeasuredRow:
        """The row of a measurement that has this origin, as this one sees it."""
        if directory != self.directory:
            return MeasuredRow(Level.FAR, category, command)
        return MeasuredRow(Level.OWN if workflow == self.workflow else Level.NEAR, category)


def categories_of(workflow: Workflow) -> tuple[str, ...]:
    """The category of every task under which history knows it; its own name if it has none."""
    return tuple(
        printable(workflow.spec(task).category or f"{workflow.name}/{name}")
        for task, name in enumerate(workflow.task_names)
    )


def commands_of(workflow: Workflow, calls: Calls | None = None) -> tuple[str, ...]:
    """The mark of every task's command, by which it is known in other directories; empty if none.

    A function is known by its module, name and code: many projects have a `load` in a `main.py`. In
    a command the names of the task's own files do not count: it is the same command for others.
    """
    found = []
    for task in range(workflow.n_tasks):
        call, text = None if calls is None else calls[task], workflow.spec(task).run
        if call is not None:
            found.append(_digest(qualified_name(call.function) + _code(call.function)))
        else:
            found.append("" if text is None else _digest(_template(text, _files(workflow, task))))
    return tuple(found)


def _code(function: object) -> str:
    """What a function does, as far as its own code tells, but for its numbers and texts."""
    code = getattr(bare(function), "__code__", None)
    return "" if code is None else "".join(_steps(code))


def _steps(code: CodeType) -> Iterator[str]:
    yield f"\0{code.co_code.hex()} {code.co_names}"
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _steps(inner)


def _files(workflow: Workflow, task: int) -> set[str | None]:
    names = workflow.item_names
    if names is None:
        return set()
    read = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]]
    written = workflow.out_item[workflow.out_ptr[task] : workflow.out_ptr[task + 1]]
    return {names[item] for item in (*read.tolist(), *written.tolist())}


def _template(command: str, files: set[str | None]) -> str:
    """The command with a sign in the place of every word that names one of the files."""
    return "".join(_FILE if word in files else word for word in _WORDS.split(command.strip()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


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
    memory: float = math.nan  # the most that it had, in bytes; NaN here and below: not known
    at_most: bool = False  # that is only known to be enough
    cpu: float = math.nan  # seconds of processors
    read: float = math.nan  # bytes
    written: float = math.nan
    asked: float = math.nan  # bytes of memory that it was given


@dataclass(frozen=True)
class FailureRecord:
    """An attempt that failed through its own fault: why, and what it had until then."""

    at: float
    run: str
    workflow: str
    category: str
    machine: str
    cause: str  # see foreplan.model.causes
    seconds: float = math.nan  # NaN here and below: not known
    size: float = math.nan
    directory: str = ""
    command: str = ""
    memory: float = math.nan
    cpu: float = math.nan
    asked: float = math.nan


@dataclass(frozen=True)
class TransferRecord:
    """An item that arrived: when, between which machines, how many bytes, how long."""

    at: float
    run: str
    source: str
    target: str
    size: float
    seconds: float


NOTHING = math.nan, False, math.nan  # is known of what a task has used


class Measured(NamedTuple):
    """One measurement in a history; in this order they are sorted."""

    at: float
    seconds: float
    size: float
    run: str = ""
    memory: float = math.nan  # the most that it had, in bytes
    at_most: bool = False  # that is only known to be enough
    cpu: float = math.nan  # seconds of processors


@dataclass(frozen=True, eq=False)
class RecordTable:
    """The records of tasks that count, as flat arrays sorted by row, machine and age."""

    rows: tuple[MeasuredRow, ...]
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
        self._tasks: dict[tuple[MeasuredRow, str], list[Measured]] = {}
        self._transfers: dict[tuple[str, str], list[Measured]] = {}
        # by category and command, the most memory that was not enough
        self.ran_short: dict[tuple[str, str], float] = {}
        self._latest = 0.0
        self._table: RecordTable | None = None
        for t in tasks:
            row = None
            if origin is not None:
                row = origin.row(t.category, t.command, t.directory, t.workflow)
            used = t.memory, t.at_most, t.cpu
            self.observe(t.category, t.machine, t.seconds, t.size, t.at, t.run, row, used)
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
        row: MeasuredRow | None = None,
        used: tuple[float, bool, float] = NOTHING,
    ) -> None:
        """A task took so long, one's own unless a row is given; without `at` it is the newest.

        `used` is memory, whether that is only known to be enough, and seconds of processors.
        """
        if is_measured(seconds):
            row = row or MeasuredRow(Level.OWN, category)
            known = self._tasks.setdefault((row, machine), [])
            known.append(Measured(self._stamp(at), seconds, _bytes(size), run, *used))
            _prune(known)
            self._table = None

    def observe_transfer(
        self, source: str, target: str, size: float, seconds: float, at: float | None = None
    ) -> None:
        """A transfer between two machines took so long."""
        if is_measured(seconds) and is_measured(size):
            known = self._transfers.setdefault((source, target), [])
            known.append(Measured(self._stamp(at), seconds, _bytes(size)))
            _prune(known)

    def links(self) -> set[tuple[str, str]]:
        """The machines between which anything went, each pair in the order of their names."""
        return {(min(pair), max(pair)) for pair in self._transfers}

    def between(self, source: str, target: str) -> list[Measured]:
        """The transfers from one machine to the other that count."""
        return newest(self._transfers.get((source, target), []))

    def of(self, row: MeasuredRow, machine: str) -> list[Measured]:
        """The records of a row on a machine that count."""
        return newest(self._tasks.get((row, machine), []))

    def by_row(self) -> Iterator[tuple[MeasuredRow, list[Measured]]]:
        """The records of tasks that count, a row and a machine at a time."""
        for (row, _), records in sorted(self._tasks.items(), key=lambda cell: cell[0]):
            yield row, newest(records)

    def has_run(self, run: str) -> bool:
        """Whether anything that this run measured is here."""
        return any(record.run == run for records in self._tasks.values() for record in records)

    def n_runs(self, rows: Iterable[MeasuredRow]) -> int:
        """How many runs the records of these rows come from."""
        wanted, runs = set(rows), set[str]()
        for (row, _), records in self._tasks.items():
            if row in wanted:
                runs.update(record.run for record in newest(records))
        return len(runs)

    def table(self) -> RecordTable:
        """The records of tasks that count."""
        if self._table is None:
            self._table = _table(self._tasks)
        return self._table

    def _stamp(self, at: float | None) -> float:
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


def _table(cells: dict[tuple[MeasuredRow, str], list[Measured]]) -> RecordTable:
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

    return RecordTable(
        rows=rows,
        machines=machines,
        category=spread(0),
        machine=spread(1),
        seconds=sealed(np.array([r.seconds for r in measured], dtype=np.float64)),
        size=sealed(np.array([r.size for r in measured], dtype=np.float64)),
    )
