"""Ctrl-C, a second coordinator, and a workflow that was changed between two sessions."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from chaos.runs import (
    Place,
    Sums,
    check_nothing_repeated,
    ended,
    killed,
    rebuilt,
    sums,
    until,
    write,
)

HOLD = '[ -e "$FOREPLAN_DIR/go" ] || sleep 0.4; '  # long enough to be met while it runs
STUCK = '[ -e "$FOREPLAN_DIR/go" ] || sleep 60; '


def started(place: Place, work: Sums, running: int) -> subprocess.Popen[str]:
    """A run under way, with so many tasks that run."""
    driver = place.foreplan("run", write(place, work), "--on", f"local:{running}", "--no-history")
    until(lambda: sum(place.executions().values()) >= running, f"{running} tasks that run")
    return driver


def files(place: Place) -> dict[str, bytes]:
    """All that is in the data directory, but for what whoever drives the run adds by itself."""
    own = ("lock", "run.log")  # and beats
    found = (path for path in place.data.rglob("*") if path.is_file() and path.name not in own)
    read = {str(path.relative_to(place.data)): path.read_bytes() for path in found}
    for name in [name for name in read if name.endswith(".jsonl")]:
        lines = read[name].splitlines()
        read[name] = b"\n".join(line for line in lines if b'"t":"beat"' not in line)
    return read


def resumed(place: Place, work: Sums) -> None:
    (place.data / "go").touch()
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 0, output
    work.check(place)
    rebuilt(place)


def test_once_finishes_what_runs(place: Place) -> None:
    work = sums(30, extra=HOLD)
    driver = started(place, work, 2)
    driver.send_signal(signal.SIGINT)
    code, output = ended(driver)
    assert code == 130, output
    assert "stopping" in output
    assert "foreplan resume" in output
    assert not place.processes()
    before, executed = place.finished(), place.executions()
    assert before == executed, "what ran was lost"
    assert [end["status"] for end in rebuilt(place, partly=True).ends] == ["stopped"]
    resumed(place, work)
    check_nothing_repeated(place, [dict(executed)])


def test_twice_stops_now(place: Place) -> None:
    work = sums(30, extra=STUCK)
    driver = started(place, work, 2)
    driver.send_signal(signal.SIGINT)
    until(lambda: '"paused"' in place.the_home().journal.read_text(), "the pause in the journal")
    driver.send_signal(signal.SIGTERM)  # which is as good
    code, output = ended(driver)
    assert code == 130, output
    assert "foreplan resume" in output
    until(lambda: not place.processes(), "the end of all processes of the run")
    resumed(place, work)
    check_nothing_repeated(place, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_at_any_moment(place: Place, number: signal.Signals) -> None:
    """A signal at start-up, too, ends in words and leaves nothing behind."""
    work = sums(30)
    for moment in (0.2, 0.4, 0.6, 0.8, 1.0):
        driver = place.foreplan("run", write(place, work), "--no-history")
        try:
            driver.wait(moment)
        except subprocess.TimeoutExpired:
            driver.send_signal(number)
        code, output = ended(driver)
        assert code in (0, 130, -number), output
        assert "Traceback" not in output or place.home() is None, output
    if place.home() is None:
        return
    resumed(place, work)


def test_two_coordinators(place: Place) -> None:
    """The second one says who drives the run, and changes nothing."""
    work = sums(10, extra=STUCK)
    driver = started(place, work, 2)
    before = files(place)
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 2
    assert f"process {driver.pid} on host" in output
    assert files(place) == before
    assert driver.poll() is None
    killed(driver)
    resumed(place, work)
    check_nothing_repeated(place, [])


def changed(work: Sums, path: Path) -> None:
    """One task is new, one gone, and one says something else."""
    tasks = dict(work.content["tasks"])
    gone = tasks.pop("t9")
    tasks["extra"] = {**gone, "outputs": ["extra.txt"], "run": "echo > extra.txt"}
    tasks["t1"] = {**tasks["t1"], "run": "echo 1 > x1.txt"}
    path.write_text(json.dumps({**work.content, "tasks": tasks}))


def test_the_workflow_has_changed(place: Place) -> None:
    work = sums(10, extra=STUCK)
    driver = started(place, work, 2)
    killed(driver)
    changed(work, place.data / "sums.json")
    (place.data / "go").touch()
    journal = place.the_home().journal.read_bytes()
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 2
    said = " ".join(output.split())
    assert "the workflow has changed" in said
    for part in ("new: extra", "gone: t9", "changed: t1", "--as-started"):
        assert part in said
    assert place.the_home().journal.read_bytes() == journal
    code, output = ended(place.foreplan("resume", "last", "--as-started"))
    assert code == 0, output
    work.check(place)
    rebuilt(place)
