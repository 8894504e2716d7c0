"""Real runs with a budget or a deadline, of tasks that claim ten seconds and take none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import foreplan
from chaos.runs import limited
from foreplan.model.events import Event, TaskFinished
from foreplan.runs import Outcome, Session
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.replay import Replayed, replay
from foreplan.runs.session import Silent
from runs.people import waiting

TEN = {"run": "true", "cost": 10.0}


def after_long(n: int) -> dict[str, Any]:
    """A task of one second that waits for a file, and n of ten seconds that wait for it."""
    tasks = {"long": waiting()} | {f"t{k}": TEN for k in range(n)}
    return {"name": "late", "tasks": tasks, "edges": [["long", f"t{k}"] for k in range(n)]}


def replayed(outcome: Outcome) -> Replayed:
    """The run by its journal: the same is decided."""
    found = replay(read(RunHome(outcome.home).journal), outcome.home.parents[2])
    assert found.decisions == found.journalled
    tracker, run = found.driver.coordinator.tracker, outcome.run
    assert tracker.budget == run.budget
    assert tracker.over_at == run.over_budget_at or math.isnan(run.over_budget_at)
    return found


def go(work: dict[str, Any], data: Path, somebody: Silent | None = None, **more: Any) -> Outcome:
    with limited(90):
        return foreplan.run(work, dir=data, use_history=False, listener=somebody, **more)


class Stopper(Silent):
    """Stops the run after its first task; the second of a chain waits for that."""

    def happened(self, session: Session, events: list[Event]) -> None:
        if any(isinstance(event, TaskFinished) for event in events):
            session.stop()
            (RunHome(session.recorder.journal.path.parent).data / "stopped").touch()


def chain(n: int) -> dict[str, Any]:
    """One after the other; the second waits until the run is being stopped."""
    until_stopped = TEN | {"run": waiting("stopped")["run"]}
    tasks = {f"t{k}": until_stopped if k == 1 else TEN for k in range(n)}
    return {"name": "t", "tasks": tasks, "edges": [[f"t{k}", f"t{k + 1}"] for k in range(n - 1)]}
