"""GTP on this machine: a task that stands still is stopped for good, and runs again elsewhere."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import foreplan
from chaos.runs import limited
from foreplan.model import Run
from foreplan.model.events import SpeedChanged
from foreplan.model.record import ENDS
from model.told import what
from runs.people import Somebody, checked

STRATEGY = "gtp/c/r[period=0.1]"
proc = pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="no /proc")


def made(k: int) -> dict[str, Any]:
    """Half of a file, and the rest of it once another one is there; and what it need not write."""
    mine = f"{k}-$FOREPLAN_ATTEMPT"
    run = (
        f"echo half{mine} > out{k}; echo {mine} > left{mine}; "
        f"cd $FOREPLAN_DIR; echo $$ > pid{mine}.new; mv pid{mine}.new pid{mine}; cd $OLDPWD; "
        f"while ! test -e $FOREPLAN_DIR/go{k}; do sleep 0.02; done; echo whole{mine} >> out{k}"
    )
    return {"run": run, "outputs": [f"out{k}"], "cost": 60.0}


def workflow(n: int) -> dict[str, Any]:
    outputs = [f"out{k}" for k in range(n)]
    read = {"run": f"cat {' '.join(outputs)} > all", "inputs": outputs, "outputs": ["all"]}
    tasks = {f"made{k}": made(k) for k in range(n)} | {"all": {**read, "cost": 0.01}}
    return {"name": "halves", "tasks": tasks}


def attempts_at(run: Run, name: str) -> list[tuple[int, str]]:
    """The attempts at a task, and how they ended."""
    log, task = run.attempts, run.workflow.task_names.index(name)
    return [(k, ENDS[log.end[k]]) for k in (log.task == task).nonzero()[0].tolist()]


def pids(data: Path, k: int) -> list[tuple[int, int]]:
    """The attempts that have begun with a file, and their processes."""
    files = sorted(data.glob(f"pid{k}-*[0-9]"))
    return [(int(path.name.split("-")[1]), int(path.read_text())) for path in files]


def is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def halves_are_whole(data: Path, run: Run, n: int) -> None:
    """Each file is of the attempt that finished, and of no other; nothing else was published."""
    finished = [attempts_at(run, f"made{k}")[-1][0] for k in range(n)]
    wanted = [f"half{k}-{a}\nwhole{k}-{a}\n" for k, a in enumerate(finished)]
    assert [(data / f"out{k}").read_text() for k in range(n)] == wanted
    assert (data / "all").read_text() == "".join(wanted)
    assert not list(data.glob("left*"))


@proc
def test_a_command_that_is_stopped(data: Path) -> None:
    moved: list[tuple[int, int, int]] = []

    def act(me: Somebody) -> None:
        me.until_running({0, 1})
        k = int(me.running_on(1)[-1])
        attempt, group = me.until(lambda: pids(data, k))[-1]
        os.killpg(group, signal.SIGSTOP)
        moved.append((k, attempt, group))
        me.until(lambda: any(what(e) == 0 for e in me.heard(SpeedChanged)))
        me.until(lambda: is_gone(group))
        assert not (data / f"out{k}").exists()  # the half of it is nobody's
        for gate in range(2):
            (data / f"go{gate}").touch()

    somebody = Somebody(act)
    try:
        with limited(90):
            outcome = foreplan.run(workflow(2), "local:2", STRATEGY, dir=data, listener=somebody)
    finally:
        if moved and not is_gone(moved[0][2]):
            os.killpg(moved[0][2], signal.SIGKILL)
    assert somebody.error is None, somebody.error
    run = checked(outcome)
    k, attempt, _ = moved[0]
    tries = attempts_at(run, f"made{k}")
    assert (attempt, "cancelled") in tries
    # on a busy machine others may be found slow, and moved, too
    assert [end for _, end in tries] == ["cancelled"] * (len(tries) - 1) + ["finished"]
    assert run.restarts >= len(tries) - 1
    halves_are_whole(data, run, 2)
    assert not [e for e in os.scandir(outcome.home / "attempts") if e.is_dir()]


def test_a_task_that_could_be_faster_elsewhere(data: Path) -> None:
    """A migration as the plan has it: the old attempt is over before a new one begins."""
    ended: list[bool] = []

    def act(me: Somebody) -> None:
        me.until(lambda: len(me.running()) == 1)
        p = next(iter(me.running().values()))
        [(_, group)] = me.until(lambda: pids(data, 0))
        me.session.machines.post(SpeedChanged(p, 0.0, 0.0))
        me.until(lambda: set(me.running().values()) == {1 - p})
        me.until(lambda: len(pids(data, 0)) == 2)
        me.until(lambda: is_gone(group))
        ended.append(True)
        (data / "go0").touch()

    somebody = Somebody(act)
    with limited(90):
        outcome = foreplan.run(workflow(1), "local:2", STRATEGY, dir=data, listener=somebody)
    assert somebody.error is None, somebody.error
    run = checked(outcome)
    assert ended
    assert [end for _, end in attempts_at(run, "made0")] == ["cancelled", "finished"]
    halves_are_whole(data, run, 1)
