"""Dynamic Min-Min against a slow twin written from its definition, and in any world."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np
import pytest

from foreplan.model import Item, Link, Platform, Processor, Workflow
from foreplan.simulation.reality import Reality, platform_changes
from simulation.adapting import AVAILABILITY, GONE, case_of, comes_to, made, plain
from simulation.worlds import Case, random_case, same_record

# Twin ------------------------------------------------------------------------------------------


@dataclass
class Machine:
    """One processor: what it runs, and what is mapped to it and waits."""

    host: int
    joins: float
    queue: list[int] = field(default_factory=list)
    runs: int | None = None
    began: float = 0.0
    ends: float = inf


class Twin:
    """A task is mapped when its parents are done: Min-Min among those that are ready then.

    A task would be done at max(when the processor should be free, when the inputs are there if
    they are sent now) + cost. Its inputs begin to move when it is mapped, and each processor runs
    what is mapped to it in that order.
    """

    def __init__(self, case: Case) -> None:
        workflow, platform = case.workflow, case.platform
        self.cost, self.work = case.estimates.cost.tolist(), case.reality.work.tolist()
        self.platform, self.size = platform, workflow.item_size.tolist()
        self.inputs: list[list[tuple[int, int]]] = [[] for _ in range(workflow.n_tasks)]
        for item, producer, consumer in zip(*workflow.dependencies(), strict=True):
            self.inputs[consumer].append((int(item), int(producer)))
        self.machines = [
            Machine(int(h), float(j)) for h, j in zip(platform.host, platform.joins, strict=True)
        ]
        self.now = 0.0
        self.place: dict[int, int] = {}
        self.expected: dict[int, float] = {}  # when the inputs of a mapped task should be there
        self.start: dict[int, float] = {}
        self.finish: dict[int, float] = {}
        self.there: dict[tuple[int, int], float] = {}  # (item, host) -> when it is, or will be

    def run(self) -> None:
        while True:
            self.map_ready()
            self.begin()
            times = [m.ends for m in self.machines]
            times += [t for t in self.there.values() if t > self.now]
            self.now = min(times)
            if self.now == inf:
                return
            for m in self.machines:
                if m.ends == self.now:
                    assert m.runs is not None
                    self.finish[m.runs] = self.now
                    m.runs, m.ends = None, inf

    def takes(self, item: int, producer: int, host: int) -> float:
        source = self.machines[self.place[producer]].host
        if source == host:
            return 0.0
        per_unit = self.platform.time_per_unit[source, host]
        return float(self.platform.startup[source, host] + self.size[item] * per_unit)

    def inputs_at(self, task: int, host: int) -> float:
        """If what is not there is sent now."""
        arrivals = [self.now]
        for item, producer in self.inputs[task]:
            if self.there.get((item, host), inf) > self.now:
                arrivals.append(self.now + self.takes(item, producer, host))
        return max(arrivals)

    def free_at(self, p: int) -> float:
        m = self.machines[p]
        free = self.now
        if m.runs is not None:
            free = max(free, m.began + self.cost[m.runs][p])
        for task in m.queue:
            free = max(free, self.expected[task]) + self.cost[task][p]
        return free

    def map_ready(self) -> None:
        ready = [
            task
            for task, inputs in enumerate(self.inputs)
            if task not in self.place and all(p in self.finish for _, p in inputs)
        ]
        usable = [p for p, m in enumerate(self.machines) if m.joins <= self.now]
        while ready:
            _, task, p = min(
                (max(self.free_at(p), self.inputs_at(task, self.machines[p].host))
                 + self.cost[task][p], task, p)
                for task in ready for p in usable
            )  # fmt: skip
            host = self.machines[p].host
            self.expected[task] = self.inputs_at(task, host)
            self.place[task] = p
            self.machines[p].queue.append(task)
            ready.remove(task)
        for task, p in self.place.items():  # what was mapped just now is sent just now
            host = self.machines[p].host
            for item, producer in self.inputs[task]:
                if (item, host) not in self.there:
                    self.there[item, host] = self.now + self.takes(item, producer, host)

    def begin(self) -> None:
        for p, m in enumerate(self.machines):
            if m.runs is None and m.queue:
                task = m.queue[0]
                if all(self.there[item, m.host] <= self.now for item, _ in self.inputs[task]):
                    m.queue.pop(0)
                    m.runs, m.began, m.ends = task, self.now, self.now + self.work[task][p]
                    self.start[task] = self.now


def instance(seed: int, off: bool) -> Case:
    """Real numbers, so that there are no ties; items with several readers, and shared hosts."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 25)), int(rng.integers(1, 6))
    shared = rng.random() < 0.5
    joins = rng.uniform(0, 5 * n / p, p) * (rng.random(p) < 0.3)
    joins[0] = 0.0
    processors = [
        Processor(f"p{i}", f"h{rng.integers(0, 3)}" if shared else None, joins=float(joins[i]))
        for i in range(p)
    ]
    links = Link(float(rng.uniform(0.1, 2)), float(rng.choice([0.0, 0.7])))
    platform = Platform.build(processors, links)
    items = []
    for task in range(n - 1):
        for _ in range(int(rng.poisson(1.2))):
            readers = rng.permutation(np.arange(task + 1, n))[: int(rng.integers(1, 4))]
            items.append(Item(float(rng.uniform(0.1, 6)), task, readers.tolist()))
    cost = {f"p{i}": rng.uniform(1, 10, n) for i in range(p)}
    names = [f"t{i}" for i in range(n)]
    workflow = Workflow.from_items("w", names, [np.nan] * n, items, cost)
    work = np.array([cost[f"p{i}"] for i in range(p)]).T
    factors = rng.uniform(0.4, 2.0, (n, p)) if off else np.ones((n, p))
    return Case(workflow, platform, Reality(work * factors, platform_changes(platform)))


@pytest.mark.parametrize("off", [False, True])
def test_against_the_twin(off: bool) -> None:
    late = shared = 0
    for seed in range(60):
        case = instance(seed, off)
        twin = Twin(case)
        twin.run()
        run = case.run("min-min")
        last, n = run.final_attempts(), case.workflow.n_tasks
        assert len(run.attempts.task) == len(twin.place) == n
        assert run.attempts.processor[last].tolist() == [twin.place[t] for t in range(n)], seed
        for name in ("start", "finish"):
            ours = getattr(run.attempts, name)[last]
            theirs = [getattr(twin, name)[t] for t in range(n)]
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, err_msg=f"{name}, seed {seed}")
        late += bool((case.platform.joins > 0).any())
        shared += case.platform.n_hosts < case.platform.n_processors
    assert late > 10
    assert shared > 10


@pytest.mark.parametrize("stops", [False, True])
def test_losses(stops: bool) -> None:
    """Whatever is lost, it is made good, and nothing is planned."""
    lost = 0
    for seed in range(300, 318):
        case = random_case(seed, stops=stops)
        run = case.run("min-min")
        same_record(run, case.run("min-min", by_events=True))
        assert (run.final_attempts() >= 0).all()
        assert (run.plans, run.evaluations) == ((), ())
        lost += len(run.attempts.task) > case.workflow.n_tasks
    assert lost > 5


def test_what_waited_on_a_lost_processor_is_mapped_anew() -> None:
    """p1 does all in half the time, so all is mapped there; it dies at 5."""
    case = case_of(made([10.0] * 3), plain(0.1, 1), [GONE.of(1, 5.0)])
    run = case.run("min-min")
    assert comes_to(run)["p1"] == [("t0", 0, 5)]
    assert {name for name, _, _ in comes_to(run)["p0"]} == {"t0", "t1", "t2"}
    assert run.makespan == 305


def test_the_shortest_goes_first() -> None:
    case = case_of(made([5.0, 1.0, 3.0, 1.0]), plain(1))
    assert comes_to(case.run("min-min")) == {
        "p0": [("t1", 0, 1), ("t3", 1, 2), ("t2", 2, 5), ("t0", 5, 10)]
    }


def test_inputs_move_only_when_all_parents_are_done() -> None:
    """t0 is done at 1 and t1 at 20: what t2 reads of t0 begins to move at 20."""
    workflow = made({"p0": [1, 50, 50], "p1": [50, 20, 5]}, [(0, 2, 3), (1, 2, 3)])
    run = case_of(workflow, plain(1, 1)).run("min-min")
    assert run.transfers.sent.tolist() == [20]
    assert comes_to(run)["p1"] == [("t1", 0, 20), ("t2", 23, 28)]
    planned = case_of(workflow, plain(1, 1)).run("static")
    assert planned.transfers.sent.tolist() == [1]


def test_a_mapped_task_stays() -> None:
    """Both wait for p0 when p1, which would do them at once, joins."""
    case = case_of(made({"p0": [10, 10, 10], "p1": [1, 1, 1]}), plain(1, 1, joins={1: 5.0}))
    assert set(comes_to(case.run("min-min"))) == {"p0"}
    assert case.run("fifo").makespan < 15


def test_a_slow_processor_is_reckoned_with_as_it_is_now() -> None:
    """p0 is worth a tenth from 2 on; what gets ready at 5 goes to p1, though p1 is slower."""
    workflow = made({"p0": [99, 4], "p1": [5, 12]}, [(0, 1, 0.0)])
    slowed = [AVAILABILITY.of(0, 2.0, 0.1)]
    assert comes_to(case_of(workflow, plain(1, 1)).run("min-min"))["p0"] == [("t1", 5, 9)]
    run = case_of(workflow, plain(1, 1), slowed).run("min-min")
    assert comes_to(run)["p1"] == [("t0", 0, 5), ("t1", 5, 17)]


def test_what_stands_still_is_expected_as_plans_expect_it() -> None:
    """At 50, p0 has stood still since 2 with 8 seconds left: it is free at 850, not at 802."""
    workflow = made({"p0": [10, 999, 1], "p1": [999, 50, 870]}, [(1, 2, 0.0)])
    stops = [AVAILABILITY.of(0, 2.0, 0.0)]
    run = case_of(workflow, plain(1, 1), [*stops, AVAILABILITY.of(0, 51.0, 1.0)]).run("min-min")
    assert comes_to(run)["p1"] == [("t1", 0, 50), ("t2", 50, 920)]
