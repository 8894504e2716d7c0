"""Measured times of tasks that may take several widths: known as of the smallest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.policies.planned import Static
from foreplan.history.records import History, Origin
from foreplan.history.repository import Repository
from foreplan.model import Estimates, Platform, Processor
from foreplan.report.data import report_of
from foreplan.runs.estimates import Estimating, Learner
from foreplan.runs.home import RunHome
from foreplan.whatif.stage import of_run

LONG = 0.8  # seconds on one core
SLEEP = "case $FOREPLAN_CORES in 1) sleep 0.8;; 2) sleep 0.4;; 4) sleep 0.2;; esac"
TASK = {"run": SLEEP, "cores": [1, 2, 4], "parallel": 1.0}


def test_the_next_plan_expects_what_was_measured(data: Path) -> None:
    source: Any = {"name": "w", "tasks": {"a": TASK}}
    wide = foreplan.run(source, "local:4", dir=data)
    assert wide.run.attempts.width(0) == 4
    narrow = foreplan.run(source, "local:1", dir=data, force=True)
    with Repository() as repository:
        known = [task.seconds for task in repository.tasks()]
    assert known == pytest.approx([4 * wide.measured[0], narrow.measured[0]])  # one unit for both
    least, most = 0.99 * min(known), 1.01 * max(known)
    expected = foreplan.estimate(foreplan.load(source), on="local:4", dir=data)
    assert least <= expected.estimates.cost.min() <= expected.estimates.cost.max() <= most
    plan = foreplan.plan(foreplan.load(source), expected.platform, estimates=expected.estimates)
    assert least / 4 <= plan.makespan <= most / 4
    again = foreplan.run(source, "local:4", dir=data, force=True)
    assert least / 4 <= report_of(RunHome(again.home)).times[0].expected <= most / 4
    # without the history, by the run's own journal
    stage = of_run(RunHome(again.home), use_history=False)
    told = stage.coordinator.estimates.cost[0].tolist()
    assert told == pytest.approx([4 * again.measured[0]] * 4)


def test_the_pace_is_by_what_was_expected_on_as_many_cores() -> None:
    workflow = foreplan.load({"name": "w", "tasks": {"a": TASK}})
    platform = Platform.build([Processor(f"p{k}", "h") for k in range(4)])
    estimates = Estimates(np.full((1, 4), LONG), Estimates.declared(workflow, platform).needs)
    coordinator = Coordinator(workflow, platform, estimates, Static())
    assert coordinator.state.share_of(0) == 1.0  # nothing has begun
    origin, learner = Origin.of(workflow, Path()), Learner(None, print)
    estimating = Estimating(workflow, "", origin, [""], History(), learner)
    estimating._estimates = estimates

    class Machines:
        def machine(self, processor: int) -> str:
            return "m"

    machines: Any = Machines()
    assert estimating.observe(0, 0, {"seconds": LONG / 4}, machines, 0.25) == LONG / 4
    assert estimating.pace == pytest.approx(1.0)
    assert learner.tasks[0].seconds == LONG
