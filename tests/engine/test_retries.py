"""How often a task is tried again, by the causes of its failures, and how long it rests before."""

from __future__ import annotations

import math
from typing import Any

import pytest

import foreplan
from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.engine.retries import LONGEST_REST, RetryPolicy
from foreplan.engine.state import TaskState
from foreplan.model import Estimates, Platform, Processor, TaskSpec
from foreplan.model.events import (
    MACHINE_LOST,
    NO_FAULT,
    OWN_FAULT,
    Command,
    Event,
    Paused,
    ProcessorGone,
    RetryDue,
    StartTask,
    TaskFailed,
    TaskFinished,
    WakeAt,
)
from foreplan.whatif.stage import expected_world, twin


class Small:
    """A run of a few tasks, each failing as it is told to."""

    def __init__(
        self, tasks: dict[str, Any], spec: str = "slack", processors: int = 1, **how: Any
    ) -> None:
        named = {name: {"cost": 10, **fields} for name, fields in tasks.items()}
        workflow = foreplan.load({"tasks": named})
        platform = Platform.build([Processor(f"p{k}", "host") for k in range(processors)])
        policy, planner = registry.strategy(spec)
        estimates = Estimates.declared(workflow, platform)
        self.coordinator = Coordinator(workflow, platform, estimates, policy, RetryPolicy(**how))
        self.driver = Driver(self.coordinator, planner)
        self.driver.begin()

    @property
    def running(self) -> list[str]:
        names = self.coordinator.workflow.task_names
        return [names[attempt.task] for attempt in self.coordinator.state.running()]

    def hear(self, event: Event) -> list[Command]:
        commands = self.driver.hear(event)
        self.coordinator.check_state()
        return commands

    def fail(self, task: str, cause: str | None = None, fault: float = OWN_FAULT) -> list[Command]:
        """A second later, an attempt at the task fails."""
        detail = None if cause is None else {"cause": cause}
        attempt = self._attempt(task)
        return self.hear(TaskFailed(attempt, self.coordinator.now + 1, fault, detail=detail))

    def finish(self, task: str) -> list[Command]:
        return self.hear(TaskFinished(self._attempt(task), self.coordinator.now + 1))

    def _attempt(self, task: str) -> int:
        names, running = self.coordinator.workflow.task_names, self.coordinator.state.running()
        [attempt] = [a for a in running if names[a.task] == task]
        return attempt.number


BOTH = pytest.mark.parametrize("spec", ["slack", "fifo", "min-min"])


def test_causes_are_counted_each_for_itself() -> None:
    retry = {"out-of-memory": 2, "time-out": 0}
    run = Small({"a": {"retries": 1, "retry": retry}})
    for cause in ("out-of-memory", "exit", "out-of-memory"):
        run.fail("a", cause)
        assert run.running == ["a"]
    run.fail("a", "killed")  # counts with exit
    assert run.coordinator.given_up == [0]
    again = Small({"a": {"retries": 5, "retry": retry}})
    again.fail("a", "time-out")
    assert again.coordinator.given_up == [0]


def test_a_protected_output_is_not_tried_again() -> None:
    run = Small({"a": {"retries": 5, "retry": {"system": 5}}}, retries=5)
    run.fail("a", "protected")
    assert run.coordinator.given_up == [0]


def test_losses_do_not_count_against_retries() -> None:
    run = Small({"a": {"retries": 1}}, losses=3)
    for _ in range(3):
        run.fail("a", "lost", MACHINE_LOST)
    for _ in range(9):
        run.fail("a", "lost", NO_FAULT)
    run.fail("a", "exit")
    assert run.running == ["a"]
    run.fail("a", "lost", MACHINE_LOST)
    assert run.coordinator.given_up == [0]
    kept = Small({"a": {}}, processors=2, losses=0)
    kept.hear(ProcessorGone(0, 1.0, {"expected": True}))  # it was retired, with what it ran
    assert kept.running == ["a"]
    kept.hear(ProcessorGone(1, 2.0, {"worker": "w"}))
    assert kept.coordinator.given_up == [0]
    said = Small({"a": {"retry": {"lost": 0}}})
    said.fail("a", "lost", MACHINE_LOST)
    assert said.coordinator.given_up == [0]


def test_failures_of_older_journals_have_no_cause() -> None:
    run = Small({"a": {"retries": 1, "retry": {"exit": 0}}})
    run.fail("a")
    assert run.running == ["a"]


@BOTH
def test_others_run_while_a_task_rests(spec: str) -> None:
    tasks = {"a": {"retries": 2, "wait": 30, "outputs": ["x"]}, "b": {"inputs": ["x"]}, "c": {}}
    run = Small(tasks, spec)
    assert run.running == ["a"]
    commands = run.fail("a", "exit")
    due = run.coordinator.now + 30
    assert WakeAt(due, RetryDue) in commands
    assert run.coordinator.state.tasks(TaskState.RESTING).tolist() == [0, 1]
    assert run.running == ["c"]
    run.finish("c")
    assert run.running == []
    assert not run.coordinator.done
    run.hear(RetryDue(due - 1))  # too early: nothing
    assert run.running == []
    commands = run.hear(RetryDue(due))
    assert [c.task for c in commands if isinstance(c, StartTask)] == [0]
    run.finish("a")
    run.finish("b")
    assert run.coordinator.done


def test_each_rest_is_twice_as_long_up_to_an_hour() -> None:
    policy, spec = RetryPolicy(), TaskSpec(wait=10.0)
    assert [policy.rest(spec, k) for k in range(1, 5)] == [10, 20, 40, 80]
    assert policy.rest(spec, 1000) == LONGEST_REST
    assert policy.rest(TaskSpec(wait=7200.0), 5) == 7200
    run, due = Small({"a": {"retries": 3, "wait": 10}}), 0.0
    for rest in (10, 20, 40):
        run.fail("a", "exit")
        due = run.coordinator.state.next_retry()
        assert due == run.coordinator.now + rest
        run.hear(RetryDue(due))
        assert run.running == ["a"]
    run.fail("a", "exit")
    assert run.coordinator.given_up == [0]
    assert run.coordinator.state.next_retry() == math.inf


def test_a_lost_machine_is_no_reason_to_rest() -> None:
    run = Small({"a": {"retries": 3, "wait": 10}})
    run.fail("a", "lost", MACHINE_LOST)
    assert run.running == ["a"]


def test_two_rests_and_the_earlier_comes_first() -> None:
    run = Small({"a": {"retries": 1, "wait": 10}, "b": {"retries": 1, "wait": 5}}, processors=2)
    first = [c for c in run.fail("a", "exit") if isinstance(c, WakeAt)]
    second = [c for c in run.fail("b", "exit") if isinstance(c, WakeAt)]
    assert [c.time for c in first + second] == [11, 7]
    commands = run.hear(RetryDue(7.0))
    assert run.running == ["b"]
    assert WakeAt(11.0, RetryDue) in commands
    run.hear(RetryDue(11.0))
    assert sorted(run.running) == ["a", "b"]


def test_what_rests_is_tried_at_once_when_a_run_is_resumed() -> None:
    run = Small({"a": {"retries": 1, "wait": 50}, "b": {}}, processors=2)
    run.fail("a", "exit")
    run.hear(Paused(run.coordinator.now, True))
    run.finish("b")
    assert run.coordinator.halted
    run.hear(Paused(run.coordinator.now, False))
    assert run.running == ["a"]
    run.fail("a", "exit")  # counted from zero
    assert run.coordinator.given_up == []


@BOTH
def test_what_if_goes_on_with_what_rests(spec: str) -> None:
    tasks = {"a": {"retries": 2, "wait": 30, "outputs": ["x"]}, "b": {"inputs": ["x"]}, "c": {}}
    run = Small(tasks, spec)
    run.fail("a", "exit")
    other = twin(run.coordinator)
    driver = Driver(other, run.driver.planner, executor=expected_world(other))
    driver.drive([])
    assert other.done
    log = other.state.attempt_log(None)
    starts = {int(task): start for task, start in zip(log.task, log.start.tolist(), strict=True)}
    assert starts == {0: 31.0, 1: 41.0, 2: 1.0}
    assert run.coordinator.state.count(TaskState.RESTING) == 2  # it was only tried on a copy
