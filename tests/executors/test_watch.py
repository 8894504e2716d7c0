"""Availability measured for real: what stops is seen, and what tasks report arrives."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from executors.bench import Bench, limited
from executors.cluster import Cluster
from executors.sites import (
    DASK_CARRIED,
    DASK_FUNCTIONS,
    DASK_SHARED,
    LOCAL_COMMANDS,
    LOCAL_FUNCTIONS,
    Site,
)
from executors.waiting import next_event
from executors.works import Work, half_done
from foreplan.contracts import Machines
from foreplan.executors import monitor
from foreplan.executors.base import Workload
from foreplan.executors.local.executor import LocalExecutor
from foreplan.formats import load
from foreplan.model import Call, TaskSpec, Workflow
from foreplan.model.events import CancelTask, Event, SpeedChanged, StartTask, TaskFinished
from model.told import what, whom

AVAILABILITY, FINISHED = SpeedChanged, TaskFinished
GATED = "echo 0.25 >> $FOREPLAN_PROGRESS; echo 0.5 >> $FOREPLAN_PROGRESS; read line < {gate}"
proc = pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="no /proc")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often than once a second, in this process."""
    monkeypatch.setattr(monitor, "INTERVAL", 0.1)


def told(executor: Machines, holds: Callable[[Event], object]) -> Event:
    """The first news of availability that is so; nothing else may happen."""
    while True:
        event = next_event(executor, skipped=())
        assert type(event) is AVAILABILITY, event
        if holds(event):
            return event


@contextmanager
def stopped(*signals: Callable[[int], None]) -> Iterator[None]:
    """Something stands still, and goes on at the latest when this is over."""
    try:
        for send in signals:
            send(signal.SIGSTOP)
        yield
    finally:
        for send in signals:
            send(signal.SIGCONT)


@proc
@pytest.mark.parametrize("site", [LOCAL_COMMANDS, LOCAL_FUNCTIONS], ids=lambda s: s.name)
@pytest.mark.usefixtures("often")
def test_a_stopped_process_is_seen(site: Site, tmp_path: Path) -> None:
    with site.open([Work("W", waits=True)], tmp_path) as bench, limited(60):
        executor = bench.watched.executor
        attempt = bench.start(0, 1)
        [pids] = bench.begun().values()
        with stopped(lambda number: os.killpg(pids[0], number)):
            event = told(executor, lambda e: what(e) == 0)
            assert (whom(event), event.detail) == (1, {"by": "share", "attempt": attempt})
        assert whom(told(executor, lambda e: what(e) > 0)) == 1
        bench.open_gate()
        while type(event := next_event(executor, skipped=())) is AVAILABILITY:
            pass
        assert (type(event), whom(event)) == (FINISHED, attempt)


@proc
@pytest.mark.usefixtures("often")
def test_a_stopped_attempt_that_is_cancelled_leaves_a_processor_that_runs(tmp_path: Path) -> None:
    works = [Work("W", waits=True), Work("V", waits=True)]
    with LOCAL_COMMANDS.open(works, tmp_path) as bench, limited(60):
        executor = bench.watched.executor
        bench.start(1, 1)  # so that there is something to wait for
        attempt = bench.start(0, 0)
        pids = bench.begun(2)["W"]
        os.killpg(pids[0], signal.SIGSTOP)
        assert whom(told(executor, lambda e: what(e) == 0)) == 0
        executor.perform(CancelTask(attempt, 0.0))
        event = told(executor, lambda e: what(e) == 1)
        assert (whom(event), event.detail) == (0, {"by": "nothing"})


@proc
@pytest.mark.parametrize("site", [DASK_FUNCTIONS, DASK_SHARED], ids=lambda s: s.name)
def test_a_stopped_worker_is_seen(site: Site, tmp_path: Path, conformance_cluster: Cluster) -> None:
    cluster = conformance_cluster
    with site.open([Work("W", waits=True)], tmp_path, cluster) as bench, limited(60):
        executor = bench.watched.executor
        attempt = bench.start(0, 1)
        begun(bench)
        name = executor.platform.processor_names[1]
        with stopped(lambda number: cluster.signal(name, number)):
            event = told(executor, lambda e: what(e) == 0)
            assert (whom(event), event.detail) == (1, {"by": "silence"})
        assert whom(told(executor, lambda e: what(e) > 0)) == 1
        bench.open_gate()
        while type(event := next_event(executor, skipped=())) is AVAILABILITY:
            pass
        assert (type(event), whom(event)) == (FINISHED, attempt)


@proc
def test_a_stopped_command_of_a_worker_is_seen(
    tmp_path: Path, conformance_cluster: Cluster
) -> None:
    works = [Work("W", waits=True)]
    with DASK_SHARED.open(works, tmp_path, conformance_cluster) as bench, limited(60):
        attempt = bench.start(0, 0)
        pids = begun(bench)["W"]
        with stopped(lambda number: os.killpg(pids[0], number)):
            event = told(bench.watched.executor, lambda e: what(e) == 0)
            assert (whom(event), event.detail) == (0, {"by": "share", "attempt": attempt})
        assert whom(told(bench.watched.executor, lambda e: what(e) > 0)) == 0
        bench.open_gate()


def begun(bench: Bench) -> dict[str, list[int]]:
    assert bench.watched.executor.next_event(wait=False) is None  # it is sent
    return bench.begun()


class Gate:
    """A named pipe that a task waits at."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "gate")
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)

    def open(self) -> None:
        os.write(self._fd, b"\n")

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate(tmp_path)
    yield made
    made.open()
    made.close()


def work(gate: Gate, functions: bool) -> tuple[Workflow, list[Call] | None]:
    if functions:
        return load({"tasks": {"a": {"cost": 1}}}), [Call(half_done, (gate.path,))]
    spec = {0: TaskSpec(run=GATED.format(gate=gate.path))}
    return Workflow.from_items("w", ["a"], [1.0], [], specs=spec), None


def check_report(executor: Any, gate: Gate, share: float) -> None:
    """The attempt says how much is done, and then ends."""
    begun = time.monotonic()
    executor.perform(StartTask(5, 0, 0, 0.0))
    event = told(executor, lambda e: "progress" in (e.detail or {}))
    detail = dict(event.detail or {})
    assert (whom(event), detail["attempt"], detail["progress"]) == (0, 5, share)
    assert detail["rate"] > share / (time.monotonic() - begun)
    gate.open()
    while type(event := next_event(executor, skipped=())) is AVAILABILITY:
        pass
    assert (type(event), whom(event)) == (FINISHED, 5)


@pytest.mark.parametrize("functions", [False, True], ids=["command", "function"])
@pytest.mark.usefixtures("often")
def test_reported_progress_arrives(tmp_path: Path, gate: Gate, functions: bool) -> None:
    workflow, calls = work(gate, functions)
    home = tmp_path / "home"
    executor = LocalExecutor(Workload(workflow, calls, tmp_path), 1, home, time.monotonic)
    try:
        check_report(executor, gate, 0.25 if functions else 0.5)
        assert not list(home.glob("attempts/*.progress"))
    finally:
        executor.close()


@pytest.mark.parametrize("site", [DASK_FUNCTIONS, DASK_SHARED, DASK_CARRIED], ids=lambda s: s.name)
def test_reported_progress_arrives_from_dask(
    tmp_path: Path, gate: Gate, conformance_cluster: Cluster, site: Site
) -> None:
    from foreplan.executors.dask.executor import DaskExecutor

    conformance_cluster.have(1)
    workflow, calls = work(gate, site.functions)
    given = Workload(workflow, calls, tmp_path, shared=site is DASK_SHARED)
    home = tmp_path / ".foreplan" / "runs" / "one"
    address = conformance_cluster.address
    executor = DaskExecutor(given, address, home, time.monotonic)
    try:
        check_report(executor, gate, 0.25 if site.functions else 0.5)
    finally:
        executor.close()
