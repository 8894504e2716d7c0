"""Fifo, lifo, greedy, hops and ico: against a slow twin, the pebble game, and by hand."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreplan
from foreplan import registry
from foreplan.arrays import IntArray
from foreplan.errors import InputError
from foreplan.generators import generate
from foreplan.ic import Dag, best_order, play
from foreplan.model import Item, Platform, Processor, Workflow
from foreplan.simulation.reality import Reality
from simulation.worlds import Case, same_record

STRATEGIES = ("fifo", "lifo", "greedy", "hops", "ico")
Key = Callable[[int, int], tuple[int, ...]]  # (task, turn in which it became ready)


def keys_of(strategy: str, workflow: Workflow, tie: IntArray) -> Key:
    """What the strategy hands out first, from the words of section 3.2."""
    dag = Dag.from_workflow(workflow)
    out = dag.outdegree
    arcs = list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))

    @cache
    def longest(task: int) -> int:
        return max((1 + longest(b) for a, b in arcs if a == task), default=0)

    if strategy == "ico":
        order = best_order(dag).tolist()
        return lambda task, turn: (order.index(task),)
    return {
        "fifo": lambda task, turn: (turn, -int(out[task]), int(tie[task])),
        "lifo": lambda task, turn: (-turn, -int(out[task]), int(tie[task])),
        "greedy": lambda task, turn: (-int(out[task]), turn, int(tie[task])),
        "hops": lambda task, turn: (-longest(task), -int(out[task]), int(tie[task])),
    }[strategy]


def starts_of(workflow: Workflow, seconds: list[float], processors: int, key: Key) -> list[float]:
    """When each task starts on so many processors alike, where nothing has to be sent."""
    dag = Dag.from_workflow(workflow)
    waiting = dag.indegree.tolist()
    ready = [(key(task, 0), task) for task in range(dag.n) if waiting[task] == 0]
    starts, running, now, turn = [np.nan] * dag.n, list[tuple[float, int]](), 0.0, 0
    while ready or running:
        ready.sort()
        while ready and len(running) < processors:
            _, task = ready.pop(0)
            starts[task] = now
            heapq.heappush(running, (now + seconds[task], task))
        now, task = heapq.heappop(running)
        turn += 1
        for child in dag.child[dag.child_ptr[task] : dag.child_ptr[task + 1]].tolist():
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append((key(child, turn), child))
    return starts


def random_case(seed: int, processors: int) -> Case:
    """Tasks of random seconds on one host; several items may lead from a task to another."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    items = []
    for producer in range(n - 1):
        for _ in range(int(rng.integers(0, 3))):
            readers = rng.integers(producer + 1, n, int(rng.integers(1, 5)))
            items.append(Item(0.0, producer, sorted(set(readers.tolist()))))
    names = rng.permutation([f"t{i}" for i in range(n)]).tolist()
    workflow = Workflow.from_items("w", names, [1.0] * n, items)
    platform = Platform.build([Processor(f"p{i}", "here") for i in range(processors)])
    work = np.repeat(rng.uniform(0.5, 2, (n, 1)), processors, axis=1)
    return Case(workflow, platform, Reality(work))


def started(case: Case, spec: str) -> npt.NDArray[np.int32]:
    """The tasks in the order in which they were started."""
    return case.run(spec).attempts.task


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_against_the_twin(strategy: str) -> None:
    for seed in range(30):
        case = random_case(seed, processors=1 + seed % 4)
        workflow = case.workflow
        specs = {strategy: workflow.position}
        if strategy != "ico":
            ties = np.random.default_rng(seed).permutation(workflow.n_tasks)
            specs[f"{strategy}[ties={seed}]"] = ties.astype(np.int32)
        for spec, tie in specs.items():
            run = case.run(spec, by_events=seed % 2 == 0)
            same_record(run, case.run(spec, by_events=seed % 2 == 1))
            key = keys_of(strategy, workflow, tie)
            expected = starts_of(
                workflow, case.reality.work[:, 0].tolist(), case.platform.n_processors, key
            )
            assert run.attempts.start[run.final_attempts()].tolist() == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000))
def test_one_processor_plays_the_game(seed: int) -> None:
    """Alone, a processor executes what the pebble game does; no order is better than an optimal."""
    case = random_case(seed, processors=1)
    dag = Dag.from_workflow(case.workflow)
    assert started(case, "ico").tolist() == best_order(dag).tolist()
    found = foreplan.ic.ico(dag)
    for strategy in STRATEGIES[:4]:
        profile = play(dag, started(case, strategy)).profile
        if found.order is not None:
            assert (profile <= play(dag, found.order).profile).all()


def test_by_hand() -> None:
    """a leads to w and x, b to y; x leads to two more: each strategy has its own way."""
    tasks = ["a", "b", "w", "x", "y", "x1", "x2"]
    items = [
        Item(0.0, 0, [2, 3]), Item(0.0, 0, [2]), Item(0.0, 1, [4]), Item(0.0, 3, [5, 6])
    ]  # fmt: skip
    workflow = Workflow.from_items("w", tasks, [1.0] * 7, items)
    platform = Platform.build([Processor("p")])
    case = Case(workflow, platform, Reality(np.ones((7, 1))))
    orders = {s: " ".join(tasks[t] for t in started(case, s)) for s in STRATEGIES}
    assert orders["fifo"] == "a b x w y x1 x2"
    assert orders["lifo"] == "a x x1 x2 w b y"
    assert orders["greedy"] == "a x b w x1 x2 y"
    assert orders["hops"] == "a x b w y x1 x2"
    assert orders["ico"].split()[:2] == ["a", "x"]


def test_the_seed_decides_between_equals() -> None:
    workflow = generate("independent", tasks=40)
    platform = Platform.build([Processor("p")])
    orders = {
        tuple(foreplan.simulate(workflow, platform, spec).attempts.task.tolist())
        for spec in ("fifo", "fifo[ties=file]", "fifo[ties=1]", "fifo[ties=2]", "lifo[ties=1]")
    }
    assert tuple(range(40)) in orders
    assert len(orders) == 3


@pytest.mark.parametrize("ties", ["-1", "1.5", "any", "99999999999999999999"])
def test_wrong_ties(ties: str) -> None:
    with pytest.raises(InputError, match=r"fifo\[ties\].*seed"):
        registry.strategy(f"fifo[ties={ties}]")
