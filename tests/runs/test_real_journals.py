"""Real runs, replayed: what was heard leads to the same plans and decisions, bit for bit."""

from __future__ import annotations

import os
import random
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from chaos.runs import limited
from foreplan import registry
from foreplan.checks.runs import check_run
from foreplan.engine.coordinator import Coordinator
from foreplan.engine.driver import Driver
from foreplan.model import Evaluation, Workflow
from foreplan.model.events import Command, Event, Heard, NewPlan, Replan, TaskFinished
from foreplan.runs import Outcome, Session
from foreplan.runs.entries import Header, commands_to_dict, entry_from_dict, entry_to_dict
from foreplan.runs.journal import Contents, read
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent
from foreplan.simulation.reality import Reality
from foreplan.simulation.simulate import simulate_run
from runs.kept import JOURNALS, keep

STRATEGIES = ("static", "slack", "spare", "always[planner=heft]", "slack[planner=dls]", "fifo")


class Plans:
    """A recorder that keeps the plans."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self.pending = ()

    def note_heard(self, entry: Heard) -> None:
        if isinstance(entry, NewPlan):
            self.made.append({**entry_to_dict(entry), "seconds": None})

    def note_judged(self, evaluation: Evaluation) -> None:
        pass

    def sync(self, commands: list[Command]) -> None:
        raise AssertionError("nothing is performed here")


@dataclass
class Anew(Driver):
    """Plans are made anew; how long the planner took then is a fact that the run went by."""

    seconds: list[float] = field(default_factory=list)

    def answer(self, asked: Replan) -> NewPlan:
        return replace(super().answer(asked), seconds=self.seconds.pop(0))


def decided_anew(contents: Contents, directory: Path) -> tuple[list[Any], list[Any]]:
    """The decisions and plans of a fresh coordinator and planner that hear the journal's events."""
    header = Header.from_dict(contents.header, directory)
    policy, planner = registry.strategy(header.strategy)
    coordinator = Coordinator(
        header.workflow,
        header.platform,
        header.estimates,
        policy,
        header.options.retry_policy(),
        header.rest,
    )
    plans, decisions = Plans(), []
    took = [entry["seconds"] for entry in contents.entries if entry["t"] == "plan"]
    driver = Anew(coordinator, planner, recorder=plans, seconds=took)
    said = driver.begin()
    for content in contents.entries:
        if content["t"] in ("event", "estimates"):
            said += driver.hear(entry_from_dict(content, header.workflow, coordinator.platform))
        elif content["t"] == "commands":
            decisions.append(commands_to_dict(said))
            said = []
        elif content["t"] == "resumed":
            said = []  # what was not on disk before the end of a session was not done
    coordinator.check_state()
    return decisions, plans.made


def check_same(contents: Contents, directory: Path) -> None:
    """The decisions and plans of the journal are those that are made anew."""
    assert contents.damage is None
    decisions, plans = decided_anew(contents, directory)
    taken = [entry for entry in contents.entries if entry["t"] == "commands"]
    assert taken
    assert decisions == taken
    followed = [{**e, "seconds": None} for e in contents.entries if e["t"] == "plan"]
    assert plans == followed
    replayed = replay(contents, directory)  # with the plans as they were
    assert replayed.decisions == replayed.journalled == taken
    check_run(replayed.run())


def commands(n: int, seed: int, fails: bool = True) -> Workflow:
    """Commands that take some milliseconds, not what they declare; some fail at first."""
    rng = random.Random(seed)
    tasks: dict[str, Any] = {}
    for i in range(n):
        some = sorted(rng.sample(range(i), min(i, rng.choice((0, 1, 2, 3)))))
        once = f'mkdir "$FOREPLAN_DIR/once-{i}" 2>/dev/null && exit 3; '
        run = once if fails and rng.random() < 0.15 else ""
        tasks[f"t{i}"] = {
            "run": f"{run}sleep {rng.uniform(0, 0.03):.3f}; echo {i} > x{i}",
            "cost": round(rng.uniform(0.005, 0.03), 3),
            "inputs": [f"x{k}" for k in some],
            "outputs": [f"x{i}"],
        }
    return foreplan.load({"name": "real", "tasks": tasks})


def run_locally(
    directory: Path, workflow: Workflow, strategy: str, **options: Any
) -> tuple[Outcome, Contents]:
    with limited(60):
        outcome = foreplan.run(
            workflow, "local:3", strategy, dir=directory, use_history=False, retries=1, **options
        )
    return outcome, read(outcome.home / "journal.jsonl")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_local(tmp_path: Path, strategy: str) -> None:
    outcome, contents = run_locally(tmp_path, commands(40, seed=3), strategy)
    assert outcome.ok
    failed = [e for e in contents.entries if e.get("kind") == "task_failed"]
    assert failed
    check_same(contents, tmp_path)


class Stopper(Silent):
    """Presses Ctrl-C, as it were, after so many events."""

    def __init__(self, after: int) -> None:
        self.left = after

    def happened(self, session: Session, events: list[Event]) -> None:
        self.left -= len(events)
        if self.left <= 0 and not session.stopping:
            session.stop()


@pytest.mark.parametrize("strategy", ["slack", "always[planner=heft]", "fifo"])
def test_stopped_and_resumed(tmp_path: Path, strategy: str) -> None:
    workflow = commands(40, seed=4)
    outcome, contents = run_locally(tmp_path, workflow, strategy, listener=Stopper(after=12))
    assert outcome.status == "stopped"
    (tmp_path / "x0").unlink(missing_ok=True)  # is made again, if it was there and is needed
    while not outcome.ok:
        outcome, contents = run_locally(
            tmp_path, workflow, strategy, listener=Stopper(after=25), resume=outcome.id
        )
    assert [e for e in contents.entries if e["t"] == "resumed"]
    check_same(contents, tmp_path)


@pytest.mark.parametrize(
    "strategy", ["static", "slack", "always[planner=heft]", "static[planner=dls]"]
)
def test_the_same_in_simulation(tmp_path: Path, strategy: str) -> None:
    """In a world that takes as long as the real one did, the same strategy sets out the same."""
    outcome, contents = run_locally(tmp_path, commands(40, seed=5, fails=False), strategy)
    header = Header.from_dict(contents.header, tmp_path)
    log, last = outcome.run.attempts, outcome.run.final_attempts()
    took = (log.finish - log.start)[last]
    reality = Reality(np.repeat(took[:, None], header.platform.n_processors, axis=1))
    policy, planner = registry.strategy(strategy)
    simulated = simulate_run(
        header.workflow, header.platform, header.estimates, policy, planner, reality
    )
    for name in ("processor", "start", "finish"):
        first, real = (getattr(run.plans[0], name) for run in (simulated, outcome.run))
        np.testing.assert_array_equal(first, real)
    if strategy.startswith("static"):
        again = simulated.final_attempts()
        chosen = simulated.attempts.processor[again]
        np.testing.assert_array_equal(chosen, log.processor[last])
        for p in range(header.platform.n_processors):  # and in the same order on each
            orders = [
                record.attempts.task[record.attempts.processor == p]
                for record in (simulated, outcome.run)
            ]
            np.testing.assert_array_equal(*orders)


def run_on_dask(directory: Path, workers: int, strategy: str, kill: bool) -> Contents:
    """Functions on a small cluster, of which a worker may die."""
    from foreplan_benchmarks.dask_cluster import cluster

    def add(milliseconds: float, *others: float) -> float:  # an inner function travels whole
        time.sleep(milliseconds / 1000)
        return milliseconds + sum(others)

    rng, flow = random.Random(6), foreplan.Flow("real")
    tasks: list[Any] = []
    for i in range(24):
        some = rng.sample(tasks, min(i, rng.choice((0, 1, 2))))
        tasks.append(flow.task(add, rng.uniform(1, 40), *some, cost=0.02))
    with limited(60), cluster([1.0] * workers) as client:
        pids = list(client.run(os.getpid).values())
        listener = Murderer(pids[0], after=6) if kill else Silent()
        outcome = foreplan.run(
            flow, client, strategy, dir=directory, use_history=False, listener=listener
        )
    assert outcome.ok, outcome.failures
    return read(outcome.home / "journal.jsonl")


class Murderer(Silent):
    """Kills a worker after so many finished tasks."""

    def __init__(self, pid: int, after: int) -> None:
        self.pid, self.left = pid, after

    def happened(self, session: Session, events: list[Event]) -> None:
        before = self.left
        self.left -= sum(isinstance(event, TaskFinished) for event in events)
        if self.left <= 0 < before:
            os.kill(self.pid, 9)


def test_dask(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    contents = run_on_dask(tmp_path, 2, "slack", kill=True)
    assert [e for e in contents.entries if e.get("kind") == "gone"]
    check_same(contents, tmp_path)


@pytest.mark.parametrize("name", ["real-local", "real-dask"])
def test_kept(tmp_path: Path, name: str) -> None:
    """Real journals as they once were: `python -m runs.test_real_journals` makes new ones."""
    check_same(read(JOURNALS / f"{name}.jsonl"), tmp_path)


def write_journals() -> None:
    """Make new journals to keep; say why in the commit."""
    with tempfile.TemporaryDirectory() as folder:
        local, dask = Path(folder, "local"), Path(folder, "dask")
        local.mkdir()
        dask.mkdir()
        keep("real-local", run_locally(local, commands(24, seed=2), "slack")[1], local)
        keep("real-dask", run_on_dask(dask, 2, "always[planner=heft]", kill=True), dask)


if __name__ == "__main__":
    write_journals()
