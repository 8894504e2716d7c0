"""The Dask executor when workers come, die and leave copies behind, and when the scheduler dies."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

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
from weft.errors import InputError, WeftError
from weft.executors.dask import DaskExecutor
from weft.model.call import Call, Ref
from weft.model.events import NO_FAULT, EventKind, Prepare, SendItem, StartTask


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".weft" / "runs" / "r"
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
        assert (joined.kind, joined.which) == (EventKind.JOINED, 1)
        assert executor.platform.processor_names == ("a", "b")
        assert executor.platform.time_per_unit.shape == (2, 2)
        finish(executor, 0, 0, 1)
        finish(executor, 1, 1, 1)
        executor.perform(SendItem(0, 0, 1, 0, 0.0))
        arrived = take(executor)
        assert (arrived.kind, arrived.which) == (EventKind.ITEM_ARRIVED, 0)
        assert arrived.detail is not None
        assert arrived.detail["size"] >= BIG
        assert arrived.detail["seconds"] > 0
        executor.perform(SendItem(1, 1, 1, 0, 0.0))  # small: only claimed
        assert take(executor).which == 1
        executor.perform(StartTask(2, 4, 1, 0.0))
        executor.perform(Prepare(1, (3,), 0.0))
        assert executor.next_event(wait=False) is None
        processes.kill("b")
        gone, lost = take(executor), take(executor)
        assert (gone.kind, gone.which) == (EventKind.GONE, 1)
        assert (lost.kind, lost.which) == (EventKind.ITEM_LOST, 0 * 2 + 1)
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
        assert take(executor).kind == EventKind.JOINED
        finish(executor, 0, 0, 1)
        os.kill(processes.workers["b"].pid, signal.SIGSTOP)  # it can send nothing any more
        executor.perform(StartTask(1, 2, 0, 0.0))
        assert executor.next_event(wait=False) is None
        processes.kill("b")
        events = [take(executor), take(executor)]
        assert [e.kind for e in events] == [EventKind.GONE, EventKind.TASK_FAILED]
        assert (events[1].which, events[1].value) == (1, NO_FAULT)


def test_a_lost_scheduler_is_told(processes: Processes, home: Path) -> None:
    calls = [Call(add, (1,)), Call(add, (2,))]
    with running(functions(calls, {}), processes.address, home, calls, patience=LIMIT) as executor:
        finish(executor, 0, 0, 0)
        processes.scheduler.kill()
        processes.scheduler.wait()
        with pytest.raises(WeftError, match=r"lost the Dask scheduler at .*weft resume"):
            take_until(executor, EventKind.PAUSED)
        assert executor.result(0) == 1


def test_nobody_at_the_address(home: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(InputError, match="no Dask scheduler answers at"):
            DaskExecutor(
                functions([Call(add)], {}),
                address,
                None,
                home,
                time.monotonic,
                [Call(add)],
                patience=0.5,
            )
