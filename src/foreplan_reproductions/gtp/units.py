"""The units of the GTP experiment: one graph of one part, with all its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from foreplan.version import __version__
from foreplan_reproductions.gtp import runs
from foreplan_reproductions.gtp.cases import (
    BOUNDS,
    CCRS,
    EVENT_RATE,
    MAIN_CCR,
    MAIN_SIZE,
    SIZES,
    SPREAD,
    Case,
    Graph,
    Instance,
    digest,
    shapes,
)
from foreplan_reproductions.gtp.runs import (
    DLS,
    DLS_PEAK,
    GTP,
    GTPC,
    GTPC_DLS,
    GTPC_HEFT,
    GTPCR,
    GTPR,
    HEFT,
    METRICS,
    PAPER,
    PAPER_R,
    SPARE_GTP,
    SPECS,
    WITH_OURS,
    WITH_OURS_R,
)

CALM, FAILURE = "calm", "failure"  # Figures 4 and 5
SHARED = "shared links"
BY_PLANNER = "by planner"  # GTP/c by other planners, DLS/sr both ways; all else are sweeps
_OTHERS = (HEFT, DLS, GTPC, GTPC_HEFT, GTPC_DLS, SPARE_GTP)
GRID_BOUND, GRID_BOUND_FAILURE = 0.4, 0.2  # of which the paper's text speaks

Columns = dict[str, list[float]]  # "strategy|metric" has one figure per point


@dataclass(frozen=True)
class Settings:
    """What the figures depend on: how many graphs for each part, and where shapes come from."""

    full: bool
    seed: int = 0
    main: int = 24  # SCE10-300 with all bounds
    grid: int = 4  # per other size and CCR
    sweeps: int = 12
    stg: str = ""  # a folder of .stg files

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of tasks."""
        return tuple(shapes(self.stg)) if self.stg else SIZES

    @property
    def main_size(self) -> int:
        """That of Figures 4 and 5: 300, or the largest that the files have."""
        return MAIN_SIZE if MAIN_SIZE in self.sizes else self.sizes[-1]

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        files = digest(self.stg) if self.stg else ""
        return {**asdict(self), "stg": files, "event_rate": EVENT_RATE, "foreplan": __version__}


FULL = Settings(full=True, main=100, grid=40, sweeps=40)
SAMPLE = Settings(full=False)


@dataclass(frozen=True)
class Unit:
    """One graph of one part: at every point the same strategies in one world."""

    number: int
    part: str
    graph: Graph
    points: tuple[Point, ...]


@lru_cache(maxsize=4)
def units(settings: Settings) -> tuple[Unit, ...]:
    """All units, by number."""
    found = [*_figures(settings), *_sweeps(settings)]
    return tuple(Unit(number, *unit) for number, unit in enumerate(found))


def _figures(settings: Settings) -> Iterator[tuple[str, Graph, tuple[Point, ...]]]:
    """Figures 4 and 5 for the main size, then for the others and the other CCRs."""
    for size in settings.sizes:
        for ccr in CCRS:
            main = (size, ccr) == (settings.main_size, MAIN_CCR)
            every = main or settings.full
            calm = BOUNDS if every else (GRID_BOUND,)
            failing = BOUNDS if every else (GRID_BOUND_FAILURE,)
            names, names_r = (WITH_OURS, WITH_OURS_R) if main else (PAPER, PAPER_R)
            # at peak speeds nearly every start is late: that takes long
            planners = (*_OTHERS, DLS_PEAK) if ccr == MAIN_CCR else _OTHERS
            for number in range(settings.main if main else settings.grid):
                graph = Graph(size, ccr, number, settings.seed, stg=settings.stg)
                yield CALM, graph, tuple(_point(names, Case(b)) for b in calm)
                points = tuple(_point(names_r, Case(b, failures=1)) for b in failing)
                yield FAILURE, graph, points
                yield BY_PLANNER, graph, (_point(planners, Case(GRID_BOUND)),)


def _point(names: tuple[str, ...], case: Case) -> Point:
    return Point(case.bound, case, {name: SPECS[name] for name in names})


def _sweeps(settings: Settings) -> Iterator[tuple[str, Graph, tuple[Point, ...]]]:
    """What decides the figures, on the first graphs of the main part."""
    for part, sweep in {**SWEEPS, **FAILING_SWEEPS, SHARED: _shared}.items():
        for number in range(settings.sweeps):
            graph = Graph(settings.main_size, MAIN_CCR, number, settings.seed, stg=settings.stg)
            for variant, points in sweep(graph):
                yield part, variant, points


def measured(settings: Settings, unit: Unit) -> Columns:
    """All strategies at all points; what must be the same is simulated once."""
    instance = Instance(unit.graph)
    columns: Columns = {"path": [instance.path], "work": [instance.work]}
    known: dict[tuple[Case, str], dict[str, float]] = {}
    for point in unit.points:
        new = [s for s in dict.fromkeys(point.specs.values()) if (point.case, s) not in known]
        found = runs.measure(instance, point.case, tuple(new))
        known |= {(point.case, spec): one for spec, one in zip(new, found, strict=True)}
        for name, spec in point.specs.items():
            for metric in METRICS:
                value = known[point.case, spec][metric]
                columns.setdefault(f"{name}|{metric}", []).append(value)
    return columns


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


def _shared(graph: Graph) -> Variants:
    """Nothing varies, but transfers share the links."""
    for value in CCRS:
        yield replace(graph, ccr=value), (Point(value, Case(bound=0.0, shared=True), _PAPER),)


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
