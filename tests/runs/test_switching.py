"""Blind runs: just in time in the order of `ico`, and by plans once what is left is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.ic import Dag, best_order
from foreplan.model.events import Event
from foreplan.report.data import report_of
from foreplan.report.tables import strategy_of
from foreplan.runs import Outcome, Session
from foreplan.runs.home import RunHome
from foreplan.runs.journal import Contents, read
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent

WIDTH = 12


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    (tmp_path / "data").mkdir()


class Ears(Silent):
    """Keeps what is said, and stops the run after so many events."""

    def __init__(self, after: int | None = None) -> None:
        self.messages: list[str] = []
        self.left = after

    def said(self, message: str) -> None:
        self.messages.append(message)

    def happened(self, session: Session, events: list[Event]) -> None:
        if self.left is not None:
            self.left -= len(events)
            if self.left <= 0 and not session.stopping:
                session.stop()


def stages(rows: int = 2, unlike: bool = False) -> dict[str, Any]:
    """So many tasks of one category, each followed by another of it; the last ones are unlike."""
    tasks: dict[str, Any] = {}
    for i in range(WIDTH):
        for row in range(rows):
            last = unlike and row == rows - 1
            tasks[f"t{row}-{i}"] = {
                "run": f"echo {i} > x{row}-{i}",
                "category": f"last-{i}" if last else "step",
                "inputs": [f"x{row - 1}-{i}"] if row else [],
                "outputs": [f"x{row}-{i}"],
            }
    return {"name": "stages", "tasks": tasks}


def go(tmp_path: Path, workflow: Any, listener: Silent, **options: Any) -> Outcome:
    data = tmp_path / "data"
    return foreplan.run(workflow, "local:2", dir=data, listener=listener, **options)


def checked(outcome: Outcome) -> Contents:
    """The journal, which a fresh coordinator understands in the same way."""
    contents = read(RunHome(outcome.home).journal)
    replayed = replay(contents, outcome.home.parents[2])
    replayed.driver.coordinator.check_state()
    assert replayed.decisions == replayed.journalled
    assert replayed.run().strategy == outcome.run.strategy
    check_run(outcome.run)
    check_run(replayed.run())
    return contents


def test_once_all_that_is_left_is_known(tmp_path: Path) -> None:
    ears = Ears()
    outcome = go(tmp_path, stages(), ears)
    assert outcome.ok
    assert outcome.estimated is None  # of the whole nothing was known
    assert ears.messages == []
    contents = checked(outcome)
    run = outcome.run
    assert run.strategy == "ico, then adaptive"
    switch = next(entry for entry in contents.entries if entry["t"] == "strategy")
    assert switch["strategy"] == "adaptive"
    assert run.planned_from == switch["time"] == run.plan_times[0]
    before = np.count_nonzero(run.attempts.start < run.planned_from)
    assert 4 <= before <= 2 * WIDTH - 4
    order = best_order(Dag.from_workflow(run.workflow))[:2]
    assert run.attempts.task[:2].tolist() == order.tolist()
    report = report_of(RunHome(outcome.home))
    assert report.to_dict()["switched"]["because"] == "every task that is left has a history now"
    told = strategy_of(report)
    assert told.startswith("ico, blind (nothing was known of the times of its tasks), then")
    # the next one knows from the start
    again = go(tmp_path, stages(), Ears(), force=True)
    assert again.run.strategy == "adaptive"
    told = strategy_of(report_of(RunHome(again.home)))
    assert told == "adaptive (something was known of the times of its tasks)"


def test_not_while_something_is_unknown(tmp_path: Path) -> None:
    outcome = go(tmp_path, stages(unlike=True), Ears())
    assert (outcome.ok, outcome.run.strategy, outcome.run.plans) == (True, "ico", ())
    checked(outcome)


@pytest.mark.parametrize("strategy", ["ico", "greedy", "lifo"])
def test_not_if_a_strategy_is_asked_for(tmp_path: Path, strategy: str) -> None:
    outcome = go(tmp_path, stages(), Ears(), strategy=strategy)
    assert (outcome.ok, outcome.run.strategy, outcome.run.plans) == (True, strategy, ())
    checked(outcome)
    assert strategy_of(report_of(RunHome(outcome.home))).endswith("(asked for)")


def test_not_for_the_last_few(tmp_path: Path) -> None:
    few = stages(rows=1)
    few["tasks"] = dict(list(few["tasks"].items())[:6])
    assert go(tmp_path, few, Ears()).run.strategy == "ico"


@pytest.mark.parametrize("after", [1, 8, 15])
def test_stopped_and_gone_on_with(tmp_path: Path, after: int) -> None:
    """Before the change, about then, and after it."""
    workflow = foreplan.load(stages(rows=3))
    outcome = go(tmp_path, workflow, Ears(after))
    assert outcome.status == "stopped"
    outcome = go(tmp_path, workflow, Ears(), resume=outcome.id)
    assert outcome.ok
    assert outcome.run.strategy == "ico, then adaptive"
    checked(outcome)


def test_failures_and_the_change(tmp_path: Path) -> None:
    tasks = stages(rows=3)
    for name, task in tasks["tasks"].items():
        once = f'mkdir "$FOREPLAN_DIR/once-{name}" 2>/dev/null && exit 3; '
        task["run"] = once + task["run"]
    outcome = go(tmp_path, tasks, Ears(), retries=1)
    assert outcome.ok
    assert outcome.run.strategy == "ico, then adaptive"
    checked(outcome)
