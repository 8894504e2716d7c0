"""Runs by GTP that are resumed: rescheduling points come again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import foreplan
from chaos.runs import limited
from foreplan.model import Evaluation
from foreplan.model.events import Event, TaskFinished
from foreplan.runs import Outcome, Session
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent
from runs.people import checked, waiting

POINT = "rescheduling point"
STRATEGY = "gtp/c/r[period=0.05]"


def held(n: int) -> dict[str, Any]:
    """Tasks that each wait for a file of their own."""
    return {"name": "held", "tasks": {f"t{k}": waiting(f"go{k}") for k in range(n)}}


def plans_at_points(evaluations: Sequence[Evaluation]) -> list[float]:
    """When plans were taken at rescheduling points; after one that took long there are none."""
    return [e.time for e in evaluations if e.reason == POINT and e.taken]


class Points(Silent):
    """Opens the gates one by one, each after two plans more at rescheduling points."""

    def __init__(self, data: Path, gates: int, stop: bool = False) -> None:
        self.gates = [data / f"go{k}" for k in range(gates) if not (data / f"go{k}").exists()]
        self.stop, self.plans, self.finished = stop, 0, 0

    def began(self, session: Session) -> None:
        self.plans = len(plans_at_points(session.coordinator.evaluations))

    def happened(self, session: Session, events: list[Event]) -> None:
        self.finished += sum(isinstance(event, TaskFinished) for event in events)
        if self.stop and self.finished >= 2 and not session.stopping:
            session.stop()
        plans = len(plans_at_points(session.coordinator.evaluations))
        if self.gates and plans >= self.plans + 2:
            self.gates.pop(0).touch()
            self.plans = plans


def points_after(outcome: Outcome) -> list[int]:
    """How many plans each session has made at rescheduling points."""
    replayed = replay(read(RunHome(outcome.home).journal), outcome.home.parents[2])
    begins = [0.0, *replayed.sessions]
    ends = [*begins[1:], float("inf")]
    times = plans_at_points(outcome.run.evaluations)
    return [sum(a <= t < b for t in times) for a, b in zip(begins, ends, strict=True)]


def test_after_a_stop(data: Path) -> None:
    """Nothing has happened meanwhile that would be a reason for a plan."""
    with limited(60):
        stopper = Points(data, 4, stop=True)  # two are left to wait, however slow the others are
        stopped = foreplan.run(held(6), "local:2", STRATEGY, dir=data, listener=stopper)
        assert stopped.status == "stopped"
        more = Points(data, 6)
        outcome = foreplan.run(held(6), dir=data, resume=stopped.id, listener=more)
    checked(outcome)
    first, second = points_after(outcome)
    assert first >= 2
    assert second >= 2
