"""The validators can fail on what only GTP does: forgotten copies, dropped transfers, restarts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from checks.known_runs import attempts, calm, transfers, without
from foreplan.checks.runs import InvalidRunError, check_run
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InvalidScheduleError
from foreplan.model import (
    ENDS,
    Attempts,
    Estimates,
    Freedom,
    Platform,
    Processor,
    Run,
    Schedule,
    Situation,
    Workflow,
)
from foreplan.model.events import Woken
from simulation.adapting import figure_2
from simulation.worlds import random_case

CANCELLED, FINISHED = ENDS.index("cancelled"), ENDS.index("finished")


@cache
def forgetful() -> Run:
    """Transfers 2, 3, ...: v1's result to p4, forgotten at 40, and again at 60; see figure 2."""
    run = figure_2().run("gtp[period=20]")
    assert run.transfers.item.tolist() == [0, 2, 2, 3, 2, 3]
    assert run.transfers.forgotten.tolist()[1:] == [40.0, 60.0, 60.0, np.inf, np.inf]
    return run


def refused(run: Run, message: str | None = None) -> None:
    with pytest.raises(InvalidRunError, match=message):
        check_run(run)


def test_what_is_forged_here_is_valid_before() -> None:
    check_run(forgetful())
    assert np.isinf(forgetful().transfers.arrival[2])  # dropped on the way
    assert forgetful().transfers.arrival[[1, 3]].tolist() == [31.0, 55.0]


def test_a_copy_that_was_forgotten_is_no_input() -> None:
    refused(without(forgetful(), "transfers", 4), "'v3' starts at 70 on 'p4' without its input")


def test_nor_can_it_be_sent() -> None:
    """p2 was sent v2's result, but nobody there wanted it after 60."""
    forged = transfers(forgetful(), 5, source=1, sent=61.0, arrival=91.0)
    refused(forged, "from 'p2' to 'p4' is sent at 61, when it is not there")


def test_before_it_is_forgotten_it_need_not_be_sent_again() -> None:
    forged = transfers(forgetful(), 1, forgotten=np.inf)
    refused(forged, "from 'p1' to 'p4' is sent at 60, but is there since 31")


def test_a_transfer_that_is_dropped_must_be_forgotten() -> None:
    refused(transfers(forgetful(), 2, forgotten=np.inf), "never arrives, but no host was lost")


def test_a_transfer_that_came_was_not_dropped_before() -> None:
    refused(transfers(forgetful(), 3, forgotten=50.0))


def test_only_a_new_plan_forgets() -> None:
    refused(transfers(forgetful(), 1, forgotten=43.0))
    refused(transfers(calm(), 0, forgotten=29.0))


def test_nothing_is_forgotten_before_it_is_sent_nor_at_no_time() -> None:
    for time in (20.0, np.nan, -np.inf):
        refused(transfers(forgetful(), 1, forgotten=time))


def with_attempt(run: Run, at: int, **values: Any) -> Run:
    """The run with one attempt more."""
    log = run.attempts
    columns: dict[str, Any] = {
        name: np.insert(getattr(log, name), at, value) for name, value in values.items()
    }
    return replace(run, attempts=replace(log, **columns))


def test_only_a_new_plan_cancels() -> None:
    """w was stopped after a second on p0, for nothing, and begun again there."""
    run = attempts(calm(), 3, start=31.0, finish=35.0)
    row = {"task": 3, "processor": 0, "start": 30.0, "finish": 31.0, "end": CANCELLED, "work": 4.0}
    refused(with_attempt(run, 3, **row))


@cache
def restless() -> Run:
    """A run in which something that ran was moved."""
    for seed in range(60):
        run = random_case(seed, losses=False, stops=False).run("gtp[period=100]")
        if run.restarts and (run.attempts.finish > run.attempts.start)[moved(run)].any():
            return run
    raise AssertionError("no such run")


def moved(run: Run) -> Any:
    return np.flatnonzero(run.attempts.end == CANCELLED)


def test_restarts() -> None:
    """What was cancelled did not finish, and did not run on."""
    run, a = restless(), restless().attempts
    check_run(run)
    for k in moved(run).tolist():
        refused(attempts(run, k, end=FINISHED), "was finished 2 times")
        refused(attempts(run, k, end=ENDS.index("failed")), "did not go then")
        if a.start[k] < a.finish[k]:
            refused(attempts(run, k, processor=(a.processor[k] + 1) % 2 + 10), "has no meaning")
            refused(attempts(run, k, finish=a.finish[k] + 1e4), "overlap|did .* of work")


def plan_of(task_on: int, start: float, finish: float) -> tuple[Schedule, Situation]:
    """One task, which runs on p0 since 0 and was to take 10; it is 4 now."""
    workflow = Workflow.from_items("w", ["t"], [10.0], [])
    platform = Platform.build([Processor("p0"), Processor("p1")])
    attempt = Attempts(np.array([0]), np.array([0]), np.zeros(1), np.array([np.nan]))
    estimates = Estimates.declared(workflow, platform)
    situation = Situation(workflow, platform, estimates, now=4.0, attempts=attempt)
    columns = np.array([task_on]), np.array([start]), np.array([finish])
    return Schedule("forged", workflow, platform, *columns), situation


def test_a_running_task_is_moved_only_where_that_is_allowed() -> None:
    elsewhere = plan_of(1, 4.0, 14.0)
    check_schedule(*elsewhere, Freedom.RESTART)
    for freedom in ((), (Freedom.NOT_STARTED,)):
        with pytest.raises(InvalidScheduleError, match="has begun, but"):
            check_schedule(*elsewhere, *freedom)


@pytest.mark.parametrize(
    ("on", "start", "finish", "message"),
    [
        (1, 4.0, 10.0, "takes 6"),  # its work does not come along
        (1, 3.0, 13.0, "before now"),
        (0, 4.0, 14.0, "has begun, but"),  # where it runs it is not begun again
        (0, 0.0, 9.0, "has begun, but"),
    ],
)
def test_a_restart_begins_from_scratch(on: int, start: float, finish: float, message: str) -> None:
    with pytest.raises(InvalidScheduleError, match=message):
        check_schedule(*plan_of(on, start, finish), Freedom.RESTART)


def test_what_is_done_is_never_moved() -> None:
    plan, situation = plan_of(1, 4.0, 14.0)
    done = replace(situation.attempts, finish=np.array([3.5]))
    with pytest.raises(InvalidScheduleError, match="has begun, but"):
        check_schedule(plan, replace(situation, attempts=done), Freedom.RESTART)


def test_a_wake_is_no_change_of_the_machines() -> None:
    event = Woken(forgetful().changes[0].time)
    refused(replace(forgetful(), changes=(event,)), "cannot have happened")
