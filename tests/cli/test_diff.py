"""`foreplan diff`: two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

from .commands import refuse, succeed
from .journals import forks, write_run


def test_what_is_different(tmp_path: Path) -> None:
    old = forks(3)
    old["tasks"]["part-1"]["run"] = "wc a"
    old["tasks"] |= {"old": {"cost": 1}}
    new = forks(3)
    new["tasks"]["part-1"]["run"] = "wc -l a"
    new["tasks"] |= {"new-1": {"cost": 1}, "new-2": {"cost": 1}}
    new["edges"] += [["new-1", "join"]]
    before = write_run(tmp_path, old, processors=3, fails={2: "no"}, retries=1)
    after = write_run(tmp_path, new, factor=3.0, strategy="aheft")
    text = succeed("diff", before.id, after.id, "--dir", tmp_path)
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == f"{before.id} -> {after.id}"
    for line in (
        "added: 2 tasks: new-1, new-2",
        "removed: 1 task: old",
        "1 dependency new",
        "changed: part-1: run",
        "- wc a",
        "+ wc -l a",
        "only before: 1 processor: local-2",
    ):
        assert line in lines
    words = [line.split() for line in lines]
    assert ["strategy", "slack", "aheft"] in words
    assert ["retries", "1", "0"] in words
    assert ["processors", "3", "2", "-1"] in words
    assert next(line for line in words if line[:1] == ["failed"])[2:] == ["1", "0", "-1"]
    (again,) = (line for line in lines if line.endswith("2 -> 1"))
    assert again.split()[1] == "done"
    told = json.loads(succeed("diff", before.id, after.id, "--dir", tmp_path, "--json"))
    assert told["runs"] == [before.id, after.id]
    assert told["changed"] == {"part-1": {"run": ["wc a", "wc -l a"]}}
    by = [abs(b - a) for a, b in (task["seconds"] for task in told["tasks"]) if a and b]
    assert by == sorted(by, reverse=True)
    assert by[0] > 0


def test_the_same(tmp_path: Path) -> None:
    before, after = write_run(tmp_path, forks(2)), write_run(tmp_path, forks(2))
    text = succeed("diff", before.id, after.id, "--dir", tmp_path)
    assert "workflow, options and machines are the same" in text
    assert "Tasks" not in text


def test_a_run_that_is_not_finished(tmp_path: Path) -> None:
    before = write_run(tmp_path, forks(2))
    after = write_run(tmp_path, forks(2), stop_after=1, ended=None)
    text = succeed("diff", before.id, after.id, "--dir", tmp_path)
    assert ["join", "done", "->", "waiting", "1", "->", "0"] in [
        x.split() for x in text.splitlines()
    ]


def test_unknown_runs(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(2))
    assert "unknown run 'x'" in refuse("diff", "x", home.id, "--dir", tmp_path)
    assert "unknown run 'y'" in refuse("diff", home.id, "y", "--dir", tmp_path)
