"""How many simulated runs ended over their budget, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.arrays import BoolArray, FloatArray
from weft.experiments.budget_plans import Columns
from weft.experiments.budget_runs import CHEAPEST, FIRST, PLANS, RUN, STRATEGIES, WAYS, Way
from weft.experiments.selective_claims import Verdict
from weft.model.money import ROUNDING


@dataclass(frozen=True)
class RunRow:
    """One way to run: overspending is in % of the budget.

    Mean, median and worst are of the runs that ended over it, `spent` is the mean of all.
    """

    strategy: str
    kept: str
    runs: int
    over: int
    over_percent: float
    mean: float
    median: float
    worst: float
    spent: float
    avoidable: int  # of those over: the cheapest way all along would have kept the budget
    cost: float  # mean, in % of the budget
    makespan: float  # mean, in % of the cheapest assignment's as planned
    replans: float


def run_rows(runs: Sequence[Columns]) -> Iterator[RunRow]:
    """All ways to run."""
    hopeless = _over(runs, CHEAPEST_WAY)
    for way in WAYS:
        over, beyond = _over(runs, way), _beyond(runs, way)
        kept = way.name.partition("|")[2]
        makespan = _column(runs, way, "makespan") / _ends(runs, "cheapest")
        yield RunRow(
            way.strategy, kept, len(over), int(over.sum()), 100 * float(over.mean()),
            *_spread(beyond[over]), float(np.maximum(beyond, 0.0).mean()),
            int(np.count_nonzero(over & ~hopeless)),
            100 + float(beyond.mean()), 100 * float(makespan.mean()),
            float(_column(runs, way, "replans").mean()),
        )  # fmt: skip


def run_verdicts(runs: Sequence[Columns], simulator: str) -> list[Verdict]:
    """For every strategy: the budget kept at run time against the same plan without."""
    runs = held(runs)
    return [
        _less_over(runs, strategy, kept, simulator)
        for strategy in STRATEGIES
        for kept in (FIRST, PLANS)
    ]


def _less_over(runs: Sequence[Columns], strategy: str, kept: str, simulator: str) -> Verdict:
    """Fewer runs over budget, and less money over it in all."""
    mine, other = Way(strategy, RUN), Way(strategy, kept)
    over, over_other = _over(runs, mine), _over(runs, other)
    money, money_other = (
        float(np.maximum(_beyond(runs, way), 0.0).mean()) for way in (mine, other)
    )
    figures = (
        f"over {int(over.sum())} against {int(over_other.sum())} of {len(over)} (the cheapest way "
        f"all along: {int(_over(runs, CHEAPEST_WAY).sum())}); only with run-time budgeting "
        f"{int((over & ~over_other).sum())}, only without {int((~over & over_other).sum())}; over "
        f"by {money:.2f}% of the budget against {money_other:.2f}%, over all runs"
    )
    claim = f"{strategy} ends over budget less often and by less than with the budget {kept} only"
    holds = over.sum() < over_other.sum() and money < money_other
    return Verdict(claim, simulator, bool(holds), figures)


CHEAPEST_WAY = Way("static", CHEAPEST)


def held(runs: Sequence[Columns]) -> list[Columns]:
    """The runs that were held; the others had nothing between cheapest and HEFT."""
    return [columns for columns in runs if "budget" in columns]


def _column(runs: Sequence[Columns], way: Way, metric: str) -> FloatArray:
    return np.array([columns[f"{way.name}|{metric}"][0] for columns in runs])


def _ends(runs: Sequence[Columns], name: str) -> FloatArray:
    return np.array([columns[name][0] for columns in runs])


def _beyond(runs: Sequence[Columns], way: Way) -> FloatArray:
    """By how much the cost is above the budget, in % of it."""
    return 100 * (_column(runs, way, "cost") / _ends(runs, "budget") - 1)


def _over(runs: Sequence[Columns], way: Way) -> BoolArray:
    over: BoolArray = _beyond(runs, way) > 100 * ROUNDING
    return over


def _spread(values: FloatArray) -> tuple[float, float, float]:
    if len(values) == 0:
        return 0.0, 0.0, 0.0
    return float(values.mean()), float(np.median(values)), float(values.max())
