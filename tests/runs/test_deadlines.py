"""Deadlines of real runs: the cheapest way in time, another plan when it gets late, and late."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest

from foreplan.cli.shared.ending import LATE, OVER_BUDGET, code_of
from foreplan.engine.deadline import TOO_LATE
from foreplan.errors import InputError, TooLateError
from foreplan.runs.options import read_time
from runs.limits import TEN, Stopper, after_long, chain, go, replayed
from runs.people import Somebody, checked, waiting

PRICES = {"local-1": 1, "local-2": 3}


def test_a_plan_that_gets_late_is_replaced_by_a_dearer_one(data: Path) -> None:
    """It is noticed while a task goes on and on: what follows goes to the dear processor, too."""

    def act(me: Somebody) -> None:
        me.until(lambda: any(e.taken for e in me.session.coordinator.evaluations[1:]))
        (data / "go").touch()

    somebody = Somebody(act)
    outcome = go(after_long(2), data, somebody, on="local:2", price=PRICES, deadline=21.4)
    assert somebody.error is None
    run = checked(outcome)
    replayed(outcome)
    assert set(run.plans[0].processor.tolist()) == {0}  # the cheap one
    assert run.evaluations[0].reason == TOO_LATE
    assert set(run.plans[1].processor[1:].tolist()) == {0, 1}
    assert (run.in_time, run.deadline, outcome.warnings) == (True, 21.4, ())
    assert math.isnan(run.late_at)
    assert code_of(outcome) == 0


def test_late_runs_go_on(data: Path) -> None:
    tasks = {"a": waiting() | {"cost": 0.1}, "b": TEN | {"cost": 0.1}}

    def act(me: Somebody) -> None:
        me.until(lambda: any("will not be kept" in message for message in me.messages))
        assert "a" in me.running()  # at once, not when it has ended
        time.sleep(0.3)  # until it is past
        (data / "go").touch()

    somebody = Somebody(act)
    outcome = go({"name": "t", "tasks": tasks}, data, somebody, on="local:1", deadline=0.3)
    assert somebody.error is None
    run = checked(outcome)
    replayed(outcome)
    assert not run.in_time
    assert 0.2 < run.late_at < run.attempts.finish[0]
    assert ["will not be kept" in warning for warning in outcome.warnings] == [True]
    assert code_of(outcome) == LATE
    assert outcome.to_dict()["late_at"] == run.late_at


def test_over_the_budget_has_a_code_of_its_own(data: Path) -> None:
    flow = {"name": "t", "tasks": {"a": {"run": "sleep 0.3", "cost": 0.1}}}
    outcome = go(flow, data, on="local:1", price=1.0, budget=0.2)
    assert not checked(outcome).within_budget
    assert code_of(outcome) == OVER_BUDGET


def test_kept_and_changed_by_a_resume(data: Path) -> None:
    stopped = go(chain(3), data, Stopper(), on="local:1", deadline=100)
    assert stopped.status == "stopped"
    assert code_of(stopped) == 130
    again = go(chain(3), data, Stopper(), resume=stopped.id)
    assert again.run.deadline == 100
    if not again.ok:
        again = go(chain(3), data, resume=stopped.id, deadline=50)
        assert again.run.deadline == 50
    replayed(again)


@pytest.mark.parametrize(
    ("task", "options", "problem"),
    [
        (TEN, {"price": 1.0}, "no plan ends by 5 s: the fastest found ends at 10 s"),
        (TEN, {}, "no plan ends by 5 s"),
        ({"run": "true"}, {}, "declare costs"),
        (TEN, {"strategy": "fifo"}, "makes no plan"),
        (TEN, {"deadline": -1.0}, "above 0"),
        (TEN, {"deadline": math.inf}, "above 0"),
    ],
)
def test_what_cannot_be_kept(
    data: Path, task: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises((InputError, TooLateError), match=problem):
        go({"name": "t", "tasks": {"a": task}}, data, on="local:1", **{"deadline": 5, **options})
    assert not [*data.glob(".foreplan/runs/*")]


def test_within_a_budget_it_is_the_fastest(data: Path) -> None:
    flow = {"name": "t", "tasks": {f"t{k}": TEN for k in range(2)}}
    both: dict[str, Any] = {"on": "local:2", "price": PRICES, "deadline": 15.0}
    run = checked(go(flow, data, budget=40, **both))
    assert set(run.plans[0].processor.tolist()) == {0, 1}
    with pytest.raises(TooLateError, match="ends at 20 s"):
        go(flow, data, budget=30, **both)


def test_times_as_people_write_them() -> None:
    for text in ("5400", "5400 s", "90min", "1.5h", "1h 30min"):
        assert read_time(text) == 5400
    assert read_time("2d") == 172_800
    for text in ("", "soon", "5 weeks", "-3", "1h30", "nan"):
        with pytest.raises(InputError, match="is no time"):
            read_time(text)
