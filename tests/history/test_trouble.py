"""Damage, other people's files, directories that cannot be written, and many processes at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from foreplan.errors import ForeplanError
from foreplan.history import database
from foreplan.history.database import FILE, HistoryError
from foreplan.history.repository import Repository

from .samples import move, task

TIME_LIMIT = 120


def refused(path: Path | None = None) -> str:
    """What a user is told, and what a run that goes on is told."""
    with pytest.raises(HistoryError) as caught:
        Repository(path)
    assert isinstance(caught.value, ForeplanError)
    heard: list[str] = []
    assert Repository.or_none(heard.append, path) is None
    assert heard == [f"going on without the performance history: {caught.value}"]
    return str(caught.value)


def test_a_run_with_a_history_is_told_nothing(home: Path) -> None:
    repository = Repository.or_none(lambda message: pytest.fail(message))
    assert repository is not None
    repository.close()


def test_a_file_that_is_no_database(home: Path) -> None:
    home.mkdir()
    (home / FILE).write_bytes(b"this is not a database, " * 100)
    before = (home / FILE).read_bytes()
    message = refused()
    assert str(home / FILE) in message
    assert "damaged" in message
    assert "nothing was deleted" in message
    assert (home / FILE).read_bytes() == before
    # the advice works as it stands
    command = message[message.index("mkdir") :]
    subprocess.run(command, shell=True, check=True)
    with Repository() as repository:
        assert repository.tasks() == []
    assert (home / "damaged" / FILE).read_bytes() == before


def test_damage_inside(home: Path) -> None:
    with Repository() as repository:
        repository.add([task(f"c{i}") for i in range(2000)])
    content = bytearray((home / FILE).read_bytes())
    page = 4096
    for start in range(page, len(content), page):  # all but the page that says what is where
        content[start : start + 200] = b"\xff" * 200
    (home / FILE).write_bytes(content)
    with Repository() as repository:
        for use in (repository.tasks, repository.history, lambda: repository.add([task()])):
            with pytest.raises(HistoryError, match=r"damaged .*nothing was deleted"):
                use()


def test_a_cut_file(home: Path) -> None:
    with Repository() as repository:
        repository.add([task(f"c{i}") for i in range(2000)])
    content = (home / FILE).read_bytes()
    (home / FILE).write_bytes(content[: len(content) // 2 + 100])
    with pytest.raises(HistoryError, match="damaged"), Repository() as repository:
        repository.tasks()


def test_an_empty_file_is_a_new_history(home: Path) -> None:
    home.mkdir()
    (home / FILE).touch()
    with Repository() as repository:
        repository.add([task()])
        assert len(repository.tasks()) == 1


def test_tables_of_another_version(home: Path) -> None:
    Repository().close()
    with closing(sqlite3.connect(home / FILE)) as connection:
        connection.execute("PRAGMA user_version = 7")
    message = refused()
    assert "another version of foreplan" in message
    assert "version 7" in message


def test_a_database_of_something_else(home: Path) -> None:
    home.mkdir()
    with closing(sqlite3.connect(home / FILE)) as connection:
        connection.execute("CREATE TABLE tasks (mine TEXT)")
    assert "something else" in refused()


def test_a_directory_that_cannot_be_made(home: Path) -> None:
    home.write_text("a file")
    assert "FOREPLAN_HOME" in refused()
    assert "FOREPLAN_HOME" in refused(home / "deeper" / FILE)


def test_a_directory_in_its_place(home: Path) -> None:
    (home / FILE).mkdir(parents=True)
    assert "cannot be opened for writing" in refused()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(home: Path) -> None:
    home.mkdir(mode=0o500)
    assert "Permission denied" in refused()


def test_a_full_disk(home: Path) -> None:
    with Repository() as repository:
        repository.add([task()])
        repository._connection.execute("PRAGMA max_page_count = 10")  # as if there were no more
        with pytest.raises(HistoryError, match="the disk is full"):
            repository.add([task(f"c{i}") for i in range(5000)])
        assert len(repository.tasks()) == 1  # and it goes on
        repository.add([task()])


def test_somebody_who_writes_for_ever(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "TIMEOUT", 0.05)
    with Repository() as repository, closing(sqlite3.connect(home / FILE)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HistoryError, match="another process"):
            repository.add([task()])
        assert repository.tasks() == []  # readers are not in the way
        other.execute("ROLLBACK")
        repository.add([task()])


WRITER = """
import sys
from foreplan.history.records import TaskRecord, TransferRecord
from foreplan.history.repository import Repository
name = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
for batch in range(20):
    with Repository() as repository:
        repository.add(
            [TaskRecord(batch, name, "wf", f"c{i}", name, 1.0) for i in range(10)],
            [TransferRecord(batch, name, name, "m", 1.0, 1.0)],
        )
        mine = [t for t in repository.tasks(machine=name)]
        assert len(mine) == 10 * (batch + 1), len(mine)
        if batch % 5 == 0:
            repository.history([f"c{i}" for i in range(10)])
            repository.forget(category="none")
"""


def test_processes_that_write_at_once(home: Path) -> None:
    """They begin together on a history that is not there yet; nothing is lost."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, f"m{i}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(5)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            _, errors = writer.communicate(timeout=TIME_LIMIT)
            assert (writer.returncode, errors) == (0, "")
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    with Repository() as repository:
        assert len(repository.tasks()) == 5 * 20 * 10
        assert len(repository.transfers()) == 5 * 20
        assert all(n == 20 for n, _ in repository.counts().values())


KILLED = """
import sys
from foreplan.history.records import TaskRecord
from foreplan.history.repository import Repository
repository = Repository()
for batch in range(10**9):
    repository.add([TaskRecord(batch, "r", "wf", "c", "m", 1.0)] * 7)
    print(batch, flush=True)
"""


def test_a_writer_that_is_killed(home: Path) -> None:
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout is not None
            for _ in range(5):
                last = int(writer.stdout.readline())
        finally:
            writer.kill()
            writer.communicate()
    with Repository() as repository:
        tasks = repository.tasks()
        assert len(tasks) % 7 == 0
        assert len(tasks) >= 3 * 7 * (last + 1)
        repository.add([task()], [move()])
