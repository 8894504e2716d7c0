"""Runs whose tasks fail: what the journal says of it, and how they are tried again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import foreplan
from cli.commands import succeed
from foreplan.model.events import Event, TaskFailed, TaskFinished
from foreplan.runs.journal import RULES, Journal, read
from foreplan.runs.replay import replay
from repeated import repetitions


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))


def test_a_task_is_tried_again_after_a_rest(tmp_path: Path) -> None:
    once = "test -e $FOREPLAN_DIR/tried || { touch $FOREPLAN_DIR/tried; exit 3; }"
    tasks = {
        "a": {"cost": 1, "run": once, "retries": 1, "wait": 0.05, "outputs": []},
        "b": {"cost": 1, "run": "echo b > b", "outputs": ["b"]},
    }
    outcome = foreplan.run({"tasks": tasks}, "local:1", "slack", dir=tmp_path)
    assert outcome.ok
    contents = read(outcome.home / "journal.jsonl")
    told = [entry for entry in contents.entries if entry["t"] == "event"]
    [failed] = [e for e in told if e["kind"] == "task_failed"]
    [due] = [e for e in told if e["kind"] == "retry"]
    assert failed["detail"]["cause"] == "exit"
    assert due["time"] >= failed["time"] + 0.05
    replayed = replay(contents, tmp_path)
    assert replayed.decisions == replayed.journalled
    assert ["wake", failed["time"] + 0.05] in [c for d in replayed.decisions for c in d["do"]]
    report = json.loads(succeed("report", outcome.id, "--json", "--dir", tmp_path))
    assert [(f["task"], f["cause"], f["final"]) for f in report["failures"]] == [
        ("a", "exit", False)
    ]
    used = {task["task"]: task["used"] for task in report["task_list"]}
    assert all(used[task]["cpu"] >= 0 and used[task]["memory"] > 0 for task in "ab")
    assert sorted(row["attempts"] for row in report["usage"]) == [1, 2]
    words = succeed("report", outcome.id, "--dir", tmp_path)
    assert "What was used" in words
    succeed("report", outcome.id, "--dir", tmp_path, "--html", tmp_path / "page.html")
    assert "What was used" in (tmp_path / "page.html").read_text()


def test_a_cause_that_is_not_tried_again(tmp_path: Path) -> None:
    task = {"run": "sleep 100", "timeout": 0.05, "retries": 5, "retry": {"time-out": 0}}
    outcome = foreplan.run({"tasks": {"a": task}}, "local:1", dir=tmp_path)
    assert (outcome.status, len(outcome.run.attempts.task)) == ("failed", 1)


def any_used(rng: random.Random) -> dict[str, Any]:
    amounts = {"memory": rng.randrange(1 << 40), "cpu": rng.random() * 1e4,
               "read": rng.randrange(1 << 50), "written": 0}  # fmt: skip
    some = {key: value for key, value in amounts.items() if rng.random() < 0.7}
    return some | ({"at_most": True} if "memory" in some and rng.random() < 0.3 else {})


@pytest.mark.parametrize("seed", repetitions(5))
def test_what_was_used_comes_back_from_a_journal(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    events: list[Event] = []
    for k in range(20):
        detail = {"seconds": rng.random(), "used": any_used(rng)}
        events.append(TaskFinished(k, float(k), detail=detail) if rng.random() < 0.5
                      else TaskFailed(k, float(k), detail={**detail, "cause": "exit"}))  # fmt: skip
    journal = Journal.create(tmp_path / "journal.jsonl", {"rules": RULES})
    journal.append([{"t": "event", **event.to_dict()} for event in events])
    journal.close()
    entries = read(tmp_path / "journal.jsonl").entries
    again = [
        Event.from_dict({k: v for k, v in e.items() if k not in ("t", "seq")}) for e in entries
    ]
    assert [(e, e.detail) for e in again] == [(e, e.detail) for e in events]
