"""The coordinator is killed at random moments, again and again: the run goes on each time."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.runs import (
    Place,
    after_executions,
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
    assert replayed.driver.coordinator.done
    assert {end["status"] for end in replayed.ends} == {"finished"}
    until(lambda: not place.processes(), "the end of all processes of the run")


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_commands(place: Place, seed: int) -> None:
    work = sums(200, seed)
    file, strategy = write(place, work), random.Random(seed).choice(STRATEGIES)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.foreplan("run", file, "--on", "local:3", "--strategy", strategy)
        return place.foreplan("resume", "last")

    snapshots = drive_and_kill(place, sit, moments(seed, 5, 350))
    work.check(place)
    check(place, snapshots, 200)


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_commands_by_new_runs(place: Place, seed: int) -> None:
    """Nobody resumes: what is finished is known to the next run by what it was made from."""
    work, chance = sums(200, seed), random.Random(seed)
    file, strategy = write(place, work), chance.choice(STRATEGIES)

    def sit() -> subprocess.Popen[str]:
        return place.foreplan("run", file, "--on", "local:3", "--strategy", strategy)

    kills = [after_executions(chance.randint(1, 40)) for _ in range(8)]
    snapshots = drive_and_kill(place, sit, kills)
    work.check(place)
    assert snapshots, "it was over before it could be killed"
    check_nothing_repeated(place, snapshots, renumbered=True)
    done = json.loads(ended(place.foreplan("run", file, "--json"))[1])
    assert (done["run"], len(done["up_to_date"])) == (None, 200)


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


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_functions_by_new_runs(place: Place, seed: int) -> None:
    """Nobody resumes: what is finished is known to the next run by its key, and is right."""
    work, chance = sums(120, seed), random.Random(seed)
    strategy = chance.choice(STRATEGIES)
    place.environment["FOREPLAN_CHAOS_ANEW"] = "1"

    def sit() -> subprocess.Popen[str]:
        return place.begin(sys.executable, SCRIPT, strategy, rows(work))

    kills = [after_executions(chance.randint(1, 40)) for _ in range(5)]
    snapshots = drive_and_kill(place, sit, kills)
    check_nothing_repeated(place, snapshots, renumbered=True)
    before = place.executions()
    code, output = ended(sit())
    assert code == 0, output
    assert output.splitlines()[0] == "nothing was to do"
    assert output.splitlines()[-1] == str(work.expected)
    assert place.executions() == before


def test_a_task_that_is_killed_more_often_than_it_may_be_lost(place: Place) -> None:
    """A user who resumes a run wants its tasks to be tried again, as often as that is."""
    work = sums(3, extra='[ -e "$FOREPLAN_DIR/go" ] || sleep 60; ')
    file = write(place, work)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.foreplan("run", file, "--on", "local:1")
        if len(list(place.records.iterdir())) == 6:
            (place.data / "go").touch()
        return place.foreplan("resume", "last")

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
    code, output = ended(place.foreplan("run", file))
    assert code == 0, output
    home = place.the_home()
    lines = home.journal.read_bytes().splitlines(keepends=True)
    home.journal.write_bytes(b"".join(lines[:-1]))
    before = place.executions()
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 0, output
    assert place.executions() == before
    check_nothing_repeated(place, [])
