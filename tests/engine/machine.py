"""A coordinator to which any legal sequence of events may happen, for Hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.endings import image, under_way
from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.engine.check_state import IllegalEventError, check_state
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver, answered, record
from foreplan.engine.kernels import arrays as a
from foreplan.engine.retries import RetryPolicy
from foreplan.engine.state import TaskState
from foreplan.model import (
    Estimates,
    Link,
    Platform,
    Processor,
    Run,
    Schedule,
    TaskSpec,
)
from foreplan.model.events import (
    KINDS,
    BudgetChanged,
    Event,
    ItemArrived,
    ItemLost,
    LimitsDue,
    LinkChanged,
    NewEstimates,
    NewPlan,
    Paused,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    RetryDue,
    SpeedChanged,
    TaskFailed,
    TaskFinished,
    TasksOverdue,
    WakeAt,
    Woken,
)
from simulation.worlds import Checked, Scattered, specs
from twins.situations import random_instance

MACHINES = {  # what happens to the machines
    ProcessorJoined,
    ProcessorGone,
    SpeedChanged,
    LinkChanged,
    ProcessorLeaving,
    ItemLost,
}


LOOKS = (LimitsDue, TasksOverdue)
LEGAL = (*LOOKS, Woken, Paused, BudgetChanged, RetryDue)  # whatever they are about
CAN_BE_ILLEGAL = [kind for kind in KINDS.values() if kind not in LEGAL]


class Machine(RuleBasedStateMachine):
    """Any legal events in any order; plans are asked for, and answered some time later."""

    specs: ClassVar[list[str]] = specs(["heft"])
    scattered: ClassVar[float] = 0.7  # how often plans are senseless
    coordinator: Coordinator
    planner: Any = None
    old: list[Schedule]

    @initialize(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 1000))
    def begin(self, seed: int, number: int) -> None:
        self.spec = spec = self.specs[number % len(self.specs)]
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(1, 13)), int(rng.integers(1, 5))
        workflow, platform = random_instance(rng, n_tasks=n, n_processors=p, changes=False)
        policy, planner = registry.strategy(spec)
        if planner is not None:
            chosen = rng.random() < self.scattered
            self.planner = Scattered(seed) if chosen else Checked(planner)
        estimates = Estimates.declared(workflow, platform)
        rests = {t: TaskSpec(wait=float(rng.choice([1.0, 200.0]))) for t in range(0, n, 2)}
        workflow = replace(workflow, specs=rests if rng.random() < 0.5 else {})
        retry_policy = RetryPolicy(
            retries=int(rng.integers(3)),
            losses=int(rng.integers(2, 5)),
            keep_going=rng.random() < 0.7,
        )
        self.coordinator = Coordinator(workflow, platform, estimates, policy, retry_policy)
        self.old, self.happened, self.gave_up = [], list[Event](), False
        self.plans, self.plan_times = list[Schedule](), list[float]()
        self.commands = self.coordinator.begin()
        self.answer()

    def happen(self, kind: type[Event], which: int, later: float, value: float = 0.0) -> None:
        self.handle(kind.of(which, self.coordinator.now + later, value))

    def handle(self, event: Event) -> None:
        self.commands = self.coordinator.handle(Event.from_dict(event.to_dict()))
        self.happened.append(event)

    def pick(self, mask: Any, number: int) -> int:
        chosen = np.flatnonzero(mask)
        return int(chosen[number % len(chosen)])

    @property
    def open(self) -> Any:
        arrays = self.coordinator.state.arrays
        return arrays.attempt_end[: arrays.counts[a.N_ATTEMPTS]] == a.OPEN

    @property
    def moving(self) -> Any:
        arrays = self.coordinator.state.arrays
        return np.isnan(arrays.transfer_arrival[: arrays.counts[a.N_TRANSFERS]])

    numbers = st.integers(0, 1000)
    times = st.sampled_from([0.0, 0.0, 1.0, 225.0, 300.5])

    @precondition(lambda self: self.open.any())
    @rule(number=numbers, later=times)
    def finish(self, number: int, later: float) -> None:
        self.happen(TaskFinished, self.pick(self.open, number), later)

    @precondition(lambda self: self.open.any())
    @rule(number=numbers, later=times)
    def finish_too(self, number: int, later: float) -> None:
        self.finish(number, later)

    @precondition(lambda self: self.open.any() or self.moving.any())
    @rule(number=numbers)
    def progress(self, number: int) -> None:
        event = under_way(self.coordinator)
        self.handle(event[number % len(event)])

    @precondition(lambda self: self.open.sum() > 1)
    @rule(number=numbers, later=times)
    def fail(self, number: int, later: float) -> None:
        self.happen(TaskFailed, self.pick(self.open, number), later)

    @precondition(lambda self: self.coordinator.state.count(TaskState.RESTING))
    @rule(late=st.sampled_from([-1.0, 0.0, 0.0, 300.5]))
    def retry(self, late: float) -> None:
        """The time has come to try again what rests, or not quite."""
        coordinator = self.coordinator
        due, resting = coordinator.state.next_retry(), coordinator.state.count(TaskState.RESTING)
        self.handle(RetryDue(max(coordinator.now, due + late)))
        assert (coordinator.state.count(TaskState.RESTING) < resting) == (coordinator.now >= due)
        if (again := coordinator.state.next_retry()) < np.inf:
            assert WakeAt(again, RetryDue) in self.commands

    @precondition(lambda self: self.coordinator.state.arrays.held.size)
    @rule(number=numbers, later=times)
    def lose(self, number: int, later: float) -> None:
        here = self.coordinator.state.arrays.held == a.HERE
        if here.any():
            arrays = self.coordinator.state.arrays
            item, host = divmod(self.pick(here, number), arrays.n_hosts)
            which = host * len(arrays.item_producer) + item
            self.happen(ItemLost, which, later)

    @rule(value=st.sampled_from([0.0, 0.0, 1.0]), later=times)
    def pause(self, value: float, later: float) -> None:
        self.happen(Paused, 0, later, value)

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
        joins = [*old.joins.tolist(), *[max(c.now + later, 1e-3)] * more]
        rows = zip(names, hosts, joins, strict=True)
        platform = Platform.build([Processor(n, h, joins=j) for n, h, j in rows], Link(1.0))
        cost = rng.integers(1, 300, (c.workflow.n_tasks, len(names))).astype(np.float64)
        leaves = platform.leaves.copy()
        self.commands = c.handle(NewEstimates(c.now + later, Estimates(cost), platform))
        leaves[: len(old.leaves)] = old.leaves  # what was announced still holds
        assert c.platform.leaves.tolist() == leaves.tolist()

    @precondition(lambda self: self.moving.any())
    @rule(number=numbers, later=times)
    def arrive(self, number: int, later: float) -> None:
        self.happen(ItemArrived, self.pick(self.moving, number), later)

    @precondition(lambda self: self.coordinator.n_done and self.coordinator.state.present().any())
    @rule(number=numbers, later=times)
    def go(self, number: int, later: float) -> None:
        self.happen(ProcessorGone, self.pick(self.coordinator.state.arrays.present, number), later)

    @precondition(lambda self: not self.coordinator.state.arrays.present.all())
    @rule(number=numbers, later=times)
    def join(self, number: int, later: float) -> None:
        self.happen(ProcessorJoined, self.pick(~self.coordinator.state.present(), number), later)

    @precondition(lambda self: self.coordinator.state.present().any())
    @rule(number=numbers, later=times, notice=st.sampled_from([-5.0, 0.0, 0.5, 300.0]))
    def announce(self, number: int, later: float, notice: float) -> None:
        """A processor will leave: at once, soon, or in a while."""
        p = self.pick(self.coordinator.state.arrays.present, number)
        at = self.coordinator.now + later + notice
        self.happen(ProcessorLeaving, p, later, at)
        assert self.coordinator.platform.leaves[p] == at
        if notice <= 0:
            assert (
                self.coordinator.state.arrays.queue_at[p]
                == self.coordinator.state.arrays.queue_end[p]
            )

    @rule(number=numbers, later=times, value=st.sampled_from([0.1, 0.5, 1.0]))
    def speed(self, number: int, later: float, value: float) -> None:
        platform = self.coordinator.platform
        if number % 2:
            which = number % platform.n_processors
            self.happen(SpeedChanged, which, later, value)
        else:
            self.happen(LinkChanged, number % platform.n_hosts**2, later, 2 * value)

    @rule(later=times)
    def wake(self, later: float) -> None:
        """An alarm that nobody asked for any more changes nothing but the clock."""
        coordinator = self.coordinator
        version, due = coordinator.version, float(coordinator.state.arrays.wake[0])
        self.happen(Woken, 0, later)
        assert coordinator.version == version + (coordinator.now >= due)

    @rule(later=times, kind=st.sampled_from(LOOKS))
    def look(self, later: float, kind: type[Event]) -> None:
        """Where there are no limits, there is nothing to look at."""
        version, tracker = self.coordinator.version, self.coordinator.tracker
        self.happen(kind, 0, later)
        assert tracker.kept or self.coordinator.version == version

    @precondition(lambda self: np.isfinite(self.coordinator.state.arrays.wake[0]))
    @rule(late=st.sampled_from([0.0, 0.0, 2.0]))
    def point(self, late: float) -> None:
        """The next rescheduling point, just in time or late."""
        coordinator = self.coordinator
        due, period = coordinator.state.arrays.wake.tolist()
        self.handle(Woken(max(due, coordinator.now) + late))
        assert WakeAt(coordinator.now + period) in self.commands
        if period > 0:
            assert coordinator.state.arrays.wake[0] > coordinator.now

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
            if plan is not None and taken:
                self.plans.append(plan)
                self.plan_times.append(coordinator.now)
            assert (plan is not None and coordinator.plan is plan) == taken
            assert coordinator.version == version + taken + self.was_cut()

    @precondition(lambda self: self.old)
    @rule(number=numbers, back=st.integers(1, 3))
    def stale(self, number: int, back: int) -> None:
        """An answer to an older question changes nothing."""
        coordinator = self.coordinator
        plan = self.old[number % len(self.old)]
        before, asked = image(coordinator.state.arrays), coordinator.asked
        new = NewPlan(coordinator.now, coordinator.version - back, plan)
        assert coordinator.handle(new) == []
        assert image(coordinator.state.arrays) == before
        assert coordinator.asked is asked

    @rule(number=numbers, kind=st.sampled_from(CAN_BE_ILLEGAL))
    def illegal(self, number: int, kind: type[Event]) -> None:
        before = image(self.coordinator.state.arrays)
        with pytest.raises(IllegalEventError):
            self.happen(kind, 1000 + number, 0.0, 0.5)
        assert image(self.coordinator.state.arrays) == before

    @invariant()
    def consistent(self) -> None:
        self.coordinator.check_state()
        assert self.coordinator.state.arrays.counts[a.N_COMMANDS] == 0
        self.gave_up |= bool(self.coordinator.given_up)
        self.gave_up |= bool(self.coordinator.state.count(TaskState.RESTING))

    def teardown(self) -> None:
        """Whatever happened, the run can be brought to its end."""
        if not hasattr(self, "coordinator"):
            return
        arrays = self.coordinator.state.arrays
        for p in np.flatnonzero(arrays.present & np.isfinite(arrays.leaves)).tolist():
            self.happen(ProcessorGone, p, 1.0)  # as was announced
            self.happen(ProcessorJoined, p, 301.0)
        if not self.coordinator.state.present().any():
            self.happen(ProcessorJoined, 0, 301.0)  # later than any announced leave
        self.happen(Paused, 0, 1.0, 0.0)  # go on, also with what was given up
        for _ in range(10_000):
            self.answer()
            events = under_way(self.coordinator)
            if events:
                self.handle(events[0])
            elif not self.release():
                break
        assert self.coordinator.done, "nothing is under way, but tasks are left"
        check_state(self.coordinator.state)
        self.check_record(self.record())

    def release(self) -> bool:
        """Let go of what is held back; whether anything was."""
        return False

    def check_record(self, run: Run) -> None:
        check_run(run)

    def was_cut(self) -> bool:
        """Whether the money was gone when the plan was taken, and another is asked for."""
        return False

    def record(self) -> Run:
        """What happened, as the record of a run in which things took what they took."""
        driver = Driver(self.coordinator, self.planner, events=self.happened)
        driver.plans, driver.plan_times = self.plans, self.plan_times
        changes = [event for event in self.happened if type(event) in MACHINES]
        run = record(driver, self.spec, changes)
        if not self.plans or self.gave_up:  # what is given up makes way for what comes after it
            run = replace(run, plans=(), plan_times=())
        return replace(run, real=True)
