"""The performance history repository: what tasks and transfers took, kept in SQLite.

Several processes may use one at a time. It holds names, times and sizes; no environment and no
command lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from weft.history.database import FILE, HistoryError, connect, explained, home, transaction
from weft.history.records import NEWEST, History, TaskRecord, TransferRecord, is_measured

if TYPE_CHECKING:
    import sqlite3

RECENT = 20_000  # records of any category that a prediction looks at, for the machines' speeds
MOST = 100_000  # records of a workflow's own categories that it looks at
LEAST = 1  # of a category on a machine, however many of them there are

TASK = "at, run, workflow, category, machine, seconds, size"
TRANSFER = "at, run, source, target, size, seconds"


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def add(
        self, tasks: Iterable[TaskRecord] = (), transfers: Iterable[TransferRecord] = ()
    ) -> None:
        """Keep all of these, or none if it fails; what no clock can have given is left out."""
        done = [_task_row(t) for t in tasks if is_measured(t.seconds) and math.isfinite(t.at)]
        moved = [
            _transfer_row(t)
            for t in transfers
            if is_measured(t.seconds) and is_measured(t.size) and math.isfinite(t.at)
        ]
        with explained(self.path), transaction(self._connection):
            self._connection.executemany(
                f"INSERT INTO tasks ({TASK}) VALUES (?, ?, ?, ?, ?, ?, ?)", done
            )
            self._connection.executemany(
                f"INSERT INTO transfers ({TRANSFER}) VALUES (?, ?, ?, ?, ?, ?)", moved
            )

    def tasks(self, category: str | None = None, machine: str | None = None) -> list[TaskRecord]:
        """The records of tasks, in the order in which they were added."""
        where, values = _where({"category = ?": category, "machine = ?": machine})
        return [
            _task(row) for row in self._rows(f"SELECT {TASK} FROM tasks{where} ORDER BY id", values)
        ]

    def transfers(self) -> list[TransferRecord]:
        """The records of transfers, in the order in which they were added."""
        rows = self._rows(f"SELECT {TRANSFER} FROM transfers ORDER BY id")
        return [TransferRecord(*row) for row in rows]

    def history(self, categories: Iterable[str] | None = None) -> History:
        """What a predictor needs for these categories, or for all: the newest of each machine.

        However large the repository is, it reads a bounded number of records.
        """
        with explained(self.path), self._reading(categories) as within:
            cells = f"SELECT DISTINCT category, machine FROM tasks {within}"
            (n,) = self._connection.execute(f"SELECT count(*) FROM ({cells})").fetchone()
            limit = max(LEAST, min(NEWEST, MOST // max(1, n)))
            own = _newest("category", "machine", "tasks", cells, limit)
            recent = f"SELECT id FROM (SELECT id FROM tasks ORDER BY id DESC LIMIT {RECENT})"
            tasks = self._rows(f"SELECT {TASK} FROM tasks WHERE id IN ({own} UNION {recent})")
            links = "SELECT DISTINCT source, target FROM transfers"
            moves = _newest("source", "target", "transfers", links, NEWEST)
            transfers = self._rows(f"SELECT {TRANSFER} FROM transfers WHERE id IN ({moves})")
        return History((_task(row) for row in tasks), (TransferRecord(*row) for row in transfers))

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
                moved = self._delete("transfers", moves) if category is None else 0
            # so that it is not in the log beside the file any more, as far as others let that be
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return done, moved

    def export(self, path: Path) -> tuple[int, int]:
        """Write all records to a .csv or .json file; how many tasks and transfers there were."""
        from weft.history.export import check_suffix, write

        check_suffix(path)
        tasks, transfers = self.tasks(), self.transfers()
        write(tasks, transfers, path)
        return len(tasks), len(transfers)

    def _delete(self, table: str, filters: dict[str, Any]) -> int:
        where, values = _where(filters)
        return self._connection.execute(f"DELETE FROM {table}{where}", values).rowcount

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with explained(self.path):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _reading(self, categories: Iterable[str] | None) -> Iterator[str]:
        """A condition that holds for these categories, while all is read at one moment."""
        with transaction(self._connection, writes=False):
            if categories is None:
                yield ""
                return
            # a table of this connection alone: a query can have only so many parameters
            self._connection.execute("CREATE TEMP TABLE wanted (category TEXT PRIMARY KEY)")
            names = ((_text(name),) for name in sorted(set(categories)))
            self._connection.executemany("INSERT INTO wanted VALUES (?)", names)
            yield "WHERE category IN (SELECT category FROM wanted)"
            self._connection.execute("DROP TABLE wanted")


def _newest(row: str, column: str, table: str, cells: str, limit: int) -> str:
    """A query for the newest records of every cell, each by a look into the index."""
    return (
        f"SELECT t.id FROM ({cells}) AS c JOIN {table} AS t ON t.id IN ("
        f"SELECT id FROM {table} WHERE {row} = c.{row} AND {column} = c.{column} "
        f"ORDER BY at DESC, id DESC LIMIT {limit})"
    )


def _where(filters: dict[str, Any]) -> tuple[str, list[Any]]:
    """The condition that all the filters with a value agree on."""
    used = {condition: value for condition, value in filters.items() if value is not None}
    values = [_text(value) if isinstance(value, str) else value for value in used.values()]
    return (f" WHERE {' AND '.join(used)}" if used else ""), values


def _task(row: tuple[Any, ...]) -> TaskRecord:
    at, run, workflow, category, machine, seconds, size = row
    size = math.nan if size is None else size
    return TaskRecord(at, run, workflow, category, machine, seconds, size)


def _task_row(task: TaskRecord) -> tuple[Any, ...]:
    size = task.size if is_measured(task.size) else None
    names = (task.run, task.workflow, task.category, task.machine)
    return task.at, *map(_text, names), task.seconds, size


def _transfer_row(move: TransferRecord) -> tuple[Any, ...]:
    names = (move.run, move.source, move.target)
    return move.at, *map(_text, names), move.size, move.seconds


def _text(name: str) -> str:
    """A name that a database can hold: names of the system need not be UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")
