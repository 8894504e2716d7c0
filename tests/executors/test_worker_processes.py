"""Worker processes are kept for the next run of a process, and only if they are like new ones."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from executors.waiting import LIMIT, children, ended, pipe_of_life
from foreplan.errors import InputError
from foreplan.executors.local import worker_processes
from foreplan.executors.local.worker_processes import POOL
from foreplan.executors.processes import wait_readable

OLD = 946_684_800  # seconds; a file of that time was not written just now


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    POOL.end_idle()


def call(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, int]:
    """What a function gives in a run of its own, and the process that it ran in."""

    def measured() -> tuple[Any, int]:
        return function(*args), os.getpid()

    flow = foreplan.Flow("one")
    task = flow.task(measured)
    outcome = foreplan.run(flow, "local:1", force=True, use_history=False, **options)
    result: tuple[Any, int] = outcome.result(task)
    return result


def pid(**options: Any) -> int:
    return call(int, **options)[1]


def test_a_worker_is_kept_and_is_like_a_new_one() -> None:
    def leave() -> None:
        os.environ["LEFT"] = "here"
        sys.path.append("left")
        os.chdir("/")

    def look() -> tuple[Any, ...]:
        with open("/proc/self/environ", "rb") as file:
            shown = b"FOREPLAN_RUN=" + os.environb[b"FOREPLAN_RUN"] in file.read().split(b"\0")
        return os.getcwd(), "LEFT" in os.environ, "left" in sys.path, shown

    _, first = call(leave)
    files = len(os.listdir("/proc/self/fd"))
    assert call(look) == ((os.getcwd(), False, False, True), first)
    assert len(os.listdir("/proc/self/fd")) <= files


def leave_thread() -> None:
    threading.Thread(target=threading.Event().wait, daemon=True).start()


def leave_child() -> None:
    subprocess.Popen(["sleep", "1000"])


@pytest.mark.parametrize("left", [leave_thread, leave_child])
def test_a_worker_in_which_something_still_runs_is_ended(left: Callable[[], None]) -> None:
    def leave() -> None:
        left()

    before = children()
    call(leave)
    assert children() == before


def test_a_process_that_has_left_its_worker_ends_with_the_run(data: Path) -> None:
    def leave() -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open("life", "w") as life:
                    life.write("x")
                    life.flush()
                    threading.Event().wait()
            os._exit(0)
        os.wait()
        with open("life", "w"):  # not before the other one has opened it
            pass

    with pipe_of_life(data) as life:
        _, first = call(leave)
        assert ended(life)
    assert pid() == first


def change_environment(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW", "1")


def change_path(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(data / "more"))


def change_directory(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "other").mkdir()
    monkeypatch.chdir(data / "other")


def change_umask(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.umask(0o027)


def kill_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (worker,) = POOL._idle
    os.kill(worker.process.pid, signal.SIGKILL)
    assert worker.exit is not None
    assert wait_readable((worker.exit,), LIMIT)


@pytest.mark.parametrize(
    "change", [change_environment, change_path, change_directory, change_umask, kill_it]
)
def test_a_worker_that_would_be_started_otherwise_is_replaced(
    data: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[..., None]
) -> None:
    umask = os.umask(0o022)
    try:
        first = pid()
        change(data, monkeypatch)
        second = pid()
        assert second != first
        assert not Path(f"/proc/{first}").exists()
        assert pid() == second
    finally:
        os.umask(umask)


def test_modules_that_have_changed_are_imported_anew(data: Path) -> None:
    library = data / "changing_library.py"
    library.write_text("STATE = []\ndef add():\n    STATE.append(1)\n    return len(STATE)\n")
    os.utime(library, (OLD, OLD))
    importlib.invalidate_caches()
    module = importlib.import_module("changing_library")

    def look() -> int:
        import changing_library  # type: ignore[import-not-found]

        return len(changing_library.STATE)

    _, first = call(module.add)
    # a task has changed it
    assert call(module.add)[0] == 1
    # it is used in a way that cannot be compared
    _, third = call(look)
    assert pid() == third
    library.write_text(library.read_text() + "# edited\n")
    assert pid() != third
    assert third != first


def test_large_data_that_a_task_has_changed_is_gone_in_the_next_run(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(data))
    (data / "large_library.py").write_text(
        "TABLE = [0.0] * 200_000\n"
        "def read(k): return TABLE[0]\n"
        "def write(k): TABLE[0] = 5.0; return k\n"
    )
    library = importlib.import_module("large_library")
    for k, function in enumerate((library.read, library.write, library.read)):
        flow = foreplan.Flow("large")
        task = flow.task(function, k)
        outcome = foreplan.run(flow, "local:1", use_history=False)
        assert outcome.result(task) == (1 if k == 1 else 0.0)


def test_workers_of_threads_and_forks(data: Path) -> None:
    found = list[int]()
    thread = threading.Thread(target=lambda: found.append(pid()))
    thread.start()
    thread.join()
    # the thread that asked for it is no more
    assert found == [pid()]
    child = os.fork()
    if child == 0:
        try:
            POOL.end_idle()
            os._exit(int(pid() == found[0]))
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert found == [pid()]


def test_runs_at_the_same_time_share_no_worker() -> None:
    def meet(own: str, other: str) -> None:
        mine, its = os.open(own, os.O_RDWR), os.open(other, os.O_RDWR)
        os.write(its, b"x")
        os.read(mine, 1)

    def take_part(k: int) -> None:
        found.append(call(meet, *(os.path.abspath(f"fifo-{i}") for i in (k, 1 - k))))

    pid()
    os.mkfifo("fifo-0")
    os.mkfifo("fifo-1")
    found = list[tuple[Any, int]]()
    threads = [threading.Thread(target=take_part, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert len({process for _, process in found}) == 2


def test_a_worker_that_rests_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "IDLE", 0.0)
    pid()
    keeper = next((t for t in threading.enumerate() if t.name == "foreplan-workers"), None)
    if keeper is not None:
        keeper.join(LIMIT)
        assert not keeper.is_alive()
    assert not POOL._idle


def test_tasks_per_worker() -> None:
    flow = foreplan.Flow("pids")
    tasks = [flow.task(os.getpid, name=f"pid-{k}") for k in range(4)]
    counts = []
    for most in (1, 2, 4, None):
        outcome = foreplan.run(flow, "local:1", force=True, tasks_per_worker=most)
        counts.append(len({outcome.result(task) for task in tasks}))
    assert counts == [4, 2, 1, 1]
    for wrong in (0, -1, "two", True, 1.5):
        with pytest.raises(InputError, match="tasks_per_worker must be a whole number from 1 on"):
            foreplan.run(flow, tasks_per_worker=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is for worker processes of this machine"):
        foreplan.run(flow, "dask://127.0.0.1:1", tasks_per_worker=1)


SCRIPT = """
import os, signal, sys, foreplan

def hold():
    life = os.open("life", os.O_WRONLY)
    os.set_inheritable(life, True)
    os.write(life, b"x")

flow = foreplan.Flow("holds")
flow.task(hold)

class Stopping:
    began = said = over = lambda self, *_: None
    def happened(self, session, events):
        ends = [event for event in events if type(event).__name__ == "TaskFinished"]
        if ends and sys.argv[1] == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)

try:
    run = foreplan.run(flow, "local:1", use_history=False, listener=Stopping())
except KeyboardInterrupt:
    pass
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "interrupted":
    print("waits", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["finished", "killed", "interrupted"])
def test_workers_end_with_the_process_and_after_an_interrupt(data: Path, how: str) -> None:
    with (
        pipe_of_life(data) as life,
        subprocess.Popen([sys.executable, "-c", SCRIPT, how], stdin=subprocess.PIPE) as process,
    ):
        try:
            assert wait_readable((life,), LIMIT)
            assert ended(life)
        finally:
            process.kill()
