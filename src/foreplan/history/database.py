"""The database file: where it is, how it is opened, and what its errors mean for a user."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from foreplan.errors import ForeplanError
from foreplan.files import printable

if TYPE_CHECKING:
    import sqlite3

FILE = "history.db"
SCHEMA = 1
APPLICATION = 0x666F7265  # "fore", for foreplan: how the file says whose it is
TIMEOUT = 30.0  # seconds to wait for other writers
TABLES = """
CREATE TABLE tasks (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL, run TEXT NOT NULL, workflow TEXT NOT NULL, category TEXT NOT NULL,
  machine TEXT NOT NULL, seconds REAL NOT NULL, size REAL, directory TEXT, command TEXT,
  memory REAL, at_most INTEGER, cpu REAL, read REAL, written REAL, asked REAL);
CREATE TABLE failures (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL, run TEXT NOT NULL, workflow TEXT NOT NULL, category TEXT NOT NULL,
  machine TEXT NOT NULL, cause TEXT NOT NULL, seconds REAL, size REAL, directory TEXT, command TEXT,
  memory REAL, cpu REAL, asked REAL);
CREATE TABLE transfers (
  id INTEGER PRIMARY KEY,
  at REAL NOT NULL, run TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
  size REAL NOT NULL, seconds REAL NOT NULL);
CREATE INDEX tasks_by_cell ON tasks (category, machine, at);
CREATE INDEX transfers_by_link ON transfers (source, target, at);
CREATE INDEX tasks_by_origin ON tasks (directory, workflow, category, machine, at);
CREATE INDEX tasks_by_command ON tasks (category, command, machine, at);
"""


class HistoryError(ForeplanError):
    """The performance history cannot be used; a run can go on without it."""


def home() -> Path:
    """The directory of the history: FOREPLAN_HOME, else `foreplan` in the XDG data directory."""
    if given := os.environ.get("FOREPLAN_HOME"):
        return Path(given).expanduser()
    shared = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(shared):  # the standard says that others are to be ignored
        return Path(shared) / "foreplan"
    try:
        return Path.home() / ".local" / "share" / "foreplan"
    except RuntimeError:
        raise HistoryError(
            "there is no home directory for the performance history; set FOREPLAN_HOME"
        ) from None


def connect(path: Path) -> sqlite3.Connection:
    """Open the database, and make it and its directory if they are not there."""
    _prepare(path)
    import sqlite3

    with explained(path):
        connection = sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None)
        try:
            _settle(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # made here to be private; SQLite gives the files beside it the same mode
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise HistoryError(
            f"{printable(path)}: the performance history cannot be opened for writing "
            f"({reason}); make it writable, or set FOREPLAN_HOME to a directory that is"
        ) from None


def _settle(connection: sqlite3.Connection, path: Path) -> None:
    """Check whose file this is, make its tables if it has none, and let readers read on."""
    connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is gone
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    _write_ahead(connection)
    if _is_empty(connection, path):
        with transaction(connection):
            if _is_empty(connection, path):  # else another process was faster
                _make_tables(connection)


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in TABLES.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the file has no tables yet; refuse the tables of others and other versions."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != APPLICATION and (tables or version or owner):
        raise HistoryError(
            f"{printable(path)}: this is a database of something else, not foreplan's performance "
            "history; set FOREPLAN_HOME to another directory"
        )
    if version and version != SCHEMA:
        raise HistoryError(
            f"{printable(path)}: another version of foreplan wrote this performance history ("
            f"tables of version {version}; this one knows version {SCHEMA}); use that version, set "
            "FOREPLAN_HOME to another directory, or delete the file"
        )
    return not version


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Write-ahead logging; changing to it does not wait for others by itself."""
    import sqlite3

    until = time.monotonic() + TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


@contextmanager
def transaction(connection: sqlite3.Connection, writes: bool = True) -> Iterator[None]:
    """All that is written inside, or nothing; the right to write is taken at the start.

    If nothing is written: all that is read inside was there at one moment.
    """
    connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Errors of the database, as a user can understand and mend them."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise HistoryError(f"{printable(path)}: {_meaning(error, path)}") from None


def _meaning(error: sqlite3.Error, path: Path) -> str:
    import sqlite3

    match _code(error):
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            here = printable(path.parent)
            return (
                f"the performance history is damaged ({error}); nothing was deleted; move it "
                f"away to begin a new one: mkdir '{here}/damaged' && "
                f"mv '{here}/{FILE}'* '{here}/damaged'"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return (
                f"the performance history is in use: another process has been writing to it for "
                f"more than {TIMEOUT:.0f} s; try again when it is done"
            )
        case sqlite3.SQLITE_FULL:
            return "the performance history cannot grow: the disk is full; make room on it"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return (
                f"the performance history cannot be written ({error}); make it and its "
                "directory writable, or set FOREPLAN_HOME to a directory that is"
            )
    return (
        f"the performance history cannot be used ({error}); set FOREPLAN_HOME to another directory "
        "if this goes on"
    )


def _code(error: sqlite3.Error) -> int:
    """The kind of error, without its details."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
