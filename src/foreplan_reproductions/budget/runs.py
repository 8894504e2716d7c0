"""Plans of every variant at every budget, and simulated runs under a budget.

In the runs durations are off by 30%, machines vary by 30%, and one fails. The budget is midway
between the cheapest assignment and HEFT's plan. The same plans are followed with the budget kept at
run time, and without.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from foreplan import api, registry
from foreplan.contracts import Planner, Policy
from foreplan.errors import UnaffordableError
from foreplan.model import Estimates, Freedom, Run, Schedule, Situation, affordable
from foreplan.scheduling.planners.loss_gain import Loss3
from foreplan.simulation import reality, scenarios
from foreplan.simulation.reality import Reality
from foreplan.simulation.scenario import Scenario
from foreplan.simulation.simulate import simulate_run
from foreplan_reproductions.budget.cases import KS, STARTS, Dag, Ends, Instance

Columns = dict[str, list[float]]  # "variant|metric" has one figure per budget

LOSSES, GAINS = ("LOSS1", "LOSS2", "LOSS3"), ("GAIN1", "GAIN2", "GAIN3")
BEST = "best-affordable"
MAKESPAN, SECONDS, MOVED = "makespan", "seconds", "moved"
REPEATS = 3  # of a plan whose time is shown: the shortest of so many


@dataclass(frozen=True)
class Variant:
    """A planner under a budget between the cheapest assignment and the start's plan."""

    name: str
    start: str
    spec: str

    def of(self, budget: float) -> str:
        """The spec string for a budget."""
        return self.spec.replace("BUDGET", repr(budget))


def careful(name: str) -> str:
    """The name of the default, beside the faithful one's."""
    return f"{name} careful"


def from_hbmct(name: str) -> str:
    """The name of LOSS from HBMCT, beside that from HEFT."""
    return f"{name} from HBMCT"


def _variants() -> Iterable[Variant]:
    for letter in (True, False):
        named = str if letter else careful
        options = f"faithful={str(letter).lower()},budget=BUDGET"
        for loss in LOSSES:
            yield Variant(named(loss), "heft", f"{loss.lower()}[{options}]")
        for loss in LOSSES:
            spec = f"{loss.lower()}[start=hbmct,{options}]"
            yield Variant(named(from_hbmct(loss)), "hbmct", spec)
        for gain in GAINS:
            yield Variant(named(gain), "heft", f"{gain.lower()}[{options}]")
    yield Variant(BEST, "heft", f"{BEST}[budget=BUDGET]")


VARIANTS = {variant.name: variant for variant in _variants()}
FROM_HBMCT = tuple(from_hbmct(loss) for loss in LOSSES)
FAITHFUL = (*LOSSES, *FROM_HBMCT, *GAINS)


def measured_plans(
    dag: Dag,
    names: Sequence[str] = tuple(VARIANTS),
    ks: Sequence[float] = KS,
    repeats: int = 1,
) -> Columns:
    """The plans of one DAG; nothing where there is nothing between the two ends."""
    instance = Instance(dag)
    columns: Columns = {"over": [0.0]}
    for start in STARTS:
        ends = instance.ends(start)
        columns["cheapest"], columns[start] = list(ends.cheapest), list(ends.start)
        if ends.degenerate:
            continue
        for variant in (VARIANTS[name] for name in names):
            if variant.start == start:
                times = 1 if variant.name == BEST else repeats
                _plans(instance, ends, variant, ks, times, columns)
    return columns


def ends_of(columns: Columns, start: str) -> Ends:
    """The two ends, as they stand in the columns of a DAG."""
    cheapest, other = columns["cheapest"], columns[start]
    return Ends((cheapest[0], cheapest[1]), (other[0], other[1]))


def _plans(
    instance: Instance,
    ends: Ends,
    variant: Variant,
    ks: Sequence[float],
    repeats: int,
    columns: Columns,
) -> None:
    """All plans of one variant; a plan that costs more than its budget is counted."""
    loss = variant.name.startswith("LOSS")
    origin = instance.starts[variant.start] if loss else instance.cheapest
    found: Columns = {MAKESPAN: [], SECONDS: [], MOVED: []}
    for budget in map(ends.budget, ks):
        planner = registry.planner(variant.of(budget))
        seconds = []
        for _ in range(repeats):
            situation = instance.situation()
            begun = time.process_time()
            schedule = planner.plan(situation)
            seconds.append(time.process_time() - begun)
        found[SECONDS].append(round(min(seconds), 7))
        found[MAKESPAN].append(schedule.makespan)
        moved = np.count_nonzero(schedule.processor != origin.processor)
        found[MOVED].append(float(moved))
        columns["over"][0] += not affordable(schedule.cost, budget)
    columns.update({f"{variant.name}|{metric}": values for metric, values in found.items()})


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


def measured_runs(dag: Dag) -> Columns:
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
    """One run; at run time the budget is kept by foreplan itself."""
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
    return simulate_run(wf, pf, estimates, cast(Policy, policy), planner, truth)


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
    """The durations and events that `foreplan simulate` draws from the same seed."""
    wf, pf = instance.workflow, instance.platform
    drawn = reality.draw(wf, pf, Estimates.declared(wf, pf), QOI, instance.world)
    scenario = Scenario(VARIABILITY, failures=FAILURES)
    planned = instance.starts["heft"].makespan
    return scenarios.with_scenario(drawn, pf, scenario, planned, instance.world, planned)
