"""HEFT, AHEFT and Min-Min on one DAG, for all its resource models."""

from __future__ import annotations

from functools import cache

from weft import registry, wiring
from weft.contracts import Order, Planner, Policy
from weft.executors.reality import Reality
from weft.experiments.aheft_cases import APPLICATIONS, Dag, Instance, Model, machines, waves
from weft.model import Run

HEFT, AHEFT, MIN_MIN = "static", "aheft[learn=false]", "min-min"

Columns = dict[str, list[float]]  # a column has one figure per resource model


def compare(dag: Dag, some: tuple[Model, ...]) -> Columns:
    """HEFT, AHEFT and, on random DAGs, Min-Min on each resource model."""
    instance = Instance(dag)
    found: Columns = {"heft": [], "aheft": [], "replans": []}
    if dag.kind not in APPLICATIONS:
        found["minmin"] = []
    known: dict[tuple[str, Model], tuple[float, int]] = {}
    for model in some:
        heft, _ = _cached(known, instance, HEFT, model)
        aheft, replans = _cached(known, instance, AHEFT, model)
        found["heft"].append(heft)
        found["aheft"].append(aheft)
        found["replans"].append(replans)
        if "minmin" in found:
            found["minmin"].append(_cached(known, instance, MIN_MIN, model)[0])
    return found


def _cached(
    known: dict[tuple[str, Model], tuple[float, int]],
    instance: Instance,
    strategy: str,
    model: Model,
) -> tuple[float, int]:
    """Makespan and number of new plans; what must be the same is simulated once.

    HEFT uses none that join, nor does any run that ends before the first does. And a share of a
    small pool is rounded, so that some models are the same.
    """
    alone = (strategy, Model(model.pool, 0.0, 0.0))
    if alone not in known:
        known[alone] = _figures(simulate(instance, Model(model.pool, 1.0, 0.0), strategy, 0.0))
    if strategy == HEFT or known[alone][0] <= model.interval:
        return known[alone]
    each = max(1, round(model.share * model.pool))
    alike = (strategy, Model(model.pool, model.interval, each))
    if alike not in known:
        known[alike] = _figures(simulate(instance, model, strategy, known[alone][0]))
    return known[alike]


def _figures(run: Run) -> tuple[float, int]:
    return float(run.makespan), run.replans


def simulate(instance: Instance, model: Model, strategy: str, until: float) -> Run:
    """One run; machines join as long as it lasts, at first until a time that should be enough."""
    policy, planner = _strategy(strategy)
    while True:
        times = waves(model.interval, until) if model.share > 0 else 0
        platform, joins = machines(model, times)
        estimates = instance.estimates(platform.n_processors)
        truth = Reality(estimates.cost, joins)
        run = wiring.simulate(instance.workflow, platform, estimates, policy, planner, truth)
        if model.share == 0 or run.makespan <= model.interval * (times + 1):
            return run
        until = run.makespan + model.interval  # the links of many machines take much memory


@cache
def _strategy(strategy: str) -> tuple[Policy | Order, Planner | None]:
    return registry.strategy(strategy)
