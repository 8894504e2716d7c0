"""Plans of tasks that need several cores and memory beside the optimum (CP-SAT of OR-tools).

The model: every task on one host at one of its widths, without interruption; at every instant the
cores, the memory and the pools suffice; inputs there before the start, without contention. Which
cores of a host is left open: in the order of their starts tasks always find enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.generators import generate
from foreplan.model import Link, Platform, Processor, Schedule, Situation, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.resources import Cores, Host, Request
from foreplan_benchmarks.budget_optimum_model import interruptible, require, whole_numbers

PLANNERS = ("heft", "heft[insertion=false]", "cpop", "peft", "dls", "min-min", "max-min")
LEAST_TASKS = 8
KINDS = ("rigid", "any width")


@dataclass(frozen=True)
class Gap:
    """How much longer than the optimum the plans of a planner are, on average and at worst."""

    planner: str
    kind: str  # of tasks: rigid, or with a choice of widths
    instances: int
    optimal: int  # plans that are as short as the optimum
    mean: float
    worst: float


def gaps(
    tasks: int, runs: int, seed: int, limit: float, progress: Callable[[float], None]
) -> tuple[list[Gap], int]:
    """Of every planner on so many instances of each kind; and how many have no proven optimum."""
    require()
    ratios: dict[tuple[str, str], list[float]] = {}
    open_ones = 0
    for number in range(2 * runs):
        progress(number / (2 * runs))
        kind = KINDS[number % 2]
        situation = instance(tasks, kind, [seed, number])
        plans = {name: registry.planner(name).plan(situation) for name in PLANNERS}
        for plan in plans.values():
            check_schedule(plan, situation)
        best = min(plans.values(), key=lambda plan: plan.makespan)
        shortest, proven = optimum(situation, best, limit)
        if not proven:
            open_ones += 1
            continue
        for name, plan in plans.items():
            ratios.setdefault((name, kind), []).append(plan.makespan / shortest.makespan - 1)
    found = [
        Gap(
            name,
            kind,
            len(rows),
            sum(r < 1e-9 for r in rows),
            float(np.mean(rows)),
            float(np.max(rows)),
        )
        for (name, kind), rows in sorted(ratios.items(), key=lambda row: row[0][::-1])
    ]
    return found, open_ones


def instance(tasks: int, kind: str, seed: list[int]) -> Situation:
    """A random layered workflow in whole numbers on two or three hosts, one faster than the other.

    Tasks take one to four cores and up to half of a host's memory.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(LEAST_TASKS, tasks, endpoint=True))
    drawn = generate("random_layered", seed=int(rng.integers(2**31)), tasks=n, ccr=0.5)
    hosts = int(rng.integers(2, 4))
    cores = rng.choice([2, 4, 6], hosts).tolist()
    cores[0] = 4
    slowness = [1, *rng.integers(1, 3, hosts - 1).tolist()]
    processors = [
        Processor(f"h{h}-{c + 1}", f"h{h}") for h in range(hosts) for c in range(cores[h])
    ]
    has = {f"h{h}": Host(f"h{h}", {"memory": 8e9}) for h in range(hosts)}
    platform = Platform.build(processors, Link(1.0), has=has, pools={"licence": 1.0})
    work = np.maximum(2.0, np.rint(drawn.base_cost / drawn.base_cost.mean() * 20)) * 4
    columns = {p.name: work * slowness[platform.host[k]] for k, p in enumerate(processors)}
    specs = {t: TaskSpec(request=_request(rng, kind)) for t in range(drawn.n_tasks)}
    _, producers, consumers = drawn.dependencies()
    volumes = np.rint(drawn.item_size / max(1e-9, drawn.item_size.mean()) * 10)
    workflow = Workflow.from_edges(
        drawn.name, drawn.task_names, producers, consumers, volumes, processor_cost=columns,
        specs=specs,
    )  # fmt: skip
    return Situation.at_start(workflow, platform)


def _request(rng: np.random.Generator, kind: str) -> Request:
    memory = Amount(f"{int(rng.integers(0, 5))}GB")
    pools = (("licence", 1.0),) if rng.random() < 0.1 else ()
    if kind == "rigid":
        return Request(cores=(int(rng.choice([1, 1, 2, 2, 3, 4])),), memory=memory, pools=pools)
    seconds = ((4.0, 2.0, 1.0), (4.0, 3.0, 2.0), (4.0, 3.0, 3.0))[int(rng.integers(3))]
    return Request(cores=(1, 2, 4), seconds=seconds, memory=memory, pools=pools)


def optimum(situation: Situation, hint: Schedule, limit: float) -> tuple[Schedule, bool]:
    """The shortest schedule that is found, checked like any other, and whether that is proven."""
    found, proven = _Model(situation, hint).solve(limit)
    check_schedule(found, situation)
    return found, proven


class _Model:
    """The constraints, with the variables that the schedule is read from."""

    def __init__(self, situation: Situation, hint: Schedule) -> None:
        from ortools.sat.python import cp_model

        demand = situation.demand
        assert demand is not None
        self.situation, self.demand, self.hint = situation, demand, hint
        self.model = cp_model.CpModel()
        self.horizon = round(hint.makespan)
        self.tasks = range(situation.workflow.n_tasks)
        self.start = [self.model.new_int_var(0, self.horizon, f"start {t}") for t in self.tasks]
        self.end = [self.model.new_int_var(0, self.horizon, f"end {t}") for t in self.tasks]
        self.options = {t: self._options(t) for t in self.tasks}
        self.makespan = self.model.new_int_var(0, self.horizon, "makespan")
        self._fit()
        self._inputs_before_start()
        for t in self.tasks:
            self.model.add(self.makespan >= self.end[t])
        self.model.minimize(self.makespan)

    def _options(self, task: int) -> list[tuple[int, int, int, Any, Any]]:
        """Host, width and duration of every way to run a task, whether it is taken, and when."""
        needs, platform = self.demand.needs, self.situation.platform
        found = []
        for host in np.flatnonzero(self.demand.allowed[task]).tolist():
            cores = np.flatnonzero(platform.host == host)
            cost = float(self.situation.cost[task, cores[0]])
            for k in range(needs.width_ptr[task], needs.width_ptr[task + 1]):
                width = int(needs.width[k])
                if width > len(cores):
                    continue
                takes = int(whole_numbers(np.array([cost * needs.factor[k]]), "durations")[0])
                taken = self.model.new_bool_var(f"{task} on {host} at {width}")
                when = self.model.new_optional_interval_var(
                    self.start[task], takes, self.end[task], taken, f"{task} on {host} at {width}"
                )
                found.append((host, width, takes, taken, when))
        self.model.add_exactly_one(row[3] for row in found)
        return found

    def _fit(self) -> None:
        """At no instant is more taken than there is: amounts in millions, rounded up."""
        needs, platform = self.demand.needs, self.situation.platform
        kinds = len(needs.kinds)
        for host in range(platform.n_hosts):
            rows = [(t, *row) for t in self.tasks for row in self.options[t] if row[0] == host]
            when = [row[5] for row in rows]
            cores = int((platform.host == host).sum())
            self.model.add_cumulative(when, [row[2] for row in rows], cores)
            for k in range(kinds):
                has = float(self.demand.capacity[host * kinds + k])
                if math.isfinite(has) and needs.amount[:, k].any():
                    takes = [math.ceil(needs.amount[row[0], k] / 1e6) for row in rows]
                    self.model.add_cumulative(when, takes, math.floor(has / 1e6))
        for k in range(len(needs.pools)):
            every = [(t, row[4]) for t in self.tasks for row in self.options[t]]
            takes = [math.ceil(needs.amount[t, kinds + k]) for t, _ in every]
            has = float(self.demand.capacity[platform.n_hosts * kinds + k])
            self.model.add_cumulative([w for _, w in every], takes, math.floor(has))

    def _inputs_before_start(self) -> None:
        workflow, platform = self.situation.workflow, self.situation.platform
        for item, i, j in zip(*(c.tolist() for c in workflow.dependencies()), strict=True):
            self.model.add(self.start[j] >= self.end[i])
            takes = platform.startup + workflow.item_size[item] * platform.time_per_unit
            delay = whole_numbers(takes, "transfer times")
            for g, _, _, made, _ in self.options[i]:
                for h, _, _, read, _ in self.options[j]:
                    if delay[g, h]:
                        both = [made, read]
                        after = self.start[j] >= self.end[i] + int(delay[g, h])
                        self.model.add(after).only_enforce_if(both)

    def solve(self, limit: float) -> tuple[Schedule, bool]:
        """What is found within the limit of deterministic time; else the hint."""
        from ortools.sat.python import cp_model

        for t in self.tasks:
            self.model.add_hint(self.start[t], round(float(self.hint.start[t])))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.max_deterministic_time = limit
        solver.parameters.catch_sigint_signal = False
        status = interruptible(solver, self.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return self.hint, False
        return self._schedule(solver), bool(status == cp_model.OPTIMAL)

    def _schedule(self, solver: Any) -> Schedule:
        """With cores: each task takes the first that are idle, in the order of starts."""
        platform, n = self.situation.platform, len(self.tasks)
        start = np.array([solver.value(s) for s in self.start], dtype=np.float64)
        finish = np.array([solver.value(e) for e in self.end], dtype=np.float64)
        free, rows = np.zeros(platform.n_processors), [list[int]()] * n
        for t in np.lexsort((finish, start)).tolist():
            host, width = next(row[:2] for row in self.options[t] if solver.boolean_value(row[3]))
            idle = np.flatnonzero((platform.host == host) & (free <= start[t]))
            rows[t] = idle[:width].tolist()
            free[rows[t]] = finish[t]
        ptr = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        cores = Cores(ptr, np.array([p for row in rows for p in row], dtype=np.int32))
        return Schedule(
            "cp-sat", self.situation.workflow, platform, cores.processor[ptr[:-1]], start, finish,
            cores=cores, needs=self.demand.needs,
        )  # fmt: skip
