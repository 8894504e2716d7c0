"""The coordinator under any legal sequence of events."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simulation.endings import finish_all, image, under_way
from simulation.worlds import Checked, specs
from twins.situations import random_instance
from weft import registry
from weft.coordinator import Coordinator, IllegalEventError, check_board
from weft.kernels import board as b
from weft.model import (
    Estimates,
    Freedom,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    Tolerance,
)
from weft.model.events import (
    Event,
    EventKind,
    NewEstimates,
    NewPlan,
)
from weft.wiring import answered

SPECS = specs(["heft"])


class Scattered:
    """A planner that puts tasks anywhere, so that much is moved; only the order makes sense."""

    name: ClassVar[str] = "scattered"

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        workflow, a = situation.workflow, situation.attempts
        processor = self.rng.choice(np.flatnonzero(situation.usable()), workflow.n_tasks)
        start = situation.now + workflow.position.astype(np.float64)
        finish = start + 0.5
        processor[a.task], start[a.task] = a.processor, a.start
        finish[a.task] = situation.expected_finish()
        return Schedule(self.name, workflow, situation.platform, processor, start, finish)


class Machine(RuleBasedStateMachine):
    """Any legal events in any order; plans are asked for, and answered some time later."""

    coordinator: Coordinator
    planner: Any = None
    old: list[Schedule]

    @initialize(seed=st.integers(0, 2**32 - 1), spec=st.sampled_from(SPECS))
    def begin(self, seed: int, spec: str) -> None:
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(1, 13)), int(rng.integers(1, 5))
        workflow, platform = random_instance(rng, n_tasks=n, n_processors=p, changes=False)
        policy, planner = registry.strategy(spec)
        if planner is not None:
            self.planner = Checked(planner) if rng.random() < 0.3 else Scattered(seed)
        estimates = Estimates.declared(workflow, platform)
        tolerance = Tolerance(
            retries=int(rng.integers(3)),
            losses=int(rng.integers(2, 5)),
            keep_going=rng.random() < 0.7,
        )
        self.coordinator = Coordinator(workflow, platform, estimates, policy, tolerance)
        self.old = []
        self.commands = self.coordinator.begin()
        self.answer()

    def happen(self, kind: EventKind, which: int, later: float, value: float = 0.0) -> None:
        event = Event(kind, which, self.coordinator.now + later, value)
        self.commands = self.coordinator.handle(Event.from_dict(event.to_dict()))

    def pick(self, mask: Any, number: int) -> int:
        chosen = np.flatnonzero(mask)
        return int(chosen[number % len(chosen)])

    @property
    def open(self) -> Any:
        board = self.coordinator.board
        return board.attempt_end[: board.counts[b.N_ATTEMPTS]] == b.OPEN

    @property
    def moving(self) -> Any:
        board = self.coordinator.board
        return np.isnan(board.transfer_arrival[: board.counts[b.N_TRANSFERS]])

    numbers = st.integers(0, 1000)
    times = st.sampled_from([0.0, 0.0, 1.0, 225.0, 300.5])

    @precondition(lambda self: self.open.any())
    @rule(number=numbers, later=times)
    def finish(self, number: int, later: float) -> None:
        self.happen(EventKind.TASK_FINISHED, self.pick(self.open, number), later)

    @precondition(lambda self: self.open.any())
    @rule(number=numbers, later=times)
    def finish_too(self, number: int, later: float) -> None:
        self.finish(number, later)

    @precondition(lambda self: self.open.any() or self.moving.any())
    @rule(number=numbers)
    def progress(self, number: int) -> None:
        event = under_way(self.coordinator)
        self.commands = self.coordinator.handle(event[number % len(event)])

    @precondition(lambda self: self.open.sum() > 1)
    @rule(number=numbers, later=times)
    def fail(self, number: int, later: float) -> None:
        self.happen(EventKind.TASK_FAILED, self.pick(self.open, number), later)

    @precondition(lambda self: self.coordinator.board.held.size)
    @rule(number=numbers, later=times)
    def lose(self, number: int, later: float) -> None:
        here = self.coordinator.board.held == b.HERE
        if here.any():
            board = self.coordinator.board
            item, host = divmod(self.pick(here, number), board.n_hosts)
            which = host * len(board.item_producer) + item
            self.happen(EventKind.ITEM_LOST, which, later)

    @rule(value=st.sampled_from([0.0, 0.0, 1.0]), later=times)
    def pause(self, value: float, later: float) -> None:
        self.happen(EventKind.PAUSED, 0, later, value)

    @rule(number=numbers, later=times, more=st.integers(0, 2))
    def learn(self, number: int, later: float, more: int) -> None:
        """Other estimates, and processors that were not known before, on hosts old and new."""
        c, rng = self.coordinator, np.random.default_rng(number)
        if c.platform.n_processors + more > 7:
            return
        old = c.platform
        names, hosts = list(old.processor_names), [old.host_names[h] for h in old.host]
        for k in range(len(names), len(names) + more):
            names.append(f"new-{k}")
            hosts.append(str(rng.choice([*old.host_names, f"host-{k}"])))
        platform = Platform.build(
            [Processor(n, h) for n, h in zip(names, hosts, strict=True)], Link(1.0)
        )
        cost = rng.integers(1, 300, (c.workflow.n_tasks, len(names))).astype(np.float64)
        leaves = platform.leaves.copy()
        self.commands = c.handle(NewEstimates(c.now + later, Estimates(cost), platform))
        leaves[: len(old.leaves)] = old.leaves  # what was announced still holds
        assert c.platform.leaves.tolist() == leaves.tolist()

    @precondition(lambda self: self.moving.any())
    @rule(number=numbers, later=times)
    def arrive(self, number: int, later: float) -> None:
        self.happen(EventKind.ITEM_ARRIVED, self.pick(self.moving, number), later)

    @precondition(lambda self: self.coordinator.n_done and self.coordinator.board.present.any())
    @rule(number=numbers, later=times)
    def go(self, number: int, later: float) -> None:
        self.happen(EventKind.GONE, self.pick(self.coordinator.board.present, number), later)

    @precondition(lambda self: not self.coordinator.board.present.all())
    @rule(number=numbers, later=times)
    def join(self, number: int, later: float) -> None:
        self.happen(EventKind.JOINED, self.pick(~self.coordinator.board.present, number), later)

    @precondition(lambda self: self.coordinator.board.present.any())
    @rule(number=numbers, later=times, notice=st.sampled_from([-5.0, 0.0, 0.5, 300.0]))
    def announce(self, number: int, later: float, notice: float) -> None:
        """A processor will leave: at once, soon, or in a while."""
        p = self.pick(self.coordinator.board.present, number)
        at = self.coordinator.now + later + notice
        self.happen(EventKind.LEAVING, p, later, at)
        assert self.coordinator.platform.leaves[p] == at
        if notice <= 0:
            assert self.coordinator.board.queue_at[p] == self.coordinator.board.queue_end[p]

    @rule(number=numbers, later=times, value=st.sampled_from([0.1, 0.5, 1.0]))
    def speed(self, number: int, later: float, value: float) -> None:
        platform = self.coordinator.platform
        if number % 2:
            which = number % platform.n_processors
            self.happen(EventKind.AVAILABILITY, which, later, value)
        else:
            self.happen(EventKind.BANDWIDTH, number % platform.n_hosts**2, later, 2 * value)

    @precondition(lambda self: self.coordinator.asked is not None)
    @rule()
    def answer(self) -> None:
        """The planner answers a question with what is known now."""
        coordinator = self.coordinator
        while coordinator.asked is not None and coordinator.situation().usable().any():
            version = coordinator.version
            plan = answered(self.planner, coordinator, coordinator.asked)
            if plan is not None:
                self.old.append(plan)
            self.commands = coordinator.handle(NewPlan(coordinator.now, version, plan))
            taken = coordinator.evaluations[-1].taken
            assert (plan is not None and coordinator.plan is plan) == taken
            assert coordinator.version == version + taken

    @precondition(lambda self: self.old)
    @rule(number=numbers, back=st.integers(1, 3))
    def stale(self, number: int, back: int) -> None:
        """An answer to an older question changes nothing."""
        coordinator = self.coordinator
        plan = self.old[number % len(self.old)]
        before, asked = image(coordinator.board), coordinator.asked
        new = NewPlan(coordinator.now, coordinator.version - back, plan)
        assert coordinator.handle(new) == []
        assert image(coordinator.board) == before
        assert coordinator.asked is asked

    @rule(number=numbers, kind=st.sampled_from(list(EventKind)))
    def illegal(self, number: int, kind: EventKind) -> None:
        before = image(self.coordinator.board)
        with pytest.raises(IllegalEventError):
            self.happen(kind, 1000 + number, 0.0, 0.5)
        assert image(self.coordinator.board) == before

    @invariant()
    def consistent(self) -> None:
        self.coordinator.check_state()
        assert self.coordinator.board.counts[b.N_COMMANDS] == 0

    def teardown(self) -> None:
        """Whatever happened, the run can be brought to its end."""
        if not hasattr(self, "coordinator"):
            return
        board = self.coordinator.board
        for p in np.flatnonzero(board.present & np.isfinite(board.leaves)).tolist():
            self.happen(EventKind.GONE, p, 1.0)  # as was announced
            self.happen(EventKind.JOINED, p, 301.0)
        if not self.coordinator.board.present.any():
            self.happen(EventKind.JOINED, 0, 301.0)  # later than any announced leave
        self.happen(EventKind.PAUSED, 0, 1.0, 0.0)  # go on, also with what was given up
        finish_all(self.coordinator, self.planner, self.commands)
        check_board(self.coordinator.board)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
