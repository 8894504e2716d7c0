"""Runs of real workflows in which one processor after the other dies: all finish, all are valid.

A few scenarios here; FOREPLAN_FAILURE_SCENARIOS=1000 runs as many, each with all four strategies.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.formats import load
from foreplan.model import Estimates, Link, Platform, Processor, Run, Situation, Workflow
from foreplan.model.events import ProcessorGone
from foreplan.simulation.reality import draw
from foreplan.simulation.scenario import Scenario
from foreplan.simulation.scenarios import with_scenario
from foreplan.simulation.simulate import simulate_run

TRACES = sorted((Path(__file__).parents[3] / "shared" / "workflows").glob("*.json"))
SCENARIOS = int(os.environ.get("FOREPLAN_FAILURE_SCENARIOS", "8"))
LARGEST = 1200 if SCENARIOS > 8 else 300  # tasks
STRATEGIES = ["gtp", "gtp/c", "gtp/r", "gtp/c/r"]

pytestmark = pytest.mark.skipif(not TRACES, reason="there are no workflows in a shared folder")


@cache
def workflows() -> list[Workflow]:
    """Those of the shared folder that are not too large."""
    loaded = (load(path, resources=False) for path in TRACES)
    return [workflow for workflow in loaded if workflow.n_tasks <= LARGEST]


def platform(rng: np.random.Generator, workflow: Workflow) -> Platform:
    """2 to 8 processors, some on one host, and links on which data take as long as tasks do."""
    count = int(rng.integers(2, 9))
    shared = bool(rng.random() < 0.3)
    processors = [
        Processor(f"p{i}", f"h{i // 2}" if shared else None, float(rng.uniform(0.5, 2)))
        for i in range(count)
    ]
    data, work = float(workflow.item_size.sum()), float(workflow.base_cost.sum())
    ccr = float(rng.choice([0.1, 0.5, 1.5]))
    return Platform.build(processors, Link(ccr * work / max(data, 1.0), 0.01))


def failing(number: int) -> tuple[list[Run], int]:
    """One scenario, run with all four strategies; and how many processors were to die."""
    rng = np.random.default_rng([number, 77])
    workflow = workflows()[number % len(workflows())]
    machines = platform(rng, workflow)
    deaths = int(rng.integers(1, machines.n_processors))
    again = 0.3 if rng.random() < 0.3 else 0.0
    estimates = Estimates.declared(workflow, machines)
    planned = registry.planner("gtp").plan(Situation.at_start(workflow, machines)).makespan
    variability = float(rng.choice([0.0, 0.4, 0.8]))
    scenario = Scenario(variability, 2.0, deaths, again, 0.2 * planned if again else float("inf"))
    world = draw(workflow, machines, estimates, 0.3, number)
    world = with_scenario(world, machines, scenario, planned, number)
    runs = []
    for spec in STRATEGIES:
        policy, planner = registry.strategy(spec)
        run = simulate_run(workflow, machines, estimates, policy, planner, world)
        check_run(run, estimates)
        runs.append(run)
    return runs, deaths


@pytest.mark.parametrize("part", range(4))
def test_all_finish_and_are_valid(part: int) -> None:
    died = rewound = 0
    for number in range(part, SCENARIOS, 4):
        runs, deaths = failing(number)
        for run in runs:
            assert (run.final_attempts() >= 0).all()
            died += sum(isinstance(e, ProcessorGone) for e in run.changes)
            rewound += run.rewound
        assert deaths >= 1
    assert died
    if SCENARIOS > 100:
        assert rewound
