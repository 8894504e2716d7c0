"""Selective rescheduling (Zhao, Sakellariou): its Table 1 and Figures 3 and 4 once more.

Every DAG is run with every planner and strategy on the same real durations. Each is run twice:
event by event, as weft runs everything, and by the paper's own loop (selective_sequential.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from weft import api, registry, wiring
from weft.arrays import FloatArray
from weft.contracts import Planner
from weft.executors import reality
from weft.experiments import workers
from weft.experiments.selective_sequential import simulate_in_order
from weft.generators import generate
from weft.model import Estimates, Freedom, Platform, Processor, Schedule, Situation, Workflow

PLANNERS = ("fcp", "dls", "lmt", "heft")
STRATEGIES = ("static", "ideal", "always", "slack", "spare")
RESCHEDULING = ("always", "slack", "spare")
QOIS = (0.1, 0.2, 0.3, 0.4, 0.5)
TABLE_QOI, TABLE_TASKS, TABLE_MACHINES = 0.2, 50, 5
FIGURE4_TASKS = (10, 20, 30, 40, 50)
SHAPES = (0.35, 0.5, 1.0, 2.0)  # alpha: from long and narrow to short and wide

EVENTS, SEQUENTIAL, INFORMED = "events", "sequential", "informed"

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Sizes:
    """How many DAGs; of Figure 4 per number of tasks."""

    table1: int
    figure3: int
    figure4: int
    readings: int


PAPER = Sizes(table1=50, figure3=100, figure4=100, readings=50)
QUICK = Sizes(table1=20, figure3=10, figure4=8, readings=12)


@dataclass(frozen=True)
class Job:
    """What is run at a time: one DAG with one planner and one QoI error."""

    part: str  # table1, figure3, figure4 or readings
    number: int
    planner: str
    seed: int
    qoi: float = TABLE_QOI
    tasks: int = TABLE_TASKS


@dataclass(frozen=True)
class Outcome:
    """One run; `seconds` is the processor time of the whole call, planning included."""

    job: Job
    strategy: str
    simulator: str
    makespan: float
    replans: int
    seconds: float = float("nan")
    alpha: float = 1.0


def jobs(sizes: Sizes, seed: int) -> list[Job]:
    """All that is to be run, in the order of the results."""
    table1 = [Job("table1", k, p, seed) for p in PLANNERS for k in range(sizes.table1)]
    figure3 = [
        Job("figure3", k, p, seed, qoi) for p in PLANNERS for qoi in QOIS
        for k in range(sizes.figure3)
    ]  # fmt: skip
    figure4 = [
        Job("figure4", k, p, seed, tasks=n) for p in PLANNERS for n in FIGURE4_TASKS
        for k in range(sizes.figure4)
    ]  # fmt: skip
    readings = [Job("readings", k, p, seed) for p in PLANNERS for k in range(sizes.readings)]
    return table1 + figure3 + figure4 + readings


def run_all(
    todo: list[Job], processes: int, progress: Progress = lambda share: None
) -> list[Outcome]:
    """All outcomes, in the order of the jobs."""
    if todo:
        perform(todo[0])  # what a first call imports is in nobody's time
    done = workers.in_order(lambda k: perform(todo[k]), len(todo), processes, progress)
    return [outcome for some in done for outcome in some]


def perform(job: Job) -> list[Outcome]:
    """Run everything that is compared on one DAG with one planner."""
    return list(_PARTS[job.part](job))


@dataclass(frozen=True, eq=False)
class Instance:
    """A DAG, its machines, and the seed of its real durations."""

    workflow: Workflow
    platform: Platform
    world: int

    def durations(self, qoi: float) -> FloatArray:
        """The real durations; for any QoI error the same draws, scaled."""
        wf, pf = self.workflow, self.platform
        return reality.draw(wf, pf, Estimates.declared(wf, pf), qoi, self.world).work


def table_instance(job: Job, alpha: float = 1.0) -> Instance:
    """Table 1 and Figure 4: a fixed number of tasks on 5 machines."""
    rng = np.random.default_rng([job.seed, 1, job.tasks, job.number])
    return _instance(rng, job.tasks, TABLE_MACHINES, alpha)


def figure3_instance(job: Job) -> Instance:
    """Figure 3: 50 to 100 tasks on 3 to 8 machines."""
    rng = np.random.default_rng([job.seed, 3, job.number])
    return _instance(rng, int(rng.integers(50, 101)), int(rng.integers(3, 9)), 1.0)


def _instance(rng: np.random.Generator, tasks: int, machines: int, alpha: float) -> Instance:
    """Costs uniform in 50 .. 100 on every machine, CCR uniform in 0.1 .. 1, one entry and exit."""
    workflow = generate(
        "random_layered",
        seed=int(rng.integers(2**31)),
        tasks=tasks,
        alpha=alpha,
        single_ends=True,
        mean_cost=75.0,
        spread=0.0,
        beta=2 / 3,
        ccr=float(rng.uniform(0.1, 1.0)),
        processors=machines,
    )
    platform = Platform.build([Processor(f"p{p}") for p in range(machines)])
    return Instance(workflow, platform, int(rng.integers(2**31)))


def by_events(
    job: Job, instance: Instance, strategy: str, qoi: float, alpha: float = 1.0
) -> Outcome:
    """As weft runs everything."""
    spec = f"{strategy}[planner={job.planner}]"
    begun = time.process_time()
    ran = api.simulate(
        instance.workflow, instance.platform, strategy=spec, qoi=qoi, seed=instance.world
    )
    seconds = time.process_time() - begun
    return Outcome(job, strategy, EVENTS, ran.makespan, ran.replans, seconds, alpha)


def in_order(job: Job, instance: Instance, strategy: str, qoi: float) -> Outcome:
    """By the loop of the paper's Figure 2."""
    work = instance.durations(qoi)
    wf, pf = instance.workflow, instance.platform
    makespan, replans = simulate_in_order(wf, pf, strategy, job.planner, work)
    return Outcome(job, strategy, SEQUENTIAL, makespan, replans)


@dataclass(frozen=True)
class _Informed:
    """A planner that is told the real duration of a task when it starts, as in the paper's loop."""

    name: ClassVar[str] = "informed"
    inner: Planner
    work: FloatArray

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The inner planner's, knowing how long everything that runs will take."""
        started = situation.attempts.task
        cost = situation.estimates.cost.copy()
        cost[started] = self.work[started]
        return self.inner.plan(replace(situation, estimates=Estimates(cost)), freedom)


def informed(job: Job, instance: Instance, strategy: str, qoi: float) -> Outcome:
    """Event by event, but a task's real duration is known when it starts."""
    wf, pf = instance.workflow, instance.platform
    estimates = Estimates.declared(wf, pf)
    truth = reality.draw(wf, pf, estimates, qoi, instance.world)
    policy, _ = registry.strategy(f"{strategy}[planner={job.planner}]")
    knows = _Informed(registry.planner(job.planner), truth.work)
    ran = wiring.simulate(wf, pf, estimates, policy, knows, truth)
    return Outcome(job, strategy, INFORMED, ran.makespan, ran.replans)


def _table1(job: Job) -> Iterator[Outcome]:
    instance = table_instance(job)
    for strategy in RESCHEDULING:
        yield by_events(job, instance, strategy, job.qoi)
        yield in_order(job, instance, strategy, job.qoi)


def _figure3(job: Job) -> Iterator[Outcome]:
    instance = figure3_instance(job)
    for strategy in STRATEGIES:
        yield by_events(job, instance, strategy, job.qoi)
        yield in_order(job, instance, strategy, job.qoi)


def _figure4(job: Job) -> Iterator[Outcome]:
    instance = table_instance(job)
    for strategy in RESCHEDULING:
        yield by_events(job, instance, strategy, job.qoi)


def _readings(job: Job) -> Iterator[Outcome]:
    """What decides the figures: other shapes, other knowledge, and replanning with no error."""
    for alpha in SHAPES:
        instance = table_instance(job, alpha)
        for strategy in ("slack", "spare"):
            yield by_events(job, instance, strategy, job.qoi, alpha)
    square = table_instance(job)
    for strategy in ("slack", "spare"):
        yield informed(job, square, strategy, job.qoi)
        yield in_order(job, square, strategy, job.qoi)
    exact = replace(job, qoi=0.0)
    for strategy in ("static", "always"):
        yield by_events(exact, square, strategy, 0.0)
        yield in_order(exact, square, strategy, 0.0)


_PARTS: dict[str, Callable[[Job], Iterator[Outcome]]] = {
    "table1": _table1,
    "figure3": _figure3,
    "figure4": _figure4,
    "readings": _readings,
}
