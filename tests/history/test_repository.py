"""The repository: what is kept, read, forgotten and exported; where it is and who may read it."""

from __future__ import annotations

import csv
import json
import math
import stat
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan.history import repository as module
from foreplan.history.database import FILE, HistoryError
from foreplan.history.database import home as found_home
from foreplan.history.records import NEWEST, TaskRecord, TransferRecord
from foreplan.history.repository import Repository

from .samples import move, task


def same(one: list[TaskRecord], two: list[TaskRecord]) -> bool:
    """Whether the records are equal, unknown sizes too."""
    return list(map(repr, one)) == list(map(repr, two))


def test_what_is_added_is_read_again(home: Path) -> None:
    tasks = [task(size=12.0), task("b", "m1", 2.5), task("Ω/ü", "host:1", 0.0)]
    with Repository() as repository:
        assert repository.path == home / FILE
        repository.add(tasks, [move()])
        repository.add([task("c")])
    with Repository() as repository:
        assert same(repository.tasks(), [*tasks, task("c")])
        assert repository.transfers() == [move()]
        assert same(repository.tasks(category="b"), tasks[1:2])
        assert same(repository.tasks(machine="m0"), [tasks[0], task("c")])
        assert repository.counts()["b", "m1"] == (1, 1e9)


def test_only_the_owner_can_read_it(home: Path) -> None:
    with Repository() as repository:
        repository.add([task()])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
        assert modes[FILE] == 0o600
        assert f"{FILE}-wal" in modes
        assert all(mode & 0o077 == 0 for mode in modes.values())
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_no_commands_and_no_environment_are_kept() -> None:
    assert {f.name for f in fields(TaskRecord)} == {
        "at", "run", "workflow", "category", "machine", "seconds", "size", "directory", "command",
        "memory", "at_most", "cpu", "read", "written", "asked",
    }  # fmt: skip
    assert {f.name for f in fields(TransferRecord)} == {
        "at", "run", "source", "target", "size", "seconds"
    }  # fmt: skip


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert found_home() == tmp_path / "home"
    monkeypatch.setenv("FOREPLAN_HOME", "~/mine")
    assert found_home() == tmp_path / "mine"
    monkeypatch.setenv("FOREPLAN_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert found_home() == tmp_path / "data" / "foreplan"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert found_home() == tmp_path / ".local" / "share" / "foreplan"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert found_home() == tmp_path / ".local" / "share" / "foreplan"


def test_what_no_clock_can_give_is_left_out() -> None:
    with Repository() as repository:
        repository.add(
            [task(seconds=-1.0), task(seconds=math.nan), task(seconds=math.inf), task(at=math.nan)],
            [move(seconds=-1.0), move(size=math.nan)],
        )
        repository.add([task(size=-5.0)])
        (kept,) = repository.tasks()
        assert math.isnan(kept.size)
        assert repository.transfers() == []


def test_all_or_nothing() -> None:
    broken = task()
    object.__setattr__(broken, "at", "never")  # not a number
    with Repository() as repository:
        with pytest.raises(TypeError):
            repository.add([task(), broken])
        assert repository.tasks() == []
        object.__setattr__(broken, "at", 1.0)
        object.__setattr__(broken, "run", "\udcff")  # a name that is not UTF-8
        repository.add([broken])
        assert repository.tasks()[0].run == "\\udcff"


def test_a_failure_in_the_middle_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Repository() as repository:
        monkeypatch.setattr(module, "_transfer_row", lambda move: (None,) * 6)
        with pytest.raises(HistoryError, match="NOT NULL"):
            repository.add([task()], [move()])
        assert repository.tasks() == []
        monkeypatch.undo()


def test_a_history_has_the_newest_of_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 2)
    with Repository() as repository:
        old = [task("a", "m0", 99.0, at) for at in range(100)]
        new = [task("a", "m0", 1.0, 1000 + at) for at in range(NEWEST)]
        repository.add(new)
        repository.add(old)  # not in the order of age
        repository.add([task("b", "m0", 5.0, 1), task("c", "m0", 6.0, 2), task("d", "m0", 7.0, 3)])
        repository.add([], [move(at=at, seconds=float(at)) for at in range(100)])
        table = repository.history(["a", "unknown"]).table()
        assert set(table.categories) == {"a", "c", "d"}  # c and d are recent
        assert (table.seconds[table.category == 0] == 1.0).sum() == NEWEST
        assert (table.category == 0).sum() == NEWEST
        assert set(repository.history().table().categories) == {"a", "b", "c", "d"}
        transfers = repository.history([]).between("m0", "m1")
        assert [t.seconds for t in transfers] == list(range(100 - NEWEST, 100))


def test_many_categories_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 1)
    monkeypatch.setattr(module, "MOST", 50)
    with Repository() as repository:
        repository.add([task(f"c{i % 10}", "m0", 1.0, i) for i in range(200)])
        table = repository.history([f"c{i}" for i in range(10)]).table()
        assert len(table.seconds) == 50


def test_forgetting() -> None:
    with Repository() as repository:
        tasks = [task(c, m, 1.0, at) for c in "ab" for m in ("m0", "m1") for at in (1.0, 2.0)]
        moves = [move("m0", "m1", at=1.0), move("m1", "m2", at=2.0)]
        repository.add(tasks, moves)
        assert repository.forget(category="nothing") == (0, 0)
        assert repository.forget(category="a", machine="m0", before=2.0) == (1, 0)
        assert repository.forget(category="a") == (3, 0)
        assert repository.forget(machine="m0") == (2, 1)
        assert repository.forget(before=2.0) == (1, 0)
        assert same(repository.tasks(), [task("b", "m1", 1.0, 2.0)])
        assert repository.forget() == (1, 1)
        assert (repository.tasks(), repository.transfers()) == ([], [])


def test_what_is_forgotten_is_not_in_the_files(home: Path) -> None:
    with Repository() as repository:
        repository.add([task("a-secret-category")] * 50)
        repository.forget(category="a-secret-category")
        for path in home.iterdir():
            assert b"a-secret" not in path.read_bytes()


def test_export(tmp_path: Path) -> None:
    with Repository() as repository:
        repository.add([task('a "quoted", name', size=7.0), task("b")], [move()])
        assert repository.export(tmp_path / "all.CSV") == (2, 1)
        assert repository.export(tmp_path / "all.json") == (2, 1)
        with pytest.raises(InputError, match=r"all\.txt: .*\.csv or \.json"):
            repository.export(tmp_path / "all.txt")
    with (tmp_path / "all.CSV").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == ["task", "task", "transfer"]
    assert [row["size"] for row in rows] == ["7.0", "", "1000000.0"]
    assert rows[0]["category"] == 'a "quoted", name'
    assert (rows[2]["source"], rows[2]["target"], rows[2]["category"]) == ("m0", "m1", "")
    content = json.loads((tmp_path / "all.json").read_text())
    assert content["tasks"][1]["size"] is None
    assert content["transfers"] == [
        {"at": 1e9, "run": "run-1", "source": "m0", "target": "m1", "size": 1e6, "seconds": 1.0}
    ]


def test_a_large_repository_is_read_in_part() -> None:
    with Repository() as repository:
        repository.add(task(f"c{i % 7}", f"m{i % 3}", 1.0, i) for i in range(60_000))
        table = repository.history(["c0"]).table()
        assert len(table.seconds) <= 7 * 3 * NEWEST


def test_sqlite_is_imported_when_a_repository_is_opened() -> None:
    code = (
        "import sys; import foreplan.history.repository, foreplan.history.predictor; "
        "import foreplan.cli.history; "
        "print('sqlite3' in sys.modules, 'rich.table' in sys.modules); "
        "foreplan.history.repository.Repository().close(); print('sqlite3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True"]
