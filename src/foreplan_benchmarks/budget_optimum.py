"""How good LOSS, GAIN and best-affordable are: their makespans beside the optimum under budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from foreplan import registry, workers
from foreplan.checks.schedules import check_schedule
from foreplan.errors import ForeplanError, InputError
from foreplan.model import Schedule, Situation, affordable
from foreplan.scheduling.planning import planning_of
from foreplan_benchmarks.budget_optimum_cases import FAMILIES, Case, cases
from foreplan_benchmarks.budget_optimum_model import optimum, require

BEST, HEFT = "best-affordable", "heft"
_SPECS = {
    **{name: name for name in ("loss1", "loss2", "loss3")},
    "loss3 from hbmct": "loss3[start=hbmct]",
    **{name: name for name in ("gain1", "gain2", "gain3")},
}
CAREFUL = tuple(_SPECS)
FAITHFUL = tuple(f"{name}, faithful" for name in CAREFUL)
VARIANTS = {BEST: BEST, **_SPECS}  # what each is called here -> the planner
VARIANTS |= {
    name: f"{spec[:-1]},faithful=true]" if spec.endswith("]") else f"{spec}[faithful=true]"
    for name, spec in zip(FAITHFUL, _SPECS.values(), strict=True)
}
# Not a planner: what would be lost if the machines were the optimum's and only the order HEFT's.
ORDER_ONLY = "optimum's machines, rank order"
ROWS = (*VARIANTS, HEFT, ORDER_ONLY)
KS = (0.1, 0.3, 0.5, 0.7, 0.9)
AT_HEFT = 1.0  # the k at which HEFT's own plan is affordable

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Settings:
    """What is compared: instances, budgets, and how long CP-SAT may search for each."""

    tasks: int = 16
    runs: int = 10  # of each family
    seed: int = 0
    limit: float = 10.0  # units of CP-SAT's deterministic time
    ks: tuple[float, ...] = KS
    families: tuple[str, ...] = FAMILIES

    def __post_init__(self) -> None:
        if not self.ks or not all(0 <= k <= 1 for k in self.ks):
            raise InputError("must be numbers from 0 to 1", place="ks")

    @property
    def all_ks(self) -> tuple[float, ...]:
        """The values of k, and 1, for scale."""
        return tuple(sorted({*self.ks, AT_HEFT}))


@dataclass(frozen=True)
class Result:
    """One instance under one budget: the optimum, and the makespan that each planner reaches."""

    family: str
    number: int
    tasks: int
    ccr: float
    k: float
    budget: int
    optimum: int  # the best that CP-SAT found; the optimum if it is proven
    bound: int
    proven: bool
    effort: float
    makespans: dict[str, float]

    def gap(self, name: str) -> float:
        """How much longer than the optimum, as a share of it."""
        return self.makespans[name] / self.optimum - 1

    def most(self, name: str) -> float:
        """The same over the bound: where nothing is proven, the gap is at most this."""
        return self.makespans[name] / self.bound - 1


def run(
    settings: Settings, jobs: int | None = None, progress: Progress = lambda share: None
) -> list[Result]:
    """Every instance under every budget, in order; by so many processes."""
    require()
    chosen = cases(settings.tasks, settings.runs, settings.seed, settings.families)
    units = [(case, k) for case in chosen for k in settings.all_ks]

    def unit(i: int) -> Result:
        return measure(*units[i], settings.limit)

    return workers.in_order(unit, len(units), jobs, progress, largest=1)


def measure(case: Case, k: float, limit: float) -> Result:
    """All planners and CP-SAT on one instance under one budget."""
    budget = case.budget(k)
    situation = replace(case.situation, budget=float(budget))
    plans = {name: registry.planner(spec).plan(situation) for name, spec in VARIANTS.items()}
    if affordable(case.heft.cost, budget):
        plans[HEFT] = case.heft
    best = optimum(case.situation, budget, limit, hint=plans[BEST])
    plans[ORDER_ONLY] = in_rank_order(best.schedule, situation)
    for name, plan in {**plans, "cp-sat": best.schedule}.items():
        check_schedule(plan, situation)
        if not affordable(plan.cost, budget):
            raise ForeplanError(
                f"{name} costs {plan.cost:g} on {case.name}; the budget is {budget}"
            )
        if round(plan.makespan) < best.bound:
            raise ForeplanError(f"{name} beats the bound of CP-SAT on {case.name} at k = {k:g}")
    return Result(
        family=case.family,
        number=case.number,
        tasks=situation.workflow.n_tasks,
        ccr=case.ccr,
        k=k,
        budget=budget,
        optimum=best.makespan,
        bound=best.bound,
        proven=best.proven,
        effort=best.effort,
        makespans={name: plan.makespan for name, plan in plans.items()},
    )


def in_rank_order(schedule: Schedule, situation: Situation) -> Schedule:
    """The tasks on the same machines, as LOSS and GAIN rebuild a schedule: by rank, with gaps."""
    planning = planning_of(situation)
    order = planning.by_rank(planning.upward_rank)
    placement = planning.place(order, pinned=schedule.processor)
    return planning.schedule(registry.planner(HEFT), placement)


@dataclass(frozen=True)
class Gap:
    """The mean gap of a planner at one k: over the proven optima, and over bounds elsewhere."""

    planner: str
    k: float
    proven: int
    mean: float | None  # over what is proven
    worst: float | None
    exact: float | None  # the share of them in which the planner found an optimum
    unproven: int
    least: float | None  # over what is not: over the best that CP-SAT found,
    most: float | None  # and over its bound


def gaps(results: Sequence[Result]) -> list[Gap]:
    """By planner and k."""
    ks = sorted({r.k for r in results})
    return [
        _gap(name, k, there)
        for name in ROWS
        for k in ks
        if (there := [r for r in results if r.k == k and name in r.makespans])
    ]


def _gap(name: str, k: float, results: Sequence[Result]) -> Gap:
    sure = [r.gap(name) for r in results if r.proven]
    open_ones = [r for r in results if not r.proven]
    return Gap(
        planner=name,
        k=k,
        proven=len(sure),
        mean=_mean(sure),
        worst=max(sure, default=None),
        exact=_mean([float(gap < 1e-9) for gap in sure]),
        unproven=len(open_ones),
        least=_mean([r.gap(name) for r in open_ones]),
        most=_mean([r.most(name) for r in open_ones]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


@dataclass(frozen=True)
class Part:
    """Where best-affordable loses: a part of the instances at one k, over the proven optima."""

    part: str
    k: float
    cases: int
    mean: float
    order: float  # what is lost if only the order is HEFT's


def parts(results: Sequence[Result]) -> list[Part]:
    """By family and k, then by CCR and k."""
    groups: dict[tuple[str, float], list[Result]] = {}
    for names in ([r.family for r in results], [f"CCR {r.ccr:g}" for r in results]):
        for part, r in sorted(zip(names, results, strict=True), key=lambda x: (x[0], x[1].k)):
            if r.proven:
                groups.setdefault((part, r.k), []).append(r)
    return [
        Part(
            part=part,
            k=k,
            cases=len(there),
            mean=float(np.mean([r.gap(BEST) for r in there])),
            order=float(np.mean([r.gap(ORDER_ONLY) for r in there])),
        )
        for (part, k), there in groups.items()
    ]
