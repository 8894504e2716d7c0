"""What a run rewinds after a loss is what the rule on plain data says, and no more than it must."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.engine.retries import RetryPolicy
from foreplan.model import Estimates, Item, Link, Platform, Processor, Workflow
from foreplan.model.events import Event, ProcessorGone, ProcessorJoined, SpeedChanged, TaskFinished
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulated import SimulatedExecutor
from model.told import whom
from repeated import repetitions
from simulation.worlds import Checked

STRATEGIES = ["gtp", "gtp/c", "gtp/r", "gtp/c/r"]
PATIENT = RetryPolicy(losses=99)
KINDS = ("losses", "rewound", "cut", "later")
Place = tuple[
    int, int
]  # a processor, and how often it has been lost before: its data are gone then


def workflow(rng: np.random.Generator, n: int) -> Workflow:
    """Every item has one reader, as in the paper."""
    items = [
        Item(float(rng.uniform(0.1, 4)), i, [j])
        for j in range(1, n)
        for i in rng.permutation(j)[: int(rng.integers(1, 4))].tolist()
    ]
    names = [f"t{i}" for i in range(n)]
    return Workflow.from_items("w", names, rng.uniform(1, 9, n), items)


def world(rng: np.random.Generator, wf: Workflow, pf: Platform, returns: bool) -> Reality:
    """Speeds vary, and one processor after the other is lost, until one is left."""
    cost, length = Estimates.declared(wf, pf).cost, float(wf.base_cost.sum())
    changes: list[Event] = [
        SpeedChanged(int(p), float(t), float(rng.uniform(0.2, 1)))
        for p in range(pf.n_processors)
        for t in rng.uniform(0, length, 4)
    ]
    dying = rng.permutation(pf.n_processors)[: int(rng.integers(1, pf.n_processors))]
    for p in dying.tolist():
        at = float(rng.uniform(0, length / 2))
        changes.append(ProcessorGone(p, at))
        if returns:
            changes.append(ProcessorJoined(p, at + length / 9))
            changes.append(ProcessorGone(p, at + length / 4))
    return Reality(cost * rng.uniform(0.5, 1.5, cost.shape), changes)


def copying(spec: str) -> bool:
    """Whether copies are reused."""
    return "c" in spec.partition("[")[0].split("/")


class State:
    """A state as the arguments of `rewind_set`."""

    def __init__(self, arrays: RunArrays, wf: Workflow, lives: list[int]) -> None:
        self.items, producers, consumers = (c.tolist() for c in wf.dependencies())
        self.edges = list(zip(producers, consumers, strict=True))
        self.lives, self.arrays = lives, arrays
        self.done = np.flatnonzero(arrays.status == a.DONE).tolist()
        self.place: dict[int, Place | None] = {}
        for task in range(arrays.n_tasks):
            p = int(arrays.on[task])
            self.place[task] = None if p < 0 else (p, lives[p])

    def arguments(self, dead: set[Place]) -> tuple[Any, ...]:
        arrays, transferred, copies = self.arrays, [], dict[tuple[int, int], list[Place]]()
        for item, (i, j) in zip(self.items, self.edges, strict=True):
            held = arrays.held[item * arrays.n_hosts : (item + 1) * arrays.n_hosts]
            hosts = np.flatnonzero(held == a.HERE).tolist()
            here = self.place[j]
            if here is not None and here[0] in hosts and j not in self.done:
                transferred.append((i, j))
            copies[i, j] = [(h, self.lives[h]) for h in hosts]
        return self.edges, self.place, self.done, transferred, copies, dead


def compared(seed: int, spec: str, returns: bool) -> dict[str, int]:
    """A run in which every loss is compared with the rule; what happened."""
    rng = np.random.default_rng(seed)
    wf = workflow(rng, int(rng.integers(4, 14)))
    pf = Platform.build([Processor(f"p{i}") for i in range(int(rng.integers(2, 5)))], Link(1.0))
    executor = SimulatedExecutor(wf, pf, world(rng, wf, pf, returns))
    policy, planner = registry.strategy(spec)
    assert planner is not None
    coordinator = Coordinator(wf, pf, Estimates.declared(wf, pf), policy, PATIENT)
    driver = Driver(coordinator, Checked(planner))
    commands = driver.begin()
    # a copy is named by the processor and its life, and so is where a task was done
    lives, homes, seen = [0] * pf.n_processors, dict[int, Place](), dict.fromkeys(KINDS, 0)
    while True:
        for command in commands:
            executor.perform(command)
        if coordinator.done:
            return seen
        event = executor.next_event()
        assert event is not None
        arrays = coordinator.state.arrays
        if isinstance(event, ProcessorGone):
            state = State(arrays, wf, lives)
            state.place.update({t: homes[t] for t in state.done})
            dead = {(p, k) for p in range(pf.n_processors) for k in range(lives[p])}
            dead.add((whom(event), lives[whom(event)]))
            arguments = state.arguments(dead)
            edges, place, done, arrived, copies, _ = arguments
            expected = foreplan.rewind_set(edges, place, done, arrived, copies, dead, copying(spec))
            before = arrays.status.copy()
            lives[whom(event)] += 1
        commands = coordinator.handle(event)
        n_done = coordinator.n_done
        if isinstance(event, ProcessorGone):
            arrays = coordinator.state.arrays
            rewound = set(np.flatnonzero((before == a.DONE) & (arrays.status != a.DONE)).tolist())
            cut = {t for t in expected if t not in state.done}
            assert rewound | cut == set(expected)
            assert all(state.place[t] == (whom(event), lives[whom(event)] - 1) for t in cut)
            seen["losses"] += 1
            seen["rewound"] += len(rewound)
            seen["cut"] += len(cut)
            if len(rewound) < 7:
                minimal(arguments, spec, rewound, cut)
        if isinstance(event, TaskFinished):
            p = int(arrays.attempt_on[whom(event)])
            homes[int(arrays.attempt_task[whom(event)])] = (p, lives[p])
        commands = driver.settle(commands)
        seen["later"] += n_done - coordinator.n_done  # by a plan that moves what had its inputs


def minimal(arguments: tuple[Any, ...], spec: str, rewound: set[int], cut: set[int]) -> None:
    """No smaller part of what was rewound would do."""
    edges, place, done, transferred, copies, dead = arguments
    reuse = copying(spec)

    def enough(chosen: set[int]) -> bool:
        again = chosen | cut
        for i, j in edges:
            if i in again or i not in done or (j in done and j not in again):
                continue  # it is made anew, was never made, or nobody needs it
            alive = place[i] not in dead
            spared = reuse and any(p not in dead for p in copies[i, j])
            arrived = (i, j) in transferred and j not in again
            if not (alive or spared or arrived):
                return False
        return True

    smaller = chain.from_iterable(combinations(rewound, k) for k in range(len(rewound)))
    assert enough(rewound)
    assert not any(enough(set(chosen)) for chosen in smaller)


@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.parametrize("spec", STRATEGIES)
def test_as_the_rule_says(spec: str, returns: bool) -> None:
    total = dict.fromkeys(KINDS, 0)
    seeds = repetitions(16)
    for seed in seeds:
        for kind, number in compared(seed, f"{spec}[period=3]", returns).items():
            total[kind] += number
    assert total["losses"] > len(seeds)
    assert total["cut"] > 2 * len(seeds)
    assert total["rewound"] > len(seeds) / 4
