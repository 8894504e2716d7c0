"""Slack, spare time and critical tasks, of plans and of runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import foreplan
from charts.schedules import random_schedule
from foreplan.errors import InputError
from foreplan.model import ENDS
from foreplan.scheduling.critical import arrivals_of, spans_of_plan
from foreplan.scheduling.margins import _between, margins, margins_of_attempts
from foreplan.scheduling.slack import slack_and_spare

WORKFLOW = {
    "tasks": {"a": {"cost": 2}, "b": {"cost": 5}, "c": {"cost": 1}, "d": {"cost": 1}},
    "edges": [["a", "b", 0], ["a", "c", 0], ["b", "d", 0], ["c", "d", 0]],
}
TWO = {"processors": {"p": {"host": "h"}, "q": {"host": "h"}}}
ANY = np.zeros(0, dtype=np.int32)


def test_of_a_plan() -> None:
    late = foreplan.margins(foreplan.plan(foreplan.load(WORKFLOW), foreplan.load_platform(TWO)))
    assert late.slack.tolist() == late.spare.tolist() == [0, 0, 4, 0]
    assert late.critical.tolist() == [True, True, False, True]
    assert [step.task for step in late.path] == [0, 1, 3]
    assert late.in_words(("a", "b", "c", "d")) == "a -> b -> d; no slack: 3 of 4 tasks"


@pytest.mark.parametrize("seed", range(20))
def test_two_readings_agree(seed: int) -> None:
    """What is told of runs, asked of a plan, is what the kernel says of it."""
    schedule = random_schedule(40, 4, per_host=1 + seed % 2, seed=seed)
    slack, spare = _between(spans_of_plan(schedule), arrivals_of(schedule), (ANY, ANY))
    by_kernel = slack_and_spare(schedule)
    assert np.allclose(slack, by_kernel[0], atol=1e-9)
    assert np.allclose(spare, by_kernel[1], atol=1e-9)
    late = margins(schedule)
    assert (late.spare <= late.slack).all()
    assert late.critical[[step.task for step in late.path]].all()


def test_what_has_slack_may_be_that_late() -> None:
    """A run in which one task takes longer by its slack ends as planned, by more it ends later."""
    wf, pf = foreplan.load(WORKFLOW), foreplan.load_platform(TWO)
    late = foreplan.margins(foreplan.plan(wf, pf))
    for task, name in enumerate(wf.task_names):
        for more, ends in ((0.0, 8.0), (1.0, 9.0)):
            slower = {n: dict(t) for n, t in WORKFLOW["tasks"].items()}  # type: ignore[attr-defined]
            slower[name]["cost"] += late.slack[task] + more
            run = foreplan.plan(foreplan.load({**WORKFLOW, "tasks": slower}), pf)
            assert run.makespan == ends


def test_of_a_run_as_it_was() -> None:
    """Without surprises a run has the slack of its plan; with them it is that of what happened."""
    wf, pf = foreplan.load(WORKFLOW), foreplan.load_platform(TWO)
    calm = foreplan.margins(foreplan.simulate(wf, pf, strategy="static", qoi=0))
    assert calm.slack.tolist() == [0, 0, 4, 0]
    assert [step.task for step in calm.path] == [0, 1, 3]
    run = foreplan.simulate(wf, pf, strategy="static", qoi=0.5, seed=3)
    late, log = foreplan.margins(run), run.attempts
    b, c = (log.finish[log.task == task].item() for task in (1, 2))
    assert late.slack[2] == pytest.approx(b - c)


def test_one_that_was_cut_short_is_as_late_as_the_next() -> None:
    wf, pf = foreplan.load(WORKFLOW), foreplan.load_platform(TWO)
    lost = {"failures": {"p": 3}}
    run = foreplan.simulate(wf, pf, world=lost)
    assert run.failed_attempts == 1
    late = margins_of_attempts(run)
    again = [int(k) for k in np.flatnonzero(run.attempts.task == 1)]
    assert len(late.slack) == 5
    assert late.slack[again[0]] == late.slack[again[1]] == 0


def test_a_run_that_did_not_everything() -> None:
    wf, pf = foreplan.load(WORKFLOW), foreplan.load_platform(TWO)
    run = foreplan.simulate(wf, pf)
    failed = replace(run.attempts, end=np.full(4, ENDS.index("failed"), dtype=np.int32))
    with pytest.raises(InputError, match="4 tasks of 4 not done"):
        foreplan.margins(replace(run, attempts=failed))
