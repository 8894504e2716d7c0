"""A budget as a limit in real runs: what runs is cancelled when the money is gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from foreplan.checks.runs import check_run
from foreplan.executors.processes import GRACE
from foreplan.model import ENDS
from foreplan.model.money import MONEY_GONE
from foreplan.runs import Outcome
from runs.limits import go, replayed


def work(command: str, **more: Any) -> dict[str, Any]:
    return {"name": "t", "tasks": {"a": {"run": command, "cost": 0.2, **more}}}


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def cut(outcome: Outcome) -> float:
    """What was spent by a run whose only task was cancelled for money."""
    check_run(replayed(outcome).run())
    run = outcome.run
    assert (outcome.status, outcome.not_done) == ("stopped", ("a",))
    assert [ENDS[e] for e in run.attempts.end] == ["cancelled"]
    assert run.evaluations[-1].reason == MONEY_GONE
    return run.cost


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_the_process_is_gone(data: Path, trap: str) -> None:
    """Also one that will not end when it is asked to."""
    command = f"{trap}echo $$ > $FOREPLAN_DIR/pid; while :; do sleep 0.02; done"
    outcome = go(work(command), data, on="local:1", price=1.0, budget=1.0, over_budget="cut")
    assert 1.0 <= cut(outcome) < 1.0 + GRACE  # which it is not given
    assert not is_alive(int((data / "pid").read_text()))
    assert outcome.needed is not None
    assert outcome.needed > outcome.run.cost


def test_gone_on_with(data: Path) -> None:
    """It has cost no retry; with more money it is begun again, and what was spent counts."""
    command = "test -e $FOREPLAN_DIR/go || sleep 30"
    flow = work(command)
    first = go(flow, data, on="local:1", price=1.0, budget=0.6, over_budget="cut")
    assert cut(first) >= 0.6
    again = go(flow, data, resume=first.id)  # no more money: nothing is begun
    assert (again.status, len(again.run.attempts.task)) == ("stopped", 1)
    (data / "go").touch()
    last = go(flow, data, resume=first.id, budget=first.needed)
    assert last.ok
    replayed(last)
    check_run(last.run)
    assert [ENDS[e] for e in last.run.attempts.end] == ["cancelled", "finished"]
    assert last.run.within_budget
    assert last.run.cost > first.run.cost


def test_a_time_out_that_cannot_be_paid(data: Path) -> None:
    """The declared time is affordable, the time-out is not: nothing is begun."""
    flow = work("touch $FOREPLAN_DIR/ran", timeout=5.0)
    more: dict[str, Any] = {"on": "local:1", "price": 1.0, "over_budget": "cut"}
    short = go(flow, data, budget=4, **more)
    assert (short.status, len(short.run.attempts.task)) == ("stopped", 0)
    assert not (data / "ran").exists()
    assert short.needed == pytest.approx(5)
    assert "time-out" in short.warnings[0]
    assert go(flow, data, resume=short.id, budget=short.needed).ok
