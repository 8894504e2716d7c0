"""Somebody who does things while a run goes on, and what the tasks of such runs wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foreplan.checks.runs import check_run
from foreplan.model import Run
from foreplan.model.events import Event, Paused, ProcessorJoined, ProcessorLeaving
from foreplan.runs import Outcome, Session
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.requests import RunRequest, ask
from foreplan.runs.session import Silent
from model.told import what, whom

LIMIT = 60.0  # seconds; a hang must fail


class Somebody(Silent):
    """Acts in a thread of its own once the run has begun; an error stops the run."""

    def __init__(self, act: Callable[[Somebody], None]) -> None:
        self._act = act
        self.session: Session
        self.error: BaseException | None = None
        self.messages: list[str] = []

    def began(self, session: Session) -> None:
        self.session = session
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def said(self, message: str) -> None:
        self.messages.append(message)

    def over(self, session: Session, outcome: Outcome) -> None:
        self._thread.join(LIMIT)

    def _run(self) -> None:
        try:
            self._act(self)
        except BaseException as error:
            self.error = error
            self.session.machines.post(Paused(0.0, True))
            raise

    @property
    def home(self) -> RunHome:
        return RunHome(self.session.recorder.journal.path.parent)

    def ask(self, **request: Any) -> str:
        return ask(self.home, RunRequest(**request), LIMIT)

    def until(self, holds: Callable[[], Any]) -> Any:
        """Look at the run until it is so: it changes in another thread."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if value := holds():
                return value
            time.sleep(0.005)
        raise AssertionError(f"it never came; running: {self.running()}")

    def until_running(self, processors: set[int]) -> None:
        """Until just these processors have work."""
        self.until(lambda: set(self.running().values()) == processors)

    def heard(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.session.driver.events or () if type(e) is kind]

    def running(self) -> dict[str, int]:
        """The tasks that run, and where."""
        c = self.session.coordinator
        arrays, names = c.state.arrays, c.workflow.task_names
        at = {p: int(k) for p, k in enumerate(arrays.running.tolist()) if k >= 0}
        return {names[arrays.attempt_task[k]]: p for p, k in at.items()}

    def running_on(self, processor: int) -> str:
        """The name of the task there."""
        return next(task for task, p in self.running().items() if p == processor)


def waiting(name: str = "go") -> dict[str, Any]:
    """A command that waits for a file in the data directory."""
    return {"run": f"while ! test -e $FOREPLAN_DIR/{name}; do sleep 0.02; done", "cost": 1.0}


def wait_for(path: str, *values: Any) -> int:
    """The same as a function, which gives back how much it has read."""
    end = time.monotonic() + LIMIT
    while not Path(path).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return sum(v if isinstance(v, int) else len(v) for v in values)


def slow_bytes(size: int, seconds: float) -> bytes:
    """So many bytes, after so many seconds."""
    time.sleep(seconds)
    return bytes(size)


def checked(outcome: Outcome) -> Run:
    """The run, found right by the validators, as it was and by its journal."""
    assert outcome.ok, (outcome.status, outcome.failures)
    replayed = replay(read(RunHome(outcome.home).journal), outcome.home.parents[2])
    replayed.driver.coordinator.check_state()
    assert replayed.decisions == replayed.journalled
    check_run(outcome.run)
    check_run(replayed.run())
    nothing_starts_where_it_leaves(outcome.run)
    return outcome.run


def nothing_starts_where_it_leaves(run: Run) -> None:
    """From the time on that was announced, unless that is taken back or it comes again."""
    kinds, log = (ProcessorLeaving, ProcessorJoined), run.attempts
    for p, start in zip(log.processor.tolist(), log.start.tolist(), strict=True):
        told = [e for e in run.changes if type(e) in kinds and whom(e) == p and e.time <= start]
        just_then = [e for e in told if e.time == start]  # heard before the start, or after it
        last = [e for e in told if e.time < start][-1:]
        if last and isinstance(last[0], ProcessorLeaving):
            stays = [
                e for e in (*last, *just_then) if isinstance(e, ProcessorJoined) or what(e) >= start
            ]
            assert stays, (last[0], start)


def once_each(run: Run) -> bool:
    """Whether every task has had one attempt, and none was made again."""
    return sorted(run.attempts.task.tolist()) == list(range(run.workflow.n_tasks))
