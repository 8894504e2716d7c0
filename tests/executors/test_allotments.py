"""What attempts see of what they hold, and how they are held to it, in real processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from executors.bench import dead, until
from executors.waiting import next_event
from foreplan.errors import InputError
from foreplan.executors.allotments import OF_CORES, OF_MEMORY, THREADS
from foreplan.executors.base import Workload
from foreplan.executors.control_groups import NOT_WANTED
from foreplan.executors.gpus import VISIBLE
from foreplan.executors.limits import groups
from foreplan.executors.local.scheme import SCHEME, read_place
from foreplan.executors.local.this_machine import platform_of
from foreplan.model import Call, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.events import CancelTask, Event, StartTask, TaskFailed, TaskFinished
from foreplan.model.resources import Request

MB, GB = 10**6, 10**9
SEEN = (OF_CORES, OF_MEMORY, "OMP_NUM_THREADS", VISIBLE)
NOTHING_ASKED = (0.0, 0.0)  # memory, GPUs
proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc")


@pytest.fixture(autouse=True)
def without_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of the machine that tests run on are left alone; nor do variables of it count."""
    monkeypatch.setenv(NOT_WANTED, "no")
    for name in (VISIBLE, OF_CORES, *THREADS):
        monkeypatch.delenv(name, raising=False)
    groups.cache_clear()
    yield
    groups.cache_clear()


def workflow(requests: Sequence[Request | None], commands: Sequence[str]) -> Workflow:
    pairs = enumerate(zip(commands, requests, strict=True))
    specs = {t: TaskSpec(run=command, request=request) for t, (command, request) in pairs}
    return Workflow.from_items("w", [f"t{k}" for k in specs], [1.0] * len(specs), [], specs=specs)


class Machine:
    """An executor of four cores, which is told what to start."""

    def __init__(self, folder: Path, requests: Sequence[Request | None], **more: Any) -> None:
        commands = more.pop("commands", ["true"] * len(requests))
        on = more.pop("on", "local:cores=4,memory=4GB,gpus=2")
        calls = more.pop("calls", None)
        self.folder, self.attempts = folder, 0
        work = Workload(workflow(requests, commands), calls, folder, **more)
        home = folder / ".foreplan" / "runs" / "x"
        self.executor: Any = SCHEME.open(on, work, home, time.monotonic)

    def start(self, task: int, *cores: int, amounts: tuple[float, ...] = NOTHING_ASKED) -> int:
        self.attempts += 1
        command = StartTask(self.attempts, task, cores[0], 0.0, cores, amounts)
        self.executor.perform(command)
        return self.attempts

    def end(self) -> Event:
        return next_event(self.executor)

    def run(self, task: int, *cores: int, amounts: tuple[float, ...] = NOTHING_ASKED) -> Event:
        self.start(task, *cores, amounts=amounts)
        return self.end()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Any]:
    opened: list[Machine] = []

    def open(*requests: Request | None, **more: Any) -> Machine:
        opened.append(Machine(tmp_path, requests, **more))
        return opened[-1]

    yield open
    for each in opened:
        each.executor.close()


PRINTED = " ".join(f"{name}=${{{name}-}}" for name in SEEN)
PRINTS = f"echo {PRINTED} > $FOREPLAN_DIR/$FOREPLAN_TASK.seen"


def seen(machine: Machine, task: int) -> dict[str, str]:
    words = (machine.folder / f"t{task}.seen").read_text().split()
    return dict(word.split("=", 1) for word in words)


def test_commands_see_what_they_hold(machine: Any) -> None:
    m = machine(Request(cores=(2,), memory=Amount("1GB"), gpus=1), None, commands=[PRINTS, PRINTS])
    assert isinstance(m.run(0, 1, 2, amounts=(1e9, 1.0)), TaskFinished)
    assert seen(m, 0) == {
        OF_CORES: "2", OF_MEMORY: "1000000000", "OMP_NUM_THREADS": "2", VISIBLE: "0",
    }  # fmt: skip
    # in a workflow that counts cores and GPUs, one that asks for none has one core and no GPU
    assert isinstance(m.run(1, 0), TaskFinished)
    assert seen(m, 1) == {OF_CORES: "1", OF_MEMORY: "", "OMP_NUM_THREADS": "1", VISIBLE: ""}


def test_where_nobody_asks_for_cores_libraries_are_told_nothing(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv(VISIBLE, "1,0")
    monkeypatch.setenv(OF_MEMORY, "5")  # of a run around this one
    m = machine(None, Request(memory=Amount("1GB")), commands=[PRINTS, PRINTS])
    m.executor.perform(StartTask(50, 0, 0, 0.0))  # as in runs where nothing is counted
    assert isinstance(m.end(), TaskFinished)
    told = {OF_CORES: "1", OF_MEMORY: "", "OMP_NUM_THREADS": "7", VISIBLE: "1,0"}
    assert seen(m, 0) == told
    assert isinstance(m.run(1, 0, amounts=(1e9, 0.0)), TaskFinished)
    assert seen(m, 1) == {**told, OF_MEMORY: "1000000000"}


def test_functions_see_what_they_hold(machine: Any) -> None:
    """Their worker is begun anew if libraries that it has loaded would not hear of it."""
    asks = Request(cores=(1, 2), memory=Amount("1GB"), gpus=1)
    here = "lambda os, names: [os.getpid(), *map(os.environ.get, names)]"
    call = Call(eval(here, {}), (os, SEEN))  # by value: the worker does not import this module
    m = machine(asks, asks, asks, asks, calls=[call] * 4)
    given = [((0, 1), 1.0), ((0, 1), 1.0), ((0,), 1.0), ((0,), 0.0)]
    found = []
    for task, (cores, gpus) in enumerate(given):
        end = m.run(task, *cores, amounts=(1e9 if gpus else 0.0, gpus))
        assert isinstance(end, TaskFinished), end
        found.append(m.executor.result(task))
    pids = [each.pop(0) for each in found]
    assert pids[0] == pids[1]
    assert len(set(pids)) == 3
    assert found == [
        ["2", "1000000000", "2", "0"],
        ["2", "1000000000", "2", "0"],
        ["1", "1000000000", "1", "0"],
        ["1", None, "1", ""],
    ]


WAITS = "echo $$ > $FOREPLAN_DIR/$FOREPLAN_TASK.pid; trap '' TERM; sleep 600 & wait; sleep 600"


def test_gpus_are_given_again_once_a_process_is_dead(
    machine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was cancelled may take a moment to end: until then the next one waits."""
    monkeypatch.setenv(VISIBLE, "3,5")
    asks = Request(gpus=1)
    both = Request(gpus=2)
    m = machine(asks, both, commands=[f"{PRINTS}; {WAITS}", PRINTS])
    first = m.start(0, 0, amounts=(0.0, 1.0))
    until(lambda: (m.folder / "t0.pid").exists(), "it has begun")
    pid = int((m.folder / "t0.pid").read_text() or 0)
    assert seen(m, 0)[VISIBLE] == "3"
    m.executor.perform(CancelTask(first, 0.0, at_once=True))
    assert isinstance(m.run(1, 1, amounts=(0.0, 2.0)), TaskFinished)
    assert dead(pid, 0.0)
    assert seen(m, 1)[VISIBLE] == "3,5"


def test_cores_and_memory_of_what_is_cancelled_are_waited_for(machine: Any) -> None:
    asks = Request(cores=(2,), memory=Amount("3GB"))
    m = machine(asks, asks, asks, commands=[WAITS, "true", "true"])
    for second, amounts in (((1, 2), (0.0, 0.0)), ((2, 3), (3e9, 0.0))):
        first = m.start(0, 0, 1, amounts=(3e9, 0.0))
        path = m.folder / "t0.pid"
        until(lambda: path.exists() and path.read_text(), "it has begun")  # noqa: B023
        pid = int(path.read_text())
        path.unlink()
        m.executor.perform(CancelTask(first, 0.0, at_once=True))
        assert isinstance(m.run(1, *second, amounts=amounts), TaskFinished)
        assert dead(pid, 0.0)


def test_one_that_waits_can_be_cancelled(machine: Any) -> None:
    asks = Request(cores=(2,))
    m = machine(asks, asks, commands=[WAITS, "true"])
    first = m.start(0, 0, 1)
    until(lambda: (m.folder / "t0.pid").exists(), "it has begun")
    m.executor.perform(CancelTask(first, 0.0, at_once=True))
    m.executor.perform(CancelTask(m.start(1, 1, 2), 0.0))
    m.executor.close()
    assert not m.executor.open


HUGE = "python3 -c 'x = bytearray(150 * 10**6)'"


@proc
def test_a_command_is_held_to_its_memory(machine: Any) -> None:
    asks = Request(memory=Amount("100MB"))
    m = machine(asks, asks, None, commands=[HUGE, "true", HUGE], limit=True)
    end = m.run(0, 0, amounts=(1e8, 0.0))
    assert isinstance(end, TaskFailed)
    assert end.detail is not None
    assert end.detail["cause"] == "out-of-memory"
    assert "out of memory: it asked for 100 MB" in end.detail["reason"]
    assert "held to that (--limit)" in end.detail["reason"]
    assert isinstance(m.run(1, 0, amounts=(1e8, 0.0)), TaskFinished)
    assert isinstance(m.run(0, 0, amounts=(1e9, 0.0)), TaskFinished)  # as on another try
    # what is learnt was not asked for
    assert isinstance(m.run(2, 0, amounts=(1e8, 0.0)), TaskFinished)


@proc
def test_a_command_that_fails_for_another_reason_is_not_out_of_memory(machine: Any) -> None:
    asks = Request(memory=Amount("100MB"))
    m = machine(asks, commands=["echo no such thing >&2; exit 3"], limit=True)
    end = m.run(0, 0, amounts=(1e8, 0.0))
    assert end.detail is not None
    assert "cause" not in end.detail or end.detail["cause"] != "out-of-memory"
    assert "exited with code 3" in end.detail["reason"]


@proc
def test_a_function_is_held_to_its_memory(machine: Any) -> None:
    """So it is after others in the same worker, which must not take from it."""
    asks = Request(memory=Amount("100MB"))
    call = Call(eval("lambda n: len(bytearray(n))", {}), (150 * MB,))
    small = Call(eval("lambda n: len(bytearray(n))", {}), (10 * MB,))
    kept = Call(eval("lambda n: __import__('sys').modules.update(x=bytearray(n))", {}), (70 * MB,))
    m = machine(*[asks] * 5, calls=[call, small, kept, small, call], limit=True)
    end = m.run(0, 0, amounts=(1e8, 0.0))
    assert isinstance(end, TaskFailed)
    assert end.detail is not None
    assert end.detail["cause"] == "out-of-memory"
    assert "out of memory: it asked for 100 MB" in end.detail["reason"]
    for task in (1, 2, 3):
        assert isinstance(m.run(task, 0, amounts=(1e8, 0.0)), TaskFinished)
    assert isinstance(m.run(4, 0, amounts=(1e9, 0.0)), TaskFinished)


AFFINITY = "grep Cpus_allowed_list /proc/self/status | cut -f 2 > $FOREPLAN_DIR/$FOREPLAN_TASK.seen"


def numbers(text: str) -> list[int]:
    """1-3,7 as it stands in /proc."""
    parts = [part.partition("-") for part in text.strip().split(",")]
    return [k for a, _, b in parts for k in range(int(a), int(b or a) + 1)]


@proc
def test_tasks_are_held_to_their_cores(machine: Any) -> None:
    usable = sorted(os.sched_getaffinity(0))
    asks = Request(cores=(1, 2))
    m = machine(asks, asks, commands=[AFFINITY, AFFINITY], limit=True)
    for task, cores in enumerate([(0,), (0, 1)]):
        assert isinstance(m.run(task, *cores), TaskFinished)
        found = numbers((m.folder / f"t{task}.seen").read_text())
        assert found == sorted({usable[core % len(usable)] for core in cores})
    assert sorted(os.sched_getaffinity(0)) == usable


@proc
def test_functions_are_held_to_their_cores(machine: Any) -> None:
    usable = sorted(os.sched_getaffinity(0))
    call = Call(eval("lambda: sorted(__import__('os').sched_getaffinity(0))", {}))
    m = machine(Request(cores=(1, 2)), calls=[call], limit=True)
    for cores in ((0,), (1,), (0, 1)):
        assert isinstance(m.run(0, *cores), TaskFinished)
        assert m.executor.result(0) == sorted({usable[c % len(usable)] for c in cores})


def test_ways_are_told_once() -> None:
    asked = Workload(workflow([Request(cores=(2,))], ["true"]), limit=True)
    [way] = SCHEME.ways(asked)
    assert way.startswith("tasks are held to what they ask for: the memory of each process by RLIM")
    [none] = SCHEME.ways(Workload(workflow([None], ["true"]), limit=True))
    assert "holds none to anything" in none
    assert SCHEME.ways(Workload(workflow([None], ["true"]))) == []


@pytest.mark.parametrize(
    ("on", "processors", "asked"),
    [
        ("local", None, {}),
        ("local:8", 8, {}),
        ("local:cores=8,memory=16GB,gpus=2", 8, {"memory": 16e9, "gpus": 2.0}),
        ("local: memory = 1GiB , scratch=500GB", None, {"memory": 2.0**30, "scratch": 5e11}),
    ],
)
def test_places(on: str, processors: int | None, asked: dict[str, float]) -> None:
    SCHEME.check(on)
    assert read_place(on) == (processors, asked)


@pytest.mark.parametrize(
    ("on", "told"),
    [
        ("local:core=8", "did you mean 'cores'"),
        ("local:cpus=8", "did you mean 'cores'"),
        ("local:mem=8GB", "did you mean 'memory'"),
        ("local:gpu=1", "did you mean 'gpus'"),
        ("local:memory=8XB", "unknown unit 'XB'"),
        ("local:memory=-8GB", "no amount"),
        ("local:memory=2*inputs", "does not depend on tasks"),
        ("local:memory=16", "16 without a unit is 16 bytes: write 16GB"),
        ("local:gpus=0.5", "no number of gpus"),
        ("local:cores=0", "no number of processors"),
        ("local:cores=2,cores=3", "says cores twice"),
        ("local:memory=", "is no amount"),
        ("local:cores=2,", "is no amount"),
        ("local:a b=2", "no name of a resource"),
    ],
)
def test_places_that_make_no_sense(on: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        SCHEME.check(on)


def test_the_platform_is_one_host_also_with_cores_that_are_added() -> None:
    platform, n = platform_of(2, None, {"memory": 8e9, "scratch": 5.0})
    assert (platform.processor_names, n, platform.n_hosts) == (("local-1", "local-2"), 2, 1)
    assert platform.host_amounts("memory").tolist() == [8e9]
    more, _ = platform_of(4, platform)
    assert (more.processor_names[2:], more.n_hosts) == (("local-3", "local-4"), 1)
    assert more.hosts == platform.hosts
    other, _ = platform_of(None, platform, {"memory": 1e9})
    assert other.hosts[0].amounts == {**platform.hosts[0].amounts, "memory": 1e9}


def test_a_place_that_has_grown() -> None:
    present = {0: "local-1", 1: "local-2", 2: "local-3"}
    assert SCHEME.grown("local:2", present) == "local:3"
    assert SCHEME.grown("local:memory=1GB", present) == "local:memory=1GB"
    grown = SCHEME.grown("local:memory=1GB,cores=2,scratch=5", present)
    assert read_place(grown) == (3, {"memory": 1e9, "scratch": 5.0})


def test_gpus_that_are_not_there_are_refused_only_if_somebody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, "0")
    Machine(tmp_path, [None]).executor.close()
    with pytest.raises(InputError, match="counts on 2 GPUs"):
        Machine(tmp_path, [Request(gpus=1)])
