"""Workers that join a Dask run halfway: `aheft` beside `static`, really and simulated."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreplan import api, registry
from foreplan.checks.runs import check_run
from foreplan.errors import ForeplanError
from foreplan.flow import Flow
from foreplan.generators import generate
from foreplan.model import Estimates, Platform, Processor, Run, Workflow
from foreplan.model.events import ProcessorJoined
from foreplan.model.platform import Link
from foreplan.runs.outcome import STOPPED, Outcome, RunFailedError
from foreplan.simulation.reality import Reality, platform_changes
from foreplan.simulation.simulate import simulate_run
from foreplan_benchmarks.dask_cluster import JoinAt, cluster, spare_workers
from foreplan_benchmarks.dask_speed import Progress, nap, own_history

WORKERS, JOINERS = 3, 2
AHEFT, STATIC = "aheft", "static"
Shapes = dict[str, dict[str, int]]
SHAPES: Shapes = {"montage": {"images": 16}, "fork_join": {"stages": 4, "width": 14}}
QUICK: Shapes = {"montage": {"images": 4}, "fork_join": {"stages": 2, "width": 8}}
SPREAD = 0.15  # what a task takes is off its declared cost by up to this share, either way
LINK = Link(time_per_unit=1e-8, startup=1e-3)  # as the run assumes of a Dask cluster
# what a worker imports for its first run and its first task
PRELOAD = ("foreplan.executors.dask.tasks", "foreplan_benchmarks.dask_speed")


@dataclass(frozen=True, eq=False)
class Case:
    """A flow of naps whose costs are declared, what they really take, and when workers join."""

    shape: str
    seed: int
    flow: Flow
    workflow: Workflow
    seconds: tuple[float, ...]  # by task, at speed 1
    at: float  # half of what the plan of `static` promises


@dataclass(frozen=True)
class JoinedRun:
    """One real run: when workers joined in its time, and what was done about it."""

    makespan: float
    joined: float | None  # the first of them; None: after the end
    first_start: float | None  # of a task on one of them
    on_joiners: int  # tasks
    considered: int
    taken: int

    @property
    def idle(self) -> float | None:
        """Seconds from the first join to the first task there."""
        if self.joined is None or self.first_start is None:
            return None
        return self.first_start - self.joined


@dataclass(frozen=True)
class Pair:
    """One workflow with both strategies on one cluster, and the same simulated."""

    shape: str
    tasks: int
    seed: int
    speed: float  # of those that join
    at: float  # when they are told to join
    went_first: str
    aheft: JoinedRun
    static: JoinedRun
    simulated_aheft: float
    simulated_static: float
    bound: float  # no schedule ends earlier, even one that knows everything

    @property
    def ratio(self) -> float:
        """The real makespan of `aheft` over that of `static`."""
        return self.aheft.makespan / self.static.makespan

    @property
    def simulated(self) -> float:
        """The same of the simulated makespans."""
        return self.simulated_aheft / self.simulated_static

    @property
    def least(self) -> float:
        """The least ratio that any strategy could have."""
        return self.bound / self.simulated_static


@dataclass(frozen=True)
class Ratios:
    """Makespans of `aheft` over those of `static`, medians of the pairs, and the worst."""

    shape: str
    speed: float
    pairs: int
    static: float  # seconds
    ratio: float
    worst: float
    simulated: float
    least: float
    told_to_joined: float  # seconds
    joined_to_first: float | None  # None: no task ran there

    @property
    def verdict(self) -> str:
        """Whether joining paid in every pair."""
        mostly = "mostly shorter" if self.ratio < 1.0 else "not shorter"
        return "always shorter" if self.worst < 1.0 else mostly


def case(shape: str, seed: int, unit: float, options: dict[str, int]) -> Case:
    """Tasks of 0.15 to 0.8 s times the unit, declared by category and really a little off that."""
    graph = generate(shape, seed=seed, **options)
    rng = np.random.default_rng([seed, 0x701])
    flow, tasks, typical = Flow(graph.name), dict[int, Any](), dict[str, float]()
    _, producers, consumers = graph.dependencies()
    seconds = []
    for task in graph.order.tolist():
        category = graph.spec(task).category or graph.task_names[task].split("_")[0]
        cost = typical.setdefault(category, unit * rng.uniform(0.15, 0.8))
        seconds.append(float(cost * rng.uniform(1 - SPREAD, 1 + SPREAD)))
        needed = [tasks[p] for p in np.unique(producers[consumers == task]).tolist()]
        tasks[task] = flow.task(
            nap, seconds[-1], *needed, name=graph.task_names[task], cost=cost, category=category
        )
    workflow, _ = flow.build()
    promised = api.plan(workflow, _platform(), "heft").makespan
    return Case(shape, seed, flow, workflow, tuple(seconds), promised / 2)


def _platform(joins: float | None = None) -> Platform:
    """The cluster as the run sees it: it is not told how fast a worker is."""
    processors = [Processor(f"w{k}") for k in range(WORKERS)]
    if joins is not None:
        processors += [Processor(f"j{k}", joins=joins) for k in range(JOINERS)]
    return Platform.build(processors, network=LINK)


def simulated(case: Case, strategy: str, speed: float) -> float:
    """The makespan if nothing took time but tasks and transfers, and who joins is there at once."""
    platform = _platform(case.at)
    policy, planner = registry.strategy(strategy)
    estimates = Estimates.declared(case.workflow, platform)
    speeds = np.array([1.0] * WORKERS + [speed] * JOINERS)
    truth = Reality(np.array(case.seconds)[:, None] / speeds, platform_changes(platform))
    run = simulate_run(case.workflow, platform, estimates, policy, planner, truth)
    check_run(run, estimates)
    return run.makespan


def bound(case: Case, speed: float) -> float:
    """No schedule ends before: chains take their time, and work between two tasks all workers.

    That work is cut at will here, so no schedule of whole tasks need reach it.
    """
    n, seconds = case.workflow.n_tasks, np.append(case.seconds, 0.0)
    before = np.zeros((n + 1, n + 1))  # [task, other]: whether the other must be done before
    _, producers, consumers = case.workflow.dependencies()
    for task in case.workflow.order.tolist():
        for other in producers[consumers == task].tolist():
            before[task] = np.maximum(before[task], before[other])
            before[task, other] = 1.0
    before[n, :n] = 1.0  # the end comes after all
    between = before @ (seconds[:, None] * before)
    finish = np.zeros(n + 1)
    for task in [*case.workflow.order.tolist(), n]:
        starts = [_end(0.0, float(before[task] @ seconds), case.at, WORKERS, JOINERS * speed)]
        for other in np.flatnonzero(before[task]).tolist():
            left = float(between[task, other])
            starts.append(_end(float(finish[other]), left, case.at, WORKERS, JOINERS * speed))
        more = max(0.0, speed - 1.0)  # it may run on one that joins
        finish[task] = _end(max(starts), float(seconds[task]), case.at, 1.0, more)
    return float(finish[n])


def _end(begin: float, seconds: float, at: float, speed: float, more: float) -> float:
    """When so much is done from then on, at this speed, and from a time on at so much more."""
    early = max(0.0, at - begin) * speed
    if seconds <= early:
        return begin + seconds / speed
    return max(begin, at) + (seconds - early) / (speed + more)


def really(client: Any, case: Case, strategy: str, speed: float, folder: str) -> JoinedRun:
    """A run during which workers join; what they have to import they have imported before.

    It knows the declared costs and what it measures itself; no history is read or written.
    """
    with spare_workers(client, [speed] * JOINERS, PRELOAD) as join:
        asking = JoinAt(case.at, join)
        try:
            outcome = api.run(
                case.flow, client, strategy, dir=folder, use_history=False, listener=asking,
                force=True,
            )  # fmt: skip
        finally:
            asking.close()
    return _told(_checked(outcome))


def _checked(outcome: Outcome) -> Run:
    if outcome.status == STOPPED:  # by SIGTERM, which stops all of it
        raise KeyboardInterrupt
    if not outcome.ok:
        raise RunFailedError(outcome)
    check_run(outcome.run)
    return outcome.run


def _told(run: Run) -> JoinedRun:
    joined = [e for e in run.changes if isinstance(e, ProcessorJoined)]
    joins = [e.time for e in joined if e.processor >= WORKERS]
    log, last = run.attempts, run.final_attempts()
    there = last[log.processor[last] >= WORKERS]
    return JoinedRun(
        makespan=run.makespan,
        joined=min(joins, default=None),
        first_start=float(log.start[there].min()) if len(there) else None,
        on_joiners=len(there),
        considered=run.considered,
        taken=run.replans,
    )


def compare(
    shapes: Sequence[str],
    pairs: int,
    unit: float,
    speed: float = 1.0,
    sizes: Shapes = SHAPES,
    progress: Progress = lambda share: None,
) -> list[Pair]:
    """Pairs of every shape on one cluster; who goes first alternates."""
    result: list[Pair] = []
    with cluster([1.0] * WORKERS) as client, own_history() as folder:
        warm_up = case("fork_join", 0, 0.01, QUICK["fork_join"])
        options: dict[str, Any] = {"use_history": False, "force": True, "progress": False}
        _checked(api.run(warm_up.flow, client, AHEFT, dir=folder, **options))
        for seed in range(pairs):
            for shape in shapes:
                one = case(shape, seed, unit, sizes[shape])
                result.append(pair_of(client, one, speed, folder))
                progress(len(result) / (pairs * len(shapes)))
    return result


def pair_of(client: Any, case: Case, speed: float, folder: str) -> Pair:
    """One run with each strategy, one after the other."""
    # simulated first: then the planner has been loaded before anything is measured
    expected = {strategy: simulated(case, strategy, speed) for strategy in (AHEFT, STATIC)}
    order = (STATIC, AHEFT) if case.seed % 2 else (AHEFT, STATIC)
    runs = {strategy: really(client, case, strategy, speed, folder) for strategy in order}
    if runs[AHEFT].joined is None:
        raise ForeplanError(
            f"the run of {case.shape} was over before a worker had joined, told to at "
            f"{case.at:.2f} s: take longer tasks, with a larger --unit"
        )
    return Pair(
        shape=case.shape,
        tasks=case.workflow.n_tasks,
        seed=case.seed,
        speed=speed,
        at=case.at,
        went_first=order[0],
        aheft=runs[AHEFT],
        static=runs[STATIC],
        simulated_aheft=expected[AHEFT],
        simulated_static=expected[STATIC],
        bound=bound(case, speed),
    )


def ratios(pairs: Sequence[Pair]) -> list[Ratios]:
    """Medians and worst cases, by shape and speed of those that join."""
    result, middle = [], statistics.median
    for shape, speed in dict.fromkeys((p.shape, p.speed) for p in pairs):
        own = [p for p in pairs if (p.shape, p.speed) == (shape, speed)]
        idle = [seconds for p in own if (seconds := p.aheft.idle) is not None]
        result.append(
            Ratios(
                shape=shape,
                speed=speed,
                pairs=len(own),
                static=middle([p.static.makespan for p in own]),
                ratio=middle([p.ratio for p in own]),
                worst=max(p.ratio for p in own),
                simulated=middle([p.simulated for p in own]),
                least=middle([p.least for p in own]),
                told_to_joined=middle([p.aheft.joined - p.at for p in own if p.aheft.joined]),
                joined_to_first=middle(idle) if idle else None,
            )
        )
    return result
