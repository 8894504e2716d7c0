"""Selective rescheduling (Zhao, Sakellariou): its DAGs, by events and by the paper's loop.

The loop of the paper's Figure 2 executes one task after the other, in planned order. It is not how
foreplan runs things. It is here to tell what in our figures comes from the policies, and what from
the simulator. Two things differ from a run event by event:

- a task's real finish is known as soon as the task has started, since the loop executes it at once;
- there is no "now": a task that is moved gets its data as if they had been sent to the new machine
  when they were made, and a machine that was idle can be used from when it became so.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from foreplan import api, registry
from foreplan.arrays import FloatArray, IntArray
from foreplan.contracts import Planner
from foreplan.generators import generate
from foreplan.model import (
    Attempts,
    Estimates,
    Freedom,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    Workflow,
)
from foreplan.scheduling.slack import ROUNDING, slack_and_spare
from foreplan.simulation import reality
from foreplan.simulation.simulate import simulate_run

PLANNERS = ("fcp", "dls", "lmt", "heft")
STRATEGIES = ("static", "ideal", "always", "slack", "spare")
RESCHEDULING = ("always", "slack", "spare")
QOIS = (0.1, 0.2, 0.3, 0.4, 0.5)
TABLE_QOI, TABLE_TASKS, TABLE_MACHINES = 0.2, 50, 5
FIGURE4_TASKS = (10, 20, 30, 40, 50)
TIMED_PARTS, REPEATS = ("table1", "figure4"), 3  # whose times are shown: the shortest of so many

# How a run is simulated, and on which DAGs.
EVENTS, SEQUENTIAL = "events", "sequential"
FITTED, FITTED_SEQUENTIAL = "fitted", "fitted, sequential"


@dataclass(frozen=True)
class Dags:
    """What the paper leaves open of its DAGs and their links."""

    alpha: tuple[float, float] = (1.0, 1.0)  # from long and narrow to short and wide
    out_degree: int = 3
    jump: int = 1  # levels
    links: float = 0.0  # a link's time per unit is off the mean by up to so much of it


SQUARE = Dags()
NARROW = Dags(alpha=(0.25, 0.3))
FIT = Dags(alpha=(0.25, 0.3), out_degree=6, jump=3, links=0.5)  # found by trying
SHAPES = {  # event by event
    **{f"alpha {alpha:g}": Dags((alpha, alpha)) for alpha in (0.35, 0.5, 1.0, 2.0)},
    "links differ": replace(SQUARE, links=FIT.links),
    "narrow": NARROW,
    "narrow, out-degree 6": replace(NARROW, out_degree=FIT.out_degree),
    "narrow, jumps of 3": replace(NARROW, jump=FIT.jump),
    "narrow, links differ": replace(NARROW, links=FIT.links),
    "fitted": FIT,
}
KNOWN, LOOP = "durations known at the start", "the paper's loop"
EXACT, EXACT_LOOP = "no error", "no error, the paper's loop"
EXACT_FITTED = "no error, fitted"


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
    way: str  # how it was simulated, or the reading
    strategy: str
    makespan: float
    replans: int
    seconds: float = float("nan")


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


def table_instance(job: Job, dags: Dags = SQUARE) -> Instance:
    """Table 1 and Figure 4: a fixed number of tasks on 5 machines."""
    rng = np.random.default_rng([job.seed, 1, job.tasks, job.number])
    return _instance(rng, job.tasks, TABLE_MACHINES, dags)


def figure3_instance(job: Job, dags: Dags = SQUARE) -> Instance:
    """Figure 3: 50 to 100 tasks on 3 to 8 machines."""
    rng = np.random.default_rng([job.seed, 3, job.number])
    return _instance(rng, int(rng.integers(50, 101)), int(rng.integers(3, 9)), dags)


def _instance(rng: np.random.Generator, tasks: int, machines: int, dags: Dags) -> Instance:
    """Costs uniform in 50 .. 100 on every machine, CCR uniform in 0.1 .. 1, one entry and exit."""
    seed, ccr = int(rng.integers(2**31)), float(rng.uniform(0.1, 1.0))
    world = int(rng.integers(2**31))
    workflow = generate(
        "random_layered",
        seed=seed,
        tasks=tasks,
        alpha=float(rng.uniform(*dags.alpha)),
        out_degree=dags.out_degree,
        jump=dags.jump,
        single_ends=True,
        mean_cost=75.0,
        spread=0.0,
        beta=2 / 3,
        ccr=ccr,
        processors=machines,
    )
    names = [f"p{p}" for p in range(machines)]
    links = {
        pair: Link(float(rng.uniform(1 - dags.links, 1 + dags.links)))
        for pair in combinations(names, 2)
    }
    return Instance(workflow, Platform.build([Processor(n) for n in names], links=links), world)


def by_events(job: Job, instance: Instance, strategy: str, way: str = EVENTS) -> Outcome:
    """As foreplan runs everything."""
    spec = f"{strategy}[planner={job.planner}]"
    seconds = []
    for _ in range(REPEATS if job.part in TIMED_PARTS else 1):
        begun = time.process_time()
        ran = api.simulate(
            instance.workflow, instance.platform, strategy=spec, qoi=job.qoi, seed=instance.world
        )
        seconds.append(time.process_time() - begun)
    return Outcome(job, way, strategy, ran.makespan, ran.replans, min(seconds))


def in_order(job: Job, instance: Instance, strategy: str, way: str = SEQUENTIAL) -> Outcome:
    """By the loop of the paper's Figure 2."""
    work = instance.durations(job.qoi)
    wf, pf = instance.workflow, instance.platform
    makespan, replans = simulate_in_order(wf, pf, strategy, job.planner, work)
    return Outcome(job, way, strategy, makespan, replans)


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


def informed(job: Job, instance: Instance, strategy: str) -> Outcome:
    """Event by event, but a task's real duration is known when it starts."""
    wf, pf = instance.workflow, instance.platform
    estimates = Estimates.declared(wf, pf)
    truth = reality.draw(wf, pf, estimates, job.qoi, instance.world)
    policy, _ = registry.strategy(f"{strategy}[planner={job.planner}]")
    knows = _Informed(registry.planner(job.planner), truth.work)
    ran = simulate_run(wf, pf, estimates, policy, knows, truth)
    return Outcome(job, KNOWN, strategy, ran.makespan, ran.replans)


def simulate_in_order(
    workflow: Workflow, platform: Platform, strategy: str, planner: str, work: FloatArray
) -> tuple[float, int]:
    """Makespan and number of new plans by the loop of Figure 2; `work` are the real durations."""
    estimates = Estimates.declared(workflow, platform)
    loop = _Loop(workflow, platform, Estimates(work) if strategy == "ideal" else estimates, work)
    chosen = registry.planner(planner)
    replans, before = 0, 0
    plan = chosen.plan(loop.situation())
    line, latest = _line(plan), _latest(plan, strategy)
    for executed in range(workflow.n_tasks):
        task = int(line[executed - before])
        if executed > 0 and loop.real_start(task, plan) > latest[task]:
            plan = chosen.plan(loop.situation())
            replans += 1
            line, latest = _line(plan), _latest(plan, strategy)
            line, before = line[~loop.executed[line]], executed
            task = int(line[0])
        loop.execute(task, plan)
    return float(loop.finish.max()), replans


class _Loop:
    """S2 of Figure 2: what has been executed so far, where and when."""

    def __init__(
        self, workflow: Workflow, platform: Platform, estimates: Estimates, work: FloatArray
    ) -> None:
        self.workflow, self.platform, self.estimates = workflow, platform, estimates
        self.work = work
        self.executed = np.zeros(workflow.n_tasks, dtype=np.bool_)
        self.processor = np.zeros(workflow.n_tasks, dtype=np.int32)
        self.start = np.zeros(workflow.n_tasks)
        self.finish = np.zeros(workflow.n_tasks)
        self.free = np.zeros(platform.n_processors)

    def real_start(self, task: int, plan: Schedule) -> float:
        """When the task's machine is free and its data have arrived there."""
        wf, pf, p = self.workflow, self.platform, plan.processor[task]
        items = wf.in_item[wf.in_ptr[task] : wf.in_ptr[task + 1]]
        producers = wf.item_producer[items]
        items, producers = items[producers >= 0], producers[producers >= 0]
        source, target = pf.host[self.processor[producers]], pf.host[p]
        takes = pf.startup[source, target] + wf.item_size[items] * pf.time_per_unit[source, target]
        arrival = (self.finish[producers] + takes).max(initial=0.0)
        return float(max(self.free[p], arrival))

    def execute(self, task: int, plan: Schedule) -> None:
        """The task runs on its planned machine, and its real finish is known."""
        p = int(plan.processor[task])
        self.start[task] = self.real_start(task, plan)
        self.finish[task] = self.start[task] + self.work[task, p]
        self.processor[task] = p
        self.free[p] = self.finish[task]
        self.executed[task] = True

    def situation(self) -> Situation:
        """What the planner is given: no time has passed, and all work executed ends when it does.

        An attempt with nothing left to do since its real finish is expected to end just then.
        """
        tasks = np.flatnonzero(self.executed).astype(np.int32)
        attempts = Attempts(
            task=tasks,
            processor=self.processor[tasks],
            start=self.start[tasks],
            finish=np.full(len(tasks), np.nan),
            worked=np.full(len(tasks), np.inf),
            since=self.finish[tasks],
        )
        return Situation(self.workflow, self.platform, self.estimates, attempts=attempts)


def _line(plan: Schedule) -> IntArray:
    """The tasks by planned start; a topological order breaks ties."""
    position = plan.workflow.position
    return np.lexsort((position, plan.finish, plan.start)).astype(np.int32)


def _latest(plan: Schedule, strategy: str) -> FloatArray:
    """The latest start of each task that needs no new plan."""
    if strategy in ("static", "ideal", "always"):
        return np.full(len(plan.start), -np.inf if strategy == "always" else np.inf)
    slack, spare = slack_and_spare(plan)
    allowed = slack if strategy == "slack" else spare
    latest: FloatArray = plan.start + allowed + ROUNDING * plan.makespan
    return latest
