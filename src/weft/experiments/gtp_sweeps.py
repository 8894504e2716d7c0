"""What decides the figures of the GTP experiment: one thing after the other is varied, at 40%."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from weft.experiments.gtp_cases import SPREAD, Case, Graph
from weft.experiments.gtp_runs import (
    GTP,
    GTPC,
    GTPC_DLS,
    GTPC_HEFT,
    GTPCR,
    GTPR,
    PAPER,
    PAPER_R,
    SPECS,
)

PERIODS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # % of the makespan
RATES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
DENSITIES = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)  # predecessors
CCR_RANGE = (0.1, 0.5, 1.5, 5.0)
SPREADS = (0.0, SPREAD, 1.8)
BETAS = (0.0, 0.5, 1.0, 1.5)
ERRORS = (0.0, 0.1, 0.2, 0.4)
PLANNERS = ("gtp", "heft", "dls")
POLICIES = {"static": "static", "spare": "spare", GTP: "gtp", GTPC: "gtp/c"}
FAILING_RATES = (0.5, 2.0, 10.0)
FAILING_PERIODS = (1.0, 5.0, 20.0)
FAILING_DENSITIES = (2.0, 10.0, 40.0)


@dataclass(frozen=True)
class Point:
    """One world, by the value of what is varied, and the strategies in it: name -> spec."""

    value: float
    case: Case
    specs: dict[str, str]


Variants = Iterator[tuple[Graph, tuple[Point, ...]]]

_PAPER = {name: SPECS[name] for name in PAPER}
_BY_OTHERS = {name: SPECS[name] for name in (*PAPER, GTPC_HEFT, GTPC_DLS)}  # planners
_FAILING = {name: SPECS[name] for name in PAPER_R}
_ONE_FAILURE = Case(bound=0.2, failures=1)  # where the paper gives a figure


def _periods(graph: Graph) -> Variants:
    points = []
    for period in PERIODS:
        specs = {name: f"{SPECS[name]}[period={period:g}%]" for name in (GTP, GTPC)}
        points.append(Point(period, Case(), {**_PAPER, **specs}))
    yield graph, tuple(points)


def _rates(graph: Graph) -> Variants:
    yield graph, tuple(Point(rate, Case(rate=rate), _PAPER) for rate in RATES)


def _errors(graph: Graph) -> Variants:
    """Nothing varies, but durations are not what the estimates say."""
    yield graph, tuple(Point(e, Case(bound=0.0, error=e), _BY_OTHERS) for e in ERRORS)


def _planners(graph: Graph) -> Variants:
    specs = {
        f"{name} by {planner}": f"{policy}[planner={planner}]"
        for name, policy in POLICIES.items()
        for planner in PLANNERS
    }
    yield graph, tuple(Point(b, Case(bound=b), specs) for b in (0.0, 0.4))


def _densities(graph: Graph) -> Variants:
    if not graph.stg:
        for value in DENSITIES:
            yield replace(graph, predecessors=value), (Point(value, Case(), _BY_OTHERS),)


def _ccrs(graph: Graph) -> Variants:
    for value in CCR_RANGE:
        yield replace(graph, ccr=value), (Point(value, Case(), _PAPER),)


def _spreads(graph: Graph) -> Variants:
    for value in SPREADS:
        yield replace(graph, spread=value), (Point(value, Case(), _PAPER),)


def _betas(graph: Graph) -> Variants:
    for value in BETAS:
        yield replace(graph, beta=value), (Point(value, Case(), _PAPER),)


def _failing_rates(graph: Graph) -> Variants:
    points = [Point(rate, replace(_ONE_FAILURE, rate=rate), _FAILING) for rate in FAILING_RATES]
    yield graph, tuple(points)


def _failing_periods(graph: Graph) -> Variants:
    points = []
    for period in FAILING_PERIODS:
        specs = {name: f"{SPECS[name]}[period={period:g}%]" for name in (GTPR, GTPCR)}
        points.append(Point(period, _ONE_FAILURE, specs))
    yield graph, tuple(points)


def _failing_densities(graph: Graph) -> Variants:
    if not graph.stg:
        for value in FAILING_DENSITIES:
            yield replace(graph, predecessors=value), (Point(value, _ONE_FAILURE, _FAILING),)


def _failing_ccrs(graph: Graph) -> Variants:
    for value in CCR_RANGE:
        yield replace(graph, ccr=value), (Point(value, _ONE_FAILURE, _FAILING),)


Sweep = Callable[[Graph], Variants]
SWEEPS: dict[str, Sweep] = {
    "period": _periods,
    "rate": _rates,
    "ccr": _ccrs,
    "density": _densities,
    "links": _spreads,
    "beta": _betas,
    "error": _errors,
    "planner": _planners,
}
FAILING_SWEEPS: dict[str, Sweep] = {
    "period, failure": _failing_periods,
    "rate, failure": _failing_rates,
    "ccr, failure": _failing_ccrs,
    "density, failure": _failing_densities,
}
