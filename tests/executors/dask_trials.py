"""What the tests of the Dask executor share: workflows, functions, clusters of processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from foreplan.executors.base import Workload
from foreplan.executors.dask.executor import DaskExecutor
from foreplan.model import Workflow
from foreplan.model.call import Call
from foreplan.model.events import Event, Paused, SpeedChanged, StartTask, TaskFinished
from foreplan.model.workflow import Item
from foreplan_benchmarks.dask_cluster import WHILE_PARENT_LIVES
from model.told import whom

LIMIT = 60.0  # seconds; a hang must fail
BIG = 2_000_000
SKIPPED = (SpeedChanged,)  # a machine may be slow at any time


def functions(calls: Sequence[Call], reads: dict[int, list[int]]) -> Workflow:
    """A workflow of calls: which tasks read the result of each."""
    items = [Item(8.0, producer, readers) for producer, readers in reads.items()]
    names = [f"t{i}" for i in range(len(calls))]
    return Workflow.from_items("calls", names, [1.0] * len(calls), items)


def take(executor: DaskExecutor, skipped: Sequence[type[Event]] = SKIPPED) -> Event:
    """The next event; a watchdog's if none comes."""
    watchdog = threading.Timer(LIMIT, executor.post, [Paused(0.0, False)])
    watchdog.start()
    try:
        event = executor.next_event()
        while event is not None and type(event) in skipped:
            event = executor.next_event()
    finally:
        watchdog.cancel()
    assert event is not None
    assert not isinstance(event, Paused), "nothing happened"
    return event


def take_until(executor: DaskExecutor, kind: type[Event]) -> list[Event]:
    events = [take(executor)]
    while type(events[-1]) is not kind:
        events.append(take(executor))
    return events


def finish(executor: DaskExecutor, attempt: int, task: int, processor: int) -> Event:
    executor.perform(StartTask(attempt, task, processor, 0.0))
    event = take(executor)
    assert (type(event), whom(event)) == (TaskFinished, attempt), event
    return event


@contextlib.contextmanager
def running(
    workflow: Workflow, on: Any, home: Path, calls: Sequence[Call] | None = None, **more: Any
) -> Iterator[DaskExecutor]:
    shared: Path | None = more.pop("dir", None)
    own = {name: more.pop(name) for name in ("known", "patience") if name in more}
    directory = home.absolute().parents[2] if shared is None else shared
    work = Workload(workflow, calls, directory, shared is not None, **more)
    executor = DaskExecutor(work, on, home, time.monotonic, **own)
    try:
        yield executor
    finally:
        executor.close()


class Processes:
    """A scheduler and workers as processes."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._run("scheduler", "--port", str(port), "--no-show")
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def _run(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        module = f"distributed.cli.dask_{what}"
        fixed = ("--host", "127.0.0.1", "--no-dashboard")
        path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        return subprocess.Popen(
            [sys.executable, "-c", WHILE_PARENT_LIVES, module, *options, *fixed],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )

    def add(self, name: str) -> None:
        options = ("--nthreads", "1", "--no-nanny", "--name", name)
        self.workers[name] = self._run("worker", self.address, *options)

    def kill(self, name: str) -> None:
        _end(self.workers.pop(name))

    def end(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """As a function of a script: it travels whole, the worker cannot import it."""
    function.__module__ = "__main__"
    return function


@by_value
def add(*numbers: int) -> int:
    return sum(numbers)


@by_value
def fail() -> None:
    raise ValueError("no luck")


@by_value
def blob(size: int) -> bytes:
    return bytes(size)


@by_value
def length(*given: bytes) -> int:
    return sum(map(len, given))


@by_value
def wait_for(path: str) -> int:
    import os
    import time

    while not os.path.exists(path):
        time.sleep(0.01)
    return 7
