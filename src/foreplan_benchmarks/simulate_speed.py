"""How fast the simulator is: fixed plans, selective rescheduling, and replanning in mid-run."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from foreplan import registry
from foreplan.contracts import Order
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.policies.planned import Static
from foreplan.generators import generate
from foreplan.model import Estimates, Freedom, Platform, Processor, Schedule, Situation
from foreplan.simulation.reality import draw
from foreplan.simulation.scenario import Scenario
from foreplan.simulation.scenarios import with_scenario
from foreplan.simulation.simulate import simulate_run
from foreplan.simulation.simulated import SimulatedExecutor
from foreplan_benchmarks.goals import Goal
from foreplan_benchmarks.plan_speed import instance

RUNS_PER_SECOND = {"static": Goal(5_000, at_least=True), "slack": Goal(1_500, at_least=True)}
BLOCKS = 10  # of runs: of each strategy the fastest counts, as of fixed plans
TASKS_PER_SECOND = {10_000: Goal(1_500_000, at_least=True)}  # by the number of tasks


@dataclass(frozen=True)
class Ready:
    """A planner that has its answer: for measuring what comes after planning."""

    schedule: Schedule
    name: ClassVar[str] = "ready"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """The schedule made before."""
        return self.schedule


@dataclass(frozen=True)
class FixedPlan:
    """A plan followed to the end, tasks per second of simulation."""

    tasks: int
    processors: int
    edges: int
    seconds: float
    tasks_per_second: float

    @property
    def goal(self) -> Goal | None:
        """How many tasks per second it should be."""
        return TASKS_PER_SECOND.get(self.tasks)

    @property
    def verdict(self) -> str:
        """Whether it is as many."""
        return self.goal.verdict(self.tasks_per_second) if self.goal else ""


def fixed_plan(tasks: int, processors: int, repeats: int = 20) -> FixedPlan:
    """The best of several simulations of one plan; QoI 20%."""
    situation = instance(tasks, processors)
    wf, pf, estimates = situation.workflow, situation.platform, situation.estimates
    planner = Ready(registry.planner("heft").plan(situation))
    truth = draw(wf, pf, estimates, 0.2, seed=1)
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        simulate_run(wf, pf, estimates, Static(), planner, truth)
        best = min(best, time.perf_counter() - begun)
    return FixedPlan(tasks, processors, wf.n_edges, best, tasks / best)


@dataclass(frozen=True)
class Selective:
    """Many seeds of one small workflow under a strategy."""

    strategy: str
    runs: int
    runs_per_second: float
    mean_considered: float

    @property
    def goal(self) -> Goal | None:
        """How many runs per second it should be."""
        return RUNS_PER_SECOND.get(self.strategy)

    @property
    def verdict(self) -> str:
        """Whether it is as many."""
        return self.goal.verdict(self.runs_per_second) if self.goal else ""


def selective(strategy: str, runs: int = 1000, tasks: int = 100) -> Selective:
    """A workflow of 100 tasks on 5 machines at QoI 20%, one process; the best of some blocks."""
    wf = generate(
        "random_layered", seed=1, tasks=tasks, processors=5, ccr=0.5, mean_cost=75, spread=0.0,
        beta=2 / 3, single_ends=True,
    )  # fmt: skip
    pf = Platform.build([Processor(f"p{p}") for p in range(5)])
    estimates = Estimates.declared(wf, pf)
    policy, planner = registry.strategy(strategy)
    truth = draw(wf, pf, estimates, 0.2, seed=0)
    simulate_run(wf, pf, estimates, policy, planner, truth)  # what a first run imports
    considered, best = 0, float("inf")
    for seeds in np.array_split(range(runs), min(runs, BLOCKS)):
        begun = time.perf_counter()
        for seed in seeds.tolist():
            truth = draw(wf, pf, estimates, 0.2, seed)
            considered += simulate_run(wf, pf, estimates, policy, planner, truth).considered
        best = min(best, (time.perf_counter() - begun) / len(seeds))
    return Selective(strategy, runs, 1 / best, considered / runs)


@dataclass(frozen=True)
class MidRun:
    """Planning at the start against planning again half-way."""

    planner: str
    tasks: int
    start_milliseconds: float
    mid_run_milliseconds: float
    still_to_plan: int


def mid_run(planner: str = "heft", tasks: int = 10_000, processors: int = 8) -> MidRun:
    """Plan, run until half of the tasks are done, and plan again from that situation."""
    begin = instance(tasks, processors)
    wf, pf, estimates = begin.workflow, begin.platform, begin.estimates
    chosen = registry.planner(planner)
    coordinator = Coordinator(wf, pf, estimates, Static(planner))
    executor = SimulatedExecutor(wf, pf, draw(wf, pf, estimates, 0.2, seed=1))
    _half_way(Driver(coordinator, chosen, executor))
    middle = coordinator.situation()
    times = []
    for situation in (begin, middle):
        best = float("inf")
        for _ in range(5):
            fresh = replace(situation)
            begun = time.perf_counter()
            chosen.plan(fresh)
            best = min(best, time.perf_counter() - begun)
        times.append(1000 * best)
    return MidRun(planner, tasks, times[0], times[1], tasks - len(middle.attempts.task))


@dataclass(frozen=True)
class ReschedulingPoint:
    """A new plan in mid-run, by the clock: the situation is read, everything is mapped again."""

    strategy: str
    tasks: int
    processors: int
    edges: int
    milliseconds: float  # the median
    worst_milliseconds: float
    still_to_plan: int


def rescheduling_point(
    strategy: str, tasks: int = 1000, processors: int = 10, repeats: int = 50
) -> ReschedulingPoint:
    """Run until half of the tasks are done in a world that varies by 40%, and plan again."""
    begin = instance(tasks, processors)
    wf, pf, estimates = begin.workflow, begin.platform, begin.estimates
    policy, planner = registry.strategy(strategy)
    assert planner is not None
    assert not isinstance(policy, Order)
    coordinator = Coordinator(wf, pf, estimates, policy)
    planned = planner.plan(begin).makespan
    truth = draw(wf, pf, estimates)
    truth = with_scenario(truth, pf, Scenario(variability=0.4, event_rate=2.0), planned, seed=1)
    _half_way(Driver(coordinator, planner, SimulatedExecutor(wf, pf, truth)))
    times = []
    for _ in range(repeats + 1):  # the first one imports
        begun = time.perf_counter()
        situation = coordinator.state.situation(wf, coordinator.platform, estimates)
        planner.plan(situation, policy.freedom)
        times.append(1000 * (time.perf_counter() - begun))
    left, warm_times = tasks - coordinator.n_done, sorted(times[1:])
    median, worst = warm_times[repeats // 2], warm_times[-1]
    return ReschedulingPoint(strategy, tasks, processors, wf.n_edges, median, worst, left)


def _half_way(driver: Driver) -> None:
    """Drive the run event by event until half of the tasks are done."""
    coordinator = driver.coordinator
    half = coordinator.workflow.n_tasks // 2
    driver.drive(is_over=lambda: coordinator.n_done >= half)
