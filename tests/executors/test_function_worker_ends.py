"""Worker processes of Python functions do not outlive what they are for."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.calling import Caller, holding, reason, run, value
from executors.waiting import LIMIT, children, ended, pipe_of_life
from foreplan.executors.processes import wait_readable
from foreplan.executors.usage import oom_kills
from foreplan.model import Call
from foreplan.model.events import NO_FAULT, CancelTask, StartTask, TaskFinished
from model.told import whom


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    made = Caller(tmp_path)
    yield made
    made.close()


@pytest.fixture
def life(tmp_path: Path) -> Iterator[int]:
    with pipe_of_life(tmp_path) as fd:
        yield fd


def test_a_time_out_ends_the_group(caller: Caller, life: int) -> None:
    executor = caller(holding(), Call(int), timeout=2.0)
    assert reason(run(executor, 0, 0)) == "it took longer than its time-out of 2 s"
    assert ended(life)
    assert value(executor, 1) == 0


def test_a_cancellation_ends_the_group(caller: Caller, life: int) -> None:
    executor = caller(holding(), Call(int))
    executor.perform(StartTask(0, 0, 0, 0.0))
    assert wait_readable((life,), LIMIT)
    executor.perform(CancelTask(0, 0.0))
    assert value(executor, 1) == 0
    assert ended(life)
    assert executor.next_event() is None


def test_close_ends_what_runs(caller: Caller, life: int) -> None:
    oom_kills()  # opens a file that stays open
    threads, files = set(threading.enumerate()), set(os.listdir("/proc/self/fd"))
    family = children()
    executor = caller(holding(), Call(int))
    value(executor, 1)
    executor.perform(StartTask(0, 0, 1, 0.0))
    assert wait_readable((life,), LIMIT)
    executor.close()
    assert ended(life)
    for thread in {*threading.enumerate()} - threads:  # the keeper of workers ends by itself
        thread.join(LIMIT)
    assert set(threading.enumerate()) == threads
    assert set(os.listdir("/proc/self/fd")) == files
    assert children() == family


KILLED = """
import os, sys, time
from pathlib import Path
import numpy as np
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.model import Call, Workflow
from foreplan.model.events import StartTask

def hold():
    import subprocess
    life = open("life", "w")
    subprocess.Popen(["sleep", "1000"], pass_fds=[life.fileno()])
    life.write("x")
    life.flush()
    while True:
        pass

def finish():
    return "done"

none = np.array([], dtype=np.int32)
workflow = Workflow.from_edges("f", ["t0", "t1"], none, none, np.array([]))
data = Path(sys.argv[1])
calls = [Call(hold), Call(finish)]
work = Workload(workflow, calls, data)
executor = LocalExecutor(work, 2, data / ".foreplan/runs/x", time.monotonic)
executor.perform(StartTask(1, 1, 1, 0.0))
while not (data / ".foreplan/runs/x/attempts/done.jsonl").exists():
    time.sleep(0.01)
executor.perform(StartTask(0, 0, 0, 0.0))
time.sleep(1000)
"""


def test_recovery_from_a_kill(caller: Caller, life: int, tmp_path: Path) -> None:
    driver = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    try:
        assert wait_readable((life,), LIMIT)
    finally:
        driver.kill()
        driver.wait()
    executor = caller(Call(int), Call(int))
    running = [StartTask(0, 0, 0, 0.0), StartTask(1, 1, 1, 0.0)]
    failed, finished = executor.recover(running, [])
    assert ended(life)
    assert reason(failed, NO_FAULT) == "it was interrupted"
    assert (type(finished), whom(finished)) == (TaskFinished, 1)
    assert executor.result(1) == "done"


def test_a_child_that_returns_from_a_function_answers_nothing(caller: Caller) -> None:
    def fork(leave: bool) -> tuple[bool, int]:
        pid = os.fork()
        if pid == 0 and leave:
            sys.exit(3)
        return pid > 0, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pid else 0

    executor = caller(Call(fork, (False,)), Call(fork, (True,)), Call(os.getpid))
    assert value(executor, 0) == (True, 0)
    assert value(executor, 1) == (True, 3)
    pid = value(executor, 2)
    assert value(executor, 2) == pid


def test_an_answer_of_another_attempt_is_ignored(caller: Caller) -> None:
    def answer() -> str:
        import socket

        from foreplan.executors.local.function_worker import send

        for name in os.listdir("/proc/self/fd"):
            if os.path.realpath(f"/proc/self/fd/{name}").rpartition("/")[2].startswith("socket:"):
                send(socket.socket(fileno=os.dup(int(name))), {"attempt": 77, "error": "stale"})
        return "mine"

    assert value(caller(Call(answer))) == "mine"
