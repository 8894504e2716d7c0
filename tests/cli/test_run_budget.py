"""`run --budget`, `resume --budget`, and what other commands tell of the money."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .commands import foreplan, succeed
from .live_runs import Gate, started, the_id, write_workflow

ON = ("--on", "local:1", "--price", "1", "--no-history")


def tens(*names: str) -> dict[str, Any]:
    """Tasks of ten seconds, so they say."""
    return {name: {"run": "true", "cost": 10.0} for name in names}


def report(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(succeed("report", "last", "--json", cwd=folder))
    return told


def test_a_budget_that_holds(folder: Path) -> None:
    write_workflow(folder, tens("a", "b"))
    done = foreplan("run", "wf.yaml", *ON, "--budget", "30", cwd=folder)
    assert done.returncode == 0, done.stderr
    (journal,) = folder.glob(".foreplan/runs/*/journal.jsonl")
    assert '"reserve":0.03' in journal.read_text()
    said = done.stderr.splitlines()
    assert said[0] == "prices: 1 per second"
    assert said[1].endswith("2 tasks on 1 processor (local:1)")
    assert re.search(r"\] [\d.]+ spent, 0 committed, [\d.]+ projected of a budget of 30", said[-1])
    assert re.search(r"^budget 30: [\d.]+ spent, [\d.]+ left$", done.stdout, re.MULTILINE)
    told = report(folder)
    assert (told["budget"], told["within_budget"], told["over_budget_at"]) == (30, True, None)
    (row,) = json.loads(succeed("runs", "--json", cwd=folder))
    assert (row["budget"], row["cost"]) == (30, told["cost"])
    assert told["cost"] > 0
    assert "budget" in succeed("runs", cwd=folder)


def test_late_by_the_deadline(folder: Path) -> None:
    """And over the budget, which is told first; each has an exit code of its own."""
    write_workflow(folder, {"a": {"run": "sleep 0.2", "cost": 0.05}})
    done = foreplan("run", "wf.yaml", *ON, "--deadline", "0.1s", cwd=folder)
    assert done.returncode == 4, done.stderr
    assert re.search(r"^deadline .*: ended at .* late; known at ", done.stdout, re.MULTILINE)
    assert (report(folder)["deadline"], report(folder)["in_time"]) == (0.1, False)
    done = foreplan("run", "wf.yaml", *ON, "--deadline", "0.1s", "--budget", "0.1", cwd=folder)
    assert done.returncode == 3, done.stderr


def test_prices_without_a_budget(folder: Path) -> None:
    write_workflow(folder, tens("a", "b"))
    prices = ("--price", "local-1=2/60", "--transfer-price", "0.5")
    done = foreplan("run", "wf.yaml", *ON, *prices, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "prices: 2 per second, paid per begun 1 min; data 0.5 per unit" in done.stderr
    told = json.loads(done.stdout)
    assert (told["cost"], told["money"]["spent"]) == (120, 120)
    assert "budget" not in told
    assert report(folder)["budget"] is None
    assert "2 per s, per begun 1 min" in succeed("machines", "last", cwd=folder)


def test_stopped_for_the_budget_and_gone_on_with(folder: Path, gate: Gate) -> None:
    """The task that is too slow is waited for until the run has said so."""
    slow = {"run": f"{gate.command}; touch x", "cost": 0.2, "outputs": ["x"]}
    write_workflow(folder, {"a": slow, "b": tens("b")["b"] | {"inputs": ["x"]}})
    stops = ("--budget", "10.3", "--over-budget", "stop")
    with started("run", "wf.yaml", *ON, *stops, cwd=folder) as command:
        gate.wait()
        said = command.wait_for("is not enough")
        assert said.startswith("the budget of 10.3 is not enough: the cheapest way found to finish")
        assert said.endswith("; what runs is finished, then the run stops\n")
        gate.open()
        code, printed = command.end()
    assert code == 130
    run, lines = the_id(folder), printed.splitlines()
    assert lines[0].startswith(f"run {run} stopped: 1 task done, 1 not run, in ")
    assert "left to do: b" in lines
    (again,) = (line for line in lines if line.startswith("resume it: "))
    found = re.fullmatch(
        rf"resume it: foreplan resume {run} --budget ([\d.]+) \(or more.*\)", again
    )
    assert found is not None
    told = report(folder)
    assert told["status"] == "stopped"
    assert told["money"]["spent"] < 10.3 < told["money"]["projected"] <= float(found[1])
    assert told["over_budget_at"] is not None
    (row,) = json.loads(succeed("runs", "--json", cwd=folder))
    assert row["projected"] == told["money"]["projected"]
    waits = json.loads(succeed("why", "b", "--json", cwd=folder))["waits"]
    assert waits.startswith(
        "nobody drives the run, which is stopped: `foreplan resume` takes it up; "
    )
    assert "then it waits for money: the budget of 10.3 is not enough, " in waits
    still = foreplan("resume", "last", cwd=folder)
    assert still.returncode == 130
    assert "is not enough" in still.stderr
    enough = foreplan("resume", "last", "--budget", found[1], cwd=folder)
    assert enough.returncode == 0, enough.stderr
    assert f"budget {float(found[1]):,.6g}: " in enough.stdout
    assert "not done" not in enough.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--budget", "19"), "no plan costs at most 19: the cheapest found costs 20 "),
        (("--budget", "30", "--price", "0"), "give a price"),
        (("--budget", "x"), ""),
        (("--reserve", "0.5"), "give one"),
        (("--price", "1/x"), "--price: '1/x' is no price"),
    ],
)
def test_what_is_refused(folder: Path, options: tuple[str, ...], problem: str) -> None:
    write_workflow(folder, tens("a", "b"))
    done = foreplan("run", "wf.yaml", *ON, *options, cwd=folder)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "resume" not in done.stderr
    assert succeed("runs", cwd=folder).startswith("no runs in ")


def test_no_budget_without_estimates(folder: Path) -> None:
    write_workflow(folder, {"a": {"run": "true"}})
    priced = ("--on", "local:1", "--price", "1")
    done = foreplan("run", "wf.yaml", *priced, "--budget", "5", cwd=folder)
    assert done.returncode == 2
    assert "declare costs" in done.stderr
    known = foreplan("run", "wf.yaml", *priced, cwd=folder)  # which teaches what it takes
    assert known.returncode == 0, known.stderr
    assert re.search(r"^cost [\d.e-]+$", known.stdout, re.MULTILINE)
    again = foreplan("run", "wf.yaml", *priced, "--budget", "5", cwd=folder)
    assert again.returncode == 0, again.stderr
