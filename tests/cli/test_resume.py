"""`foreplan resume`: go on where it was, and do not repeat what is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from .commands import foreplan, refuse
from .live_runs import Gate, chain, failed, started, the_id, write_workflow

ON = ("--on", "local:2")


@pytest.fixture
def stopped(folder: Path) -> Iterator[Path]:
    """A run that was stopped at once while the second of three tasks ran."""
    gate = Gate(folder)
    write_workflow(folder, chain(folder, gate))
    with started("run", "wf.yaml", *ON, cwd=folder) as command:
        gate.wait()
        command.interrupt()
        command.wait_for("stopping")
        command.interrupt()
        assert command.end()[0] == 130
    gate.open()  # it need not stop there again
    yield folder
    gate.close()


def ran(folder: Path) -> list[str]:
    return (folder / "ran").read_text().split()


def test_what_is_done_is_not_repeated(stopped: Path) -> None:
    assert ran(stopped) == ["a", "b"]
    done = foreplan("resume", "last", cwd=stopped)
    assert done.returncode == 0, done.stderr
    assert ran(stopped) == ["a", "b", "b", "c"]
    run = the_id(stopped)
    assert f"run {run} is resumed: 1 of 3 tasks done" in done.stderr
    assert f"run {run} finished: 3 tasks done" in done.stdout
    assert (stopped / "c.txt").read_text() == "1\n" * 4


def test_a_finished_run_stays_as_it_is(stopped: Path) -> None:
    assert foreplan("resume", "last", cwd=stopped).returncode == 0
    before = ran(stopped)
    done = foreplan("resume", "small-", cwd=stopped)
    assert done.returncode == 0, done.stderr
    assert f"run {the_id(stopped)} was finished already" in done.stdout
    assert ran(stopped) == before
    printed = json.loads(foreplan("resume", "last", "--json", cwd=stopped).stdout)
    assert printed["status"] == "finished"
    assert ran(stopped) == before


def test_a_change_of_the_workflow_is_explained(stopped: Path) -> None:
    text = (stopped / "wf.yaml").read_text()
    (stopped / "wf.yaml").write_text(text.replace("cat b.txt b.txt", "cat b.txt"))
    message = refuse("resume", "last", cwd=stopped)
    assert "has changed" in message
    assert "changed: c" in message
    assert "--as-started" in message
    assert ran(stopped) == ["a", "b"]
    done = foreplan("resume", "last", "--as-started", cwd=stopped)
    assert done.returncode == 0, done.stderr
    assert (stopped / "c.txt").read_text() == "1\n" * 4


def test_a_workflow_that_is_broken_or_gone(stopped: Path) -> None:
    (stopped / "wf.yaml").write_text("tasks: {a: {cots: 1}}")
    message = refuse("resume", "last", cwd=stopped)
    assert "wf.yaml: line 1: tasks.a: " in message
    assert "--as-started" in message
    (stopped / "wf.yaml").unlink()
    done = foreplan("resume", "last", cwd=stopped)
    assert done.returncode == 0, done.stderr
    assert "wf.yaml is gone: the run is resumed with the workflow as it was" in done.stderr


def test_failed_tasks_are_tried_again(folder: Path) -> None:
    tasks, marker = chain(folder), folder / "mended"
    tasks["b"]["run"] = f"test -e {marker} || exit 1; {tasks['b']['run']}"
    write_workflow(folder, tasks)
    failed("run", "wf.yaml", *ON, cwd=folder)
    failed("resume", "last", cwd=folder)
    marker.touch()
    done = foreplan("resume", the_id(folder), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ran(folder) == ["a", "b", "c"]
    assert "failed attempts: 2\n" in done.stdout


def test_a_run_that_is_driven_is_left_alone(folder: Path) -> None:
    gate = Gate(folder)
    write_workflow(folder, chain(folder, gate))
    with started("run", "wf.yaml", *ON, cwd=folder) as command:
        gate.wait()
        assert "is being driven by process" in refuse("resume", "last", cwd=folder)
        gate.open()
        assert command.end()[0] == 0
    gate.close()


def test_unknown_runs(folder: Path) -> None:
    assert "there is no run 'last'" in refuse("resume", "last", cwd=folder)
