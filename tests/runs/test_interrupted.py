"""Ctrl-C in a program: the run stops cleanly, and then the program learns of it."""

from __future__ import annotations

import operator
import signal
import threading
import time
from pathlib import Path

import pytest

import foreplan
from foreplan.model.events import Event
from foreplan.runs import Outcome, RunHome, Session
from foreplan.runs.journal import resume_words
from foreplan.runs.session import Silent


def wait_for(gate: str, value: int) -> int:
    while not Path(gate).exists():
        time.sleep(0.01)
    return value


class Interrupting(Silent):
    """Sends signals once the task that waits is running, and then lets it end, or not."""

    def __init__(self, numbers: list[signal.Signals], gate: Path | None) -> None:
        self.numbers, self.gate = numbers, gate

    def happened(self, session: Session, events: list[Event]) -> None:
        running = session.coordinator.state.running()
        names = session.coordinator.workflow.task_names
        if not any("wait_for" in names[attempt.task] for attempt in running):
            return
        while self.numbers:
            signal.raise_signal(self.numbers.pop(0))
        if self.gate is not None:
            self.gate.touch()


def waiting(gate: Path) -> tuple[foreplan.Flow, foreplan.Task]:
    flow = foreplan.Flow("waiting")
    first = flow.task(operator.add, 1, 1)
    second = flow.task(wait_for, str(gate), first)
    return flow, flow.task(operator.neg, second)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_ends_a_loop_of_runs(data: Path, times: int) -> None:
    gate = data / "gate"
    flow, last = waiting(gate)
    listener = Interrupting([signal.SIGINT] * times, gate if times == 1 else None)
    begun = list[int]()
    with pytest.raises(KeyboardInterrupt) as caught:  # noqa: PT012
        for number in range(2):
            begun.append(number)
            foreplan.run(flow, "local:1", dir=data, listener=listener)
    assert begun == [0]
    error = caught.value
    assert isinstance(error, foreplan.RunInterrupted)
    outcome: Outcome = error.outcome
    assert outcome.status == "stopped"
    assert f"resume={outcome.id!r}" in str(error)
    assert f"resume={outcome.id!r}" in resume_words(RunHome(outcome.home).journal)
    assert len(outcome.not_done) == times  # the task that ran was finished, or not
    assert outcome.result(flow.tasks[0]) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    gate.touch()
    assert foreplan.run(flow, dir=data, resume=outcome.id).result(last) == -2


def test_sigterm_stops_a_run_and_returns(data: Path) -> None:
    flow, _ = waiting(data / "gate")
    listener = Interrupting([signal.SIGTERM], data / "gate")
    outcome = foreplan.run(flow, "local:1", dir=data, listener=listener)
    assert (outcome.status, outcome.not_done) == ("stopped", ("neg",))


def test_ctrl_c_in_compute(data: Path) -> None:
    dask = pytest.importorskip("dask")
    listener = Interrupting([signal.SIGINT], data / "gate")
    value = dask.delayed(operator.neg)(dask.delayed(wait_for)(str(data / "gate"), 1))
    with pytest.raises(foreplan.RunInterrupted) as caught:
        foreplan.compute(value, dir=data, listener=listener)
    assert caught.value.outcome.not_done
    assert "resume" not in str(caught.value)  # nothing is left of it
    assert [path.name for path in data.iterdir()] == ["gate"]


def test_another_thread_goes_on(data: Path) -> None:
    """The main thread alone is interrupted: what it does about a run elsewhere is its own."""
    flow, last = waiting(data / "gate")
    found = list[Outcome]()
    listener = Interrupting([signal.SIGINT], data / "gate")

    def drive() -> None:
        found.append(foreplan.run(flow, "local:1", dir=data, listener=listener))

    thread = threading.Thread(target=drive)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        thread.start()
        thread.join()
    thread.join()
    assert found[0].result(last) == -2
