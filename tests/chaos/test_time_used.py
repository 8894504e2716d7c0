"""Time that an attempt used before foreplan was killed, and until its processes ended, counts."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from chaos.runs import Place, ended, rebuilt, until
from foreplan.checks.runs import check_run
from foreplan.model import ENDS

PRICED = ("--on", "local:1", "--price", "1", "--no-history")


def killed(place: Place, file: Path, seconds: float) -> float:
    """Start a run, and kill foreplan so long after its task has begun; when that was."""
    with place.foreplan("run", str(file), *PRICED) as foreplan:
        until(lambda: (place.data / "begun").exists(), "the begin of the task")
        begun = time.time()
        time.sleep(seconds)
        foreplan.send_signal(signal.SIGKILL)
    return begun


def resume(place: Place) -> None:
    """Let the task be done at once, and go on."""
    (place.data / "go").touch()
    with place.foreplan("resume", "last") as foreplan:
        code, said = ended(foreplan)
    assert code == 0, said


def workflow(place: Place, command: str) -> Path:
    file = place.data / "w.yaml"
    text = f"touch $FOREPLAN_DIR/begun; test -e $FOREPLAN_DIR/go && exit; {command}"
    file.write_text(f"name: t\ntasks:\n  a: {{cost: 3, run: '{text}'}}\n")
    return file


@pytest.mark.parametrize("ends", ["ended by the resume", "ended by itself"])
def test_after_a_kill(place: Place, ends: str) -> None:
    """The orphan lived on until it was ended, or told by its files how long it ran."""
    alone = ends == "ended by itself"
    command = "sleep 1.2; touch out" if alone else "sleep 60"
    file = workflow(place, command)
    begun = killed(place, file, 0.6)
    if alone:
        until(lambda: not place.processes(), "the end of the orphan")
    time.sleep(1.0)  # which is no time of the task's, if it has ended
    resumed = time.time()
    resume(place)
    run = rebuilt(place).run()
    check_run(run)
    assert [ENDS[e] for e in run.attempts.end] == ["failed", "finished"]
    used = float(run.attempts.finish[0] - run.attempts.start[0])
    if alone:
        assert 1.1 < used < resumed - begun
    else:
        assert used > resumed - begun - 0.05
    assert run.cost > used


def test_what_nobody_can_tell_is_counted_until_the_last_beat(place: Place) -> None:
    """Also its processes are gone: the journal has been told the time meanwhile."""
    file = workflow(place, "echo $$ > $FOREPLAN_DIR/pid; sleep 60")
    with place.foreplan("run", str(file), *PRICED) as foreplan:
        home = until(place.home, "the run")
        until(lambda: home.journal.read_bytes().count(b'"t":"beat"') > 2, "two beats more")
        group = int((place.data / "pid").read_text())
        foreplan.send_signal(signal.SIGKILL)
    os.killpg(group, signal.SIGKILL)
    with place.foreplan("runs", "--json") as shown:
        _, said = ended(shown)
    assert json.loads(said)[0]["cost"] > 1.9  # also of a run that nobody has resumed
    resume(place)
    run = rebuilt(place).run()
    assert run.attempts.finish[0] - run.attempts.start[0] > 1.9
