"""A run taken up from what it did: the same state as by the rules that did it, and it goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulation.worlds import Case, random_case, specs
from weft import registry
from weft.coordinator import Coordinator
from weft.coordinator.facts import Facts
from weft.errors import InputError
from weft.executors.reality import Reality
from weft.executors.simulated import SimulatedExecutor
from weft.kernels import board as b
from weft.live.entries import commands_to_dict
from weft.model import Estimates, Platform, Processor, Tolerance
from weft.model.events import Event, EventKind, NewEstimates
from weft.wiring import Progress, perform, record

STATE = ("status", "attempt", "present", "leaves", "availability", "bandwidth", "running")
LOGS = ("attempt_task", "attempt_on", "attempt_start", "attempt_finish", "attempt_end")
MOVES = ("transfer_item", "transfer_from", "transfer_to", "transfer_sent", "transfer_arrival")
SPECS = [s for s in specs(["heft"]) if s != "ideal[planner=heft]"]  # never in a journal
ANY_LOSSES = Tolerance(losses=10**9)


def lived(
    case: Case, spec: str, most: int
) -> tuple[Coordinator, list[Event], list[list[list[Any]]], SimulatedExecutor]:
    """A run up to so many events: what it heard, and what it did after each."""
    strategy, planner = registry.strategy(spec)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, strategy, ANY_LOSSES)
    progress = Progress(coordinator, planner)
    executor = SimulatedExecutor(case.workflow, case.platform, case.reality)
    events, done = list[Event](), list[list[list[Any]]]()
    commands = progress.settled(coordinator.begin())
    while True:
        done.append(commands_to_dict(commands)["do"])
        perform(progress, executor, commands)
        if coordinator.done or len(events) == most:
            return coordinator, events, done, executor
        event = executor.next_event()
        assert event is not None
        events.append(event)
        commands = progress.hear(event)


def told(
    case: Case, spec: str, events: list[Event], done: list[list[list[Any]]]
) -> tuple[Coordinator, Facts]:
    """A coordinator that knows only the facts."""
    strategy, _ = registry.strategy(spec)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, strategy, ANY_LOSSES)
    facts = Facts(coordinator, strategy)
    for k, commands in enumerate(done):
        if k > 0:
            facts.hear(events[k - 1])
        for command in commands:
            facts.do(command)
    return coordinator, facts


def same_facts(one: Coordinator, other: Coordinator, forgets: bool) -> None:
    x, y = one.board, other.board
    n, m = int(x.counts[b.N_ATTEMPTS]), int(x.counts[b.N_TRANSFERS])
    assert (n, m) == (int(y.counts[b.N_ATTEMPTS]), int(y.counts[b.N_TRANSFERS]))
    for count in (b.N_DONE, b.N_REWOUND, b.N_GIVEN_UP):
        assert x.counts[count] == y.counts[count]
    for name in (*STATE, *(() if forgets else ("held",))):
        np.testing.assert_array_equal(getattr(x, name), getattr(y, name), err_msg=name)
    for names, length in ((LOGS, n), (MOVES, m)):
        for name in names:
            left, right = getattr(x, name)[:length], getattr(y, name)[:length]
            np.testing.assert_array_equal(left, right, err_msg=name)


@pytest.mark.parametrize("spec", SPECS)
def test_the_facts_are_those_of_the_run(spec: str) -> None:
    """Whatever the rules did, they did by commands: without the rules the state is the same."""
    forgets = spec.partition("[")[0] in ("gtp", "gtp/r")  # copies are left behind without a command
    for seed in range(12):
        case = random_case(seed, stops=False)
        coordinator, events, done, _ = lived(case, spec, most=3 + 5 * seed)
        other, _ = told(case, spec, events, done)
        same_facts(coordinator, other, forgets)


@pytest.mark.parametrize("spec", SPECS)
def test_it_goes_on_from_the_facts(spec: str) -> None:
    _, planner = registry.strategy(spec)
    for seed in range(12):
        case = random_case(seed, quiet=True)
        before, events, done, _ = lived(case, spec, most=2 + 3 * seed)
        if before.done:
            continue
        coordinator, facts = told(case, spec, events, done)
        facts.decide_again()
        executor = SimulatedExecutor.going_on(
            case.workflow, case.platform, Reality(case.reality.work), coordinator.board
        )
        progress = Progress(coordinator, planner, events=[])
        commands = [] if coordinator.asked is None else progress.settled([coordinator.asked])
        commands += progress.hear(Event(EventKind.PAUSED, 0, coordinator.now, 0.0))
        while True:
            perform(progress, executor, commands)
            coordinator.check_state()
            if coordinator.done:
                break
            event = executor.next_event()
            assert event is not None, f"{spec}, seed {seed}: it stands still"
            commands = progress.hear(event)
        assert coordinator.n_done == case.workflow.n_tasks
        finished = record(progress, spec, []).attempts
        again = np.bincount(finished.task[finished.end == b.FINISHED])
        assert (again == 1).all()  # nothing that was done is done again


@pytest.mark.parametrize("spec", ["min-min", "fifo", "slack"])
def test_processors_that_were_added(spec: str) -> None:
    """The board has room for them, whatever the strategy."""
    case = random_case(3, quiet=True, n=12)
    first, more = (Platform.build([Processor(f"q{k}") for k in range(n)]) for n in (1, 6))
    small, large = (Estimates(np.ones((12, pf.n_processors))) for pf in (first, more))
    boards = []
    for as_facts in (False, True):
        strategy, _ = registry.strategy(spec)
        coordinator = Coordinator(case.workflow, first, small, strategy, ANY_LOSSES)
        new = NewEstimates(0.0, large, more)
        if as_facts:
            facts = Facts(coordinator, strategy)
            facts.learn(new)
            facts.decide_again()
        else:
            coordinator.learn(new)
        boards.append(coordinator.board)
    live, taken_up = boards
    assert live.burst == taken_up.burst
    for name in ("free_from", "row", "arrival", "running", "queue", "held"):
        assert getattr(live, name).shape == getattr(taken_up, name).shape, name


def test_the_last_task_ends_after_the_facts() -> None:
    """Nothing waits, so no plan is asked for; how long it took is told all the same."""
    case = random_case(5, quiet=True, n=8)
    for most in range(100):
        before, events, done, _ = lived(case, "slack", most)
        if before.done or not (before.board.status == b.WAITING).any():
            break
    assert not before.done
    coordinator, facts = told(case, "slack", events, done)
    facts.note_plan(coordinator.now, before.plan, judged=False)
    facts.decide_again()
    assert coordinator.asked is None
    attempt = int(coordinator.board.running.max())
    end = Event(EventKind.TASK_FINISHED, attempt, coordinator.now + 1, 0.0, {"seconds": 0.5})
    coordinator.handle(end)
    assert coordinator.n_done == before.n_done + 1


def test_what_was_decided_and_not_written_down() -> None:
    """Numbers that are missing belong to attempts that were never made."""
    case = random_case(3, quiet=True, n=12)
    _, events, done, _ = lived(case, "fifo", most=4)
    done[-1] = [["start", c[1] + 2, *c[2:]] for c in done[-1] if c[0] == "start"]
    if not done[-1]:
        pytest.fail("another seed is needed: nothing was started last")
    coordinator, facts = told(case, "fifo", events, done)
    assert coordinator.board.attempt_end[int(done[-1][0][1]) - 1] == b.CANCELLED
    facts.hear(Event(EventKind.TASK_FAILED, 99, coordinator.now, 1.0))  # never begun
    facts.decide_again()
    coordinator.check_state()


def test_a_journal_that_contradicts_itself() -> None:
    case = random_case(3, quiet=True, n=12)
    _, events, done, _ = lived(case, "fifo", most=2)
    first = next(command for commands in done for command in commands if command[0] == "start")
    coordinator, facts = told(case, "fifo", events, done)
    n = int(coordinator.board.counts[b.N_ATTEMPTS])
    busy = int(np.flatnonzero(coordinator.board.running >= 0)[0])
    with pytest.raises(InputError, match="was running there"):
        facts.do(["start", n, 0, busy])
    with pytest.raises(InputError, match="twice"):
        facts.do(first)
    with pytest.raises(InputError, match="unknown was done"):
        facts.do(["dance", 1])
