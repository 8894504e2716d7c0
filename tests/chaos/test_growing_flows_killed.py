"""Functions that add tasks, killed anywhere, then resumed or begun anew: right each time."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.runs import Moment, Place, after_entries, drive_and_kill, ended, rebuilt, until
from chaos.splitting_flow import PARTS
from repeated import MANY, repetitions

SCRIPT = str(Path(__file__).with_name("splitting_flow.py"))
KILLS = 20 if MANY else 3
LAST = 2 * sum(2000 + k for n in range(PARTS, PARTS + 3) for k in range(n))
TASKS = 5 + sum(n + 1 for n in range(PARTS, PARTS + 3))


def moments(seed: int, count: int) -> list[Moment]:
    rng = random.Random(seed)
    return [after_entries(rng.randint(1, 12)) for _ in range(count)]


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_killed_and_resumed(place: Place, seed: int) -> None:
    def sit() -> subprocess.Popen[str]:
        return place.begin(sys.executable, SCRIPT)

    drive_and_kill(place, sit, moments(seed, KILLS))
    code, output = ended(place.begin(sys.executable, SCRIPT, "anew"))
    assert (code, "nothing was to do" in output) == (0, True), output
    assert f"last: {LAST}\n" in output
    workflow = rebuilt(place).header.workflow
    assert workflow.n_tasks == TASKS
    kinds = {workflow.spec(task).category for task in range(TASKS)}
    assert kinds == {f"chaos/splitting_flow.{name}" for name in ("number", "total", "split")}
    assert set(place.finished().values()) == {1}  # nothing was made twice
    until(lambda: not place.processes(), "the end of all processes of the runs")


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_killed_and_begun_anew(place: Place, seed: int) -> None:
    for moment in moments(seed, KILLS // 2 + 1):
        process = place.begin(sys.executable, SCRIPT, "anew")
        moment(place, process)
        process.kill()
        process.communicate()
    code, output = ended(place.begin(sys.executable, SCRIPT, "anew"))
    assert code == 0, output
    assert f"last: {LAST}\n" in output
