"""`foreplan runs`: the runs of a directory, also those whose journals are damaged."""

from __future__ import annotations

import json
from pathlib import Path

from foreplan.runs.lock import RunLock

from .commands import succeed
from .journals import forks, write_run


def test_no_runs(tmp_path: Path) -> None:
    assert succeed("runs", cwd=tmp_path) == "no runs in .foreplan/runs; `foreplan run` makes one\n"
    assert json.loads(succeed("runs", "--json", cwd=tmp_path)) == []


def test_the_table(tmp_path: Path) -> None:
    done = write_run(tmp_path, forks(4), factor=1.5)
    cut = write_run(tmp_path, forks(4) | {"name": "cut"}, stop_after=2, ended=None)
    with RunLock(cut):
        rows = json.loads(succeed("runs", "--dir", tmp_path, "--json"))
    assert [(row["id"], row["status"]) for row in rows] == [
        (cut.id, "running"),
        (done.id, "finished"),
    ]
    lines = [line.split() for line in succeed("runs", "--dir", tmp_path).splitlines()]
    assert lines[0] == ["run", "status", "done", "started", "took", "strategy", "on"]
    assert lines[1][:3] == [cut.id, "interrupted", "2/6"]
    assert lines[2][:3] == [done.id, "finished", "6/6"]
    assert lines[2][5:] == ["9", "s", "slack", "local:2"]


def test_damaged_journals_are_listed_too(tmp_path: Path) -> None:
    cut, empty = (write_run(tmp_path, forks(4) | {"name": name}) for name in ("cut", "empty"))
    raw = cut.journal.read_bytes()
    cut.journal.write_bytes(raw[:-20])
    empty.journal.write_bytes(b"")
    rows = {row["id"]: row for row in json.loads(succeed("runs", "--json", cwd=tmp_path))}
    assert rows[cut.id]["status"] == "interrupted"
    assert "is cut" in rows[cut.id]["problem"]
    assert (rows[cut.id]["strategy"], rows[cut.id]["on"]) == ("slack", "local:2")
    assert rows[empty.id]["status"] == "unreadable"
    assert rows[empty.id]["strategy"] is None
    shown = succeed("runs", cwd=tmp_path)
    assert f"{empty.id}: the journal: " in shown
