"""Workers of Dask with several threads, memory and resources: hosts of which tasks hold parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executors.bench import until
from executors.cluster import Cluster
from executors.waiting import next_event
from foreplan.executors.allotments import OF_CORES, OF_MEMORY
from foreplan.executors.base import Workload
from foreplan.executors.dask.messages import Worker
from foreplan.executors.dask.scheme import SCHEME
from foreplan.executors.gpus import VISIBLE
from foreplan.model import Call, Item, TaskSpec, Workflow
from foreplan.model.amounts import Amount
from foreplan.model.events import (
    CancelTask,
    ItemArrived,
    Prepare,
    ProcessorGone,
    SendItem,
    StartTask,
    TaskFailed,
    TaskFinished,
)
from foreplan.model.resources import Request

pytest.importorskip("distributed")

LARGE = {"nthreads": 2, "memory_limit": 10**9, "resources": {"GPU": 2, "licence": 1}}
ASKS = Request(cores=(1, 2), memory=Amount("100MB"), gpus=1)
SEEN = (OF_CORES, OF_MEMORY, "OMP_NUM_THREADS", VISIBLE)
PRINTED = "echo " + " ".join(f"{name}=${{{name}-}}" for name in SEEN)


class Trial:
    """An executor on workers of two threads."""

    def __init__(self, cluster: Cluster, folder: Path, commands: list[str], **more: Any) -> None:
        from foreplan.executors.dask.executor import DaskExecutor

        self.names = cluster.have(2, **more.pop("workers", LARGE))
        request = more.pop("request", ASKS)
        n = len(commands)
        specs = {t: TaskSpec(run=text, request=request) for t, text in enumerate(commands)}
        reads = range(1, n) if more.pop("chained", False) else ()
        items = [Item(1.0, t, [t + 1] if t + 1 in reads else [], f"t{t}.out") for t in range(n)]
        if more.get("calls") is not None:
            items = []
        workflow = Workflow.from_items(
            "w", [f"t{t}" for t in range(n)], [1.0] * n, items, specs=specs
        )
        home = folder / ".foreplan" / "runs" / "one"
        home.mkdir(parents=True)
        work = Workload(workflow, directory=folder, **more)
        self.executor = DaskExecutor(work, cluster.address, home, lambda: 0.0)
        self.attempts = 0

    def start(self, task: int, *cores: int, amounts: tuple[float, ...] = (1e8, 1.0)) -> int:
        self.attempts += 1
        self.executor.perform(StartTask(self.attempts, task, cores[0], 0.0, cores, amounts))
        self.executor.flush()
        return self.attempts

    def end(self) -> Any:
        return next_event(self.executor)


@pytest.fixture
def trial(tmp_path: Path, conformance_cluster: Cluster) -> Iterator[Any]:
    opened: list[Trial] = []

    def open(*commands: str, **more: Any) -> Trial:
        opened.append(Trial(conformance_cluster, tmp_path, list(commands), **more))
        return opened[-1]

    yield open
    for each in opened:
        each.executor.close()


def test_a_worker_is_a_host(trial: Any, conformance_cluster: Cluster) -> None:
    platform = trial("true").executor.platform
    assert (platform.n_processors, platform.n_hosts) == (4, 2)
    assert platform.host.tolist() == [0, 0, 1, 1]
    for host in platform.hosts:
        assert host.amounts == {"memory": 1e9, "gpus": 2.0, "licence": 1.0}
    address = conformance_cluster.address.partition("://")[2]
    looked, machines = SCHEME.look(f"dask://{address}")
    assert looked.hosts == platform.hosts
    assert len(machines) == 4


@pytest.mark.parametrize(
    ("resources", "memory", "amounts"),
    [
        ({}, 0, {}),
        ({"GPU": 1}, 5, {"gpus": 1, "memory": 5}),
        ({"MEMORY": 3, "foo": 2}, 5, {"memory": 3, "foo": 2}),
        ({"memory": 9}, 5, {"memory": 5}),
    ],
)
def test_resources_of_workers(
    resources: dict[str, float], memory: float, amounts: dict[str, float]
) -> None:
    assert Worker("w", 1, "h", memory, resources).amounts == amounts


def seen(path: Path) -> dict[str, str]:
    return dict(word.split("=", 1) for word in path.read_text().split())


def test_commands_hold_gpus_of_their_worker(trial: Any, tmp_path: Path) -> None:
    """Each has its own; one that was cancelled keeps its own until it is dead."""
    gate = tmp_path / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.02; done"
    commands = [f"{PRINTED} | tee t{k}.out > {tmp_path}/t{k}.seen; {wait}" for k in range(3)]
    commands[1] = "trap '' TERM; " + commands[1]
    t = trial(*commands, shared=True)
    t.start(0, 0)
    second = t.start(1, 1)
    places = [tmp_path / f"t{k}.seen" for k in range(3)]
    until(lambda: all(p.exists() and p.read_text() for p in places[:2]), "both have begun")
    told = [seen(place) for place in places[:2]]
    assert {each[VISIBLE] for each in told} == {"0", "1"}
    assert [each[OF_CORES] for each in told] == ["1", "1"]
    assert told[0][OF_MEMORY] == "100000000"
    t.executor.perform(CancelTask(second, 0.0, at_once=True))
    t.start(2, 1)
    until(lambda: places[2].exists() and places[2].read_text(), "the third has begun")
    assert seen(places[2])[VISIBLE] == told[1][VISIBLE]
    gate.touch()
    assert [type(t.end()), type(t.end())] == [TaskFinished, TaskFinished]


def test_a_wide_command(trial: Any, tmp_path: Path) -> None:
    t = trial(PRINTED + " > t0.out", shared=True)
    t.start(0, 2, 3, amounts=(2e8, 2.0))
    assert isinstance(t.end(), TaskFinished)
    assert seen(tmp_path / "t0.out") == {
        OF_CORES: "2", OF_MEMORY: "200000000", "OMP_NUM_THREADS": "2", VISIBLE: "0,1",
    }  # fmt: skip


def test_a_command_on_a_worker_is_held_to_its_memory(trial: Any) -> None:
    t = trial("python3 -c 'bytearray(150 * 10**6)' && touch t0.out", limit=True)
    t.start(0, 0)
    end = t.end()
    assert isinstance(end, TaskFailed)
    assert end.detail is not None
    assert end.detail["cause"] == "out-of-memory"
    assert "it asked for 100 MB" in end.detail["reason"]
    t.start(0, 0, amounts=(1e9, 0.0))
    assert isinstance(t.end(), TaskFinished)


def test_with_a_shared_directory_files_outlive_their_host(
    trial: Any, tmp_path: Path, conformance_cluster: Cluster
) -> None:
    """Workers are hosts where tasks ask for something; nothing need be sent all the same."""
    t = trial("echo a > t0.out", "cp t0.out t1.out", shared=True, chained=True)
    platform = t.executor.platform
    assert platform.n_hosts == 2
    assert not platform.time_per_unit.any()
    t.start(0, 0)
    assert isinstance(t.end(), TaskFinished)
    t.executor.perform(SendItem(0, 0, 0, 1, 0.0))
    assert isinstance(t.end(), ItemArrived)
    conformance_cluster.kill(platform.processor_names[0].partition("#")[0])
    assert sorted((type(e), e.processor) for e in (t.end(), t.end())) == [
        (ProcessorGone, 0),
        (ProcessorGone, 1),
    ]
    t.start(1, 2)
    assert isinstance(t.end(), TaskFinished)
    assert (tmp_path / "t1.out").read_text() == "a\n"


def test_where_nobody_asks_a_shared_directory_is_one_host(trial: Any) -> None:
    platform = trial("true", shared=True, request=None).executor.platform
    assert (platform.n_hosts, platform.hosts) == (1, ())


def test_nothing_is_begun_ahead_where_tasks_hold_more_than_a_thread(trial: Any) -> None:
    """Dask would begin it on a thread that stands idle for another's cores."""
    call = Call(eval("lambda: 7", {}))
    t = trial("", "", calls=[call, call])
    assert (t.executor.ahead, t.executor.alone) == (0.0, 0.0)
    t.executor.perform(Prepare(0, (0, 1), 0.0))
    assert not t.executor._given.ahead
    t.start(0, 0, 1)
    assert isinstance(t.end(), TaskFinished)
    assert t.executor.result(0) == 7


def test_nor_where_memory_is_learnt(trial: Any) -> None:
    call = Call(eval("lambda: 7", {}))
    t = trial("", "", calls=[call, call], request=None)
    assert t.executor.ahead > 0
    t.start(0, 0)
    assert t.executor.ahead == 0
    assert isinstance(t.end(), TaskFinished)


def test_what_cannot_be_held_is_told() -> None:
    workflow = Workflow.from_items("w", ["a"], [1.0], [], specs={0: TaskSpec(run="true")})
    commands, functions = Workload(workflow, limit=True), Workload(workflow, [], limit=True)
    assert "cores are not" in SCHEME.ways(commands)[0]
    assert SCHEME.limits(commands) == []
    assert "they share their worker's process" in SCHEME.limits(functions)[0]
