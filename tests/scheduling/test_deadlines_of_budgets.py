"""What a budget gives, a deadline finds again: in time, and no dearer (FOREPLAN_DEADLINES=500)."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.errors import UnaffordableError, rounded_up
from foreplan.generators import generate, generate_platform
from foreplan.model import Situation, affordable

TRIED = int(os.environ.get("FOREPLAN_DEADLINES", "12"))
FAMILIES = (
    ("random_layered", {"tasks": 12}),
    ("fft", {"points": 4}),
    ("fork-join", {"stages": 3, "width": 4}),
    ("laplace", {"size": 4}),
    ("random_layered", {"tasks": 20}),
    ("random_layered", {"tasks": 35}),
)
SMALL = 4  # of these families: the others when many are tried


def drawn(seed: int) -> tuple[Situation, float]:
    """An instance with machines of different prices, and a budget that makes a choice necessary."""
    rng = np.random.default_rng([seed, 6])
    family, options = FAMILIES[seed % (len(FAMILIES) if TRIED > 100 else SMALL)]
    processors = int(rng.integers(2, 7))
    ccr, noise = float(rng.choice([0.1, 0.5, 1.0, 2.0])), float(rng.choice([0.0, 0.5, 1.0]))
    workflow = generate(family, seed, processors=processors, beta=1.0, ccr=ccr, **options)
    platform = generate_platform(processors, heterogeneity=1.0, price_noise=noise, seed=seed)
    if rng.random() < 0.15:  # paid by the begun unit: costs do not add up
        billing = np.full(processors, float(workflow.processor_cost["p0"].mean()))
        platform = replace(platform, billing=billing)
    situation = Situation.at_start(workflow, platform)
    high = registry.planner("heft").plan(situation).cost
    try:
        registry.planner("gain1[faithful=true,budget=0]").plan(situation)
        low = 0.0
    except UnaffordableError as error:
        low = error.cost
    return situation, low + float(rng.uniform(0.0, 1.1)) * max(0.0, high - low)


@pytest.mark.parametrize("seed", range(TRIED))
def test_the_end_of_a_plan_within_a_budget_is_a_deadline_that_costs_no_more(seed: int) -> None:
    situation, budget = drawn(seed)
    wf, pf = situation.workflow, situation.platform
    try:
        plan = foreplan.plan(wf, pf, budget=budget)
    except UnaffordableError as error:  # by the unit
        plan = foreplan.plan(wf, pf, budget=error.cost)
    for deadline in (plan.makespan, float(rounded_up(plan.makespan))):
        again = foreplan.plan(wf, pf, deadline=deadline)
        assert again.makespan <= deadline * (1 + 1e-9)
        assert affordable(again.cost, plan.cost)
