"""Budgets of real runs: kept, found too small in time, and made larger."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from foreplan.engine.budget import OVER_BUDGET
from foreplan.errors import InputError, UnaffordableError
from foreplan.model.events import BudgetChanged
from foreplan.runs.home import runs
from runs.limits import TEN, Stopper, after_long, chain, go, replayed
from runs.people import Somebody, checked, waiting

NOT_ENOUGH = "is not enough"


def test_a_budget_that_holds(data: Path) -> None:
    """There is just money enough for the cheap processor."""
    work = {"name": "t", "tasks": {f"t{k}": TEN for k in range(4)}}
    price = {"*": 1, "local-2": 3}
    outcome = go(work, data, on="local:2", price=price, budget=40)
    run = checked(outcome)
    replayed(outcome)
    assert run.strategy == "adaptive"
    assert run.plans[0].cost == pytest.approx(40)
    assert set(run.plans[0].processor.tolist()) == {0}
    assert run.within_budget
    assert 0 < run.cost < 40
    assert outcome.money is not None
    assert outcome.money.spent == outcome.money.projected == pytest.approx(run.cost)
    assert outcome.to_dict()["money"]["needed"] is None


def test_a_task_that_goes_on_and_on_makes_the_rest_cheaper(data: Path) -> None:
    """It is noticed before it ends: what follows moves to the cheap processor."""

    def act(me: Somebody) -> None:
        me.until(lambda: len(me.session.coordinator.evaluations) > 1)
        (data / "go").touch()

    somebody = Somebody(act)
    price = {"local-1": 1, "local-2": 3}
    outcome = go(after_long(3), data, somebody, on="local:2", price=price, budget=51.5)
    assert somebody.error is None
    run = checked(outcome)
    replayed(outcome)
    assert set(run.plans[0].processor[1:].tolist()) == {0, 1}
    first = run.evaluations[0]
    assert (first.reason, first.forced, first.taken) == (OVER_BUDGET, True, True)
    assert set(run.plans[1].processor[1:].tolist()) == {0}
    assert run.within_budget
    assert math.isnan(run.over_budget_at)
    assert not any(NOT_ENOUGH in warning for warning in outcome.warnings)


class Gate(Somebody):
    """Opens the gate once it was said that the budget is not enough."""

    def __init__(self, data: Path) -> None:
        def act(me: Somebody) -> None:
            me.until(lambda: any(NOT_ENOUGH in message for message in me.messages))
            assert "long" in me.running()  # at once, not when it has ended
            (data / "go").touch()

        super().__init__(act)


@pytest.mark.parametrize("reserve", [0.0, 0.01])
def test_finished_the_cheapest_way(data: Path, reserve: float) -> None:
    gate = Gate(data)
    more = {"price": 1.0, "budget": 21.3, "reserve": reserve, "strategy": "aheft"}
    outcome = go(after_long(2), data, gate, on="local:2", **more)
    assert gate.error is None
    run = checked(outcome)
    replayed(outcome)
    assert 1.2 < run.over_budget_at < run.makespan
    assert sum(NOT_ENOUGH in warning for warning in outcome.warnings) == 1
    assert outcome.needed is None
    assert "finished the cheapest way" in outcome.warnings[0]


def test_stopped_and_gone_on_with(data: Path) -> None:
    gate, work = Gate(data), after_long(2)
    more = {"price": 1.0, "budget": 21.3, "over_budget": "stop"}
    stopped = go(work, data, gate, on="local:2", **more)
    assert gate.error is None
    assert (stopped.status, stopped.not_done) == ("stopped", ("t0", "t1"))
    assert stopped.needed is not None
    assert stopped.needed > 21.3
    assert "then the run stops" in stopped.warnings[0]
    replayed(stopped)
    again = go(work, data, resume=stopped.id)
    assert (again.status, again.not_done) == ("stopped", ("t0", "t1"))
    assert len(again.run.attempts.task) == 1
    assert NOT_ENOUGH in again.warnings[0]
    replayed(again)
    assert stopped.money is not None
    less = (21.3 + stopped.money.projected) / 2
    too_little = go(work, data, resume=stopped.id, budget=less)
    assert (too_little.status, too_little.run.budget) == ("stopped", less)
    assert NOT_ENOUGH in too_little.warnings[0]
    finished = go(work, data, resume=stopped.id, budget=100)
    run = checked(finished)
    replayed(finished)
    assert (run.budget, run.within_budget, finished.warnings) == (100, True, ())
    assert math.isnan(run.over_budget_at)  # this one does
    told = [e.budget for e in run.events or () if isinstance(e, BudgetChanged)]
    assert told == [21.3, less, 100]


def test_gone_on_with_all_the_same(data: Path) -> None:
    gate, work = Gate(data), after_long(2)
    stopped = go(work, data, gate, on="local:2", price=1.0, budget=21.3, over_budget="stop")
    assert stopped.status == "stopped"
    finished = go(work, data, resume=stopped.id, over_budget="continue")
    run = checked(finished)
    assert not replayed(finished).driver.coordinator.tracker.stops
    assert run.budget == 21.3
    assert "finished the cheapest way" in finished.warnings[0]  # it is said again


def test_a_budget_for_a_run_that_had_none(data: Path) -> None:
    price = {"local-1": 3, "local-2": 1}
    stopped = go(chain(4), data, Stopper(), on="local:2", strategy="static", price=price)
    assert stopped.status == "stopped"
    left = len(stopped.not_done)  # one more may have started before it was stopped
    assert left >= 2
    assert set(stopped.run.plans[0].processor.tolist()) == {0}
    finished = go(chain(4), data, resume=stopped.id, budget=35)
    run = checked(finished)
    found = replayed(finished)
    assert run.budget == 35
    assert set(run.plans[-1].processor[-left:].tolist()) == {1}
    assert set(run.attempts.processor[-left:].tolist()) == {1}
    assert hasattr(found.driver.planner, "budget")


def test_what_a_run_without_plan_or_prices_cannot_have(data: Path) -> None:
    unplanned = go(chain(2), data, Stopper(), on="local:1", strategy="fifo", price=1.0)
    with pytest.raises(InputError, match="makes no plan"):
        go(chain(2), data, resume=unplanned.id, budget=10)
    free = go(chain(2), data, Stopper(), on="local:1", strategy="static")
    with pytest.raises(InputError, match="nothing costs anything"):
        go(chain(2), data, resume=free.id, budget=10)
    priced = go(chain(2), data, Stopper(), on="local:1", strategy="static", price=1.0)
    with pytest.raises(InputError, match="has no budget"):
        go(chain(2), data, resume=priced.id, over_budget="stop")
    assert go(chain(2), data, resume=priced.id).ok


@pytest.mark.parametrize(
    ("tasks", "options", "problem"),
    [
        ({"a": {"run": "true"}}, {"price": 1.0}, "declare costs"),
        ({"a": {"run": "true"}}, {"price": 1.0, "strategy": "slack"}, "declare costs"),
        ({"a": TEN}, {}, "give a price"),
        ({"a": TEN}, {"price": {"nobody": 1.0}}, "give a price"),
        ({"a": TEN}, {"price": 1.0, "strategy": "fifo"}, "makes no plan"),
    ],
)
def test_a_budget_that_means_nothing(
    data: Path, tasks: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        go({"name": "t", "tasks": tasks}, data, on="local:1", budget=5, **options)
    assert not [*data.glob(".foreplan/runs/*")]


def test_a_budget_that_is_too_small_starts_nothing(data: Path) -> None:
    tasks = {"a": {"run": "touch $FOREPLAN_DIR/ran", "cost": 10.0}}
    with pytest.raises(UnaffordableError, match="costs 10 "):
        go({"name": "t", "tasks": tasks}, data, on="local:1", price=1.0, budget=9)
    assert runs(data) == []
    assert not [*data.glob(".foreplan/runs/*")]
    assert not (data / "ran").exists()


def test_processors_that_join_have_their_price(data: Path) -> None:
    def act(me: Somebody) -> None:
        me.until_running({0})
        me.ask(add=2)
        (data / "go").touch()

    somebody = Somebody(act)
    price = {"*": 1, "local-3": (5, 60)}
    outcome = go(
        {"name": "t", "tasks": {"a": waiting()}}, data, somebody, on="local:1", price=price
    )
    assert somebody.error is None
    run = checked(outcome)
    assert run.platform.price.tolist() == [1, 1, 5]
    assert run.platform.billing.tolist() == [0, 0, 60]
    assert replayed(outcome).run().cost == run.cost > 0
