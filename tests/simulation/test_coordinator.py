"""The coordinator: illegal events, stale plans, and any legal sequence of events."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simulation.worlds import Checked, specs
from twins.situations import random_instance
from weft import registry
from weft.coordinator import Coordinator, IllegalEventError, check_board
from weft.kernels import board as b
from weft.kernels.board import Board
from weft.model import (
    Estimates,
    Freedom,
    Item,
    Link,
    Platform,
    Processor,
    Schedule,
    Situation,
    Tolerance,
    Workflow,
)
from weft.model.events import (
    Command,
    DropTransfer,
    Event,
    EventKind,
    NewEstimates,
    NewPlan,
    Replan,
    SendItem,
    StartTask,
)
from weft.wiring import answered


def small(spec: str = "slack") -> tuple[Coordinator, Any]:
    """x on one host, then y on it and z on the other, which needs what x makes."""
    cost = np.array([[2.0, 9.0], [3.0, 9.0], [9.0, 2.0]])
    columns = {"p": cost[:, 0], "q": cost[:, 1]}
    items = [Item(1.0, 0, [1, 2])]
    workflow = Workflow.from_items("w", list("xyz"), [np.nan] * 3, items, columns)
    platform = Platform.build([Processor("p"), Processor("q")], Link(1.0))
    policy, planner = registry.strategy(spec)
    estimates = Estimates.declared(workflow, platform)
    return Coordinator(workflow, platform, estimates, policy), planner


def begun(spec: str = "slack") -> tuple[Coordinator, Any]:
    """The same, following its first plan: x runs."""
    coordinator, planner = small(spec)
    commands = coordinator.begin()
    assert isinstance(commands[0], Replan)
    answer = NewPlan(0.0, commands[0].version, planner.plan(coordinator.situation()))
    assert coordinator.handle(answer) == [StartTask(0, 0, 0, 0.0)]
    return coordinator, planner


def image(board: Board) -> list[Any]:
    return [v.tobytes() if isinstance(v, np.ndarray) else v for v in board]


ILLEGAL = [
    Event(EventKind.TASK_FINISHED, 2, 3.0),  # no such attempt
    Event(EventKind.TASK_FINISHED, 0, 3.0),  # over already
    Event(EventKind.TASK_FINISHED, 1, 1.5),  # runs, but that was before
    Event(EventKind.TASK_FINISHED, -1, 3.0),
    Event(EventKind.TASK_FAILED, 0, 3.0),
    Event(EventKind.TASK_FAILED, 99, 3.0),
    Event(EventKind.ITEM_ARRIVED, 1, 3.0),
    Event(EventKind.ITEM_ARRIVED, -1, 3.0),
    Event(EventKind.JOINED, 0, 3.0),
    Event(EventKind.JOINED, 2, 3.0),
    Event(EventKind.GONE, -1, 3.0),
    Event(EventKind.GONE, 2, 3.0),
    Event(EventKind.AVAILABILITY, 0, 3.0, 1.1),
    Event(EventKind.AVAILABILITY, 0, 3.0, -0.1),
    Event(EventKind.AVAILABILITY, 0, 3.0, np.nan),
    Event(EventKind.AVAILABILITY, 2, 3.0, 0.5),
    Event(EventKind.BANDWIDTH, 4, 3.0, 0.5),
    Event(EventKind.BANDWIDTH, 1, 3.0, np.inf),
    Event(EventKind.BANDWIDTH, 1, 3.0, -1.0),
    Event(EventKind.ITEM_LOST, 2, 3.0),  # there is only one item on two hosts
    Event(EventKind.PAUSED, 0, 3.0, 0.5),
    Event(EventKind.GONE, 1, 1.9),  # before the last event
    Event(EventKind.GONE, 1, np.nan),
    Event(EventKind.GONE, 1, np.inf),
]


@pytest.mark.parametrize("event", ILLEGAL, ids=str)
def test_illegal_events_change_nothing(event: Event) -> None:
    coordinator, _ = begun()
    commands = coordinator.handle(Event(EventKind.TASK_FINISHED, 0, 2.0))
    assert [type(c) for c in commands] == [SendItem, StartTask]
    before, version, plan = image(coordinator.board), coordinator.version, coordinator.plan
    with pytest.raises(IllegalEventError):
        coordinator.handle(event)
    assert image(coordinator.board) == before
    assert (coordinator.version, coordinator.plan) == (version, plan)
    check_board(coordinator.board)


def test_commands() -> None:
    coordinator, _ = begun("static")
    sent, started = coordinator.handle(Event(EventKind.TASK_FINISHED, 0, 2.0))
    assert sent == SendItem(0, 0, 0, 1, 2.0)
    assert started == StartTask(1, 1, 0, 2.0)
    commands = coordinator.handle(Event(EventKind.GONE, 1, 2.5))
    assert commands[0] == DropTransfer(0, 2.5)
    assert isinstance(commands[1], Replan)


def asked() -> tuple[Coordinator, Any, Replan]:
    """A coordinator that waits for a plan, since q is gone and z has no processor."""
    coordinator, planner = begun()
    commands = coordinator.handle(Event(EventKind.GONE, 1, 1.0))
    assert isinstance(commands[-1], Replan)
    return coordinator, planner, commands[-1]


def test_a_stale_plan_is_dropped() -> None:
    coordinator, planner, replan = asked()
    plan, before = coordinator.plan, image(coordinator.board)
    schedule = planner.plan(coordinator.situation())
    for version in (replan.version - 1, replan.version + 1):
        assert coordinator.handle(NewPlan(1.0, version, schedule)) == []
        assert image(coordinator.board) == before
        assert coordinator.plan is plan
    coordinator.handle(NewPlan(1.0, replan.version, schedule))
    assert coordinator.plan is schedule
    assert [e.forced for e in coordinator.evaluations] == [True, True]


def test_a_plan_nobody_asked_for_is_dropped() -> None:
    coordinator, planner = begun()
    plan, before = coordinator.plan, image(coordinator.board)
    schedule = planner.plan(coordinator.situation())
    assert coordinator.handle(NewPlan(0.0, coordinator.version, schedule)) == []
    assert coordinator.plan is plan
    assert image(coordinator.board) == before


def test_an_event_before_the_answer() -> None:
    """A real planner takes its time: what happens meanwhile does not lose the question."""
    coordinator, planner, replan = asked()
    coordinator.handle(Event(EventKind.TASK_FINISHED, 0, 2.0))
    schedule = planner.plan(coordinator.situation())
    coordinator.handle(NewPlan(2.0, replan.version, schedule))
    assert coordinator.plan is schedule
    check_board(coordinator.board)


def finish_all(coordinator: Coordinator, planner: Any, commands: list[Command]) -> None:
    """Let all that is under way end, one thing after the other, until nothing is left."""
    for _ in range(10_000):
        replans = [c for c in commands if isinstance(c, Replan)]
        if replans or coordinator.asked is not None:
            version = coordinator.version
            asked = replans[-1] if replans else coordinator.asked
            assert asked is not None
            plan = answered(planner, coordinator, asked)
            commands = coordinator.handle(NewPlan(coordinator.now, version, plan))
            continue
        event = next(iter(under_way(coordinator)), None)
        if event is None:
            break
        commands = coordinator.handle(event)
    assert coordinator.done, "nothing is under way, but tasks are left"


def under_way(coordinator: Coordinator) -> list[Event]:
    """The events that end what is under way."""
    board, now = coordinator.board, coordinator.now + 1.0
    n, m = int(board.counts[b.N_ATTEMPTS]), int(board.counts[b.N_TRANSFERS])
    running = np.flatnonzero(board.attempt_end[:n] == b.OPEN).tolist()
    moving = np.flatnonzero(np.isnan(board.transfer_arrival[:m])).tolist()
    return [Event(EventKind.TASK_FINISHED, k, now) for k in running] + [
        Event(EventKind.ITEM_ARRIVED, k, now) for k in moving
    ]


def test_a_loss_before_the_answer() -> None:
    """The plan that comes is for machines that are not there any more: it must not be final."""
    coordinator, planner, replan = asked()
    late = planner.plan(coordinator.situation())  # everything on p
    coordinator.handle(Event(EventKind.JOINED, 1, 1.2))
    coordinator.handle(Event(EventKind.GONE, 0, 1.5))
    finish_all(coordinator, planner, coordinator.handle(NewPlan(1.6, replan.version, late)))


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
