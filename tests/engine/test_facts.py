"""A run taken up from what it did: the same state as by the rules that did it, and it goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulation.worlds import Case, random_case, specs
from weft import registry
from weft.engine.coordinator import Coordinator
from weft.engine.driver import Driver, record
from weft.engine.facts import Facts
from weft.engine.kernels import arrays as a
from weft.engine.retries import RetryPolicy
from weft.errors import InputError
from weft.model import Estimates, Platform, Processor
from weft.model.events import Event, NewEstimates, Paused, TaskFailed, TaskFinished
from weft.runs.entries import commands_to_dict
from weft.simulation.reality import Reality
from weft.simulation.simulated import SimulatedExecutor

STATE = ("status", "attempt", "present", "leaves", "availability", "bandwidth", "running")
LOGS = ("attempt_task", "attempt_on", "attempt_start", "attempt_finish", "attempt_end")
MOVES = ("transfer_item", "transfer_from", "transfer_to", "transfer_sent", "transfer_arrival")
SPECS = [s for s in specs(["heft"]) if s != "ideal[planner=heft]"]  # never in a journal
ANY_LOSSES = RetryPolicy(losses=10**9)


def lived(
    case: Case, spec: str, most: int
) -> tuple[Coordinator, list[Event], list[list[list[Any]]], SimulatedExecutor]:
    """A run up to so many events: what it heard, and what it did after each."""
    strategy, planner = registry.strategy(spec)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, strategy, ANY_LOSSES)
    executor = SimulatedExecutor(case.workflow, case.platform, case.reality)
    driver = Driver(coordinator, planner, executor)
    events, done = list[Event](), list[list[list[Any]]]()
    commands = driver.begin()
    while True:
        done.append(commands_to_dict(commands)["do"])
        driver.perform(commands)
        if coordinator.done or len(events) == most:
            return coordinator, events, done, executor
        event = executor.next_event()
        assert event is not None
        events.append(event)
        commands = driver.hear(event)


def told(
    case: Case, spec: str, events: list[Event], done: list[list[list[Any]]]
) -> tuple[Coordinator, Facts]:
    """A coordinator that knows only the facts."""
    strategy, _ = registry.strategy(spec)
    coordinator = Coordinator(case.workflow, case.platform, case.estimates, strategy, ANY_LOSSES)
    facts = Facts(coordinator)
    for k, commands in enumerate(done):
        if k > 0:
            facts.hear(events[k - 1])
        for command in commands:
            facts.do(command)
    return coordinator, facts


def same_facts(one: Coordinator, other: Coordinator, forgets: bool) -> None:
    x, y = one.state.arrays, other.state.arrays
    n, m = int(x.counts[a.N_ATTEMPTS]), int(x.counts[a.N_TRANSFERS])
    assert (n, m) == (int(y.counts[a.N_ATTEMPTS]), int(y.counts[a.N_TRANSFERS]))
    for count in (a.N_DONE, a.N_REWOUND, a.N_GIVEN_UP):
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
            case.workflow, case.platform, Reality(case.reality.work), coordinator.state
        )
        driver = Driver(coordinator, planner, executor, events=[])
        commands = [] if coordinator.asked is None else driver.settle([coordinator.asked])
        commands += driver.hear(Paused(coordinator.now, False))
        while True:
            driver.perform(commands)
            coordinator.check_state()
            if coordinator.done:
                break
            event = executor.next_event()
            assert event is not None, f"{spec}, seed {seed}: it stands still"
            commands = driver.hear(event)
        assert coordinator.n_done == case.workflow.n_tasks
        finished = record(driver, spec, []).attempts
        again = np.bincount(finished.task[finished.end == a.FINISHED])
        assert (again == 1).all()  # nothing that was done is done again


@pytest.mark.parametrize("spec", ["min-min", "fifo", "slack"])
def test_processors_that_were_added(spec: str) -> None:
    """The arrays has room for them, whatever the strategy."""
    case = random_case(3, quiet=True, n=12)
    first, more = (Platform.build([Processor(f"q{k}") for k in range(n)]) for n in (1, 6))
    small, large = (Estimates(np.ones((12, pf.n_processors))) for pf in (first, more))
    states = []
    for as_facts in (False, True):
        strategy, _ = registry.strategy(spec)
        coordinator = Coordinator(case.workflow, first, small, strategy, ANY_LOSSES)
        new = NewEstimates(0.0, large, more)
        if as_facts:
            facts = Facts(coordinator)
            facts.learn(new)
            facts.decide_again()
        else:
            coordinator.learn(new)
        states.append(coordinator.state.arrays)
    live, taken_up = states
    assert live.burst == taken_up.burst
    for name in ("free_from", "row", "arrival", "running", "queue", "held"):
        assert getattr(live, name).shape == getattr(taken_up, name).shape, name


def test_the_last_task_ends_after_the_facts() -> None:
    """Nothing waits, so no plan is asked for; how long it took is told all the same."""
    case = random_case(5, quiet=True, n=8)
    for most in range(100):
        before, events, done, _ = lived(case, "slack", most)
        if before.done or not (before.state.arrays.status == a.WAITING).any():
            break
    assert not before.done
    coordinator, facts = told(case, "slack", events, done)
    facts.note_plan(coordinator.now, before.plan, judged=False)
    facts.decide_again()
    assert coordinator.asked is None
    attempt = int(coordinator.state.arrays.running.max())
    end = TaskFinished(attempt, coordinator.now + 1, detail={"seconds": 0.5})
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
    assert coordinator.state.arrays.attempt_end[int(done[-1][0][1]) - 1] == a.CANCELLED
    facts.hear(TaskFailed(99, coordinator.now, 1.0))  # never begun
    facts.decide_again()
    coordinator.check_state()


def test_a_journal_that_contradicts_itself() -> None:
    case = random_case(3, quiet=True, n=12)
    _, events, done, _ = lived(case, "fifo", most=2)
    first = next(command for commands in done for command in commands if command[0] == "start")
    coordinator, facts = told(case, "fifo", events, done)
    n = int(coordinator.state.arrays.counts[a.N_ATTEMPTS])
    busy = int(np.flatnonzero(coordinator.state.arrays.running >= 0)[0])
    with pytest.raises(InputError, match="was running there"):
        facts.do(["start", n, 0, busy])
    with pytest.raises(InputError, match="twice"):
        facts.do(first)
    with pytest.raises(InputError, match="unknown was done"):
        facts.do(["dance", 1])
