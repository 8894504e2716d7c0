"""Commands without -p, and tasks without a cost: what they say of machines and the history."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from foreplan.history.records import TaskRecord
from foreplan.history.repository import Repository

from .commands import foreplan, refuse

WORKFLOW = """\
name: naps
tasks:
  a: {run: nap a, category: nap}
  b: {run: nap b, category: nap}
  c: {run: rest}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    (tmp_path / "wf.yaml").write_text(WORKFLOW)
    (tmp_path / "pf.yaml").write_text("processors: {fast: {speed: 2}, slow: {}}\n")
    for k, category in enumerate(["nap", "nap", "naps/c"]):
        record = TaskRecord(
            1e9, f"run-{k}", "naps", category, socket.gethostname(), 8.0, directory=str(tmp_path)
        )
        with Repository() as repository:
            repository.add([record])
    return tmp_path


@pytest.mark.parametrize("command", ["plan", "simulate"])
def test_on_this_machine(folder: Path, command: str) -> None:
    told = foreplan(command, "wf.yaml", "--on", "local:2", "--json", cwd=folder)
    assert json.loads(told.stdout)["makespan"] == pytest.approx(16.0)
    assert told.stderr == (
        "foreplan: wf.yaml: estimates of 3 tasks: 3 measured here before (c, nap: 3 runs)\n"
    )


def test_on_the_machines_of_a_file(folder: Path) -> None:
    words = ("--strategies", "static", "--runs", "1", "--qoi", "0", "--jobs", "1", "--json")
    told = foreplan("compare", "wf.yaml", "-p", "pf.yaml", *words, cwd=folder)
    (row,) = json.loads(told.stdout)["strategies"]
    assert row["makespan"]["mean"] == pytest.approx(8.0)
    assert "3 measured on other machines (c, nap: 3 runs)" in told.stderr


def test_without_the_history(folder: Path) -> None:
    told = foreplan("plan", "wf.yaml", "-p", "pf.yaml", "--no-history", "--json", cwd=folder)
    assert json.loads(told.stdout)["makespan"] == pytest.approx(1.0)
    assert "no task has a cost, so all count alike: a second at speed 1" in told.stderr
    other = foreplan("plan", "../wf.yaml", "--on", "local:1", "--json", cwd=_made(folder / "sub"))
    assert json.loads(other.stdout)["makespan"] == pytest.approx(3.0)  # not of this directory
    assert "planning blind" in other.stderr


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_refusals(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    said = refuse("plan", "wf.yaml", "--on", "local:2", "--budget", "3", cwd=folder)
    assert "nothing costs anything here, so a budget means nothing" in said
    said = refuse("simulate", "wf.yaml", "--on", "elsewhere", cwd=folder)
    assert said.startswith("'elsewhere' is no place to run")
    said = refuse("plan", "wf.yaml", "-p", "pf.yaml", "--price", "1", cwd=folder)
    assert said.endswith("leave out --price")
    assert sorted(folder.rglob("*")) == before


def test_what_if_on_this_machine(folder: Path) -> None:
    words = ("--on", "local:1", "--price", "2", "--add", "local-1:2", "--json")
    told = json.loads(foreplan("what-if", "wf.yaml", *words, cwd=folder).stdout)
    assert told["present"] == {"makespan": pytest.approx(24.0), "cost": pytest.approx(48.0)}
    assert told["alternatives"][0]["makespan"] == pytest.approx(8.0)
