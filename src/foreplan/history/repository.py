"""The performance history repository: what tasks and transfers took, kept in SQLite.

Several processes may use one at a time. It holds names, times, sizes and marks of commands; no
environment and no command lines.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from foreplan.history.database import FILE, HistoryError, connect, explained, home, transaction
from foreplan.history.records import (
    NEWEST,
    FailureRecord,
    History,
    Origin,
    TaskRecord,
    TransferRecord,
    is_measured,
)
from foreplan.model.causes import OUT_OF_MEMORY

if TYPE_CHECKING:
    import sqlite3

RECENT = 20_000  # records of any category that a prediction looks at, for the machines' speeds
MOST = 100_000  # records of a workflow's own categories that it looks at
LEAST = 1  # of a category on a machine, however many of them there are

_ORIGIN = "at, run, workflow, category, machine"
TASK = f"{_ORIGIN}, seconds, size, directory, command, memory, at_most, cpu, read, written, asked"
FAILURE = f"{_ORIGIN}, cause, seconds, size, directory, command, memory, cpu, asked"
TRANSFER = "at, run, source, target, size, seconds"


# by category and command, the most memory of this directory that was not enough
_RAN_SHORT = f"""
SELECT category, coalesce(command, ''), max(max(coalesce(memory, 0), coalesce(asked, 0)))
FROM failures WHERE cause = '{OUT_OF_MEMORY}' AND directory IS :directory GROUP BY 1, 2
"""


class Repository:
    """An open performance history; a context manager that closes it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else home() / FILE
        self._connection: sqlite3.Connection = connect(self.path)

    @staticmethod
    def or_none(say: Callable[[str], None], path: Path | None = None) -> Repository | None:
        """The repository, or None for a run that goes on without; `say` hears why."""
        try:
            return Repository(path)
        except HistoryError as error:
            say(f"going on without the performance history: {error}")
            return None

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def add(
        self,
        tasks: Iterable[TaskRecord] = (),
        transfers: Iterable[TransferRecord] = (),
        failures: Iterable[FailureRecord] = (),
    ) -> None:
        """Keep all of these, or none if it fails; what no clock can have given is left out."""
        done = [_task_row(t) for t in tasks if is_measured(t.seconds) and math.isfinite(t.at)]
        moved = [
            _transfer_row(t)
            for t in transfers
            if is_measured(t.seconds) and is_measured(t.size) and math.isfinite(t.at)
        ]
        failed = [_failure_row(f) for f in failures if math.isfinite(f.at)]
        with explained(self.path), transaction(self._connection):
            for table, columns, rows in (
                ("tasks", TASK, done),
                ("transfers", TRANSFER, moved),
                ("failures", FAILURE, failed),
            ):
                values = ", ".join("?" * len(columns.split(",")))
                self._connection.executemany(
                    f"INSERT INTO {table} ({columns}) VALUES ({values})", rows
                )

    def add_new(self, tasks: Iterable[TaskRecord]) -> int:
        """Keep those that are not there yet; how many those are.

        They are known by their run, which is a mark of where they come from, and by what took how
        long where. Two that are alike are two, if they are given together.
        """
        given = [t for t in tasks if is_measured(t.seconds) and math.isfinite(t.at)]
        query = f"SELECT {TASK} FROM tasks WHERE run = ?"
        runs = {_text(task.run) for task in given}
        known = Counter(_same(row) for run in sorted(runs) for row in self._rows(query, [run]))
        new = []
        for task in given:
            if known[same := _same(_task_row(task))]:
                known[same] -= 1
            else:
                new.append(task)
        self.add(new)
        return len(new)

    def tasks(self, category: str | None = None, machine: str | None = None) -> list[TaskRecord]:
        """The records of tasks, in the order in which they were added."""
        where, values = _where({"category = ?": category, "machine = ?": machine})
        return [
            _task(row) for row in self._rows(f"SELECT {TASK} FROM tasks{where} ORDER BY id", values)
        ]

    def failures(self) -> list[FailureRecord]:
        """The records of attempts that failed, in the order in which they were added."""
        rows = self._rows(f"SELECT {FAILURE} FROM failures ORDER BY id")
        return [_failure(row) for row in rows]

    def transfers(self) -> list[TransferRecord]:
        """The records of transfers, in the order in which they were added."""
        rows = self._rows(f"SELECT {TRANSFER} FROM transfers ORDER BY id")
        return [TransferRecord(*row) for row in rows]

    def history(
        self,
        categories: Sequence[str] | None = None,
        commands: Sequence[str] | None = None,
        origin: Origin | None = None,
    ) -> History:
        """What a predictor needs for these categories, or for all: the newest of each machine.

        With an origin, the newest of each workflow that it looks at, and far away of each command.
        However large the repository is, it reads a bounded number of records.
        """
        cells = [_ALL if categories is None else _CATEGORIES]
        place = {}
        if origin is not None:
            cells, place = [_DIRECTORY, _COMMANDS], vars(origin)
        marks = commands or [""] * len(categories or ())
        wanted = list(zip(categories or (), marks, strict=True))
        with explained(self.path), self._reading(wanted):
            tasks = self._newest(cells, {name: _text(value) for name, value in place.items()})
            transfers = self._rows(
                f"SELECT {TRANSFER} FROM transfers WHERE id IN ({_LINKS.newest(NEWEST)})"
            )
            short = self._rows(_RAN_SHORT, {"directory": place.get("directory")})
        history = History(map(_task, tasks), (TransferRecord(*row) for row in transfers), origin)
        history.ran_short = {(category, command): bytes_ for category, command, bytes_ in short}
        return history

    def _newest(self, cells: Sequence[_Cells], place: dict[str, str]) -> list[tuple[Any, ...]]:
        """The newest records of every cell, and the most recent of all: those tell of machines."""
        each = [f"SELECT count(*) FROM ({kind.distinct})" for kind in cells]
        n = sum(self._rows(count, place)[0][0] for count in each)
        limit = max(LEAST, min(NEWEST, MOST // max(1, n)))
        recent = f"SELECT id FROM (SELECT id FROM tasks ORDER BY id DESC LIMIT {RECENT})"
        ids = " UNION ".join([*(kind.newest(limit) for kind in cells), recent])
        return self._rows(f"SELECT {TASK} FROM tasks WHERE id IN ({ids})", place)

    def asked(self) -> dict[str, float]:
        """Of every category, the memory that its newest task asked for, if any did."""
        rows = self._rows(
            "SELECT category, asked, max(id) FROM tasks WHERE asked IS NOT NULL GROUP BY category"
        )
        return {category: asked for category, asked, _ in rows}

    def counts(self) -> dict[tuple[str, str], tuple[int, float]]:
        """Of every category and machine, how many records there are and when the last was made."""
        rows = self._rows(
            "SELECT category, machine, count(*), max(at) FROM tasks GROUP BY category, machine"
        )
        return {(category, machine): (n, last) for category, machine, n, last in rows}

    def forget(
        self,
        category: str | None = None,
        machine: str | None = None,
        before: float | None = None,
    ) -> tuple[int, int]:
        """Delete what all the filters given agree on; how many tasks and transfers that were.

        Transfers have no category: one given spares them.
        """
        tasks = {"category = ?": category, "machine = ?": machine, "at < ?": before}
        moves = {"? IN (source, target)": machine, "at < ?": before}
        with explained(self.path):
            with transaction(self._connection):
                done = self._delete("tasks", tasks)
                self._delete("failures", tasks)
                moved = self._delete("transfers", moves) if category is None else 0
            # so that it is not in the log beside the file any more, as far as others let that be
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return done, moved

    def export(self, path: Path) -> tuple[int, int]:
        """Write all records to a .csv or .json file; how many tasks and transfers there were."""
        from foreplan.history.report import check_suffix, write

        check_suffix(path)
        tasks, transfers = self.tasks(), self.transfers()
        write(tasks, transfers, path, self.failures())
        return len(tasks), len(transfers)

    def _delete(self, table: str, filters: dict[str, Any]) -> int:
        where, values = _where(filters)
        return self._connection.execute(f"DELETE FROM {table}{where}", values).rowcount

    def _rows(
        self, query: str, values: Sequence[Any] | dict[str, Any] = ()
    ) -> list[tuple[Any, ...]]:
        with explained(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _reading(self, wanted: Iterable[tuple[str, str]]) -> Iterator[None]:
        """Let all be read at one moment, with the categories and commands that are wanted."""
        with transaction(self._connection, writes=False):
            # a table of this connection alone: a query can have only so many parameters
            self._connection.execute(
                "CREATE TEMP TABLE wanted (category TEXT, command TEXT, "
                "PRIMARY KEY (category, command))"
            )
            names = sorted({(_text(category), mark) for category, mark in wanted})
            self._connection.executemany("INSERT INTO wanted VALUES (?, ?)", names)
            yield
            self._connection.execute("DROP TABLE wanted")


class _Cells(NamedTuple):
    """Records that are alike in these columns, of which the newest are read."""

    table: str
    columns: tuple[str, ...]
    within: str = ""

    @property
    def distinct(self) -> str:
        """A query for the cells."""
        return f"SELECT DISTINCT {', '.join(self.columns)} FROM {self.table} {self.within}"

    def newest(self, limit: int) -> str:
        """A query for the newest records of every cell, each by a look into the index."""
        alike = " AND ".join(f"{column} IS c.{column}" for column in self.columns)
        return (
            f"SELECT t.id FROM ({self.distinct}) AS c JOIN {self.table} AS t ON t.id IN ("
            f"SELECT id FROM {self.table} WHERE {alike} ORDER BY at DESC, id DESC LIMIT {limit})"
        )


_ALL = _Cells("tasks", ("category", "machine"))
_CATEGORIES = _Cells(*_ALL[:2], "WHERE category IN (SELECT category FROM wanted)")
_DIRECTORY = _Cells(
    "tasks",
    ("directory", "workflow", "category", "machine"),
    "WHERE directory = :directory AND category IN (SELECT category FROM wanted)",
)
_COMMANDS = _Cells(
    "tasks",
    ("category", "command", "machine"),
    "WHERE (category, command) IN (SELECT category, command FROM wanted)",
)
_LINKS = _Cells("transfers", ("source", "target"))


def _where(filters: dict[str, Any]) -> tuple[str, list[Any]]:
    """The condition that all the filters with a value agree on."""
    used = {condition: value for condition, value in filters.items() if value is not None}
    values = [_text(value) if isinstance(value, str) else value for value in used.values()]
    return (f" WHERE {' AND '.join(used)}" if used else ""), values


def _task(row: tuple[Any, ...]) -> TaskRecord:
    at, run, workflow, category, machine, seconds, size, directory, command, *used = row
    memory, at_most, cpu, read, written, asked = used
    return TaskRecord(
        at, run, workflow, category, machine, seconds, _known(size), directory or "", command or "",
        _known(memory), bool(at_most), _known(cpu), _known(read), _known(written), _known(asked),
    )  # fmt: skip


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _or_null(value: float) -> float | None:
    return value if is_measured(value) else None


def _failure(row: tuple[Any, ...]) -> FailureRecord:
    at, run, workflow, category, machine, cause, seconds, size, directory, command, *used = row
    memory, cpu, asked = map(_known, used)
    return FailureRecord(
        at, run, workflow, category, machine, cause, _known(seconds), _known(size),
        directory or "", command or "", memory, cpu, asked,
    )  # fmt: skip


def _failure_row(f: FailureRecord) -> tuple[Any, ...]:
    names = map(_text, (f.run, f.workflow, f.category, f.machine, f.cause))
    origin = (_text(f.directory) or None, f.command or None)
    used = map(_or_null, (f.memory, f.cpu, f.asked))
    return f.at, *names, _or_null(f.seconds), _or_null(f.size), *origin, *used


def _task_row(task: TaskRecord) -> tuple[Any, ...]:
    names = (task.run, task.workflow, task.category, task.machine)
    origin = (_text(task.directory) or None, task.command or None)
    used = (
        _or_null(task.memory),
        int(task.at_most),
        *map(_or_null, (task.cpu, task.read, task.written, task.asked)),
    )
    return task.at, *map(_text, names), task.seconds, _or_null(task.size), *origin, *used


def _same(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What two rows of one task that was measured once have in common."""
    _, run, workflow, category, machine, seconds, _, directory, *_ = row
    return run, workflow, category, machine, seconds, directory


def _transfer_row(move: TransferRecord) -> tuple[Any, ...]:
    names = (move.run, move.source, move.target)
    return move.at, *map(_text, names), move.size, move.seconds


def _text(name: str) -> str:
    """A name that a database can hold: names of the system need not be UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
