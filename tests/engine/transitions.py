"""Every change of state that the rules make in random worlds, and at which event; run by itself.

The kernels must run uncompiled (FOREPLAN_PLAIN_KERNELS), so that every write into an array is seen.
"""

from __future__ import annotations

import inspect
import json
import math
import random
import sys
from collections import defaultdict
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

import foreplan
from engine.machine import Machine
from engine.priced import cheapest_cost, priced, run_with
from foreplan import registry
from foreplan.engine import coordinator as decisions
from foreplan.engine.budget import CUT, BudgetTracker
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.hard_limit import cut_off
from foreplan.engine.retries import RetryPolicy
from foreplan.engine.state import AttemptState, ItemState, RunState, TaskState, TransferState
from foreplan.model import Estimates, Platform, Processor
from foreplan.model.events import (
    OWN_FAULT,
    Event,
    ItemLost,
    LimitsDue,
    NewEstimates,
    NewPlan,
    ProcessorGone,
    RetryDue,
    TaskFailed,
    TaskFinished,
    Woken,
)
from foreplan.simulation.reality import Reality
from simulation.worlds import Scattered, random_case

NEW = "-"
ENTRIES = {NewPlan: "new_plan", NewEstimates: "new_estimates"}
WATCHED: dict[str, type[Enum]] = {
    "status": TaskState,
    "attempt_end": AttemptState,
    "held": ItemState,
    "transfer_arrival": TransferState,
    "transfer_forgotten": TransferState,
}
seen: dict[tuple[str, str, str], set[str]] = defaultdict(set)  # by what, before and after: events
heard = ["begin"]  # the event that is being handled


class Watched(np.ndarray):
    """An array of states that notes every change."""

    place = ""  # in RunArrays

    def __array_finalize__(self, other: Any) -> None:
        self.place = getattr(other, "place", "")

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.place and np.ndim(value) == 0:
            self.note(self[key], value, sys._getframe(1).f_code.co_name)
        super().__setitem__(key, value)

    def note(self, before: Any, after: Any, rule: str) -> None:
        kind, old, new = WATCHED[self.place], self.named(before), self.named(after)
        if rule in ("start", "send") and self.place.startswith(("attempt", "transfer")):
            if self.place == "transfer_forgotten":
                return
            old = NEW
        if old != new:
            seen[kind.__name__, old, new].add(heard[0])

    def named(self, value: Any) -> str:
        if self.place == "transfer_forgotten":
            return "ARRIVED" if value == math.inf else "LEFT_BEHIND"
        if self.place == "transfer_arrival":
            over = "DROPPED" if value == math.inf else "ARRIVED"
            return "UNDER_WAY" if math.isnan(value) else over
        return str(WATCHED[self.place](int(value)).name)


def watch(state: RunState) -> None:
    """Note what happens to these arrays from now on; some are made anew as a run grows."""
    arrays = {name: getattr(state.arrays, name).view(Watched) for name in WATCHED}
    for name, array in arrays.items():
        array.place = name
    state.arrays = state.arrays._replace(**arrays)


def listen() -> None:
    """Know what is being heard, of every coordinator."""
    handle = Coordinator.handle

    def told(self: Coordinator, entry: Any) -> Any:
        watch(self.state)
        heard[0] = entry.to_dict()["kind"] if isinstance(entry, Event) else ENTRIES[type(entry)]
        return handle(self, entry)

    def cut(coordinator: Coordinator) -> bool:
        before, heard[0] = heard[0], "end_of_money"
        was_cut = cut_off(coordinator)
        heard[0] = heard[0] if was_cut else before
        return was_cut

    Coordinator.handle = told  # type: ignore[method-assign,assignment]
    setattr(decisions, "cut_off", cut)  # noqa: B010


def possible(machine: Machine, rng: random.Random) -> str:
    """Something that may happen in this state, some things more often than others."""
    coordinator = machine.coordinator
    present, open_ones = coordinator.state.present(), int(machine.open.sum())
    can = {
        "finish": 3 * (open_ones > 0),
        "fail": open_ones > 1,
        "lose": 1,
        "pause": 1,
        "learn": 1,
        "arrive": 2 * bool(machine.moving.any()),
        "go": coordinator.n_done > 0 and present.any(),
        "join": not present.all(),
        "announce": present.any(),
        "speed": 1,
        "wake": 1,
        "point": np.isfinite(coordinator.state.arrays.wake[0]),
        "answer": 2 * (coordinator.asked is not None),
        "retry": coordinator.state.count(TaskState.RESTING) > 0,
    }
    return rng.choices(list(can), [float(weight) for weight in can.values()])[0]


def any_events(seed: int) -> None:
    """A coordinator to which anything happens, as in `test_any_events`."""
    rng, machine = random.Random(seed), Machine()
    if seed % 2:
        type(machine).scattered = 0.9
    machine.begin(seed, rng.randrange(1000))
    for _ in range(40):
        name = possible(machine, rng)
        arguments = {
            "number": rng.randrange(1000), "later": rng.choice([0.0, 0.0, 1.0, 225.0, 300.5]),
            "value": rng.choice([0.0, 1.0] if name == "pause" else [0.1, 0.5, 1.0]),
            "more": rng.randrange(3), "notice": rng.choice([-5.0, 0.0, 0.5, 300.0]),
            "late": rng.choice([0.0, 2.0]),
        }  # fmt: skip
        taken = inspect.signature(getattr(machine, name)).parameters
        getattr(machine, name)(**{k: v for k, v in arguments.items() if k in taken})
        machine.consistent()
    machine.teardown()


def little_money(seed: int) -> None:
    """Tasks take four times as long as expected, and end when the money does."""
    case = priced(random_case(seed, stops=False), seed, plain=True)
    case = replace(case, reality=Reality(case.reality.work * 4, case.reality.changes))
    run_with(case, "gtp/c/r", 1.05 * cheapest_cost(case), CUT, by_events=True)


class Small:
    """A run of a few tasks on processors of one host, to which things happen one by one."""

    def __init__(
        self, after: dict[str, list[str]], spec: str = "static", processors: int = 1,
        more: dict[str, Any] | None = None, **how: Any
    ) -> None:  # fmt: skip
        tasks = {
            name: {"cost": 99.0 if name == "l" else 10.0, "inputs": before, "outputs": [name]}
            | (more or {}).get(name, {})
            for name, before in after.items()
        }
        workflow = foreplan.load({"tasks": tasks})
        machines = [Processor(f"p{k}", "host", price=1.0) for k in range(processors)]
        platform = Platform.build(machines)
        policy, planner = registry.strategy(spec, budgeted="tracker" in how)
        estimates = Estimates.declared(workflow, platform)
        self.coordinator = Coordinator(workflow, platform, estimates, policy, **how)
        self.driver = Driver(self.coordinator, planner)
        self.driver.begin()

    def hear(self, kind: type[Event], which: int = 0, value: float = 0.0, later: float = 1) -> None:
        self.driver.hear(kind.of(which, self.coordinator.now + later, value))
        self.coordinator.check_state()

    def end(self, task: str, kind: type[Event] = TaskFinished, value: float = 0.0) -> None:
        """A task that runs finishes, or fails."""
        names = self.coordinator.workflow.task_names
        [attempt] = [a for a in self.coordinator.state.running() if names[a.task] == task]
        self.hear(kind, attempt.number, value)

    def lose(self, item: str) -> None:
        workflow = self.coordinator.workflow
        [which] = [i for i in range(workflow.n_items) if workflow.item_name(i) == item]
        self.hear(ItemLost, which)


def rare() -> None:
    """An input is lost while a task runs that then begins again; tasks that are given up."""
    chain = {"x": [], "y": ["x"]}
    failed = Small(chain, retry_policy=RetryPolicy(retries=1))
    moved = Small(chain, "gtp[period=5]", processors=2)
    cut_off = Small(chain, tracker=BudgetTracker(25.0, CUT))
    for run in (failed, moved, cut_off):
        run.end("x")
        run.lose("x")
    failed.end("y", TaskFailed, OWN_FAULT)
    moved.driver.planner = Scattered(seed=0)  # no sensible plan moves it now
    for _ in range(9):
        moved.hear(Woken, later=5.0)
    cut_off.hear(LimitsDue, later=30.0)
    Small(chain, retry_policy=RetryPolicy(losses=0)).hear(ProcessorGone)
    many = {"g": [], "x": ["g"], "h": ["g"], "l": [], "z": ["x", "l"]}
    lost = Small(many, processors=2, retry_policy=RetryPolicy(retries=1, keep_going=True))
    lost.end("g")
    lost.end("x")
    lost.lose("g")
    for task in ("h", "g", "g"):
        lost.end(task, TaskFailed, OWN_FAULT)
    lost.lose("x")
    resting()


def resting() -> None:
    """Tasks rest until they are tried again, with what needs them; meanwhile more is lost."""
    policy = RetryPolicy(retries=3, keep_going=True)
    one = Small({"x": [], "y": ["x"]}, more={"y": {"wait": 5}}, retry_policy=policy)
    one.end("x")
    one.end("y", TaskFailed, OWN_FAULT)
    one.lose("x")
    one.hear(RetryDue, later=5.0)
    many = {"g": [], "x": ["g"], "h": ["g"], "l": [], "z": ["x", "l"]}
    for of_l in ({"wait": 99.0}, {"retries": 0}):
        two = Small(many, processors=2, more={"g": {"wait": 5}, "l": of_l}, retry_policy=policy)
        two.end("g")
        two.end("x")
        two.lose("g")
        for task in ("h", "g"):
            two.end(task, TaskFailed, OWN_FAULT)
        two.lose("x")
        two.end("l", TaskFailed, OWN_FAULT)
        two.hear(RetryDue, later=5.0)


if __name__ == "__main__":
    listen()
    rare()
    for seed in range(int(sys.argv[1])):
        any_events(seed)
        if seed % 10 == 0:
            little_money(seed)
    rows = [[*row, sorted(events)] for row, events in sorted(seen.items())]
    json.dump(rows, sys.stdout)
