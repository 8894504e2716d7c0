"""Planning with cores and memory: how long it takes, and what fitting tasks together gains."""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from statistics import median

import numpy as np

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.generators import generate
from foreplan.generators.resources import RequestOptions, draw_requests
from foreplan.model import (
    Estimates,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    TaskSpec,
    Workflow,
)
from foreplan.model.resources import NOTHING, Cores, Host, Needs
from foreplan.simulation import reality
from foreplan.simulation.simulate import simulate_run
from foreplan_benchmarks.goals import Goal

HOSTS, CORES, MEMORY = 16, 32, 128e9
TIMES = Goal(5.0)  # what planning with cores and memory may take of what plain planning takes
WIDTHS = "1,2,4,8"
BY_PAIRS = {"dls", "min-min", "max-min"}  # with the square of tasks that are ready at once
TRACE_HOSTS, TRACE_CORES, TRACE_MEMORY = 4, 8, 8e9
QOI = 0.2  # durations differ by up to this share from the estimates
NETWORK = Link(time_per_unit=8e-9, startup=0.001)  # a gigabit per second, sizes in bytes


@dataclass(frozen=True)
class Ratio:
    """Planning with cores and memory beside planning the same tasks with one core each."""

    planner: str
    workflow: str
    plain_milliseconds: float
    milliseconds: float
    ratio: float  # median of pairs, in seconds of CPU

    goal = TIMES

    @property
    def verdict(self) -> str:
        """Whether it is within the goal."""
        return self.goal.verdict(self.ratio)


def speeds(planners: Sequence[str], tasks: int = 10_000, pairs: int = 5) -> list[Ratio]:
    """On 16 hosts of 32 cores: a layered workflow, and as many tasks that do not depend."""
    found = []
    for shape in ("layered", "bag"):
        plain, asking = large(shape, tasks)
        for planner in planners:
            if shape == "layered" or planner.partition("[")[0] not in BY_PAIRS:
                found.append(_beside(planner, shape, plain, asking, pairs))
    return found


def large(shape: str, tasks: int) -> tuple[Situation, Situation]:
    """The same tasks with one core each, and with 1, 2, 4 or 8 cores and 1 to 32 GB."""
    workflow = generate("random_layered", seed=1, tasks=tasks, out_degree=5)
    if shape == "bag":
        costs = workflow.base_cost.tolist()
        workflow = Workflow.from_items("bag", list(workflow.task_names), costs, [])
    requests = RequestOptions(cores=WIDTHS, memory="1GB..32GB")
    speed = np.random.default_rng(1).uniform(1.0, 4.0, HOSTS).tolist()
    platform = hosts(HOSTS, CORES, MEMORY, speed)
    asking = draw_requests(workflow, requests, 1)
    return Situation.at_start(workflow, platform), Situation.at_start(asking, platform)


def hosts(count: int, cores: int, memory: float, speed: Sequence[float]) -> Platform:
    """So many hosts of so many cores each."""
    processors = [
        Processor(f"h{h}-{c + 1}", f"h{h}", speed=speed[h])
        for h in range(count)
        for c in range(cores)
    ]
    has = {f"h{h}": Host(f"h{h}", {"memory": memory}) for h in range(count)}
    return Platform.build(processors, NETWORK, has=has)


def _beside(planner: str, shape: str, plain: Situation, asking: Situation, pairs: int) -> Ratio:
    chosen = registry.planner(planner)
    rows = []
    for _ in range(pairs + 1):
        row = []
        for situation in (plain, asking):
            fresh = replace(situation)  # else what was worked out before is used again
            begun = time.process_time()
            chosen.plan(fresh)
            row.append(time.process_time() - begun)
        rows.append(row)
    warm = rows[1:]
    return Ratio(
        planner,
        shape,
        1000 * min(row[0] for row in warm),
        1000 * min(row[1] for row in warm),
        median(row[1] / row[0] for row in warm),
    )


# What fitting gains --------------------------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """Makespans of one trace, means over the worlds; and the geometric means of their ratios."""

    workflow: str
    tasks: int
    memory: bool  # the trace tells it
    fitted: float
    by_whole: float  # over that of the same with every task on a whole host
    by_first_fit: float  # over that of first fit in submission order


def gains(
    workflows: Sequence[Workflow], seed: int, worlds: int = 10, strategy: str = "slack"
) -> list[Gain]:
    """Each with cores drawn by category; 4 hosts of 8 cores and 8 GB, two of them half as fast.

    In so many simulated worlds, in which durations differ by a fifth from the estimates.
    """
    platform = hosts(TRACE_HOSTS, TRACE_CORES, TRACE_MEMORY, [1.0, 1.0, 0.5, 0.5])
    return [_gain(workflow, platform, seed, worlds, strategy) for workflow in workflows]


def _gain(workflow: Workflow, platform: Platform, seed: int, worlds: int, strategy: str) -> Gain:
    asking = with_cores(workflow, seed)
    alone = on_whole_hosts(asking)
    known, whole = (Estimates.declared(wf, platform) for wf in (asking, alone))
    rows = []
    for world in range(worlds):
        truth = reality.draw(asking, platform, known, QOI, seed + world)
        there = Situation.at_start(asking, platform, replace(known, cost=truth.work))
        fitting = first_fit(there)
        check_schedule(fitting, there)
        runs = [
            simulate_run(wf, platform, estimates, *registry.strategy(strategy), truth)
            for wf, estimates in ((asking, known), (alone, whole))
        ]
        rows.append([*(run.makespan for run in runs), fitting.makespan])
    fitted, by_whole, by_first_fit = np.array(rows).T
    knows = any(s.request is not None and s.request.memory for s in workflow.specs.values())
    return Gain(
        workflow.name,
        workflow.n_tasks,
        knows,
        float(fitted.mean()),
        float(np.exp(np.log(fitted / by_whole).mean())),
        float(np.exp(np.log(fitted / by_first_fit).mean())),
    )


def with_cores(workflow: Workflow, seed: int) -> Workflow:
    """Cores by category from a seed, each of 1, 2, 4 and 8 as likely; memory as the trace has it.

    A task takes as long on its cores as it took.
    """
    drawn = draw_requests(workflow, RequestOptions(cores=WIDTHS), seed)
    specs = dict(workflow.specs)
    for task, spec in drawn.specs.items():
        if spec.request is not None:
            asked = workflow.spec(task).request or NOTHING
            request = replace(asked, cores=spec.request.cores, parallel=None, seconds=())
            specs[task] = replace(spec, request=request)
    return replace(workflow, specs=specs)


def on_whole_hosts(workflow: Workflow) -> Workflow:
    """Every task takes all cores of a host, and is no faster for it."""
    specs = dict(workflow.specs)
    for task in range(workflow.n_tasks):
        spec = specs.get(task, TaskSpec())
        asked = replace(spec.request or NOTHING, cores=(TRACE_CORES,), parallel=None, seconds=())
        specs[task] = replace(spec, request=asked)
    return replace(workflow, specs=specs)


def first_fit(situation: Situation) -> Schedule:
    """Ready tasks in submission order, each at once on the first host that has room for it.

    Its cores and memory are its own from then on, and its inputs are sent then.
    """
    return _FirstFit(situation).run()


class _FirstFit:
    """Event by event: what ends makes room, and makes tasks ready."""

    def __init__(self, situation: Situation) -> None:
        demand, needs = situation.demand, situation.estimates.needs
        assert demand is not None
        assert needs is not None
        self.s, self.needs, self.demand = situation, needs, demand
        n, platform = situation.workflow.n_tasks, situation.platform
        self.free = demand.capacity.copy()
        self.idle = np.ones(platform.n_processors, dtype=np.bool_)
        self.start, self.finish = np.full(n, np.inf), np.full(n, np.inf)
        self.rows: list[list[int]] = [[] for _ in range(n)]
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        self.readers: list[set[int]] = [set() for _ in range(n)]
        for item, producer, consumer in zip(
            *(column.tolist() for column in situation.workflow.dependencies()), strict=True
        ):
            self.inputs[consumer].append((item, producer))
            self.readers[producer].add(consumer)

    def run(self) -> Schedule:
        """Until all is done."""
        waits = [len({producer for _, producer in row}) for row in self.inputs]
        ready, now = [t for t, count in enumerate(waits) if count == 0], 0.0
        running: list[tuple[float, int]] = []
        while ready or running:
            for task in list(ready):
                if not self.idle.any():
                    break
                host = next((h for h in range(self.s.platform.n_hosts) if self._fits(task, h)), -1)
                if host >= 0:
                    self._begin(task, host, now)
                    ready.remove(task)
                    heappush(running, (float(self.finish[task]), task))
            now = running[0][0]
            while running and running[0][0] == now:
                _, task = heappop(running)
                self._hold(task, -1.0)
                for reader in self.readers[task]:
                    waits[reader] -= 1
                    if waits[reader] == 0:
                        insort(ready, reader)
        return self._schedule(self.needs)

    def _at(self, host: int) -> list[int]:
        kinds, hosts = len(self.needs.kinds), self.s.platform.n_hosts
        pools = range(hosts * kinds, hosts * kinds + len(self.needs.pools))
        return [*range(host * kinds, (host + 1) * kinds), *pools]

    def _cores(self, task: int, host: int) -> list[int]:
        width = int(self.needs.width[self.needs.width_ptr[task]])
        there: list[int] = np.flatnonzero((self.s.platform.host == host) & self.idle).tolist()
        return there[:width]

    def _fits(self, task: int, host: int) -> bool:
        width = int(self.needs.width[self.needs.width_ptr[task]])
        enough = bool((self.needs.amount[task] <= self.free[self._at(host)]).all())
        may = bool(self.demand.allowed[task, host])
        return may and enough and len(self._cores(task, host)) == width

    def _begin(self, task: int, host: int, now: float) -> None:
        platform, wf = self.s.platform, self.s.workflow
        arrival = now
        for item, producer in self.inputs[task]:
            source = int(platform.host[self.rows[producer][0]])
            takes = platform.startup[source, host]
            takes += wf.item_size[item] * platform.time_per_unit[source, host]
            arrival = max(arrival, now + float(takes))
        self.rows[task] = self._cores(task, host)
        self.start[task] = arrival
        self.finish[task] = arrival + float(self.s.cost[task, self.rows[task][0]])
        self._hold(task, 1.0)

    def _hold(self, task: int, sign: float) -> None:
        host = int(self.s.platform.host[self.rows[task][0]])
        self.free[self._at(host)] -= sign * self.needs.amount[task]
        self.idle[self.rows[task]] = sign < 0

    def _schedule(self, needs: Needs) -> Schedule:
        ptr = np.cumsum([0, *map(len, self.rows)]).astype(np.int32)
        cores = Cores(ptr, np.array([p for row in self.rows for p in row], dtype=np.int32))
        return Schedule(
            "first fit", self.s.workflow, self.s.platform, cores.processor[ptr[:-1]], self.start,
            self.finish, cores=cores, needs=needs,
        )  # fmt: skip
