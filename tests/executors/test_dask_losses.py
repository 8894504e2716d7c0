"""The Dask executor when workers come, die and leave copies behind, and when the scheduler dies."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreplan.model.events import (
    ItemArrived,
    ItemLost,
    Paused,
    ProcessorGone,
    ProcessorJoined,
    TaskFailed,
)
from model.told import what, whom

pytest.importorskip("distributed")

from chaos.runs import until
from executors.dask_trials import (
    BIG,
    LIMIT,
    Processes,
    add,
    blob,
    finish,
    functions,
    length,
    running,
    take,
    take_until,
    wait_for,
)
from foreplan.errors import ForeplanError, InputError
from foreplan.executors.base import Workload
from foreplan.executors.dask.executor import DaskExecutor
from foreplan.executors.dask.tasks import Reporter
from foreplan.model.call import Call, Ref
from foreplan.model.events import NO_FAULT, Prepare, SendItem, StartTask


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".foreplan" / "runs" / "r"
    home.mkdir(parents=True)
    return home


@pytest.fixture
def processes() -> Iterator[Processes]:
    cluster = Processes()
    cluster.add("a")
    try:
        yield cluster
    finally:
        cluster.end()


def test_join_loss_and_real_transfers(processes: Processes, home: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    calls = [
        Call(blob, (BIG,)),
        Call(blob, (10,)),
        Call(length, (Ref(0),)),
        Call(length, (Ref(1),)),
        Call(wait_for, (str(gate),)),
    ]
    workflow = functions(calls, {0: [2], 1: [3]})
    with running(workflow, processes.address, home, calls, patience=LIMIT) as executor:
        assert executor.machine(0).startswith("a@")
        processes.add("b")
        joined = take(executor)
        assert (type(joined), whom(joined)) == (ProcessorJoined, 1)
        assert executor.platform.processor_names == ("a", "b")
        assert executor.platform.time_per_unit.shape == (2, 2)
        finish(executor, 0, 0, 1)
        finish(executor, 1, 1, 1)
        executor.perform(SendItem(0, 0, 1, 0, 0.0))
        arrived = take(executor)
        assert (type(arrived), whom(arrived)) == (ItemArrived, 0)
        assert arrived.detail is not None
        assert arrived.detail["size"] >= BIG
        assert arrived.detail["seconds"] > 0
        executor.perform(SendItem(1, 1, 1, 0, 0.0))  # small: only claimed
        assert whom(take(executor)) == 1
        executor.perform(StartTask(2, 4, 1, 0.0))
        executor.perform(Prepare(1, (3,), 0.0))
        assert executor.next_event(wait=False) is None
        processes.kill("b")
        gone, lost = take(executor), take(executor)
        assert (type(gone), whom(gone)) == (ProcessorGone, 1)
        assert (type(lost), whom(lost)) == (ItemLost, 0 * 2 + 1)
        finish(executor, 3, 2, 0)  # the large one was really there
        finish(executor, 4, 1, 0)
        finish(executor, 5, 3, 0)
        gate.touch()
        finish(executor, 6, 4, 0)  # what ran on the lost worker does not hold up the other
        assert [executor.result(t) for t in (2, 3, 4)] == [BIG, 10, 7]
        assert not executor._given.by_key


def test_an_attempt_that_waits_for_a_lost_input_fails(
    processes: Processes, home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    calls = [Call(blob, (10,)), Call(wait_for, (str(gate),)), Call(length, (Ref(0),))]
    workflow = functions(calls, {0: [2]})
    with running(workflow, processes.address, home, calls, patience=LIMIT) as executor:
        processes.add("b")
        assert isinstance(take(executor), ProcessorJoined)
        finish(executor, 0, 0, 1)
        os.kill(processes.workers["b"].pid, signal.SIGSTOP)  # it can send nothing any more
        executor.perform(StartTask(1, 2, 0, 0.0))
        assert executor.next_event(wait=False) is None
        processes.kill("b")
        events = [take(executor), take(executor)]
        assert [type(e) for e in events] == [ProcessorGone, TaskFailed]
        assert (whom(events[1]), what(events[1])) == (1, NO_FAULT)


class Threads:
    """A cluster in this process, whose workers can be lost."""

    def __init__(self, cluster: Any) -> None:
        self.address, self._cluster = cluster.scheduler_address, cluster

    def lose(self, executor: DaskExecutor, processor: int) -> None:
        """The scheduler takes the worker of a processor for dead, and says so."""
        address, scheduler = executor._cluster.address_of(processor), self._cluster.scheduler
        self._cluster.sync(scheduler.remove_worker, address, stimulus_id="test", close=False)


@pytest.fixture
def threads() -> Iterator[Threads]:
    from distributed import LocalCluster

    make: Any = LocalCluster
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with make(processes=False, protocol="tcp", host="127.0.0.1", **options) as cluster:
        yield Threads(cluster)


def test_what_was_made_again_and_lost_is_lost_wherever_the_run_believes_it(
    threads: Threads, home: Path
) -> None:
    """A reader that finds nothing there is told only after the loss that it comes from."""
    calls = [Call(add, (1,)), Call(add, (Ref(0),))]
    with running(functions(calls, {0: [1]}), threads.address, home, calls) as executor:
        finish(executor, 0, 0, 0)
        executor.perform(SendItem(0, 0, 0, 1, 0.0))
        assert isinstance(take(executor), ItemArrived)
        finish(executor, 1, 0, 2)  # rewound, by a strategy that does without copies
        threads.lose(executor, 2)
        told = [take(executor) for _ in range(3)]
        assert [(type(e), whom(e)) for e in told] == [
            (ProcessorGone, 2),
            (ItemLost, 0),
            (ItemLost, 1),
        ]
        executor.perform(StartTask(2, 1, 1, 0.0))  # by a run that has not heard of it
        lost, failed = take(executor), take(executor)
        assert (type(lost), whom(lost)) == (ItemLost, 1)
        assert (type(failed), whom(failed), what(failed)) == (TaskFailed, 2, NO_FAULT)
        finish(executor, 3, 0, 1)
        finish(executor, 4, 1, 1)


def test_a_death_is_told_before_what_dask_gives_up_with_it(
    threads: Threads, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker dies with a report unsent, while the run is slow to take its events."""
    calls = [Call(add, (1,)), Call(add, (2,)), Call(add, (Ref(0), Ref(1)))]
    with running(functions(calls, {0: [2], 1: [2]}), threads.address, home, calls) as executor:
        finish(executor, 0, 0, 0)
        monkeypatch.setattr(Reporter, "_flush", lambda reporter: None)
        monkeypatch.setattr(DaskExecutor, "look_every", 0.0)
        executor.perform(StartTask(1, 1, 1, 0.0))
        assert executor.next_event(wait=False) is None
        future = next(iter(executor._given.by_key.values())).future
        until(lambda: future.status == "finished", "the result")
        for transfer, host in enumerate((1, 2)):
            executor.perform(SendItem(transfer, 0, 0, host, 0.0))
        threads.lose(executor, 1)
        until(lambda: future.status == "lost", "the loss of the result")
        told = [take(executor) for _ in range(3)]
        assert [(type(e), whom(e)) for e in told] == [
            (ItemArrived, 0),
            (ItemArrived, 1),
            (ProcessorGone, 1),
        ]
        assert executor.next_event(wait=False) is None


def test_a_lost_scheduler_is_told(processes: Processes, home: Path) -> None:
    calls = [Call(add, (1,)), Call(add, (2,))]
    with running(functions(calls, {}), processes.address, home, calls, patience=LIMIT) as executor:
        finish(executor, 0, 0, 0)
        processes.scheduler.kill()
        processes.scheduler.wait()
        with pytest.raises(ForeplanError, match=r"lost the Dask scheduler at .*compute all of it"):
            take_until(executor, Paused)
        assert executor.result(0) == 1


def test_nobody_at_the_address(home: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(InputError, match="no Dask scheduler answers at"):
            DaskExecutor(
                Workload(functions([Call(add)], {}), [Call(add)]),
                address,
                home,
                time.monotonic,
                patience=0.5,
            )
