"""The Dask executor on a cluster in this process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreplan.model.events import (
    ItemArrived,
    ItemLost,
    MachineMessage,
    ProcessorGone,
    ProcessorJoined,
    TaskFailed,
    TaskFinished,
)
from model.told import what, whom

distributed = pytest.importorskip("distributed")

from chaos.runs import until  # noqa: E402
from executors.dask_trials import (  # noqa: E402
    BIG,
    add,
    blob,
    by_value,
    fail,
    finish,
    functions,
    length,
    running,
    take,
    wait_for,
)
from foreplan.errors import ForeplanError, InputError  # noqa: E402
from foreplan.executors.results import is_kept  # noqa: E402
from foreplan.model import Platform, Workflow  # noqa: E402
from foreplan.model.call import Call, Ref  # noqa: E402
from foreplan.model.events import (  # noqa: E402
    NO_FAULT,
    OWN_FAULT,
    CancelTask,
    DropTransfer,
    Prepare,
    SendItem,
    StartTask,
)
from foreplan.model.platform import Processor  # noqa: E402
from foreplan.model.workflow import Item, TaskSpec  # noqa: E402


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / ".foreplan" / "runs" / "r"
    home.mkdir(parents=True)
    return home


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    """A cluster in this process: quick, and tests can look into its tasks."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(
        processes=False, protocol="tcp", host="127.0.0.1", **options
    ) as cluster:
        yield cluster.scheduler_address


def test_calls_move_their_results_and_products_come_home(threads: str, home: Path) -> None:
    calls = [Call(add, (1, 2)), Call(add, (5,)), Call(add, (Ref(0), Ref(1)))]
    workflow = functions(calls, {0: [2], 1: [2]})
    with running(workflow, threads, home, calls) as executor:
        assert executor.platform.n_processors == executor.platform.n_hosts == 2
        assert len({executor.machine(p) for p in range(2)}) == 2
        first = finish(executor, 0, 0, 0)
        assert first.detail is not None
        assert first.detail["seconds"] < 10
        assert first.detail["sizes"][0] > 0
        finish(executor, 1, 1, 1)
        executor.perform(SendItem(0, 0, 0, 1, 0.0))
        assert isinstance(take(executor), ItemArrived)
        finish(executor, 2, 2, 1)
        assert is_kept(home / "results", 2)
        assert executor.result(2) == 8
        with pytest.raises(ForeplanError, match="'t0' is not kept"):
            executor.result(0)
        assert executor.next_event(wait=False) is None


def test_a_large_product_and_a_kept_intermediate(threads: str, home: Path) -> None:
    calls = [Call(blob, (BIG,)), Call(blob, (10,)), Call(length, (Ref(1),))]
    workflow = functions(calls, {1: [2]})
    with running(workflow, threads, home, calls, keep_results=True) as executor:
        finish(executor, 0, 0, 0)
        assert len(executor.result(0)) == BIG
        finish(executor, 1, 1, 0)
        finish(executor, 2, 2, 0)
        assert executor.result(1) == bytes(10)


def test_a_failure_tells_why(threads: str, home: Path) -> None:
    calls = [Call(fail), Call(by_value(lambda: sys.exit(3)))]
    with running(functions(calls, {}), threads, home, calls) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        event = take(executor)
        assert (type(event), what(event)) == (TaskFailed, OWN_FAULT)
        assert event.detail is not None
        assert event.detail["reason"] == "ValueError: no luck"
        assert "in fail" in event.detail["tail"]
        executor.perform(StartTask(1, 1, 0, 0.0))
        assert isinstance(take(executor), TaskFailed)
        executor.perform(StartTask(2, 0, 0, 0.0))  # the task again, as another attempt
        assert whom(take(executor)) == 2


def test_a_cancelled_attempt_is_not_heard_of_again(
    threads: str, home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    calls = [Call(wait_for, (str(gate),)), Call(add, (1,))]
    with running(functions(calls, {}), threads, home, calls) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        assert executor.next_event(wait=False) is None
        executor.perform(CancelTask(0, 0.0))
        finish(executor, 1, 1, 1)
        gate.touch()
        finish(executor, 2, 0, 0)  # the thread is free again, and only this attempt counts
        assert executor.next_event(wait=False) is None


def test_what_was_begun_ahead_is_taken(threads: str, home: Path) -> None:
    calls = [Call(add, (i,)) for i in range(4)]
    with running(functions(calls, {}), threads, home, calls) as executor:
        executor.perform(Prepare(0, (1, 2, 3), 0.0))
        executor.perform(StartTask(0, 0, 0, 0.0))
        assert whom(take(executor)) == 0
        begun = dict(executor._given.ahead)
        for attempt in (1, 2, 3):
            finish(executor, attempt, attempt, 0)
        assert set(begun) == {1, 2, 3}
        keys = {given.key for given in begun.values()}
        assert {key.rsplit("-", 1)[1] for key in keys} <= {"0", "1", "2"}  # none was given twice
        assert [executor.result(t) for t in (1, 2, 3)] == [1, 2, 3]


def test_what_was_begun_ahead_is_discarded(threads: str, home: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    calls = [Call(wait_for, (str(gate),)), Call(add, (1,)), Call(add, (2,)), Call(add, (3,))]
    with running(functions(calls, {}), threads, home, calls) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        executor.perform(Prepare(0, (1, 2), 0.0))
        assert executor.next_event(wait=False) is None
        executor.perform(Prepare(0, (3, 2), 0.0))  # 1 is off, and 3 comes before 2
        ahead = executor._given.ahead
        assert set(ahead) == {2, 3}
        assert ahead[3].level > ahead[2].level
        finish(executor, 1, 2, 1)  # elsewhere
        assert set(ahead) == {3}
        finish(executor, 2, 1, 1)
        gate.touch()
        assert whom(take(executor)) == 0
        finish(executor, 3, 3, 0)
        assert not executor._given.by_key


def test_longer_tasks_are_begun_ahead_as_long_as_few_are_in_vain(threads: str, home: Path) -> None:
    calls = [Call(add, (i,)) for i in range(24)]
    with running(functions(calls, {}), threads, home, calls) as executor:
        assert executor.ahead < 0.15 < (first := executor.alone)  # nothing is known yet
        for task in range(4):
            executor.perform(Prepare(0, (task,), 0.0))
            finish(executor, task, task, 0)
        assert executor.alone > first
        for task in range(4, 24):  # each is off when the next one is told
            executor.perform(Prepare(0, (task,), 0.0))
        assert executor.alone == executor.ahead


def test_a_dropped_transfer_is_not_heard_of_again(threads: str, home: Path) -> None:
    calls = [Call(blob, (BIG,)), Call(length, (Ref(0),))]
    with running(functions(calls, {0: [1]}), threads, home, calls) as executor:
        finish(executor, 0, 0, 0)
        executor.perform(SendItem(0, 0, 0, 1, 0.0))
        executor.perform(DropTransfer(0, 0.0))
        executor.perform(SendItem(1, 0, 0, 1, 0.0))
        event = take(executor)
        assert (type(event), whom(event)) == (ItemArrived, 1)


def test_an_input_that_was_let_go_of_is_told_to_be_lost(threads: str, home: Path) -> None:
    calls = [Call(add, (1,)), Call(add, (Ref(0),))]
    with running(functions(calls, {0: [1]}), threads, home, calls) as executor:
        finish(executor, 0, 0, 0)
        finish(executor, 1, 1, 0)
        executor.perform(StartTask(2, 1, 0, 0.0))  # rewound
        lost, failed = take(executor), take(executor)
        assert (type(lost), whom(lost)) == (ItemLost, 0 * 2 + 0)
        assert (type(failed), whom(failed), what(failed)) == (TaskFailed, 2, NO_FAULT)
        finish(executor, 3, 0, 1)
        finish(executor, 4, 1, 1)


def test_the_memory_manager_is_as_it_was(threads: str, home: Path) -> None:
    calls = [Call(add)]
    workflow = functions(calls, {})
    with distributed.Client(threads, set_as_default=False) as client:
        interval = client.scheduler_comm.interval
        client.amm.start()
        with running(workflow, threads, home, calls):
            with running(workflow, client, home, calls):
                assert not client.amm.running()
            assert not client.amm.running()  # the other run still needs it to be off
            assert client.scheduler_comm.interval == interval
        assert client.amm.running()
        client.amm.stop()
        with running(workflow, client, home, calls):
            pass
        assert not client.amm.running()
        assert client.status == "running"


def test_all_is_undone_when_the_client_is_gone(threads: str, home: Path) -> None:
    calls = [Call(add)]
    with distributed.Client(threads, set_as_default=False) as client:
        client.amm.start()
        with running(functions(calls, {}), threads, home, calls) as executor:
            lost, name = executor._cluster.client, executor._cluster.name
            assert (client.amm.running(), _known_as(name, client)) == (False, 5)
            lost.loop.add_callback(lost.scheduler_comm.comm.abort)  # as if its process was killed
            until(lambda: not _known_as(name, client), "nothing of the run is left")
            assert client.amm.running()
            with pytest.raises(ForeplanError, match="lost the Dask scheduler"):
                take(executor)
        client.amm.stop()


def _known_as(name: str, client: Any) -> int:
    """How many plugins and topics of this name the scheduler and two workers have."""

    def count(dask_scheduler: Any) -> int:
        known = (dask_scheduler.plugins, dask_scheduler.worker_plugins)
        return sum(name in found for found in (*known, dask_scheduler._broker._topics))

    there = client.run(lambda dask_worker: name in dask_worker.plugins)
    return int(client.run_on_scheduler(count)) + sum(map(bool, there.values()))


def test_results_that_cannot_travel_fail_tasks(threads: str, home: Path) -> None:
    """Dask itself would let their readers wait for ever, and spoil the connection."""
    calls = [
        *(Call(threading.Lock) for _ in range(2)),
        Call(_Unreadable),
        Call(add, (Ref(2),)),
        Call(add, (Ref(0),)),
        Call(blob, (BIG,)),
        Call(length, (Ref(5),)),
    ]
    workflow = functions(calls, {0: [4], 2: [3], 5: [6]})
    with running(workflow, threads, home, calls) as executor:
        for task in (0, 1):  # one that is read, and a product
            executor.perform(StartTask(task, task, 0, 0.0))
            assert "its result, of type _thread.lock, cannot be pickled" in _reason(executor)
        finish(executor, 2, 2, 0)
        executor.perform(StartTask(3, 3, 1, 0.0))
        assert "the result of 't2' cannot be read on tcp://" in _reason(executor)
        finish(executor, 4, 5, 0)
        finish(executor, 5, 6, 1)  # from the same worker, by a connection that works


class _Unreadable:
    def __reduce__(self) -> Any:
        return int, ("it cannot be unpickled",)


def _reason(executor: Any) -> str:
    event = take(executor)
    assert (type(event), what(event)) == (TaskFailed, OWN_FAULT), event
    return str((event.detail or {})["reason"])


def test_what_waits_for_long_is_named(
    threads: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foreplan.executors.dask.workers.NO_NEWS", 0.01)
    path = tmp_path / "go"
    calls = [Call(wait_for, (str(path),)), Call(add, (1,))]
    with running(functions(calls, {}), threads, home, calls) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        executor.flush()
        until(lambda: _executing(threads) == 1, "the scheduler knows that it runs")
        executor.perform(CancelTask(0, 0.0))  # its thread goes on
        executor.perform(StartTask(1, 1, 0, 0.0))
        said = f"waiting: 't1' for {executor.platform.host_names[0]} (it has not begun)"
        try:
            event = take(executor)
            while said not in str((event.detail or {})["message"]):  # Dask may not know it yet
                event = take(executor)
        finally:
            path.touch()
        while isinstance(event, MachineMessage):
            event = take(executor)
        assert (type(event), whom(event)) == (TaskFinished, 1)


def _executing(address: str) -> int:
    def count(dask_scheduler: Any) -> int:
        return sum(len(worker.executing) for worker in dask_scheduler.workers.values())

    with distributed.Client(address, set_as_default=False) as client:
        found: int = client.run_on_scheduler(count)
        return found


def commands(*runs: tuple[str, list[str], list[str]], timeout: float | None = None) -> Workflow:
    """A workflow of (command, files read, files made)."""
    made = {name: task for task, (_, _, outs) in enumerate(runs) for name in outs}
    names = dict.fromkeys(n for _, ins, outs in runs for n in (*ins, *outs))
    read = {n: [t for t, (_, ins, _) in enumerate(runs) if n in ins] for n in names}
    items = [Item(1.0, made.get(n), read[n], n) for n in names]
    specs = {t: TaskSpec(run=run, timeout=timeout) for t, (run, _, _) in enumerate(runs)}
    tasks = [f"c{t}" for t in range(len(runs))]
    return Workflow.from_items("commands", tasks, [1.0] * len(runs), items, specs=specs)


COPY = (
    ("cat in > mid; echo kept > side; echo lost > other", ["in"], ["mid", "side"]),
    ("cat mid mid > out", ["mid"], ["out"]),
)


@pytest.mark.parametrize("shared", [True, False])
def test_commands(threads: str, home: Path, tmp_path: Path, shared: bool) -> None:
    (tmp_path / "in").write_text("data\n")
    with running(commands(*COPY), threads, home, dir=tmp_path if shared else None) as executor:
        assert executor.platform.n_hosts == (1 if shared else 2)
        first = finish(executor, 0, 0, 0)
        assert first.detail is not None
        assert first.detail["sizes"] == {"mid": 5, "side": 5}
        undeclared = first.detail["undeclared"]
        assert (undeclared["files"], undeclared["bytes"], *undeclared["names"]) == (1, 5, "other")
        finish(executor, 1, 1, 1)
    assert (tmp_path / "out").read_text() == "data\ndata\n"
    assert (tmp_path / "side").read_text() == "kept\n"
    assert (tmp_path / "mid").exists() == shared  # in memory only, if files are carried


@pytest.mark.parametrize("shared", [True, False])
def test_a_failing_command_tells_why(
    threads: str, home: Path, tmp_path: Path, shared: bool
) -> None:
    workflow = commands(("echo oh no >&2; exit 3", [], ["out"]))
    with running(workflow, threads, home, dir=tmp_path if shared else None) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        event = take(executor)
        assert isinstance(event, TaskFailed)
        assert event.detail is not None
        assert event.detail["exit"] == 3
        assert event.detail["tail"] == "oh no"
        if shared:
            assert (home / event.detail["log"]).read_text() == "oh no\n"
            assert (home / event.detail["scratch"] / "command.sh").exists()
        else:
            assert "scratch" not in event.detail


def test_a_cancelled_command_is_killed(threads: str, home: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    workflow = commands((f"echo $$ > {fifo}; sleep 1000", [], []), ("true", [], []))
    with running(workflow, threads, home, dir=tmp_path) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        assert executor.next_event(wait=False) is None
        pid = int(fifo.read_text())
        executor.perform(CancelTask(0, 0.0))
        finish(executor, 1, 1, 0)  # the only thread is free again
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_recovery(threads: str, home: Path) -> None:
    calls = [Call(add, (1,)), Call(add, (Ref(0),)), Call(add, (5,))]
    workflow = Workflow.from_items(
        "calls", ["a", "b", "c"], [1.0] * 3, [Item(8.0, 0, [1]), Item(8.0, 2, [])]
    )
    with running(workflow, threads, home, calls) as executor:
        finish(executor, 0, 0, 0)
        finish(executor, 1, 2, 1)
        old = executor.platform
    gone = Platform.build([*_processors(old), Processor("x", host="tcp://x:1")])
    with running(workflow, threads, home, calls, known=gone) as executor:
        events = executor.recover([StartTask(2, 1, 1, 0.0)], [(0, 0), (1, 1)])
        told = [(type(e), whom(e), what(e)) for e in events]
        assert (ProcessorGone, 2, 0.0) in told
        assert (ProcessorJoined, 0, 0.0) in told
        assert (TaskFailed, 2, NO_FAULT) in told
        assert (ItemLost, 0 * 3 + 0, 0.0) in told
        assert (ItemLost, 1 * 2 + 1, 0.0) not in told  # a product is at home
        assert executor.result(2) == 5
        finish(executor, 3, 0, 0)
        finish(executor, 4, 1, 1)


def _processors(platform: Platform) -> list[Processor]:
    hosts = [platform.host_names[h] for h in platform.host]
    return [Processor(n, host=h) for n, h in zip(platform.processor_names, hosts, strict=True)]


def test_a_command_that_ended_while_nobody_listened(
    threads: str, home: Path, tmp_path: Path
) -> None:
    workflow = commands(("echo x > out", [], ["out"]))
    with running(workflow, threads, home, dir=tmp_path) as executor:
        finish(executor, 0, 0, 0)
        platform = executor.platform
    with running(workflow, threads, home, dir=tmp_path, known=platform) as executor:
        ends = [e for e in executor.recover([StartTask(0, 0, 0, 0.0)], []) if whom(e) == 0]
        assert TaskFinished in [type(e) for e in ends]
        (tmp_path / "out").unlink()
        again = executor.recover([StartTask(0, 0, 0, 0.0)], [(0, 0)])
        assert TaskFailed in [type(e) for e in again]
        assert ItemLost in [type(e) for e in again]


def test_an_unpicklable_argument_is_named(threads: str, home: Path) -> None:
    calls = [Call(add, (threading.Lock(),))]
    with running(functions(calls, {}), threads, home, calls) as executor:
        executor.perform(StartTask(0, 0, 0, 0.0))
        with pytest.raises(InputError, match="cannot be pickled"):
            executor.next_event(wait=False)
