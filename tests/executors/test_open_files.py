"""Attempts wait while descriptors or processes are short, and commands keep their own limit."""

from __future__ import annotations

import errno
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executors.bench import until
from executors.waiting import next_event
from foreplan.errors import ForeplanError
from foreplan.executors import open_files
from foreplan.executors.base import Workload
from foreplan.executors.local.scheme import SCHEME
from foreplan.model import Call, TaskSpec, Workflow
from foreplan.model.causes import CAUSE, SYSTEM
from foreplan.model.events import StartTask, TaskFailed, TaskFinished

WAITS = "touch $FOREPLAN_DIR/here; until [ -e $FOREPLAN_DIR/go ]; do sleep 0.01; done"
LIMIT = 77


class System:
    """A system that may refuse to start processes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = None
        for module, name in ((subprocess, "Popen"), (socket, "socketpair")):
            monkeypatch.setattr(module, name, self._refusing(getattr(module, name)))

    def _refusing(self, call: Any) -> Any:
        def refuse(*args: Any, **kwargs: Any) -> Any:
            if self.error is not None:
                raise OSError(self.error, "refused")
            return call(*args, **kwargs)

        return refuse


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Any]:
    opened: list[Any] = []

    def open(*commands: str, function: Any = None) -> Any:
        specs = {t: TaskSpec(run=command) for t, command in enumerate(commands)}
        names = [f"t{t}" for t in specs] or ["f"]
        workflow = Workflow.from_items("w", names, [1.0] * len(names), [], specs=specs)
        calls = None if function is None else (Call(function, (), {}),)
        work = Workload(workflow, calls, tmp_path)
        home = tmp_path / ".foreplan" / "runs" / "x"
        opened.append(SCHEME.open("local:2", work, home, time.monotonic))
        return opened[-1]

    yield open
    for executor in opened:
        executor.close()


def start(executor: Any, task: int) -> None:
    executor.perform(StartTask(task + 1, task, task, 0.0, (task,), (0.0, 0.0)))


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.EAGAIN])
def test_an_attempt_waits_for_another_to_end(
    error: int, machines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, system = machines(WAITS, "true"), System(monkeypatch)
    start(executor, 0)
    until((tmp_path / "here").exists, "the first runs")
    system.error = error
    start(executor, 1)
    until(lambda: executor._jobs.holdings.most == 1, "the second waits")
    system.error = None
    (tmp_path / "go").touch()
    ends = [next_event(executor), next_event(executor)]
    assert [type(end) for end in ends] == [TaskFinished, TaskFinished]
    assert [end.attempt for end in ends] == [1, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("commands", [["true"], []])
def test_an_attempt_that_runs_alone_does_not_wait(
    commands: list[str], machines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = machines(*commands, function=None if commands else time.time)
    System(monkeypatch).error = errno.EMFILE
    start(executor, 0)
    end = next_event(executor)
    assert isinstance(end, TaskFailed)
    assert end.detail is not None
    assert end.detail[CAUSE] == SYSTEM
    advice = ": refused, although no other task runs; raise the limit (ulimit -n)"
    assert end.detail["reason"].endswith(advice)


def test_a_command_has_the_limit_that_foreplan_was_started_with(
    machines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "_given", LIMIT)
    executor = machines("ulimit -Sn > $FOREPLAN_DIR/limit")
    start(executor, 0)
    assert isinstance(next_event(executor), TaskFinished)
    assert (tmp_path / "limit").read_text() == f"{LIMIT}\n"


def test_the_soft_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(64, 4096)]
    monkeypatch.setattr(open_files, "_given", None)
    monkeypatch.setattr("resource.getrlimit", lambda kind: limits[-1])
    monkeypatch.setattr("resource.setrlimit", lambda kind, new: limits.append(new))
    assert open_files.most_attempts() == 5
    open_files.raise_limit()
    assert limits[-1] == (4096, 4096)
    assert open_files.restoring_prefix() == "ulimit -Sn 64 || :; "
    assert open_files.most_attempts() > 600


def test_a_lane_whose_thread_is_refused_starts_later(
    machines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = machines("true", "true")
    start(executor, 0)
    with monkeypatch.context() as refused:
        refused.setattr(threading.Thread, "start", _no_thread)
        start(executor, 1)
    ends = [next_event(executor), next_event(executor)]
    assert [type(end) for end in ends] == [TaskFinished, TaskFinished]


def test_without_any_thread_the_run_ends(machines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = machines("true")
    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    with pytest.raises(ForeplanError, match="no new thread; see ulimit -u"):
        start(executor, 0)


def _no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("no new thread")
