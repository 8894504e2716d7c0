"""`foreplan simulate --budget`: what is printed, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .commands import foreplan, refuse, succeed, written

ARGUMENTS = ("simulate", "wf.yaml", "-p", "pf.yaml", "--strategy", "slack")
WORKFLOW = """\
name: late
tasks: {a: {cost: 2}, b: {cost: 4}, c: {cost: 4}}
edges: [[a, b], [a, c]]
"""
PLATFORM = "processors: {fast: {speed: 2, price: 3}, slow: {price: 1}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    written(tmp_path, WORKFLOW, PLATFORM)
    (tmp_path / "world.yaml").write_text("durations: {a: 3}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def lines_of(printed: str) -> list[str]:
    return [" ".join(line.split()) for line in printed.splitlines()]


def test_a_budget_that_is_kept(folder: Path) -> None:
    lines = lines_of(succeed(*ARGUMENTS, "--budget", "12"))
    assert lines[1].startswith("strategy slack: makespan 6 s")
    assert lines[2] == "budget 12: 12 spent, 0 left"
    told = json.loads(succeed(*ARGUMENTS, "--budget", "14", "--reserve", "0.1", "--json"))
    assert (told["budget"], told["within_budget"], told["over_budget_at"]) == (14, True, None)
    assert told["cost"] <= 14 * 0.9
    assert "not_done" not in told


def test_without_a_budget_nothing_is_said_of_one(folder: Path) -> None:
    assert "budget" not in succeed(*ARGUMENTS)


def test_one_that_will_not_do(folder: Path) -> None:
    options = ("--budget", "11", "--world", "world.yaml", "--strategy", "slack[planner=loss3]")
    lines = lines_of(succeed(*ARGUMENTS, *options))
    assert lines[2] == "budget 11: 14 spent, 3 over; known at 6 s that it would not be enough"
    assert any("the plan costs more than the budget yes, it had to be" in line for line in lines)


def test_one_that_stops_the_run(folder: Path) -> None:
    world = ("--world", "world.yaml", "--strategy", "slack[planner=loss3]")
    stops = ("--budget", "11", "--over-budget", "stop", *world)
    done = foreplan(*ARGUMENTS, *stops, "--gantt", "x.svg", "--journal", "x.jsonl")
    assert (done.returncode, done.stderr) == (130, "")
    lines = lines_of(done.stdout)
    assert lines[2] == "budget 11: 6 spent, 5 left; known at 6 s that it would not be enough"
    assert lines[3] == "stopped for the budget, not done: 2 tasks (b, c)"
    assert (folder / "x.svg").exists()
    assert (folder / "x.jsonl").exists()
    as_json = foreplan(*ARGUMENTS, *stops, "--json")
    assert as_json.returncode == 130
    told = json.loads(as_json.stdout)
    assert (told["not_done"], told["over_budget_at"]) == (["b", "c"], 6)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--budget", "9"), "no plan costs at most 9: the cheapest found costs 10 "),
        (("--budget", "-1"), "budget"),
        (("--budget", "20", "--reserve", "1"), "reserve"),
        (("--budget", "20", "--over-budget", "maybe"), "`continue`, `stop` or `cut`"),
        (("--budget", "20", "--strategy", "fifo"), "makes no plan"),
    ],
)
def test_what_is_refused(folder: Path, options: tuple[str, ...], problem: str) -> None:
    assert problem in refuse(*ARGUMENTS, *options)


def test_what_takes_no_time_is_not_begun_for_ever_without_money(folder: Path) -> None:
    """It counts as free, but where seconds cost money nothing is left to begin it with."""
    written(
        folder,
        "tasks: {a: {cost: 10, outputs: [x]}, b: {cost: 0, inputs: [x]}}\n",
        "processors: {p: {price: 1}}\n",
    )
    run = ("simulate", "wf.yaml", "-p", "pf.yaml", "--over-budget", "cut", "--budget")
    stopped = foreplan(*run, "10")
    assert "stopped for the budget, not done: 1 task (b)" in stopped.stdout
    assert "10 spent, 0 left" in stopped.stdout
    assert "not done" not in foreplan(*run, "10.5").stdout
