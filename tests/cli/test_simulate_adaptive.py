"""`foreplan simulate` with aheft and min-min: the paper's sample, announced leaves, bad options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .commands import refuse, succeed

GOLDENS = Path(__file__).parents[1] / "goldens"
SAMPLE = (
    "simulate",
    str(GOLDENS / "topcuoglu.workflow.yaml"),
    "-p",
    str(GOLDENS / "topcuoglu-r4-joins-at-15.platform.yaml"),
)
SMALL = ("simulate", "wf.yaml", "-p", "pf.yaml", "--world", "world.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tasks = {f"t{i}": {"cost": 10} for i in range(8)}
    (tmp_path / "wf.yaml").write_text(json.dumps({"tasks": tasks}))
    (tmp_path / "pf.yaml").write_text("processors: {p0: {}, p1: {}}")
    (tmp_path / "world.yaml").write_text("leaving: {p1: [5, 35]}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def test_the_papers_sample() -> None:
    printed = json.loads(succeed(*SAMPLE, "--strategy", "aheft", "--json"))
    assert printed["makespan"] == 80
    assert (printed["considered"], printed["replans"], printed["migrations"]) == (1, 0, 0)
    assert printed["strategy"] == "aheft"
    assert "r4" not in {task["processor"] for task in printed["tasks"].values()}
    (evaluation,) = printed["evaluations"]
    assert evaluation["reason"] == "r4 joined"
    assert (evaluation["time"], evaluation["projected"], evaluation["taken"]) == (15, 80, False)
    assert evaluation["makespan"] >= 80
    shown = succeed(*SAMPLE, "--strategy", "aheft")
    assert "new plans: 1 considered, 0 taken" in shown
    assert "r4 joined" in shown


def simulated(*options: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(succeed(*SMALL, *options, "--json"))
    return content


def test_a_world_in_which_one_leaves(folder: Path) -> None:
    drained = simulated("--strategy", "aheft")
    assert drained["makespan"] == 50
    on_p1 = [task for task in drained["tasks"].values() if task["processor"] == "p1"]
    assert sorted(task["finish"] for task in on_p1) == [10, 20, 30]
    evaluation, after = drained["evaluations"]
    assert evaluation["projected"] is None  # it cannot be followed
    assert (after["time"], after["taken"]) == (35, False)
    assert evaluation["taken"] is True
    assert simulated("--strategy", "static")["makespan"] >= 50
    assert simulated("--strategy", "min-min")["considered"] == 0
    shown = succeed(*SMALL, "--strategy", "aheft")
    assert "p1 leaving" in shown


REFUSED = [
    ("aheft[threshold=-1]", "threshold"),
    ("aheft[threshold=nan]", "threshold"),
    ("aheft[threshold=much]", "threshold"),
    ("aheft[learn=perhaps]", "true or false"),
    ("aheft[treshold=1]", "did you mean 'threshold'?"),
    ("min-min[planner=heft]", "planner"),
]


@pytest.mark.parametrize(("strategy", "problem"), REFUSED)
def test_bad_options(folder: Path, strategy: str, problem: str) -> None:
    assert problem in refuse(*SMALL, "--strategy", strategy)


def test_bad_leaves(folder: Path) -> None:
    (folder / "world.yaml").write_text("leaving: {p1: [50, 35]}")
    problem = refuse(*SMALL, "--strategy", "aheft")
    assert "world.yaml" in problem
    assert "leaving.p1" in problem
    (folder / "world.yaml").write_text("leaving: {p2: [5, 35]}")
    assert "leaving.p2" in refuse(*SMALL)
