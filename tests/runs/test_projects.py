"""Two projects with a category of one name: what the one measures is not taken for the other."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import UnaffordableError
from foreplan.history.records import TaskRecord
from foreplan.history.repository import Repository
from foreplan.runs.entries import Header
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read


@pytest.fixture
def projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    return folders


def aligns(cost: float | None, run: str = "true") -> dict[str, Any]:
    """Two tasks of the category `align`."""
    task = {"run": run, "category": "align"} | ({} if cost is None else {"cost": cost})
    return {"name": "wf", "tasks": {"a": task, "b": task}}


def test_a_budget_is_not_planned_by_the_work_of_another_project(
    projects: tuple[Path, Path],
) -> None:
    one, two = projects
    assert foreplan.run(aligns(None), "local:1", dir=one).ok  # `align` takes milliseconds there
    with pytest.raises(UnaffordableError, match="the cheapest found costs 10"):
        foreplan.run(aligns(5.0, "sleep 5"), "local:1", dir=two, price=1.0, budget=3.0)
    assert not (two / ".foreplan" / "runs").exists() or not list(
        (two / ".foreplan" / "runs").iterdir()
    )


def test_a_run_learns_for_its_own_workflow_and_directory(projects: tuple[Path, Path]) -> None:
    one, two = projects
    outcome = foreplan.run(aligns(None), "local:1", dir=one)
    check_run(outcome.run)
    with Repository() as repository:
        (record, other) = repository.tasks()
        assert record.directory == str(one)
        assert record.workflow == "wf"
        assert record.command == other.command != ""
        machine = socket.gethostname()
        slow = TaskRecord(2e9, "r", "wf", "align", machine, 50.0, directory=str(two), command="x")
        repository.add([slow] * 30)

    def expected(cost: float | None, folder: Path, run: str = "true") -> float:
        again = foreplan.run(aligns(cost, run), "local:1", dir=folder)
        header = Header.from_dict(read(RunHome.find(folder, again.id).journal).header, folder)
        return float(header.estimates.cost[0, 0])

    assert expected(5.0, one) < 1  # measured in this workflow before: it counts more than a guess
    assert expected(5.0, two) == pytest.approx(50.0)
    (two / "sub").mkdir()
    assert expected(None, two / "sub") < 1  # the same command in another directory
    (two / "sup").mkdir()
    assert expected(None, two / "sup", "true; true") == 1.0  # another one: nothing is known of it
