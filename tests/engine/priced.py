"""Random worlds with prices, and runs under a budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.engine.budget import CONTINUE, BudgetTracker
from foreplan.errors import UnaffordableError
from foreplan.model import Run, Situation, forecast
from foreplan.simulation.simulate import simulate_run
from simulation.worlds import Case, Checked


def priced(case: Case, seed: int, plain: bool = True) -> Case:
    """The case with prices; else also with billing units and prices of transfers."""
    rng, platform = np.random.default_rng(seed), case.platform
    n, h = platform.n_processors, platform.n_hosts
    prices = rng.integers(1, 8, n).astype(np.float64)
    if plain:
        return replace(case, platform=replace(platform, price=prices))
    units = rng.choice([0.0, 2.0, 8.0], n)
    links = rng.choice([0.0, 0.25], (h, h))
    links = np.triu(links, 1) + np.triu(links, 1).T
    return replace(case, platform=replace(platform, price=prices, billing=units, link_price=links))


def cheapest_cost(case: Case) -> float:
    """What the cheapest plan at the start costs."""
    situation = Situation.at_start(case.workflow, case.platform)
    try:
        plan = registry.planner("loss1[budget=0]").plan(situation)
    except UnaffordableError as error:
        return error.cost
    return forecast(plan, situation).projected


def run_with(
    case: Case, spec: str, budget: float, over_budget: str = CONTINUE, by_events: bool = False
) -> Run:
    """A run under a budget, every plan and the whole of it checked."""
    policy, planner = registry.strategy(spec, budgeted=True)
    assert planner is not None
    run = simulate_run(
        case.workflow,
        case.platform,
        case.estimates,
        policy,
        Checked(planner),
        case.reality,
        by_events,
        BudgetTracker(budget, over_budget),
    )
    check_run(run, case.estimates)
    return run
