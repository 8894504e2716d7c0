"""The budget that is advised after a stop is enough, although tasks take longer than estimated."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan import registry
from foreplan.engine.budget import CUT, STOP, BudgetTracker, Experience, advised, experience_of
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.errors import UnaffordableError
from foreplan.formats.foreplan_workflow import workflow_from_dict
from foreplan.model import Estimates, Platform, Processor, Situation, Workflow, affordable, forecast
from foreplan.model.events import BudgetChanged
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor

N = 40  # cases of each kind


def world(seed: int, common: bool) -> tuple[Workflow, Platform, Reality, float]:
    """Tasks take one to three times their estimates, each by itself or all alike."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 25)), int(rng.integers(2, 5))
    before = [int(rng.integers(max(0, k - 6), max(1, k))) for k in range(n)]
    edges = [[f"t{before[k]}", f"t{k}"] for k in range(2, n) if rng.random() < 0.7]
    tasks = {f"t{k}": {"cost": float(rng.uniform(5, 50))} for k in range(n)}
    wf = workflow_from_dict({"name": "w", "tasks": tasks, "edges": edges})
    steps = [
        Processor(f"p{k}", speed=1 + k / 2, price=1 + k * rng.uniform(0.5, 1.5)) for k in range(m)
    ]
    pf = Platform.build(steps)
    ratio = rng.uniform(1, 3, n)
    if common:
        ratio = rng.uniform(1.3, 3) * np.exp(rng.normal(0, 0.25, n))
    work = Estimates.declared(wf, pf).cost * ratio[:, None]
    return wf, pf, Reality(work, []), float(rng.uniform(1.1, 1.5)) * cheapest(wf, pf)


def cheapest(wf: Workflow, pf: Platform) -> float:
    situation = Situation.at_start(wf, pf)
    try:
        plan = registry.planner("loss1[budget=0]").plan(situation)
    except UnaffordableError as error:
        return error.cost
    return forecast(plan, situation).projected


def is_enough(seed: int, over_budget: str, common: bool) -> bool | None:
    """Whether what is advised when the run stops is enough to finish it; None: it never stopped."""
    wf, pf, reality, budget = world(seed, common)
    policy, planner = registry.strategy("slack", budgeted=True)
    assert not hasattr(policy, "line")
    tracker = BudgetTracker(budget, over_budget, 0.03, learns=True)
    c = Coordinator(wf, pf, Estimates.declared(wf, pf), policy, tracker=tracker)
    driver = Driver(c, planner, SimulatedExecutor(wf, pf, reality), events=[])
    driver.drive()
    if c.done:
        return None
    needed = advised(c)
    driver.drive(driver.hear(BudgetChanged(c.now, needed)))
    return c.done and affordable(c.money().spent, needed)


@pytest.mark.parametrize(("over_budget", "common"), [(STOP, False), (CUT, True)])
def test_in_nine_of_ten_cases(over_budget: str, common: bool) -> None:
    found = [is_enough(seed, over_budget, common) for seed in range(N)]
    stopped = [enough for enough in found if enough is not None]
    assert len(stopped) >= 0.8 * N
    assert sum(stopped) >= 0.9 * len(stopped)


def test_what_a_run_teaches() -> None:
    assert Experience().prudent(10) == 1  # nothing is known
    assert Experience(0.5, 0.01, 100).prudent(100) == 1  # what went well is no promise
    seen = Experience(2.0, 0.5, 10)
    assert 2 < seen.prudent(100) < seen.prudent(10) < seen.prudent(1)
    assert seen.prudent(10) < Experience(2.0, 0.5, 2).prudent(10)


def test_an_overdue_task_has_a_residual() -> None:
    """It was expected to take 10, and has run for 20: it is not expected to end just now."""
    wf = workflow_from_dict({"name": "w", "tasks": {"a": {"cost": 10.0}}})
    pf = Platform.build([Processor("p", price=1.0)])
    policy, planner = registry.strategy("slack", budgeted=True)
    c = Coordinator(
        wf, pf, Estimates.declared(wf, pf), policy, tracker=BudgetTracker(20, CUT, learns=True)
    )
    executor = SimulatedExecutor(wf, pf, Reality(np.array([[99.0]]), []))
    driver = Driver(c, planner, executor, events=[])
    driver.drive()
    assert c.halted
    assert experience_of(c.state).ratio == pytest.approx(3)
    assert advised(c) >= 20 + 30  # not 20 + 10
