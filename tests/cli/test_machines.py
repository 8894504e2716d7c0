"""`foreplan machines`: what it shows of a run, and what it lets a run under way have or lose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.replay import replay

from .commands import refuse, succeed
from .journals import forks, write_run
from .live_runs import Gate, chain, started, the_id, write_workflow


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_a_run_under_way(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    write_workflow(tmp_path, chain(tmp_path, gate))
    with started("run", "wf.yaml", "--on", "local:1", "--strategy", "aheft", cwd=tmp_path) as run:
        gate.wait()  # the second of three tasks
        shown = rows(succeed("machines", cwd=tmp_path))
        assert shown[0] == ["processor", "host", "state", "runs"]
        assert [row[0::2] for row in shown[1:]] == [["local-1", "present"]]
        assert shown[1][3] == "b"
        added = succeed("machines", "last", "--add", "2", cwd=tmp_path)
        assert added.splitlines()[0] == "joined: local-2, local-3"
        said = "unknown processor 'lokal-1' (did you mean 'local-1'?)"
        assert said in refuse("machines", "last", "--drain", "lokal-1", cwd=tmp_path)
        everyone = [option for k in (1, 2, 3) for option in ("--drain", f"local-{k}")]
        assert "no processor is left" in refuse("machines", "last", *everyone, cwd=tmp_path)
        later = succeed("machines", "--drain", "local-3", "--in", "600", "--json", cwd=tmp_path)
        found = json.loads(later)
        assert found["said"] == "leaving in 10 min: local-3"
        [third] = [row for row in found["processors"] if row["name"] == "local-3"]
        assert found["time"] + 500 < third["leaving"] < found["time"] + 601
        drained = rows(succeed("machines", "--drain", "local-1", cwd=tmp_path))
        assert drained[0] == ["leaving", "once", "they", "are", "idle:", "local-1"]
        assert [(row[0], row[2], row[-1]) for row in drained[2:4]] == [
            ("local-1", "draining", "b"),
            ("local-2", "present", "-"),
        ]
        gate.open()
        code, _ = run.end()
    assert code == 0, run.said
    said_there = "\n".join(run.said)
    assert "joined: local-2, local-3" in said_there
    assert "leaving once they are idle: local-1" in said_there
    shown = rows(succeed("machines", cwd=tmp_path))
    assert shown[0][2:4] == ["is", "finished,"]
    assert [row[2] for row in shown[3:5]] == ["drained", "present"]
    home = RunHome.find(tmp_path, "last")
    assert list(home.requests.iterdir()) == []
    assert replay(read(home.journal), tmp_path).run().attempts.processor.tolist() == [0, 0, 1]
    over = refuse("machines", "--add", "1", cwd=tmp_path)
    assert f"run {the_id(tmp_path)} is not running" in over
    gate.close()


def test_a_run_that_was_interrupted(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(4), stop_after=3, ended=None)
    lines = [" ".join(x.split()) for x in succeed("machines", cwd=tmp_path).splitlines()]
    again = f"`foreplan resume {home.id}` resumes it"
    assert lines[0] == f"run {home.id} is interrupted, no machine works for it; {again}"
    assert lines[1].startswith("its machines when it was last heard of, at ")
    assert lines[2] == "processor host state was running"
    assert json.loads(succeed("machines", "--json", cwd=tmp_path))["status"] == "interrupted"


def test_what_is_wrong(tmp_path: Path) -> None:
    assert "there is no run 'last'" in refuse("machines", cwd=tmp_path)
    both = refuse("machines", "--add", "1", "--drain", "local-1", cwd=tmp_path)
    assert "one thing at a time" in both
    assert "--in without --drain" in refuse("machines", "--in", "3", cwd=tmp_path)
    assert "must be a number" in refuse("machines", "--drain", "a", "--in", "nan", cwd=tmp_path)
