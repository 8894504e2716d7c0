"""A run is its events: written down, read back and told to a fresh coordinator, it is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan import registry
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import answered
from foreplan.engine.kernels import arrays as a
from foreplan.formats.foreplan_platform import platform_to_dict
from foreplan.formats.foreplan_workflow import workflow_to_dict
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.events import Command, Event, NewPlan, Replan
from repeated import repetitions
from simulation.worlds import Case, random_case, specs

JOURNALS = Path(__file__).parent / "journals"
LOGS = ("attempt_task", "attempt_on", "attempt_start", "attempt_finish", "attempt_end")
MOVES = ("transfer_item", "transfer_from", "transfer_to", "transfer_sent", "transfer_arrival")


def replay(
    workflow: Workflow, platform: Platform, cost: Any, spec: str, events: list[Event]
) -> tuple[Coordinator, list[str]]:
    """Tell the events to a fresh coordinator; with what it commanded, a line for each event."""
    strategy, planner = registry.strategy(spec)
    coordinator = Coordinator(workflow, platform, Estimates(np.array(cost)), strategy)
    lines = [_follow(coordinator, planner, coordinator.begin())]
    for event in events:
        lines.append(_follow(coordinator, planner, coordinator.handle(event)))
    return coordinator, lines


def _follow(coordinator: Coordinator, planner: Any, commands: list[Command]) -> str:
    said = []
    while commands:
        command = commands.pop(0)
        said.append(str(command))
        if isinstance(command, Replan):
            plan = answered(planner, coordinator, command)
            assert plan is not None
            commands += coordinator.handle(NewPlan(command.time, command.version, plan))
    return "; ".join(said)


def facts(coordinator: Coordinator) -> dict[str, list[Any]]:
    """The logs of the arrays, in numbers that JSON keeps."""
    arrays = coordinator.state.arrays
    n, m = int(arrays.counts[a.N_ATTEMPTS]), int(arrays.counts[a.N_TRANSFERS])
    columns = {name: getattr(arrays, name)[:n].tolist() for name in LOGS}
    columns |= {name: getattr(arrays, name)[:m].tolist() for name in MOVES}
    return {k: [v if np.isfinite(v) else str(v) for v in c] for k, c in columns.items()}


@pytest.mark.parametrize("spec", specs(["heft", "dls"]))
def test_replay(spec: str) -> None:
    for seed in repetitions(3, 0.5):
        case = random_case(seed, stops=False)
        run = case.run(spec, by_events=True)
        assert run.events is not None
        text = json.dumps([event.to_dict() for event in run.events])
        events = [Event.from_dict(line) for line in json.loads(text)]
        assert tuple(events) == run.events
        cost = case.reality.work if spec.startswith("ideal") else case.estimates.cost
        coordinator, lines = replay(case.workflow, case.platform, cost, spec, events)
        again, same = replay(case.workflow, case.platform, cost, spec, events)
        assert lines == same
        assert facts(again) == facts(coordinator)
        assert coordinator.done
        n = len(run.attempts.task)
        assert coordinator.state.arrays.counts[a.N_ATTEMPTS] == n
        for name, log in zip(LOGS, ("task", "processor", "start", "finish", "end"), strict=True):
            logged = getattr(coordinator.state.arrays, name)[:n]
            np.testing.assert_array_equal(logged, getattr(run.attempts, log))
        assert tuple(coordinator.evaluations[1:]) == run.evaluations


KEPT = {
    "slack-quiet": ("slack[planner=dls]", {"seed": 4, "quiet": True}),
    "spare-losses": ("spare[planner=heft]", {"seed": 91, "stops": False}),
    "always-losses": ("always[planner=heft]", {"seed": 91, "stops": False}),
}


def journal(case: Case, spec: str) -> dict[str, Any]:
    """Everything that a replay needs, and what it must give."""
    run = case.run(spec, by_events=True)
    assert run.events is not None
    cost = case.estimates.cost
    coordinator, lines = replay(case.workflow, case.platform, cost, spec, list(run.events))
    return {
        "strategy": spec,
        "workflow": workflow_to_dict(case.workflow),
        "platform": platform_to_dict(case.platform),
        "events": [event.to_dict() for event in run.events],
        "commands": lines,
        "facts": facts(coordinator),
    }


@pytest.mark.parametrize("name", KEPT)
def test_kept_journals(name: str) -> None:
    """Journals as they were once written: `python -m engine.test_replay` writes them anew."""
    kept = json.loads((JOURNALS / f"{name}.json").read_text())
    workflow, platform = foreplan.load(kept["workflow"]), foreplan.load_platform(kept["platform"])
    events = [Event.from_dict(line) for line in kept["events"]]
    cost = Estimates.declared(workflow, platform).cost
    coordinator, lines = replay(workflow, platform, cost, kept["strategy"], events)
    assert lines == kept["commands"]
    assert facts(coordinator) == kept["facts"]
    assert coordinator.done


PROGRAM = """
import hashlib, sys
sys.path[:0] = [sys.argv[1]]
from simulation.worlds import random_case, specs
for spec in specs(["heft", "dls"]):
    digest = hashlib.sha256()
    for seed in (1, 2):
        run = random_case(seed, stops=False).run(spec, by_events=seed % 2 == 0)
        digest.update(repr((run.to_dict(), run.evaluations, run.plan_times)).encode())
        for log in (run.attempts, run.transfers, *run.plans):
            for value in vars(log).values():
                digest.update(value.tobytes() if hasattr(value, "tobytes") else b"")
    print(spec, digest.hexdigest())
"""


def test_the_same_under_every_hash_seed() -> None:
    tests = str(Path(__file__).parents[1])
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, tests],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        for seed in ("0", "1")
    ]
    first, second = (process.communicate()[0] for process in running)
    assert all(process.returncode == 0 for process in running)
    assert first == second
    assert len(first.splitlines()) == len(specs(["heft", "dls"]))


def write_journals() -> None:
    """Write the kept journals anew; say why in the commit."""
    for name, (spec, world) in KEPT.items():
        case = random_case(**world)  # type: ignore[arg-type]
        # a file may number the items otherwise
        workflow = foreplan.load(workflow_to_dict(case.workflow))
        content = journal(Case(workflow, case.platform, case.reality), spec)
        (JOURNALS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    write_journals()
