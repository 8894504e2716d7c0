"""A run by GTP is killed at random moments: it goes on, and so do its rescheduling points."""

from __future__ import annotations

import subprocess

import pytest

from chaos.runs import (
    Place,
    check_nothing_repeated,
    drive_and_kill,
    moments,
    rebuilt,
    sums,
    until,
    write,
)
from foreplan.model.events import Woken
from repeated import repetitions

N = 120
STRATEGY = "gtp/c/r[period=0.1]"


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.1))
def test_commands(place: Place, seed: int) -> None:
    work = sums(N, seed, extra="sleep 0.03; ")
    file = write(place, work)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.foreplan("run", file, "--on", "local:2", "--strategy", STRATEGY)
        return place.foreplan("resume", "last")

    snapshots = drive_and_kill(place, sit, moments(seed, 3, N))
    assert snapshots, "it was over before it could be killed"
    work.check(place)
    check_nothing_repeated(place, snapshots)
    replayed = rebuilt(place)
    run = replayed.run()
    assert any(e.reason == "rescheduling point" for e in run.evaluations)
    # not each has a plan: after one that took long to make, foreplan rests
    points = [e.time for e in run.events or () if isinstance(e, Woken)]
    assert points[-1] > replayed.sessions[-1], "no rescheduling point since it was resumed"
    until(lambda: not place.processes(), "the end of all processes of the run")
