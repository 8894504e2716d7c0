"""What tasks run in is killed at random moments; the coordinator lives, and the run completes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.runs import (
    Place,
    after_entries,
    check_nothing_repeated,
    ended,
    rebuilt,
    rows,
    sums,
    until,
    write,
)
from foreplan.engine.retries import RetryPolicy
from foreplan.model.events import MACHINE_LOST
from repeated import repetitions

SCRIPT = str(Path(__file__).with_name("sums_flow.py"))


def kill_some(place: Place, driver: subprocess.Popen[str], kills: int, seed: int) -> int:
    """Kill processes that the driver has started, one by one; how many.

    If all that were killed had nothing to do just then, more are, until one had.
    """
    rng, killed = random.Random(seed), 0
    while killed < kills or not place.failures():
        after_entries(rng.randint(2, 12) if killed < kills else 1)(place, driver)

        def others() -> list[int] | None:
            if driver.poll() is not None:
                return [-1]
            return [pid for pid in place.processes() if pid != driver.pid]

        pid = rng.choice(until(others, "a process of the run"))
        if pid < 0:
            break
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


@pytest.mark.parametrize("strategy", ["slack", "gtp/c/r"])
@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_function_workers(place: Place, seed: int, strategy: str) -> None:
    """It is no fault of the task, so no retry is needed; three may even hit the same one."""
    work = sums(80, seed)
    place.environment["FOREPLAN_CHAOS_PAUSE"] = "0.06"
    driver = place.begin(sys.executable, SCRIPT, strategy, rows(work))
    assert kill_some(place, driver, RetryPolicy().losses, seed) >= 2
    code, output = ended(driver)
    assert code == 0, output
    assert output.splitlines()[-1] == str(work.expected)
    failures = place.failures()
    assert failures
    assert {event["value"] for event in failures} == {MACHINE_LOST}
    assert all("killed by SIGKILL" in event["detail"]["reason"] for event in failures)
    check_nothing_repeated(place, [])
    rebuilt(place)
    until(lambda: not place.processes(), "the end of all processes of the run")


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.2))
def test_commands_with_retries(place: Place, seed: int) -> None:
    """Who kills a command might do so again: it counts as a failure."""
    work = sums(60, seed, extra="sleep 0.05; ")
    driver = place.foreplan("run", write(place, work), "--on", "local:3", "--retries", "6")
    assert kill_some(place, driver, 6, seed) >= 3
    code, output = ended(driver)
    assert code == 0, output
    work.check(place)
    failures = place.failures()
    assert failures
    assert {event["value"] for event in failures} == {0.0}
    assert all("killed by SIGKILL" in event["detail"]["reason"] for event in failures)
    check_nothing_repeated(place, [])
    rebuilt(place)
    until(lambda: not place.processes(), "the end of all processes of the run")


def test_a_command_without_retries_is_given_up_and_tried_again_later(place: Place) -> None:
    work = sums(12, extra='[ -e "$FOREPLAN_DIR/go" ] || sleep 60; ')
    driver = place.foreplan("run", write(place, work), "--on", "local:2")
    until(lambda: place.executions().total() == 2, "two tasks that run")
    assert kill_some_shell(place, driver)
    until(lambda: place.home() and place.failures(), "the failure")
    (place.data / "go").touch()  # for the next session: what sleeps, sleeps
    for pid in place.processes():
        if pid != driver.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    code, output = ended(driver)
    assert code == 1, output
    assert "killed by SIGKILL" in output
    assert "foreplan run" in output
    code, output = ended(place.foreplan("resume", "last"))
    assert code == 0, output
    work.check(place)
    check_nothing_repeated(place, [])


def kill_some_shell(place: Place, driver: subprocess.Popen[str]) -> bool:
    """Kill the whole group of one of the commands."""
    pid = next(pid for pid in place.processes() if pid != driver.pid)
    os.killpg(os.getpgid(pid), signal.SIGKILL)
    return True
