"""Python functions as tasks: what they get, what they give, and how they fail."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from executors.calling import Caller, reason, run, value
from executors.waiting import LIMIT
from foreplan.errors import ForeplanError
from foreplan.executors.processes import wait_readable
from foreplan.executors.results import result_path
from foreplan.model import Call, Ref
from foreplan.model.events import MACHINE_LOST, ItemLost, TaskFailed, TaskFinished
from model.told import whom


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    made = Caller(tmp_path)
    yield made
    made.close()


def test_results_go_where_they_are_referred_to(caller: Caller) -> None:
    shape = ([Ref(0), {"k": (Ref(1),)}],)
    calls = [Call(list, ("ab",)), Call(lambda: 5), Call(lambda a, b: (a, b), shape, {"b": Ref(0)})]
    executor = caller(*calls)
    first = run(executor, 0, 0)
    assert isinstance(first, TaskFinished)
    assert first.detail is not None
    size = os.path.getsize(Path(result_path(executor._jobs.results, 0)))
    assert set(first.detail["sizes"].values()) == {size}
    run(executor, 1, 1, 1)
    assert value(executor, 2) == ([["a", "b"], {"k": (5,)}], ["a", "b"])


def test_functions_of_every_kind(caller: Caller) -> None:
    here = 3

    class Local:
        def __init__(self, x: int) -> None:
            self.x = x

        def twice(self) -> int:
            return 2 * self.x

    calls = [
        Call(lambda x: x + here, (1,)),
        Call(Local, (here,)),
        Call(Local.twice, (Ref(1),)),
        Call(lambda: lambda: here),
        Call(Local(4).twice),
        Call(os.path.join, ("a", "b")),
    ]
    executor = caller(*calls)
    assert value(executor, 0) == 4
    assert isinstance(value(executor, 1), Local)
    assert value(executor, 2) == 6
    assert value(executor, 3)() == 3
    assert value(executor, 4) == 8
    assert value(executor, 5) == "a/b"


def test_a_script_can_use_its_own_functions(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    script = tmp_path / "script.py"
    script.write_text(
        """
import time
from pathlib import Path
import numpy as np
from beside import double
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.model import Call, Ref, Workflow
from foreplan.model.events import StartTask

class Thing:
    def __init__(self, x):
        self.x = x

def mine(x):
    return Thing(double(x))

none = np.array([], dtype=np.int32)
workflow = Workflow.from_edges("f", ["a"], none, none, np.array([]))
home = Path(".foreplan/runs/x")
executor = LocalExecutor(Workload(workflow, [Call(mine, (4,))]), 1, home, time.monotonic)
executor.perform(StartTask(0, 0, 0, 0.0))
event = executor.next_event()
result = executor.result(0)
assert type(result) is Thing, event
print(result.x)
executor.close()
"""
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.stdout == "8\n", done.stderr


def test_a_process_serves_many_calls(caller: Caller) -> None:
    executor = caller(Call(os.getpid), Call(os.getpid))
    pids = [value(executor, k % 2) for k in range(4)]
    assert len(set(pids)) == 1
    run(executor, 5, 0, processor=1)
    assert executor.result(0) not in {os.getpid(), pids[0]}


def test_it_runs_in_the_data_directory_and_knows_what_it_is(caller: Caller, tmp_path: Path) -> None:
    def look() -> list[str]:
        found = [os.getcwd(), os.environ["FOREPLAN_TASK"], os.environ["FOREPLAN_ATTEMPT"]]
        os.chdir("/")
        return found

    executor = caller(Call(look), Call(look))
    assert value(executor, 0) == [str(tmp_path), "t0", "1000"]
    assert value(executor, 1) == [str(tmp_path), "t1", "1001"]


def test_what_is_printed_is_logged(caller: Caller, tmp_path: Path) -> None:
    def speak(word: str) -> None:
        print(word)
        print(word, file=sys.stderr)
        os.system(f"echo by a child: {word}")

    executor = caller(Call(speak, ("one",)), Call(speak, ("two",)), Call(int))
    for task in range(3):
        run(executor, task, task)
    logs = tmp_path / ".foreplan" / "runs" / "x" / "logs"
    assert (logs / "0-t0.out").read_text().splitlines() in (
        ["one", "by a child: one"],
        ["by a child: one", "one"],
    )
    assert (logs / "1-t1.err").read_text() == "two\n"
    assert sorted(os.listdir(logs)) == ["0-t0.err", "0-t0.out", "1-t1.err", "1-t1.out"]


def test_an_exception_is_told_as_text(caller: Caller) -> None:
    class StrangeError(Exception):
        def __reduce__(self) -> Any:
            raise TypeError("never pickled")

    def inner() -> None:
        print("before")
        raise StrangeError("what is wrong")

    executor = caller(Call(inner), Call(int))
    event = run(executor, 0, 0)
    assert reason(event).endswith("StrangeError: what is wrong")
    assert event.detail is not None
    assert "in inner" in event.detail["tail"]
    assert "_answer" not in event.detail["tail"]
    assert event.detail["log"] == "logs/0-t0.err"
    assert value(executor, 1) == 0


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RecursionError("deep")])
def test_no_exception_ends_the_process(caller: Caller, error: BaseException) -> None:
    def fail() -> None:
        raise error

    executor = caller(Call(os.getpid), Call(fail))
    before = value(executor, 0)
    assert type(error).__name__ in reason(run(executor, 1, 1))
    assert value(executor, 0) == before


def test_what_cannot_be_pickled_is_told(caller: Caller) -> None:
    lock = threading.Lock()
    executor = caller(Call(threading.Lock), Call(len, ([lock],)), Call(lambda: lock), Call(int))
    assert reason(run(executor, 0, 0)).startswith("its result cannot be kept: TypeError: cannot")
    for task in (1, 2):
        problem = reason(run(executor, task, task))
        assert problem.startswith("it cannot be sent to a worker process: TypeError: cannot")
    assert value(executor, 3) == 0
    with pytest.raises(ForeplanError, match="task 't0' has no result: it has not finished"):
        executor.result(0)


def test_what_cannot_be_unpickled_there_is_told(caller: Caller) -> None:
    class Odd:
        def __reduce__(self) -> Any:
            return int, ("no number",)

    executor = caller(Call(len, (Odd(),)))
    assert reason(run(executor, 0, 0)).startswith("its arguments cannot be unpickled: ValueError")


def test_a_failure_leaves_the_old_result(caller: Caller, tmp_path: Path) -> None:
    def fail_later() -> Any:
        return threading.Lock() if os.path.exists("again") else "first"

    executor = caller(Call(fail_later))
    assert value(executor) == "first"
    (tmp_path / "again").touch()
    assert isinstance(run(executor, 1, 0), TaskFailed)
    assert executor.result(0) == "first"


@pytest.mark.parametrize(
    ("death", "told"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL (perhaps out of memory)"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "killed by SIGSEGV"),
        (lambda: os._exit(7), "it exited with code 7"),
    ],
)
def test_a_death_is_not_the_tasks_fault(
    caller: Caller, death: Callable[[], None], told: str
) -> None:
    def die() -> None:
        os.write(2, b"last words\n")
        death()

    executor = caller(Call(die), Call(int))
    event = run(executor, 0, 0)
    assert reason(event, MACHINE_LOST) == f"its worker process died: {told}"
    assert event.detail is not None
    assert event.detail["tail"] == "last words"
    assert value(executor, 1) == 0


def test_a_death_is_seen_though_a_child_lives_on(caller: Caller, tmp_path: Path) -> None:
    def fork_and_die() -> None:
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(1)

    executor = caller(Call(fork_and_die))
    assert reason(run(executor, 0, 0), MACHINE_LOST).startswith("its worker process died")


def test_a_process_that_died_between_calls_is_replaced(caller: Caller) -> None:
    executor = caller(Call(os.getpid))
    first = value(executor)
    exit_of = os.pidfd_open(first)
    os.kill(first, signal.SIGKILL)
    assert wait_readable((exit_of,), LIMIT)
    os.close(exit_of)
    assert value(executor) != first


def test_results_that_are_gone_are_lost(caller: Caller) -> None:
    executor = caller(Call(int), Call(int), Call(max, (Ref(0), Ref(1))))
    for task in range(2):
        run(executor, task, task)
    os.unlink(result_path(executor._jobs.results, 1))
    assert executor.recover([], [(0, 0)]) == []
    (lost,) = executor.recover([], [(0, 0), (1, 0)])
    assert (type(lost), whom(lost)) == (ItemLost, 1)


def test_a_result_that_cannot_be_read_is_told(caller: Caller) -> None:
    executor = caller(Call(int))
    value(executor)
    Path(result_path(executor._jobs.results, 0)).write_bytes(pickle.dumps([1, 2, 3])[:-3])
    with pytest.raises(ForeplanError, match="the result of task 't0' cannot be read"):
        executor.result(0)
