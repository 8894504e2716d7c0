"""The local executor: commands in, events out, and nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from executors.waiting import LIMIT, children, ended, next_event, pipe_of_life
from foreplan.contracts import Machines
from foreplan.errors import InputError
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.executors.local.this_machine import available_processors
from foreplan.executors.paths import check_paths
from foreplan.executors.processes import wait_readable
from foreplan.formats import load
from foreplan.model import TaskSpec, Workflow
from foreplan.model.events import (
    NO_FAULT,
    OWN_FAULT,
    CancelTask,
    DropTransfer,
    Event,
    ItemArrived,
    ItemLost,
    Paused,
    Prepare,
    SendItem,
    StartTask,
    TaskFailed,
    TaskFinished,
)
from model.told import what, whom


class Site:
    """A data directory with an executor on it."""

    def __init__(self, data: Path) -> None:
        self.data, self.home = data, data / ".foreplan" / "runs" / "x"
        self._open: list[LocalExecutor] = []

    def executor(
        self, tasks: dict[str, Any] | Workflow, processors: int = 2, **options: Any
    ) -> LocalExecutor:
        workflow = tasks if isinstance(tasks, Workflow) else load({"tasks": tasks})
        own = {name: options.pop(name) for name in ("known",) if name in options}
        work = Workload(workflow, directory=self.data, **options)
        made = LocalExecutor(work, processors, self.home, time.monotonic, **own)
        self._open.append(made)
        return made

    def close(self) -> None:
        for executor in self._open:
            executor.close()

    def left(self) -> list[str]:
        """What attempts have left."""
        return sorted(os.listdir(self.home / "attempts"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def start(executor: Machines, attempt: int, task: int = 0, processor: int = 0) -> None:
    executor.perform(StartTask(attempt, task, processor, 0.0))


def detail(event: Event) -> dict[str, Any]:
    assert event.detail is not None
    return dict(event.detail)


def test_a_task_finishes(site: Site) -> None:
    executor = site.executor({"a": {"run": "echo hello > x", "outputs": ["x"]}})
    before = time.monotonic()
    start(executor, 5)
    event = next_event(executor)
    assert (type(event), whom(event)) == (TaskFinished, 5)
    assert before <= event.time <= time.monotonic()
    assert detail(event)["sizes"] == {"x": 6}
    assert 0 < detail(event)["seconds"] <= event.time - before
    assert (site.data / "x").read_text() == "hello\n"
    assert executor.next_event() is None


def test_a_task_fails_through_its_own_fault(site: Site) -> None:
    executor = site.executor({"a b/c": {"run": "echo why >&2; exit 2"}})
    start(executor, 5)
    event = next_event(executor)
    assert (type(event), whom(event), what(event)) == (TaskFailed, 5, OWN_FAULT)
    told = detail(event)
    assert told.pop("seconds") > 0
    assert set(told.pop("used")) >= {"memory", "cpu"}
    assert told == {
        "reason": "it exited with code 2",
        "cause": "exit",
        "exit": 2,
        "log": "logs/5-a_b_c.err",
        "tail": "why",
        "scratch": "attempts/5-a_b_c.failed",
    }
    assert (site.home / told["log"]).read_text() == "why\n"


def test_time_outs_of_tasks_and_of_the_run(site: Site) -> None:
    plain = load({"tasks": {"a": {"run": "sleep 1000"}, "b": {"run": "sleep 1000"}}})
    specs = {0: TaskSpec(run="sleep 1000", timeout=0.2), 1: TaskSpec(run="sleep 1000")}
    executor = site.executor(replace(plain, specs=specs), timeout=0.1)
    for task, timeout in ((0, 0.2), (1, 0.1)):
        start(executor, task, task)
        told = detail(next_event(executor))["reason"]
        assert told == f"it took longer than its time-out of {timeout * 1000:g} ms"


def test_a_processor_runs_one_attempt_at_a_time(site: Site) -> None:
    command = "mkdir $FOREPLAN_DIR/busy && sleep 0.05 && rmdir $FOREPLAN_DIR/busy"
    executor = site.executor({"a": {"run": command}, "b": {"run": command}})
    for attempt in range(4):
        start(executor, attempt, attempt % 2, 1)
    events = [next_event(executor) for _ in range(4)]
    assert [(type(e), whom(e)) for e in events] == [(TaskFinished, k) for k in range(4)]


def test_processors_run_side_by_side(site: Site) -> None:
    os.mkfifo(site.data / "pipe")
    executor = site.executor({"a": {"run": "echo x > pipe"}, "b": {"run": "read x < pipe"}})
    start(executor, 0, 0, 0)
    start(executor, 1, 1, 1)  # each waits for the other
    assert {type(next_event(executor)) for _ in range(2)} == {TaskFinished}


def test_a_cancelled_attempt_is_ended_and_never_heard_of(site: Site) -> None:
    command = "exec 3>life; echo >&3; sleep 1000 & wait"
    executor = site.executor({"a": {"run": command}, "b": {"run": "true"}})
    with pipe_of_life(site.data) as life:
        start(executor, 0)
        assert wait_readable((life,), LIMIT)
        executor.perform(CancelTask(0, 0.0))
        start(executor, 1, 1)
        event = next_event(executor)
        assert (type(event), whom(event)) == (TaskFinished, 1)
        assert ended(life)
    assert executor.next_event() is None


def test_an_event_that_was_not_yet_taken_is_cancelled_too(site: Site) -> None:
    executor = site.executor({"a": {"run": "true"}, "b": {"run": "true"}})
    start(executor, 0)
    start(executor, 1, 1)  # behind it on the same processor
    watched = next_event(executor)
    assert whom(watched) == 0
    start(executor, 2, 0)
    start(executor, 3, 0)
    while executor.inbox.qsize() < 2:  # both are waiting to be taken
        time.sleep(0.001)
    for attempt in (1, 2):
        executor.perform(CancelTask(attempt, 0.0))
    assert whom(next_event(executor)) == 3
    assert executor.next_event() is None


def test_transfers_arrive_at_once_unless_dropped(site: Site) -> None:
    executor = site.executor({"a": {"run": "true"}})
    for transfer in (3, 4):
        executor.perform(SendItem(transfer, 0, 0, 0, 0.0))
    executor.perform(DropTransfer(3, 0.0))
    executor.perform(Prepare(0, (0,), 0.0))
    event = next_event(executor)
    assert (type(event), whom(event)) == (ItemArrived, 4)
    assert executor.next_event() is None


def test_what_is_posted_is_heard(site: Site) -> None:
    executor = site.executor({"a": {"run": "sleep 1000"}})
    assert executor.next_event(wait=False) is None
    start(executor, 0)

    def post(number: int, frame: object) -> None:
        executor.post(Paused(-1.0, True))

    before = signal.signal(signal.SIGUSR1, post)
    try:
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGUSR1]).start()
        event = next_event(executor)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (type(event), what(event)) == (Paused, 1.0)
    assert event.time > 0


def test_close_leaves_nothing(site: Site) -> None:
    threads, files = set(threading.enumerate()), set(os.listdir("/proc/self/fd"))
    family = children()
    executor = site.executor({"a": {"run": "echo > x; sleep 1000"}, "b": {"run": "echo > y"}})
    start(executor, 0, 0, 0)
    start(executor, 1, 1, 1)
    assert whom(next_event(executor)) == 1
    executor.close()
    executor.close()
    assert executor.next_event() is None
    assert site.left() == ["done.jsonl"]
    assert set(threading.enumerate()) == threads
    assert set(os.listdir("/proc/self/fd")) == files
    assert not (site.data / "x").exists()
    assert children() == family


def test_a_failed_attempt_can_be_looked_at(site: Site) -> None:
    executor = site.executor({"a": {"run": "echo > x; false"}})
    start(executor, 4)
    event = next_event(executor)
    executor.close()
    assert site.left() == ["4-a.failed"]
    assert detail(event)["scratch"] == "attempts/4-a.failed"
    assert sorted(os.listdir(site.home / "attempts" / "4-a.failed")) == ["command.sh", "x"]


def test_home_is_for_the_owner_only(site: Site) -> None:
    site.executor({"a": {"run": "true"}})
    for place in ("attempts", "logs", "results"):
        assert (site.home / place).stat().st_mode & 0o777 == 0o700


def test_the_platform_is_this_machine(site: Site) -> None:
    executor = site.executor({"a": {"run": "true"}}, processors=3)
    assert executor.platform.processor_names == ("local-1", "local-2", "local-3")
    assert executor.platform.host_names == (socket.gethostname(),)
    assert [executor.machine(p) for p in range(3)] == [socket.gethostname()] * 3
    workflow = load({"tasks": {"a": {"run": "true"}}})
    work = Workload(workflow, directory=site.data)
    default = LocalExecutor(work, None, site.home, time.monotonic)
    assert default.platform.n_processors == available_processors() >= 1
    with pytest.raises(InputError, match="at least 1 processor, not 0"):
        LocalExecutor(work, 0, site.home, time.monotonic)


# recovery

DRIVER = """
import sys, time
from pathlib import Path
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.formats import load
from foreplan.model.events import StartTask

data = Path(sys.argv[1])
workflow = load(data / "workflow.json")
work = Workload(workflow, directory=data)
executor = LocalExecutor(work, 2, data / ".foreplan/runs/x", time.monotonic)
executor.perform(StartTask(0, 0, 0, 0.0))
executor.perform(StartTask(1, 1, 1, 0.0))
while True:
    time.sleep(1000)  # nobody hears that the first has finished
"""


def test_recovery_from_a_kill(site: Site) -> None:
    import json

    tasks = {
        "quick": {"run": "echo done > x", "outputs": ["x"]},
        "slow": {"run": "exec 3>life; echo so far; echo >&3; sleep 1000", "outputs": ["y"]},
    }
    (site.data / "workflow.json").write_text(json.dumps({"tasks": tasks}))
    os.mkfifo(site.data / "life")
    life = os.open(site.data / "life", os.O_RDONLY | os.O_NONBLOCK)
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(site.data)])
    try:
        assert wait_readable((life,), LIMIT)
        assert os.read(life, 9) == b"\n"
        limit = time.monotonic() + LIMIT
        while not (site.home / "attempts" / "done.jsonl").exists():
            assert time.monotonic() < limit
            time.sleep(0.01)
        driver.kill()
        driver.wait()
        assert not wait_readable((life,), 0.0)  # the orphan lives
        executor = site.executor(tasks)
        running = [StartTask(0, 0, 0, 0.0), StartTask(1, 1, 1, 0.0)]
        finished, failed = executor.recover(running, [])
        assert wait_readable((life,), LIMIT)
        assert os.read(life, 9) == b""  # and lives no more
    finally:
        os.close(life)
        driver.kill()
        driver.wait()
    assert (type(finished), whom(finished)) == (TaskFinished, 0)
    assert detail(finished)["sizes"] == {"x": 5}
    assert (type(failed), whom(failed), what(failed)) == (TaskFailed, 1, NO_FAULT)
    assert detail(failed)["reason"] == "it was interrupted"
    assert detail(failed)["tail"] == "so far"
    assert site.left() == ["done.jsonl"]
    start(executor, 2, 0)
    assert isinstance(next_event(executor), TaskFinished)


def test_what_was_done_but_is_gone_is_not_finished(site: Site) -> None:
    tasks = {"a": {"run": "echo > x", "outputs": ["x"]}, "b": {"run": "true"}}
    first = site.executor(tasks)
    start(first, 0)
    next_event(first)
    first.close()
    assert [type(e) for e in first.recover([StartTask(0, 0, 0, 0.0)], [])] == [TaskFinished]
    # the same number, but of another task: the end of the journal was lost
    assert [type(e) for e in first.recover([StartTask(0, 1, 0, 0.0)], [])] == [TaskFailed]
    (site.data / "x").write_text("something else")
    assert [type(e) for e in first.recover([StartTask(0, 0, 0, 0.0)], [])] == [TaskFailed]


def test_items_that_are_gone_are_lost(site: Site) -> None:
    content = {
        "tasks": {
            "a": {"run": "true", "outputs": ["x", "y"]},
            "b": {"run": "true", "inputs": ["x", "y"]},
        },
        "edges": [["a", "b", 1]],
    }
    workflow = load(content)
    (site.data / "x").write_text("")
    executor = LocalExecutor(Workload(workflow, directory=site.data), 1, site.home, time.monotonic)
    events = executor.recover([], [(item, 0) for item in range(workflow.n_items)])
    assert [(type(e), workflow.item_name(whom(e))) for e in events] == [(ItemLost, "y")]


# names of files


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/etc/passwd", "this is an absolute path"),
        ("../x", "this leaves the run's directory"),
        ("a/../../x", "this leaves the run's directory"),
        (".", "the run's directory itself"),
        (".foreplan/x", "where foreplan keeps its own files"),
        ("./x", "write it as 'x'"),
        ("a//x", "write it as 'a/x'"),
        ("a\0b", "not a name of a file"),
    ],
)
@pytest.mark.parametrize("role", ["inputs", "outputs"])
def test_names_that_are_refused(name: str, role: str, problem: str) -> None:
    workflow = load({"tasks": {"a": {"run": "true", role: [name]}}})
    with pytest.raises(InputError, match=problem):
        check_paths(workflow)


def test_absolute_names_can_be_allowed() -> None:
    workflow = load({"tasks": {"a": {"run": "true", "inputs": ["/etc/passwd"]}}})
    check_paths(workflow, absolute_ok=True)


def test_a_file_cannot_be_a_directory_too() -> None:
    workflow = load({"tasks": {"a": {"run": "true", "outputs": ["a/b/c", "a"]}}})
    with pytest.raises(InputError, match="'a' is a file too"):
        check_paths(workflow)


def test_a_task_without_a_command_is_named() -> None:
    with pytest.raises(InputError, match=r"tasks\.b: it has no command to run"):
        check_paths(load({"tasks": {"a": {"run": "true"}, "b": {"cost": 1}}}))


def test_the_executor_checks_names(site: Site) -> None:
    with pytest.raises(InputError, match="absolute path"):
        site.executor({"a": {"run": "true", "inputs": ["/etc/passwd"]}})
