"""What killed runs have left behind is ended before a run begins; nothing else ever is."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors import processes
from foreplan.executors.base import find_scheme
from foreplan.executors.processes import LeftBehind, LockSignature, end_left_behind, start_time
from foreplan.runs.home import RunHome, runs
from foreplan.runs.journal import RULES, Journal
from foreplan.runs.lock import RunLock, hold_dead_runs, signed_runs
from foreplan.runs.preparing import prepare_directory
from foreplan.runs.session import Silent

LIMIT = 60.0
DRIVING = """
import os, subprocess, sys
from pathlib import Path
from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock
if sys.argv[2] == "detached":
    del os.environ["FOREPLAN_RUN"]
with RunLock(RunHome(Path(sys.argv[1]))):
    task = subprocess.Popen(["sleep", "1000"], env={**os.environ, "FOREPLAN_RUN": sys.argv[1]})
    print(task.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def home_of(data: Path, name: str = "old") -> RunHome:
    return RunHome.create(data, name)


def killed(data: Path, host: str = "") -> RunHome:
    """A run whose driver was killed: its lock is signed, but free."""
    home = home_of(data)
    home.lock.write_bytes(LockSignature(1, host or socket.gethostname(), "then").sign())
    return home


def started(stack: ExitStack, home: str | RunHome, **more: str) -> subprocess.Popen[bytes]:
    """A process with the mark of a run."""
    mark = {} if home == "" else {"FOREPLAN_RUN": str(getattr(home, "path", home))}
    environment = {"PATH": os.environ["PATH"], **mark, **more}
    process = subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True)
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def test_what_a_killed_run_left_behind_is_ended_and_told(data: Path, stack: ExitStack) -> None:
    home, other = killed(data), killed(data)
    own = [started(stack, home), started(stack, home)]
    theirs = started(stack, other)
    assert prepare_directory(data, only_look=True) == [
        f"would end 2 processes that the killed run {home.id} left behind",
        f"would end 1 process that the killed run {other.id} left behind",
    ]
    assert [process.poll() for process in (*own, theirs)] == [None, None, None]
    assert prepare_directory(data) == [
        f"ended 2 processes that the killed run {home.id} left behind",
        f"ended 1 process that the killed run {other.id} left behind",
    ]
    assert [process.wait(LIMIT) for process in (*own, theirs)] == [-signal.SIGKILL] * 3
    assert signed_runs(data / ".foreplan") == []  # they are not examined again
    assert prepare_directory(data) == []


def test_what_is_not_of_a_killed_run_is_never_signalled(data: Path, stack: ExitStack) -> None:
    dead, live, over = killed(data), home_of(data, "live"), home_of(data, "over")
    stack.enter_context(RunLock(live))
    with RunLock(over):
        pass
    shell = data / ".foreplan" / "shells" / "x"
    spared = [started(stack, home) for home in (live, over, str(shell), f"{dead.path}2", "")]
    spared.append(started(stack, live, PWD=str(dead.attempts)))
    assert prepare_directory(data) == []
    assert [process.poll() for process in spared] == [None] * 6
    assert signed_runs(data / ".foreplan") == [live]


def driving(stack: ExitStack, home: RunHome, outer: RunHome, how: str) -> tuple[int, ...]:
    """A process that drives a run, as part of a task of another, and a task of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVING, str(home.path), how],
        env={**os.environ, "FOREPLAN_RUN": str(outer.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    stack.enter_context(process)
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
    assert process.stdout is not None
    return process.pid, int(process.stdout.readline())


@pytest.mark.parametrize("inside", [True, False])
def test_a_run_within_a_task_goes_with_it(data: Path, stack: ExitStack, inside: bool) -> None:
    """Its driver has the mark of the killed run, its tasks have its own."""
    outer = killed(data)
    place = outer.attempts / "1" if inside else data / "elsewhere"
    place.mkdir()
    pids = driving(stack, home_of(place, "inner"), outer, "within")
    assert prepare_directory(data) == [
        f"ended 2 processes that the killed run {outer.id} left behind"
    ]
    assert {_state(pid) for pid in pids} <= {"Z", ""}


@pytest.mark.parametrize("inside", [True, False])
def test_a_detached_run_is_spared(data: Path, stack: ExitStack, inside: bool) -> None:
    outer = killed(data)
    place = outer.attempts / "1" if inside else data
    place.mkdir(exist_ok=True)
    pids = driving(stack, home_of(place, "inner"), outer, "detached")
    assert prepare_directory(data) == []
    assert "" not in {_state(pid) for pid in pids}
    assert "Z" not in {_state(pid) for pid in pids}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.mark.parametrize("descriptors", [True, False])
def test_a_number_that_is_another_process_by_now(
    data: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch, descriptors: bool
) -> None:
    if not descriptors:
        monkeypatch.delattr(os, "pidfd_open")
    home = killed(data)
    process = started(stack, home)
    path = str(home.path)
    before = LeftBehind(process.pid, start_time(process.pid) - 1, path, -1)
    assert not processes._kill(before, {path: path})
    assert process.poll() is None
    assert [found.pid for found in end_left_behind([path])] == [process.pid]
    assert process.wait(LIMIT) == -signal.SIGKILL


def test_a_run_that_was_killed_on_another_host(data: Path) -> None:
    home = killed(data, host="elsewhere")
    assert prepare_directory(data) == []  # it had not begun its journal
    home.lock.write_bytes(LockSignature(77, "elsewhere", "then").sign())
    home.journal.write_text("nobody can tell what ran\n")
    for only_look in (True, False):
        with pytest.raises(InputError) as caught:
            prepare_directory(data, only_look=only_look)
        message = str(caught.value)
        assert f"run {home.id} was killed on host elsewhere (process 77)" in message
        assert f"remove {home.lock}" in message
    home.lock.unlink()
    assert prepare_directory(data) == []


def test_what_is_part_of_a_killed_run_does_not_go_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = killed(data)
    monkeypatch.setenv("FOREPLAN_RUN", str(home.path))
    with pytest.raises(InputError, match=f"run {home.id}, .* was killed"):
        prepare_directory(data)
    assert signed_runs(data / ".foreplan") == [home]


def test_what_cannot_be_ended_is_refused(
    data: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = killed(data)
    process = started(stack, home)
    monkeypatch.setattr(processes, "_kill", lambda *_: False)
    with pytest.raises(InputError, match=f"process {process.pid}, .*{home.id}.* cannot be ended"):
        prepare_directory(data)
    assert signed_runs(data / ".foreplan") == [home]


def test_nobody_resumes_a_run_that_is_being_ended(data: Path) -> None:
    home = killed(data)
    with hold_dead_runs([home]) as dead:
        assert [run.home for run in dead] == [home]
        with pytest.raises(foreplan.ForeplanError, match="is being driven"):
            RunLock(home).acquire()
        with hold_dead_runs([home]) as others:
            assert others == []
    with hold_dead_runs([home]) as again:
        assert again == []


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


# kills the process that drives the run, once the task has a child of its own
KILLING = """
import os, signal, subprocess, sys
import foreplan
def leave(data):
    subprocess.Popen(["sh", "-c", "echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 1000"], cwd=data)
    while not os.path.exists(os.path.join(data, "pid")):
        pass
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()
flow = foreplan.Flow("old")
flow.task(leave, sys.argv[1])
foreplan.run(flow, dir=sys.argv[1], on="local:1")
"""


class Heard(Silent):
    """Keeps what is said of a run."""

    def __init__(self) -> None:
        self.lines = list[str]()

    def said(self, message: str) -> None:
        """Keep it."""
        self.lines.append(message)


def test_a_flow_whose_driver_was_killed(data: Path, stack: ExitStack) -> None:
    """A function's worker dies with the driver, but not what the function has started."""
    with subprocess.Popen([sys.executable, "-c", KILLING, str(data)]) as driver:
        assert driver.wait(LIMIT) == -signal.SIGKILL
    pid = int((data / "pid").read_text())
    stack.callback(_end, pid)
    assert _state(pid) not in ("Z", "")
    (home,) = runs(data)
    heard = Heard()
    flow = foreplan.Flow("new")
    flow.task(os.getpid)
    assert foreplan.run(flow, dir=data, on="local:1", listener=heard).ok
    assert f"ended 1 process that the killed run {home.id} left behind" in heard.lines
    assert _state(pid) in ("Z", "")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (2, "ended 2 processes that the killed run {} left behind on dask://x:1"),
        (0, ""),
        (None, "the killed run {} may have left processes on dask://x:1, which cannot be asked"),
    ],
)
def test_a_killed_run_on_a_cluster(
    data: Path, monkeypatch: pytest.MonkeyPatch, count: int | None, told: str
) -> None:
    """Its workers are asked, from whatever host."""
    home = killed(data, host="elsewhere")
    header = {"rules": RULES, "on": "dask://x:1", "workflow": {"specs": {"0": {"run": "x"}}}}
    Journal.create(home.journal, header).close()
    asked = list[tuple[str, str]]()

    def end(on: str, path: str) -> int | None:
        asked.append((on, path))
        return count

    monkeypatch.setattr(find_scheme("dask://x:1"), "end_left_behind", end)
    assert prepare_directory(data) == ([told.format(home.id)] if told else [])
    assert asked == [("dask://x:1", str(home.path))]


def test_a_resume_of_a_run_that_was_killed_on_another_host_warns(data: Path) -> None:
    tasks = {"a": {"run": "test -e $FOREPLAN_DIR/go; echo a > a", "outputs": ["a"]}}
    assert not foreplan.run({"name": "w", "tasks": tasks}, "local:1", dir=data).ok
    (home,) = runs(data)
    home.lock.write_bytes(LockSignature(77, "elsewhere", "then").sign())
    (data / "go").touch()
    heard = Heard()
    again = {"name": "w", "tasks": tasks}
    assert foreplan.run(again, dir=data, resume="last", listener=heard).ok
    begin = "the run was killed on host elsewhere (process 77): tasks of it that still run there"
    assert any(line.startswith(begin) for line in heard.lines)
