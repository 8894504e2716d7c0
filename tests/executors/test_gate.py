"""A gate before a command: its shell is up, and waits."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executors.waiting import LIMIT, next_event
from weft.executors.command import CommandJob, CommandOutcome, run_command
from weft.executors.gate import Gate
from weft.executors.local import LocalExecutor
from weft.executors.processes import Stop, kill_left_behind
from weft.formats import load
from weft.model.call import Call
from weft.model.events import EventKind, StartTask

BEGUN = "touch $WEFT_DIR/begun; readlink /proc/self/fd/0 > $WEFT_DIR/stdin; ls /proc/self/fd"


@pytest.fixture(params=["", "sh -e"])
def job(tmp_path: Path, request: pytest.FixtureRequest) -> CommandJob:
    home = tmp_path / ".weft" / "runs" / "x"
    for place in ("attempts", "logs"):
        (home / place).mkdir(parents=True)
    scratch, log = str(home / "attempts" / "7"), str(home / "logs" / "7")
    return CommandJob(
        "t", BEGUN, str(tmp_path), scratch, log, attempt=7, home=str(home), shell=request.param
    )


def until(holds: Callable[[], Any]) -> Any:
    end = time.monotonic() + LIMIT
    while not (value := holds()):
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.001)
    return value


def waits(pid: int) -> bool:
    """Whether a shell is up and reads from a pipe."""
    return Path(f"/proc/{pid}/wchan").read_text().endswith("pipe_read")


class Running(threading.Thread):
    """An attempt at a command, with a gate before it."""

    def __init__(self, job: CommandJob) -> None:
        super().__init__(daemon=True)
        self.job, self.gate, self.stop, self.outcome = job, Gate(), Stop(), CommandOutcome(0.0)
        self.start()
        until(lambda: self.stop.group is not None and waits(self.stop.group))

    def run(self) -> None:
        self.outcome = run_command(self.job, self.stop, gate=self.gate)

    def ended(self) -> CommandOutcome:
        self.join(LIMIT)
        return self.outcome


def test_a_command_begins_when_its_gate_is_opened(job: CommandJob) -> None:
    running, begun = Running(job), Path(job.dir, "begun")
    assert not begun.exists()
    running.gate.open()
    outcome = running.ended()
    running.gate.close()
    assert outcome.problem is None
    assert running.gate.opened is not None
    assert outcome.seconds <= time.perf_counter() - running.gate.opened  # not since it is up
    assert begun.exists()
    assert Path(job.dir, "stdin").read_text() == "/dev/null\n"
    assert Path(job.log + ".out").read_text().split() == ["0", "1", "2", "3"]  # 3 is its own


def test_a_gate_may_be_opened_before_anybody_comes(job: CommandJob) -> None:
    gate = Gate()
    gate.open()
    assert run_command(job, gate=gate).problem is None
    gate.close()
    assert Path(job.dir, "begun").exists()


def test_nothing_begins_if_weft_is_gone(job: CommandJob) -> None:
    running = Running(job)
    running.gate.close()
    assert running.ended().exit == 125
    assert not Path(job.dir, "begun").exists()


def test_a_shell_that_waits_can_be_stopped(job: CommandJob) -> None:
    running = Running(job)
    running.stop.ask()
    assert running.ended().stopped
    running.gate.open()  # too late, and nobody is there
    running.gate.close()
    assert not Path(job.dir, "begun").exists()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., LocalExecutor]]:
    made: list[LocalExecutor] = []

    def make(tasks: dict[str, Any], **options: Any) -> LocalExecutor:
        home, workflow = tmp_path / ".weft" / "runs" / "x", load({"tasks": tasks})
        made.append(LocalExecutor(workflow, 2, tmp_path, home, time.monotonic, **options))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


def test_what_is_foreseen_is_run_when_it_is_asked_for(
    make: Callable[..., LocalExecutor], tmp_path: Path
) -> None:
    executor = make({"a": {"run": BEGUN}, "b": {"run": "exit 3"}})
    both = [StartTask(0, 0, 0, 0.0), StartTask(1, 1, 1, 0.0)]
    executor.foresee(both)
    until(lambda: all(stop.group and waits(stop.group) for stop, _ in executor._foreseen.values()))
    assert not (tmp_path / "begun").exists()
    for command in both:
        executor.perform(command)
    events = sorted((next_event(executor) for _ in both), key=lambda event: event.which)
    assert [e.kind for e in events] == [EventKind.TASK_FINISHED, EventKind.TASK_FAILED]
    assert (tmp_path / "begun").exists()
    assert executor.next_event(wait=False) is None


def test_what_is_foreseen_but_never_asked_for_leaves_nothing(
    make: Callable[..., LocalExecutor], tmp_path: Path
) -> None:
    executor = make({"a": {"run": BEGUN}})
    files = set(os.listdir("/proc/self/fd"))
    executor.foresee([StartTask(0, 0, 0, 0.0)])
    until(lambda: all(stop.group for stop, _ in executor._foreseen.values()))
    executor.close()
    assert kill_left_behind(str(tmp_path / ".weft" / "runs" / "x")) == []
    assert not (tmp_path / "begun").exists()
    assert os.listdir(tmp_path / ".weft" / "runs" / "x" / "attempts") == []
    assert set(os.listdir("/proc/self/fd")) <= files


def test_a_shell_comes_up_early_only_where_nobody_can_tell(
    make: Callable[..., LocalExecutor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def foreseen(task: dict[str, Any], **options: Any) -> int:
        executor = make({"a": task}, **options)
        executor.foresee([StartTask(0, 0, 0, 0.0)])
        return len(executor._foreseen)

    assert foreseen({"run": "true"}) == 1
    assert foreseen({"run": "true", "timeout": 9}) == 0  # which begins with the command
    assert foreseen({"run": "true"}, timeout=9.0) == 0
    assert foreseen({"run": "true"}, calls=[Call(int)]) == 0
    monkeypatch.setenv("BASH_ENV", "/dev/null")  # a script that would run before
    assert foreseen({"run": "true"}) == 0


def test_jobs_are_equal_with_and_without_a_gate(job: CommandJob) -> None:
    """What a command sees of its environment is the same."""
    job = replace(job, command="env | grep -v '^_=' | sort")
    assert run_command(job).problem is None
    without = Path(job.log + ".out").read_text()
    gate = Gate()
    gate.open()
    assert run_command(job, gate=gate).problem is None
    gate.close()
    assert Path(job.log + ".out").read_text() == without
