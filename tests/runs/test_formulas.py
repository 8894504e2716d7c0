"""Memory by `inputs`: what tasks ask for follows from what is there when they start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.model.resources import MEMORY
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.opening import reopen_run
from foreplan.runs.outcome import Outcome
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent
from runs.noted import blob, length

MB = 1e6
HERE = "local:cores=2,memory=1GB"
MAKE = "head -c 2000000 /dev/zero > two; mkdir dir; head -c 1000000 /dev/zero > dir/one"


class Ears(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def said(self, message: str) -> None:
        self.heard.append(message)


def held(outcome: Outcome) -> dict[str, float]:
    """The memory of the last attempt of each task; a replay comes to the same."""
    replayed = replay(read(RunHome(outcome.home).journal), outcome.home.parents[2])
    assert replayed.decisions == replayed.journalled
    replayed.driver.coordinator.check_state()
    found = []
    for run in (outcome.run, replayed.run()):
        if outcome.ok:
            check_run(run)
        names, log = run.workflow.task_names, run.attempts
        assert log.amount is not None
        tasks = zip(log.task.tolist(), log.amount[:, 0].tolist(), strict=True)
        found.append({names[task]: memory for task, memory in tasks})
    assert found[0] == found[1]
    return found[0]


def files(data: Path, then: str = "true") -> dict[str, Any]:
    (data / "three").write_bytes(bytes(3_000_000))
    makes = {
        "run": MAKE,
        "inputs": ["three"],
        "outputs": ["two", "dir/"],
        "memory": "20MB+40*inputs",
    }
    reads = {
        "run": f"{then} && cat two > out",
        "inputs": ["two", "dir/", "three"],
        "outputs": ["out"],
        "memory": "10 MB + 10 * inputs * attempt",
    }
    return {"name": "w", "tasks": {"makes": makes, "reads": reads}}


@pytest.mark.parametrize("strategy", ["static", "fifo", "min-min"])
def test_files_that_are_there_and_those_that_are_made(data: Path, strategy: str) -> None:
    ears = Ears()
    source: Any = files(data)
    outcome = foreplan.run(source, HERE, dir=data, strategy=strategy, listener=ears)
    assert outcome.ok
    assert held(outcome) == {"makes": 140 * MB, "reads": 70 * MB}
    said = [line for line in ears.heard if "size of inputs" in line]
    wanted = "resources requested by the size of inputs are known once the inputs are made: reads"
    assert said == [wanted]
    # what is made is there now, and no part of the next run
    again = Ears()
    outcome = foreplan.run(
        source, HERE, dir=data, strategy=strategy, force=["reads"], listener=again
    )
    assert held(outcome) == {"reads": 70 * MB}
    assert not [line for line in again.heard if "size of inputs" in line]


def test_what_is_planned_beforehand(data: Path) -> None:
    source: Any = files(data)
    expected = foreplan.estimate(foreplan.load(source), on=HERE, dir=data)
    assert expected.estimates.needs is not None
    assert expected.estimates.needs.of(MEMORY).tolist() == [140 * MB, 40 * MB]
    (data / "three").unlink()
    message = foreplan.estimate(foreplan.load(source), on=HERE, dir=data).message
    assert "what makes, reads ask for is computed without the size of three, which" in message


def test_another_try_and_a_resumed_run_know_the_sizes(data: Path) -> None:
    source: Any = files(data, "test -e go")
    source["tasks"]["reads"]["retries"] = 1
    outcome = foreplan.run(source, HERE, dir=data)
    assert outcome.status == "failed"
    assert held(outcome)["reads"] == 130 * MB  # of the second try
    (data / "go").touch()
    with reopen_run(RunHome(outcome.home)) as session:
        resumed = session.drive()
    assert resumed.ok
    assert held(resumed)["reads"] == 190 * MB


@pytest.mark.parametrize("strategy", ["static", "fifo"])
def test_added_tasks(data: Path, strategy: str) -> None:
    reads = "{run: 'cat two three > t', inputs: [two, three], outputs: [t], memory: 1MB+inputs}"
    (data / "three").write_bytes(bytes(3_000_000))
    (data / "adds.yaml").write_text(f"tasks: {{t: {reads}}}")
    tasks = {
        "makes": {"run": "head -c 2000000 /dev/zero > two", "outputs": ["two"], "memory": "1MB"},
        "adds": {"run": "cat adds.yaml", "inputs": ["adds.yaml", "two"], "expand": True},
    }
    source: Any = {"name": "w", "tasks": tasks}
    outcome = foreplan.run(source, HERE, dir=data, strategy=strategy)
    assert outcome.ok
    assert held(outcome)["t"] == 6 * MB


def test_results_of_functions_and_their_files(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    (data / "three").write_bytes(bytes(3_000_000))

    def flow(more: int) -> foreplan.Flow:
        made = foreplan.Flow("f")
        big = made.task(blob, 8_000_000, name="big")
        three = made.file("three")
        made.task(length, big, three, more, name="reads", memory="10MB + 2 * inputs")
        return made

    first = foreplan.run(flow(1), HERE)
    assert first.ok
    assert held(first)["reads"] == pytest.approx(32 * MB, rel=1e-4)
    # the result is taken from there, and its task is no part of the second run
    second = foreplan.run(flow(2), HERE)
    assert second.run.workflow.task_names == ("reads",)
    assert held(second) == {"reads": held(first)["reads"]}
