"""Runs by GTP that are gone on with: rescheduling points come again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft
from chaos.runs import limited
from live.people import checked, waiting
from weft.journal.log import read
from weft.journal.places import RunHome
from weft.live import Outcome, Session
from weft.live.replay import replay
from weft.live.session import Silent
from weft.model.events import Event, EventKind

POINT = "rescheduling point"
STRATEGY = "gtp/c/r[period=0.05]"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "history"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def held(n: int) -> dict[str, Any]:
    """Tasks that each wait for a file of their own."""
    return {"name": "held", "tasks": {f"t{k}": waiting(f"go{k}") for k in range(n)}}


class Points(Silent):
    """Opens the gates one by one, each after some rescheduling points more."""

    def __init__(self, data: Path, gates: int, stop: bool = False) -> None:
        self.gates = [data / f"go{k}" for k in range(gates) if not (data / f"go{k}").exists()]
        self.stop, self.points, self.finished = stop, 0, 0

    def happened(self, session: Session, events: list[Event]) -> None:
        self.points += sum(event.kind == EventKind.WAKE for event in events)
        self.finished += sum(event.kind == EventKind.TASK_FINISHED for event in events)
        if self.stop and self.finished >= 2 and not session.stopping:
            session.stop()
        if self.gates and self.points >= 2:
            self.gates.pop(0).touch()
            self.points = 0


def points_after(outcome: Outcome) -> list[int]:
    """How many plans each sitting has made at rescheduling points."""
    replayed = replay(read(RunHome(outcome.home).journal), outcome.home.parents[2])
    begins = [0.0, *replayed.sittings]
    ends = [*begins[1:], float("inf")]
    times = [e.time for e in outcome.run.evaluations if e.reason == POINT and e.taken]
    return [sum(a <= t < b for t in times) for a, b in zip(begins, ends, strict=True)]


def test_after_a_stop(data: Path) -> None:
    """Nothing has happened meanwhile that would be a reason for a plan."""
    with limited(60):
        stopper = Points(data, 6, stop=True)
        stopped = weft.run(held(6), "local:2", STRATEGY, dir=data, listener=stopper)
        assert stopped.status == "stopped"
        more = Points(data, 6)
        outcome = weft.run(held(6), dir=data, resume=stopped.id, listener=more)
    checked(outcome)
    first, second = points_after(outcome)
    assert first >= 2
    assert second >= 2
