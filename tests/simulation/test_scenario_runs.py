"""Runs in drawn scenarios: valid and alike in both gears, with a world file, and bad options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import InputError, PlanningError
from foreplan.model import Platform
from foreplan.model.events import SpeedChanged
from foreplan.model.platform import Processor
from foreplan.simulation.scenario import MOST_EVENTS
from repeated import repetitions
from simulation.worlds import same_record
from twins.situations import random_instance

STRATEGIES = ("static", "slack", "always", "aheft", "spare[planner=dls]", "fifo", "min-min")
SCENARIOS: list[dict[str, Any]] = [
    {"variability": 0.4},
    {"failures": 1},
    {"variability": 0.9, "failures": 1, "return_after": 3.0},
    {"variability": 0.3, "event_rate": 40.0, "failure_rate": 0.3, "return_after": 2.0},
    {"failure_rate": 2.0},
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("options", SCENARIOS, ids=str)
def test_runs_are_valid_and_alike_in_both_gears(options: dict[str, Any], strategy: str) -> None:
    happened = 0
    for seed in repetitions(5):
        rng = np.random.default_rng(seed)
        workflow, platform = random_instance(rng, changes=seed % 3 == 0)
        if platform.n_processors < 2:
            continue
        try:
            natively, by_events = (
                foreplan.simulate(
                    workflow, platform, strategy, qoi=0.2, seed=seed, by_events=gear, **options
                )
                for gear in (False, True)
            )
        except PlanningError:
            continue  # machines leave before anything can be done
        check_run(natively)
        check_run(by_events)
        same_record(natively, by_events)
        assert natively.makespan == by_events.makespan
        happened += len(natively.changes)
    assert happened > 0


WORKFLOW = {
    "tasks": {f"t{i}": {"cost": 2 + i % 3} for i in range(20)},
    "edges": [[f"t{i // 2}", f"t{i}", 1] for i in range(2, 20)],
}


PLATFORM = Platform.build([Processor(f"p{i}", host=f"h{i}") for i in range(3)])


def test_the_same_scenario_for_every_strategy_and_any_durations() -> None:
    workflow, platform = foreplan.load(WORKFLOW), PLATFORM
    options: dict[str, Any] = {"variability": 0.5, "failures": 1, "seed": 4}
    runs = [
        foreplan.simulate(workflow, platform, s, **options) for s in ("static", "aheft", "fifo")
    ]
    runs.append(foreplan.simulate(workflow, platform, "static", qoi=0.5, **options))
    shortest = min(runs, key=lambda run: len(run.changes)).changes
    assert len(shortest) > 20
    assert all(run.changes[: len(shortest)] == shortest for run in runs)
    exact = foreplan.simulate(workflow, platform, qoi=0.5, seed=4)
    varied = foreplan.simulate(workflow, platform, qoi=0.5, **options)
    assert varied.makespan > exact.makespan
    first = varied.attempts.task == exact.attempts.task[0]
    assert varied.attempts.work[first][0] == exact.attempts.work[0]  # the durations are the same


def test_a_world_may_give_the_rest() -> None:
    workflow, platform = foreplan.load(WORKFLOW), PLATFORM
    slow = foreplan.simulate(
        workflow, platform, world={"durations": {"t1": 100.0}}, variability=0.2, failures=1
    )
    check_run(slow)
    speeds = [event.time for event in slow.changes if isinstance(event, SpeedChanged)]
    assert speeds[-1] > 0.9 * slow.makespan  # they go on, though the plan was far shorter
    foreplan.simulate(workflow, platform, world={"failures": {"p0": 3}}, variability=0.2)
    foreplan.simulate(workflow, platform, world={"availability": {"p0": [[0, 0.5]]}}, failures=1)
    clashes: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"availability": {"p0": [[1, 0.5]]}}, {"variability": 0.1}, "availability"),
        ({"bandwidth": [["h0", "h1", [[1, 0.5]]]]}, {"variability": 0.1}, "bandwidth"),
        ({"failures": {"p0": 3}}, {"failures": 1}, "failures"),
        ({"failures": {"p0": 3}}, {"failure_rate": 0.1}, "failures"),
        ({"leaving": {"p0": [3, 4]}}, {"failures": 1}, "leaving"),
    ]
    for world, options, place in clashes:
        with pytest.raises(InputError, match="leave one of them out") as caught:
            foreplan.simulate(workflow, platform, world=world, **options)
        assert caught.value.place == place


BAD: list[tuple[dict[str, Any], str]] = [
    ({"variability": 1.0}, "variability must be from 0 to below 1, not 1"),
    ({"variability": -0.1}, "variability"),
    ({"variability": math.nan}, "variability"),
    ({"event_rate": -1.0}, "event rate"),
    ({"event_rate": math.inf}, "event rate"),
    ({"failures": -1}, "number of failures"),
    ({"failures": 1.5}, "number of failures must be a whole number"),
    ({"failure_rate": math.nan}, "failure rate"),
    ({"failures": 1, "return_after": 0.0}, "return after a failure must be more than 0"),
    ({"return_after": 5.0}, "give a number of failures, or a failure rate"),
    ({"failures": 3}, "3 of 3 processors cannot fail.* at most 2"),
    ({"variability": 0.1, "event_rate": MOST_EVENTS}, "the event rate makes for .* lower"),
    ({"failure_rate": MOST_EVENTS}, "the failure rate makes for .* lower"),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=str)
def test_bad_options(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        foreplan.simulate(foreplan.load(WORKFLOW), PLATFORM, **options)
