"""A run whose budget is not enough is killed at random moments: it goes on, and knows its money."""

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
from foreplan.model.events import BudgetChanged
from repeated import repetitions

N = 60
PRICES = ("--price", "1", "--price", "local-2=2")


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.1))
def test_commands(place: Place, seed: int) -> None:
    work = sums(N, seed, extra="sleep 0.03; ")  # three times what is declared
    file = write(place, work)

    def sit() -> subprocess.Popen[str]:
        if place.home() is None:
            return place.foreplan("run", file, "--on", "local:2", *PRICES, "--budget", "1.2")
        return place.foreplan("resume", "last")

    snapshots = drive_and_kill(place, sit, moments(seed, 3, N), ends=3)
    assert snapshots, "it was over before it could be killed"
    work.check(place)
    check_nothing_repeated(place, snapshots)
    replayed = rebuilt(place)
    run = replayed.run()
    told = [e.budget for e in run.events or () if isinstance(e, BudgetChanged)]
    assert told == [1.2] * len(replayed.sessions)
    assert run.cost > 0.03 * N  # all that was done, in every session
    assert (run.budget, run.within_budget) == (1.2, False)
    assert run.over_budget_at < run.makespan
    until(lambda: not place.processes(), "the end of all processes of the run")
