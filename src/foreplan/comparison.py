"""Strategies side by side: paired runs over many seeds, with intervals of the mean."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from foreplan import api, registry
from foreplan.arrays import FloatArray
from foreplan.contracts import Order, Planner, Policy
from foreplan.engine.budget import BudgetTracker
from foreplan.errors import InputError
from foreplan.lazy import drawn_by
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.resources import check_fits
from foreplan.quantities import duration, first_few, many
from foreplan.scheduling.limits import check_limits
from foreplan.scheduling.nsl import mean_path
from foreplan.simulation import reality, scenarios
from foreplan.simulation.scenario import EVENT_RATE, Scenario
from foreplan.simulation.simulate import simulate_run
from foreplan.spec import spec_of, split_specs
from foreplan.workers import in_order

# the 97.5% quantiles of Student's t distribution for 1, 2, ... degrees of freedom
_T = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814)
_Z = 1.959964

Progress = Callable[[float], None]
Chosen = Sequence[tuple[Policy | Order, Planner | None]]


@dataclass(frozen=True)
class Mean:
    """A mean and its 95% interval; one run alone has none."""

    mean: float | None
    low: float | None = None
    high: float | None = None

    @staticmethod
    def of(values: FloatArray) -> Mean:
        """The mean of independent values, and the interval by Student's t."""
        if not np.isfinite(values).all():
            return Mean(None)
        n, mean = len(values), float(values.mean())
        if n < 2:
            return Mean(mean)
        half = t_quantile(n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
        return Mean(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Figures:
    """What one strategy came to."""

    strategy: str
    makespan: Mean
    ratio: Mean  # to the first strategy's makespan in the same run
    nsl: Mean  # makespan over the longest path of mean costs
    cost: Mean
    considered: float  # per run
    replans: float
    planning_milliseconds: float  # the median of the runs: the first one imports


@dataclass(frozen=True)
class Comparison:
    """Every strategy on all workflows together, and on each."""

    platform: Platform
    runs: int
    qoi: float
    seed: int
    overall: tuple[Figures, ...]
    by_workflow: tuple[tuple[str, tuple[Figures, ...]], ...]
    scenario: Scenario  # what happened to the machines

    def __repr__(self) -> str:
        means = [f"{f.strategy} {_told(f.makespan.mean)}" for f in self.overall]
        best = f"{first_few(means, 4)}; {many(self.runs, 'run')} of each"
        return f"<Comparison of {many(len(means), 'strategy', 'strategies')}: {best}>"

    _repr_html_ = drawn_by("foreplan.charts.html", "of_comparison")

    def to_dict(self) -> dict[str, Any]:
        """What `foreplan compare --json` prints."""
        return {
            "runs": self.runs,
            "qoi": self.qoi,
            "seed": self.seed,
            **({} if self.scenario.calm else {"scenario": self.scenario.to_dict()}),
            "strategies": [asdict(figures) for figures in self.overall],
            "workflows": [
                {"workflow": name, "strategies": [asdict(figures) for figures in each]}
                for name, each in self.by_workflow
            ],
        }


def _told(makespan: float | None) -> str:
    return "-" if makespan is None else duration(makespan)


class _Instance(NamedTuple):
    workflow: Workflow
    estimates: Estimates
    planned: float  # the time scale of its scenarios
    path: float  # the longest of its mean costs


def compare(
    workflows: api.Work | Sequence[api.Work],
    platform: api.Machines,
    strategies: str | Sequence[str | Policy | Order],
    runs: int = 100,
    qoi: float = 0.2,
    seed: int = 0,
    jobs: int | None = None,
    progress: Progress = lambda share: None,
    *,
    variability: float = 0.0,
    event_rate: float = EVENT_RATE,
    failures: int = 0,
    failure_rate: float = 0.0,
    return_after: float = math.inf,
    estimates: Sequence[Estimates] | None = None,
    budget: float | None = None,
    reserve: float = 0.0,
) -> Comparison:
    """Run every strategy on every workflow in the same simulated worlds.

    Run r draws the durations and the scenario of seed + r, as `simulate` would. Intervals are over
    the runs; the workflows are taken as given. The results do not depend on the number of jobs,
    which is that of the cores unless it is given. `estimates` are those of each workflow; without
    them it goes by declared costs. With a `budget` all strategies keep it, and their plans leave a
    share of what is left, the `reserve`, for surprises.
    """
    several = workflows if isinstance(workflows, list | tuple) else [workflows]
    given, platform = [api.workflow_of(work) for work in several], api.platform_of(platform)
    if not given:
        raise InputError("there is no workflow to compare on")
    if runs < 1:
        raise InputError(f"the number of runs must be at least 1, not {runs}")
    check_limits(budget, None, reserve)
    chosen = _chosen(strategies, budget is not None)
    money = math.inf if budget is None else budget
    scenario = Scenario(variability, event_rate, failures, failure_rate, return_after)
    scenarios.check_failures(scenario, platform)
    if estimates is None:
        estimates = [Estimates.declared(wf, platform) for wf in given]
    known = zip(given, estimates, strict=True)
    instances = [_instance(wf, platform, scenario, costs) for wf, costs in known]
    reality.draw(given[0], platform, instances[0].estimates, qoi, seed)  # a bad QoI or seed

    def one(unit: int) -> list[tuple[float, ...]]:
        r, w = divmod(unit, len(instances))
        kept = (money, reserve)
        return _paired(instances[w], platform, chosen, scenario, qoi, seed + r, kept)

    rows = in_order(one, runs * len(instances), jobs, progress)
    # runs x workflows x strategies x columns
    table = np.array(rows, dtype=np.float64).reshape(runs, len(given), len(chosen), -1)
    names = [spec_of(policy) for policy, _ in chosen]
    by_workflow = tuple(
        (wf.name or f"workflow {w + 1}", _figures(names, table[:, w : w + 1]))
        for w, wf in enumerate(given)
    )
    overall = _figures(names, table)
    return Comparison(platform, runs, qoi, seed, overall, by_workflow, scenario)


def _instance(
    workflow: Workflow, platform: Platform, scenario: Scenario, estimates: Estimates
) -> _Instance:
    check_fits(workflow, platform, estimates.needs)
    planned = 0.0
    if not scenario.calm:
        planned = api.plan(workflow, platform, "heft", estimates=estimates).makespan
    return _Instance(workflow, estimates, planned, mean_path(workflow, estimates.cost))


def _chosen(strategies: str | Sequence[str | Policy | Order], budgeted: bool) -> Chosen:
    specs = list(strategies) if not isinstance(strategies, str) else [*split_specs(strategies)]
    if not specs:
        raise InputError("there is no strategy to compare")
    chosen = [registry.strategy(spec, budgeted) for spec in specs]
    names = [spec_of(policy) for policy, _ in chosen]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the strategy {name} is given twice")
    return chosen


def _paired(
    instance: _Instance,
    platform: Platform,
    chosen: Chosen,
    scenario: Scenario,
    qoi: float,
    seed: int,
    kept: tuple[float, float],
) -> list[tuple[float, ...]]:
    """Every strategy once in the same world: makespan, cost, considered, replans, planning, NSL."""
    wf, estimates, planned, path = instance
    truth = reality.draw(wf, platform, estimates, qoi, seed)
    truth = scenarios.with_scenario(truth, platform, scenario, planned, seed)
    rows: list[tuple[float, ...]] = []
    for policy, planner in chosen:
        tracker = BudgetTracker(kept[0], reserve=kept[1])
        r = simulate_run(wf, platform, estimates, policy, planner, truth, tracker=tracker)
        rows.append((r.makespan, r.cost, r.considered, r.replans, r.planning_seconds,
                     r.makespan / path if path > 0 else math.nan))  # fmt: skip
    return rows


def _figures(names: Sequence[str], table: FloatArray) -> tuple[Figures, ...]:
    """Over the runs; the mean of the workflows is one value of a run, whose seed they share."""
    per_run = table.mean(axis=1)
    makespan = table[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(makespan == makespan[..., :1], 1.0, makespan / makespan[..., :1])
    ratio = ratio.mean(axis=1)
    return tuple(
        Figures(
            strategy=name,
            makespan=Mean.of(per_run[:, s, 0]),
            ratio=Mean.of(ratio[:, s]),
            nsl=Mean.of(per_run[:, s, 5]),
            cost=Mean.of(per_run[:, s, 1]),
            considered=float(per_run[:, s, 2].mean()),
            replans=float(per_run[:, s, 3].mean()),
            planning_milliseconds=float(np.median(per_run[:, s, 4])) * 1000,
        )
        for s, name in enumerate(names)
    )


def t_quantile(df: int) -> float:
    """The 97.5% quantile of Student's t: a table, then Cornish and Fisher's expansion."""
    if df <= len(_T):
        return _T[df - 1]
    z = _Z
    return (
        z
        + (z**3 + z) / (4 * df)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
    )
