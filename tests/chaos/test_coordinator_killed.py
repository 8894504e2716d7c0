"""The coordinator is killed at random moments, again and again: the run goes on each time."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.runs import (
    Place,
    check_nothing_repeated,
    drive_and_kill,
    ended,
    moments,
    rebuilt,
    rows,
    sums,
    until,
    write,
)
from repeated import repetitions

STRATEGIES = ("auto", "slack", "static", "always[planner=heft]", "fifo")
SCRIPT = str(Path(__file__).with_name("sums_flow.py"))


def check(place: Place, snapshots: list[dict[str, int]], n: int) -> None:
    assert snapshots, "it was over before it could be killed"
    assert len(place.finished()) == n
    check_nothing_repeated(place, snapshots)
    replayed = rebuilt(place)
    assert replayed.progress.coordinator.done
    assert {end["status"] for end in replayed.ends} == {"finished"}
    until(lambda: not place.processes(), "the end of all processes of the run", 10)


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_commands(place: Place, seed: int) -> None:
    work = sums(200, seed)
    file, strategy = write(place, work), random.Random(seed).choice(STRATEGIES)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.weft("run", file, "--on", "local:3", "--strategy", strategy)
        return place.weft("resume", "last")

    snapshots = drive_and_kill(place, sit, moments(seed, 5, 350))
    work.check(place)
    check(place, snapshots, 200)


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_functions(place: Place, seed: int) -> None:
    work = sums(200, seed)
    strategy = random.Random(seed).choice(STRATEGIES)

    def sit() -> subprocess.Popen[str]:
        return place.begin(sys.executable, SCRIPT, strategy, rows(work))

    snapshots = drive_and_kill(place, sit, moments(seed, 4, 350))
    check(place, snapshots, 200)
    code, output = ended(sit())  # which has nothing to do, and still has the results
    assert code == 0, output
    assert output.splitlines()[-1] == str(work.expected)


def test_a_task_that_is_killed_more_often_than_it_may_be_lost(place: Place) -> None:
    """A user who goes on with a run wants its tasks to be tried again, as often as that is."""
    work = sums(3, extra='[ -e "$WEFT_DIR/go" ] || sleep 60; ')
    file = write(place, work)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.weft("run", file, "--on", "local:1")
        if len(list(place.records.iterdir())) == 6:
            (place.data / "go").touch()
        return place.weft("resume", "last")

    def in_the_task(place: Place, process: subprocess.Popen[str]) -> None:
        tries = len(list(place.records.iterdir()))
        until(lambda: len(list(place.records.iterdir())) > tries, "another try")

    snapshots = drive_and_kill(place, sit, [in_the_task] * 6)
    assert place.executions()["t0"] == 7
    work.check(place)
    check(place, snapshots, 3)


def test_killed_after_the_last_task(place: Place) -> None:
    """All is done, but the journal does not say how it ended."""
    work = sums(8)
    file = write(place, work)
    code, output = ended(place.weft("run", file))
    assert code == 0, output
    home = place.the_home()
    lines = home.journal.read_bytes().splitlines(keepends=True)
    home.journal.write_bytes(b"".join(lines[:-1]))
    before = place.executions()
    code, output = ended(place.weft("resume", "last"))
    assert code == 0, output
    assert place.executions() == before
    check_nothing_repeated(place, [])
