"""Simulated runs under a budget: durations off by 30%, machines that vary by 30%, one that fails.

The budget is midway between the cheapest assignment and HEFT's plan. The same plans are followed
with the budget kept at run time, and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

from weft import api, registry, wiring
from weft.contracts import Planner, Policy
from weft.errors import UnaffordableError
from weft.executors import reality, scenarios
from weft.executors.reality import Reality
from weft.executors.scenario import Scenario
from weft.experiments.budget_cases import Dag, Instance
from weft.experiments.budget_plans import Columns
from weft.model import Estimates, Freedom, Run, Schedule, Situation
from weft.planners.loss3 import Loss3

QOI, VARIABILITY, FAILURES = 0.3, 0.3, 1
MIDWAY = 0.5
RESERVES = (0.0, 0.1, 0.2)  # of what is left
STRATEGIES = {  # with the planner of the first plan
    "static": "static[planner=loss3]",
    "slack": "slack[planner=loss3]",
    "aheft": "aheft[planner=loss3]",
    "gtp/c/r": "gtp/c/r[planner=loss3[start=gtp]]",
}

# Where the budget is kept.
NOWHERE, CHEAPEST = "nowhere", "cheapest all along"
FIRST, PLANS, RUN = "in the first plan", "in every plan", "at run time"
METRICS = ("cost", "makespan", "replans")


@dataclass(frozen=True)
class Way:
    """A strategy, and where it keeps the budget."""

    strategy: str
    kept: str
    reserve: float = 0.0  # of what is left, for what goes wrong

    @property
    def name(self) -> str:
        """As the tables have it."""
        reserve = f", reserve {self.reserve:.0%}" if self.reserve else ""
        return f"{self.strategy}|{self.kept}{reserve}"


def _ways() -> Iterator[Way]:
    yield Way("static", NOWHERE)
    for strategy in STRATEGIES:
        for kept in (FIRST, PLANS):
            yield Way(strategy, kept)
        for reserve in RESERVES:
            yield Way(strategy, RUN, reserve)
    yield Way("static", CHEAPEST)


WAYS = tuple(_ways())


@dataclass(frozen=True)
class OnlyAtFirst:
    """A planner that keeps a budget in its first plan, and knows of no money afterwards."""

    name: ClassVar[str] = "only-at-first"
    first: Planner
    budget: float
    then: Planner

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The first plan within the budget; any other as if there were none."""
        if situation.now > 0 or len(situation.attempts.task):
            return self.then.plan(situation, freedom)
        return self.first.plan(replace(situation, budget=self.budget), freedom)


@dataclass(frozen=True)
class InEveryPlan:
    """A planner that keeps a budget whenever it is asked, and is cheap where that cannot be."""

    name: ClassVar[str] = "in-every-plan"
    planner: Planner
    budget: float

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """Within the budget, or the cheapest that was found."""
        try:
            return self.planner.plan(replace(situation, budget=self.budget), freedom)
        except UnaffordableError as error:
            return cast(Schedule, error.cheapest)


def measured(dag: Dag) -> Columns:
    """All ways to run one DAG in the same world, under the same budget."""
    instance = Instance(dag)
    ends = instance.ends("heft")
    if ends.degenerate:
        return {"degenerate": [1.0]}
    budget = ends.budget(MIDWAY)
    columns: Columns = {"budget": [budget], "cheapest": list(ends.cheapest)}
    truth = world(instance)
    for way in WAYS:
        run = simulate(instance, way, budget, truth)
        values = (run.cost, run.makespan, float(run.replans))
        columns |= {f"{way.name}|{m}": [v] for m, v in zip(METRICS, values, strict=True)}
    return columns


def simulate(instance: Instance, way: Way, budget: float, truth: Reality) -> Run:
    """One run; at run time the budget is kept by weft itself."""
    wf, pf, spec = instance.workflow, instance.platform, STRATEGIES[way.strategy]
    if way.kept == RUN:
        return api.simulate(
            wf, pf, spec, qoi=QOI, seed=instance.world, variability=VARIABILITY,
            failures=FAILURES, budget=budget, reserve=way.reserve,
        )  # fmt: skip
    policy, planner = registry.strategy(spec)
    assert planner is not None
    planner = _planner(way, planner, budget, instance)
    estimates = Estimates.declared(wf, pf)
    return wiring.simulate(wf, pf, estimates, cast(Policy, policy), planner, truth)


def _planner(way: Way, planner: Planner, budget: float, instance: Instance) -> Planner:
    """What plans in the place of a strategy's planner."""
    if way.kept == NOWHERE:
        return registry.planner("heft")
    if way.kept == CHEAPEST:
        return InEveryPlan(registry.planner("loss1"), instance.cheapest.cost * (1 - 1e-6))
    if way.kept == PLANS:
        return InEveryPlan(planner, budget)
    return OnlyAtFirst(planner, budget, cast(Loss3, planner).start)


def world(instance: Instance) -> Reality:
    """The durations and events that `weft simulate` draws from the same seed."""
    wf, pf = instance.workflow, instance.platform
    drawn = reality.draw(wf, pf, Estimates.declared(wf, pf), QOI, instance.world)
    scenario = Scenario(VARIABILITY, failures=FAILURES)
    planned = instance.starts["heft"].makespan
    return scenarios.with_scenario(drawn, pf, scenario, planned, instance.world, planned)
