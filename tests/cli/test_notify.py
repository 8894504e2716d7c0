"""`foreplan run --notify`: a command that hears how the run has ended."""

from __future__ import annotations

import json
from pathlib import Path

from .commands import foreplan, succeed
from .live_runs import Gate, chain, started, the_id, write_workflow

VARIABLES = "$FOREPLAN_RUN|$FOREPLAN_STATUS|$FOREPLAN_MAKESPAN|$FOREPLAN_MESSAGE"
TELL = f'echo "{VARIABLES}" > notified; echo heard'
RUN = ("run", "wf.yaml", "--on", "local:1", "-q")


def heard(folder: Path) -> list[str]:
    return (folder / "notified").read_text().strip().split("|")


def test_a_run_that_is_finished(folder: Path) -> None:
    write_workflow(folder, chain(folder))
    done = foreplan(*RUN, "--json", "--notify", TELL, cwd=folder)
    assert done.returncode == 0
    told = json.loads(done.stdout)  # what it prints goes elsewhere
    assert done.stderr.endswith("heard\n")
    run, status, makespan, message = heard(folder)
    assert (run, status) == (the_id(folder), "finished")
    assert abs(float(makespan) - told["makespan"]) < 0.01
    assert message.startswith(f"run {run} finished: 3 tasks done in ")


def test_a_run_that_failed_and_is_resumed(folder: Path) -> None:
    write_workflow(folder, {"a": {"run": "test -e ok", "inputs": []}})
    assert foreplan(*RUN, "--notify", TELL, cwd=folder).returncode == 1
    assert heard(folder)[1] == "failed"
    again = foreplan("resume", "last", "-q", "--notify", TELL, cwd=folder)
    assert again.returncode == 1
    assert heard(folder)[0] == the_id(folder)


def test_its_own_failure_is_only_told(folder: Path) -> None:
    write_workflow(folder, {"a": {"run": "true"}})
    done = foreplan(*RUN, "--notify", "exit 7", cwd=folder)
    assert done.returncode == 0
    assert "the command of --notify failed: it exited with code 7: exit 7\n" in done.stderr


def test_nothing_is_heard_of_a_run_that_did_not_begin(folder: Path) -> None:
    write_workflow(folder, {"a": {"run": "cat b", "inputs": ["b"]}})
    assert foreplan(*RUN, "--notify", TELL, cwd=folder).returncode == 2
    assert not (folder / "notified").exists()


def test_a_run_that_is_stopped(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started(*RUN, "--notify", TELL, cwd=folder) as run:
        gate.wait()
        run.interrupt()
        run.wait_for("stopping")
        gate.open()
        assert run.end()[0] == 130
    assert heard(folder)[:2] == [the_id(folder), "stopped"]
    assert "2/3" in succeed("runs", cwd=folder)


def test_a_run_that_is_stopped_at_once(folder: Path, gate: Gate) -> None:
    write_workflow(folder, chain(folder, gate))
    with started(*RUN, "--notify", TELL, cwd=folder) as run:
        gate.wait()
        run.interrupt()
        run.wait_for("stopping")
        run.interrupt()
        assert run.end()[0] == 130
    assert heard(folder)[:2] == [the_id(folder), "stopped"]
