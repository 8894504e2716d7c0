"""A simulated volunteer platform: machines come, go and vary at random, and nobody knows times.

One server holds all data; 500 volunteers fetch tasks from it. What a volunteer had begun is lost
when it goes. The strategies see estimates that have little to do with the truth, and do not see how
fast a volunteer is, unless that is what is varied.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from foreplan import api, registry
from foreplan.arrays import FloatArray
from foreplan.generators import generate
from foreplan.ic import Dag, shapes
from foreplan.ic.shapes import compose
from foreplan.model import Estimates, Item, Platform, Run, Workflow
from foreplan.model.platform import Processor
from foreplan.model.world import Trace, WorldFile
from foreplan.simulation import reality
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from foreplan_reproductions.ic.cases import FFT, Q2, WNM, W, workflow_files
from foreplan_reproductions.ic.plays import FIFO, GREEDY, HOPS, ICO, KNOWN, LIFO, Columns

MIN_MIN, STATIC = "min-min", "static"
QUICK = (ICO, HOPS, FIFO, LIFO, GREEDY)  # they see no estimates
STRATEGIES = (*QUICK, MIN_MIN, STATIC)

LAYERED = "layered"
GENERATED = (FFT, W, WNM, Q2, LAYERED)
MOST_REAL = 2  # workflows of a folder: its largest

PROCESSORS, CHURN, ERROR = 500, 0.2, 10.0
UNKNOWN = math.inf  # an error with which estimates tell nothing: all tasks look alike
SLOWEST = 0.1  # of a volunteer's peak
CHANGES = 2.0  # of each volunteer's speed in a span
AWAY = 0.25  # the share of a span that a volunteer is away, on average, and of those not there yet
HORIZON = 4.0  # spans until which things change
SIGMA = 1.0  # of the logarithm of a generated task's duration


@dataclass(frozen=True, order=True)
class Volunteers:
    """A run's parameters: which workflow of which size, in which world of volunteers.

    `churn` is how often a volunteer goes in a span: the time that the run should take.
    """

    workflow: str
    size: int
    world: int = 0
    seed: int = 0
    processors: int = PROCESSORS
    churn: float = CHURN
    error: float = ERROR
    seen: bool = False  # whether the volunteers' present speeds are known

    def rng(self, purpose: int) -> np.random.Generator:
        """A stream for one purpose; it depends on what is drawn, not on what is swept."""
        name = zlib.crc32(self.workflow.encode())
        return np.random.default_rng([self.seed, name, self.size, self.world, purpose])


_SHAPE, _DURATIONS, _ESTIMATES, _SPEEDS, _PRESENCE, _SHARES = range(6)


@dataclass(frozen=True, eq=False)
class Stage:
    """What a run is played on: the workflow as estimated, the machines, and the world."""

    workflow: Workflow
    platform: Platform
    world: WorldFile
    span: float  # what the run takes if nobody idles, or if the longest path decides
    shares: FloatArray | None = None  # of its peak, that a task gets from a volunteer; unseen

    def truth(self) -> Reality:
        """What really happens."""
        estimates = Estimates.declared(self.workflow, self.platform)
        drawn = reality.from_world(self.workflow, self.platform, estimates, self.world)
        return drawn if self.shares is None else replace(drawn, work=drawn.work / self.shares)

    def run(self, spec: str, truth: Reality) -> Run:
        """One strategy in this world."""
        policy, planner = registry.strategy(spec)
        estimates = Estimates.declared(self.workflow, self.platform)
        return simulate_run(self.workflow, self.platform, estimates, policy, planner, truth)


def real_names(folder: str) -> list[str]:
    """The largest workflows of a folder, by their files' names."""
    sized = [(-api.load(path).n_tasks, path.name) for path in workflow_files(folder)]
    return [name for _, name in sorted(sized)[:MOST_REAL]]


def application(workflow: str) -> str:
    """The application that a trace is of, or the name of a dag."""
    return workflow.partition(".")[0].partition("-")[0]


def available() -> tuple[str, ...]:
    """The strategies that foreplan has."""
    known = registry.strategy_names()
    return tuple(name for name in STRATEGIES if name in known)


def measured(case: Volunteers, folder: str = "", names: tuple[str, ...] = ()) -> Columns:
    """The makespan of every strategy in the same world, in spans; and what was lost."""
    stage = stage_of(case, folder)
    found: Columns = {"n": [float(stage.workflow.n_tasks)], "span": [stage.span]}
    truth = stage.truth()
    for name in names or available():
        run = stage.run(_spec(name, case.world), truth)
        found[f"{name}|makespan"] = [run.makespan / stage.span]
        found[f"{name}|lost"] = [float(len(run.attempts.task) - run.workflow.n_tasks)]
    return found


def _spec(name: str, seed: int) -> str:
    """The strategy with random ties, where it has ties to break."""
    chosen: Any = registry.strategy_class(name)
    options = {field.name for field in fields(chosen)}
    return f"{name}[ties={seed}]" if name in KNOWN and "ties" in options else name


def stage_of(case: Volunteers, folder: str = "") -> Stage:
    """The workflow, the machines and their world, all drawn."""
    workflow, actual = _workflow(case, folder)
    estimates = _estimates(case, actual)
    factors = actual / estimates
    # no run can be shorter than the longest path, nor than all work on all machines; on average a
    # volunteer has (1 + SLOWEST) / 2 of its peak
    least = max(_path(workflow, actual), float(actual.sum()) / case.processors)
    span = least * 2 / (1 + SLOWEST)
    platform, absences = _presence(case, span)
    world = WorldFile(
        durations=dict(zip(workflow.task_names, factors.tolist(), strict=True)),
        availability=_speeds(case, span) if case.seen else {},
        failures=absences,
    )
    shape = workflow.n_tasks, case.processors
    shares = None if case.seen else case.rng(_SHARES).uniform(SLOWEST, 1.0, shape)
    return Stage(replace(workflow, base_cost=estimates), platform, world, span, shares)


def _workflow(case: Volunteers, folder: str) -> tuple[Workflow, FloatArray]:
    """A workflow without data, and its tasks' real durations: a file's own, or drawn."""
    if case.workflow in GENERATED:
        dag = _dag(case)
        actual = case.rng(_DURATIONS).lognormal(0.0, SIGMA, dag.n)
        return _without_data(case.workflow, dag), actual
    path = next(path for path in workflow_files(folder) if path.name == case.workflow)
    loaded = api.load(path, resources=False)
    cost = np.nan_to_num(loaded.base_cost, nan=1.0)
    return _without_data(path.stem, Dag.from_workflow(loaded)), np.maximum(cost, 1e-3 * cost.max())


def _dag(case: Volunteers) -> Dag:
    if case.workflow == FFT:  # the largest that has at most so many vertices
        rows = max(r for r in range(1, 20) if r == 1 or (r + 1) << r <= case.size)
        return shapes.butterfly(rows)
    if case.workflow == LAYERED:
        seed = int(case.rng(_SHAPE).integers(2**31))
        return Dag.from_workflow(generate("random_layered", seed=seed, tasks=case.size, alpha=10.0))
    return compose(case.workflow, case.rng(_SHAPE), case.size).dag


def _without_data(name: str, dag: Dag) -> Workflow:
    rows = np.split(dag.child, dag.child_ptr[1:-1])
    items = [Item(0.0, v, row.tolist()) for v, row in enumerate(rows) if len(row)]
    return Workflow.from_items(name, [f"t{v}" for v in range(dag.n)], [1.0] * dag.n, items)


def _estimates(case: Volunteers, actual: FloatArray) -> FloatArray:
    """What the strategies believe: off by a factor of up to `error` either way."""
    if case.error == UNKNOWN:
        return np.full(len(actual), float(actual.mean()))
    width = math.log(case.error)
    off: FloatArray = actual * np.exp(case.rng(_ESTIMATES).uniform(-width, width, len(actual)))
    return off


def _path(workflow: Workflow, actual: FloatArray) -> float:
    """The longest path."""
    ends = actual.copy()
    _, producers, consumers = workflow.dependencies()
    order = np.argsort(workflow.position[consumers], kind="stable")
    for u, v in zip(producers[order].tolist(), consumers[order].tolist(), strict=True):
        ends[v] = max(ends[v], ends[u] + actual[v])
    return float(ends.max())


def _speeds(case: Volunteers, span: float) -> dict[str, Trace]:
    """A volunteer's speed from time to time: uniform between SLOWEST and 1."""
    rng, traces = case.rng(_SPEEDS), dict[str, Trace]()
    for p in range(case.processors):
        times = _moments(rng, CHANGES / span, HORIZON * span)
        values = rng.uniform(SLOWEST, 1.0, len(times) + 1).tolist()
        traces[f"p{p}"] = tuple(zip([0.0, *times], values, strict=True))
    return traces


def _presence(case: Volunteers, span: float) -> tuple[Platform, dict[str, tuple[float, ...]]]:
    """Who joins later, and when volunteers go and are back; all are back in the end."""
    rng, processors, absences = case.rng(_PRESENCE), [], {}
    for p in range(case.processors):
        draws = iter(rng.exponential(1.0, 2 + 2 * int(3 + 4 * case.churn * HORIZON)).tolist())
        late = rng.random() < AWAY and p > 0 and case.churn > 0  # one is there from the beginning
        joins = AWAY * span * next(draws) if late else 0.0
        processors.append(Processor(f"p{p}", host="server", joins=joins))
        times, now = [], joins
        while case.churn > 0 and now < HORIZON * span:
            gone = now + span / case.churn * next(draws, 1.0)
            now = gone + AWAY * span * next(draws, 1.0)
            times += [gone, now]
        if times:
            absences[f"p{p}"] = tuple(times)
    return Platform.build(processors), absences


def _moments(rng: np.random.Generator, rate: float, until: float) -> list[float]:
    """Random times at a rate."""
    expected = rate * until
    gaps = rng.exponential(1.0 / rate, int(expected + 6 * math.sqrt(expected) + 10))
    times = np.cumsum(gaps)
    listed: list[float] = times[times < until].tolist()
    return listed
