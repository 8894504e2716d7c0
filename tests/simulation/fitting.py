"""Random worlds in which tasks take cores, amounts and tokens, and a planner that is obvious."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.checks.runs import check_run
from foreplan.contracts import Order, Planner
from foreplan.engine.budget import BudgetTracker
from foreplan.model import (
    Estimates,
    Freedom,
    Item,
    Link,
    Platform,
    Processor,
    Run,
    Schedule,
    Situation,
    TaskSpec,
    Workflow,
)
from foreplan.model.amounts import Amount
from foreplan.model.events import Event, LinkChanged, ProcessorGone, ProcessorJoined, SpeedChanged
from foreplan.model.resources import Cores, Host, Request
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from simulation.worlds import Checked


class Obvious:
    """Tasks one after another, each where it ends first: its inputs, cores and amounts there.

    A host has an amount for a task from the first time on from which it is enough for good.
    """

    name: ClassVar[str] = "obvious"

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        return _Placing(situation).schedule()


class _Placing:
    """One plan in the making."""

    def __init__(self, situation: Situation) -> None:
        assert situation.demand is not None
        self.s, self.demand, self.wf, self.pf = (
            situation,
            situation.demand,
            situation.workflow,
            situation.platform,
        )
        n, a = self.wf.n_tasks, situation.attempts
        self.cores: list[list[int]] = [[0] for _ in range(n)]
        self.start, self.finish = np.zeros(n), np.zeros(n)
        self.placed = np.zeros(n, dtype=np.bool_)
        self.free = situation.free_from()
        self.held: list[tuple[int, float, FloatArray]] = []  # host, end, amounts
        for k, task in enumerate(a.task.tolist()):
            self.cores[task] = [a.processor[k]] if a.cores is None else a.cores.of(k).tolist()
            self.start[task], self.finish[task] = a.start[k], situation.expected_finish()[k]
            self.placed[task] = True
            if np.isnan(a.finish[k]):
                self._hold(task)

    def schedule(self) -> Schedule:
        waiting = self.s.waiting()
        for task in self.wf.order.tolist():
            if waiting[task]:
                self._place(task)
        end = float(self.finish.max(initial=self.s.now))
        for task in np.flatnonzero(~self.placed).tolist():
            self.cores[task], self.start[task], self.finish[task] = [0], end, end
        flat = np.array([core for row in self.cores for core in row], dtype=np.int32)
        ptr = np.cumsum([0, *map(len, self.cores)]).astype(np.int32)
        first = np.array([row[0] for row in self.cores], dtype=np.int32)
        needs = self.demand.needs
        cores = Cores(ptr, flat)
        return Schedule(
            "obvious", self.wf, self.pf, first, self.start, self.finish, cores=cores, needs=needs
        )

    def _place(self, task: int) -> None:
        needs, best = self.demand.needs, (np.inf, np.inf, [0])
        usable, cost = self.s.usable(), self.s.cost
        for host in np.flatnonzero(self.demand.allowed[task]).tolist():
            mine = np.flatnonzero((self.pf.host == host) & usable)
            mine = mine[np.argsort(self.free[mine], kind="stable")]
            for k in range(needs.width_ptr[task], needs.width_ptr[task + 1]):
                cores = sorted(mine[: needs.width[k]].tolist())
                if len(cores) < needs.width[k]:
                    continue
                first = max(cores, key=lambda p: (cost[task, p], -p))
                cores = [first, *(p for p in cores if p != first)]
                starts = max(self._arrival(task, host), max(self.free[p] for p in cores))
                starts = max(starts, self._enough(task, host))
                ends = starts + float(cost[task, first] * needs.factor[k])
                if ends < best[0]:
                    best = (ends, starts, cores)
        self.finish[task], self.start[task], self.cores[task] = best
        self.placed[task] = True
        self.free[best[2]] = best[0]
        self._hold(task)

    def _hold(self, task: int) -> None:
        amounts = self.demand.needs.amount[task]
        self.held.append((int(self.pf.host[self.cores[task][0]]), self.finish[task], amounts))

    def _enough(self, task: int, host: int) -> float:
        """From when on what is held leaves enough, whatever begins before."""
        kinds, need = len(self.demand.needs.kinds), self.demand.needs.amount[task]
        capacity = self.demand.capacity[host * kinds : (host + 1) * kinds]
        has = np.concatenate([capacity, self.demand.capacity[self.pf.n_hosts * kinds :]])
        for time in sorted({self.s.now, *(end for _, end, _ in self.held)}):
            used = np.zeros(len(need))
            for there, end, amounts in self.held:
                if end > time:
                    used[:kinds] += amounts[:kinds] if there == host else 0.0
                    used[kinds:] += amounts[kinds:]
            if (used + need <= has).all():
                return time
        raise AssertionError("it does not fit on a host that allows it")

    def _arrival(self, task: int, host: int) -> float:
        """When its inputs are there, roughly: the plan is only to be followed."""
        latest = self.s.now
        for item in self.wf.in_item[self.wf.in_ptr[task] : self.wf.in_ptr[task + 1]].tolist():
            producer = int(self.wf.item_producer[item])
            if producer >= 0:
                source = int(self.pf.host[self.cores[producer][0]])
                moves = self.pf.startup[source, host]
                moves += self.wf.item_size[item] * self.pf.time_per_unit[source, host]
                away = source != host
                made = max(self.finish[producer], self.s.now)
                latest = max(latest, made + (moves if away else 0.0))
        return latest


@dataclass(frozen=True)
class FitCase:
    """A workflow whose tasks take cores and amounts, and what really happens."""

    workflow: Workflow
    platform: Platform
    reality: Reality
    estimates: Estimates

    def run(
        self,
        spec: str,
        by_events: bool = False,
        planner: Planner | None = None,
        tracker: BudgetTracker | None = None,
    ) -> Run:
        policy, own = registry.strategy(spec)
        chosen = None if isinstance(policy, Order) else planner or own
        if by_events and chosen is not None and planner is None:  # what is obvious is rough
            chosen = Checked(chosen)
        run = simulate_run(
            self.workflow, self.platform, self.estimates, policy, chosen, self.reality, by_events,
            tracker,
        )  # fmt: skip
        known = self.estimates
        if policy.name == "ideal":
            known = replace(known, cost=self.reality.work)
        check_run(run, known)
        return run


def random_request(rng: np.random.Generator, cores: int) -> Request | None:
    """What a task asks for, that fits on a host of so many cores, 8 GB, a GPU and 2 tokens."""
    if rng.random() < 0.2:
        return None
    widths: tuple[int, ...] = (int(rng.integers(1, cores + 1)),)
    parallel = None
    if rng.random() < 0.3:
        widths = tuple(sorted({1, *rng.integers(1, cores + 1, 2).tolist()}))
        parallel = float(rng.uniform(0.3, 1.0))
    scratch = (("scratch", Amount(f"{rng.uniform(0, 0.7):.3f}")),)
    gb = float(rng.choice([0, 0, 1, 2, 3, 5, 8]))
    return Request(
        cores=widths,
        parallel=parallel,
        memory=Amount(f"{gb:g}GB") if gb else None,
        gpus=int(rng.random() < 0.15),
        resources=scratch if rng.random() < 0.2 else (),
        pools=(("licence", float(rng.integers(1, 3))),) if rng.random() < 0.25 else (),
    )


def random_platform(rng: np.random.Generator) -> tuple[Platform, int]:
    """Hosts of some cores with memory, GPUs and the rest; the cores of the first, which has all."""
    first = int(rng.integers(1, 5))
    counts = [first, *rng.integers(1, 5, int(rng.integers(0, 3))).tolist()]
    processors, has = [], {}
    for h, count in enumerate(counts):
        even, speed = rng.random() < 0.7, float(rng.choice([0.5, 1.0, 2.0]))
        for c in range(count):
            own = speed if even else float(rng.choice([0.5, 1.0, 2.0]))
            processors.append(Processor(f"h{h}-{c + 1}", f"h{h}", speed=own, price=1.0))
        amounts = {"memory": 8e9, "gpus": 1.0, "scratch": 1.0}
        if h > 0:
            amounts = {k: v for k, v in amounts.items() if rng.random() < 0.7}
        has[f"h{h}"] = Host(f"h{h}", amounts, whole_price=bool(rng.random() < 0.3))
    order = rng.permutation(len(processors)) if rng.random() < 0.3 else range(len(processors))
    network = Link(float(rng.uniform(0, 0.5)), float(rng.uniform(0, 1)))
    shuffled = [processors[i] for i in order]
    return Platform.build(shuffled, network, has=has, pools={"licence": 2.0}), first


def fit_case(
    seed: int, losses: bool = True, stops: bool = False, n: int | None = None, plain: bool = False
) -> FitCase:
    """A random case; on the first host everything fits, and it always comes back."""
    rng = np.random.default_rng(seed)
    platform, cores = random_platform(rng)
    n = int(rng.integers(1, 22)) if n is None else n
    specs = {
        t: TaskSpec(category=f"c{rng.integers(3)}", request=random_request(rng, cores))
        for t in range(n)
    }
    specs[0] = replace(specs[0], request=specs[0].request or Request())  # one says something
    if plain:
        specs = {t: TaskSpec(request=Request()) for t in range(n)}
    items = [
        Item(float(rng.uniform(0, 4)), int(p), sorted({int(c) for c in rng.integers(p + 1, n, 2)}))
        for p in rng.integers(0, max(1, n - 1), n // 2).tolist()
        if p + 1 < n
    ]
    exact = rng.random() < 0.5
    cost = rng.integers(0, 9, n).astype(float) if exact else rng.uniform(0.1, 9, n)
    workflow = Workflow.from_items(
        "w", [f"t{t}" for t in range(n)], cost.tolist(), items, specs=specs
    )
    estimates = Estimates.declared(workflow, platform)
    factors = rng.choice([0.5, 1.0, 2.0], (n, 1)) if exact else rng.uniform(0.3, 2, (n, 1))
    changes = random_changes(rng, platform, float(cost.sum()), losses, stops, exact)
    reality = Reality(estimates.cost * factors, changes, estimates.needs)
    return FitCase(workflow, platform, reality, estimates)


def random_changes(
    rng: np.random.Generator,
    platform: Platform,
    total: float,
    losses: bool,
    stops: bool,
    exact: bool,
) -> list[Event]:
    """Cores and whole hosts that go and come back, and changes of speed."""
    horizon, changes = total + 1.0, list[Event]()

    def times(count: int) -> list[float]:
        drawn = rng.uniform(0.1, horizon, count)
        found = {float(np.ceil(t)) if exact else float(t) for t in drawn}
        return sorted(time for time in found if time < horizon)

    for host, name in enumerate(platform.host_names):
        mine = np.flatnonzero(platform.host == host).tolist()
        together = rng.random() < 0.5
        for group in [mine] if together else [[p] for p in mine]:
            if losses and rng.random() < 0.4:
                turns = times(int(rng.integers(1, 4)) * 2)
                turns = turns[: len(turns) // 2 * 2] if name == "h0" else turns
                for k, time in enumerate(turns):
                    for p in group:
                        more = p != group[-1]
                        gone, back = ProcessorGone(p, time), ProcessorJoined(p, time, more)
                        changes.append(back if k % 2 else gone)
    for kind, many in ((SpeedChanged, platform.n_processors), (LinkChanged, platform.n_hosts**2)):
        for which in range(many):
            if rng.random() < 0.3:
                for time in times(2):
                    low = 0.0 if stops and rng.random() < 0.3 else 0.25
                    changes.append(kind.of(which, time, float(rng.uniform(low, 1.0))))
                changes.append(kind.of(which, horizon, 1.0))
    return changes
