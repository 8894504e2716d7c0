"""Real runs on Dask through the library: results, resumes, and moving from one place to another."""

from __future__ import annotations

import operator
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import InputError
from foreplan.model.events import Event, TaskFinished
from foreplan.runs import Outcome, Session
from foreplan.runs.session import Silent

pytest.importorskip("distributed")

from executors.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.have(2)
    yield cluster
    cluster.close()


class StopAfter(Silent):
    """Stops the run once so many tasks have finished."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks

    def happened(self, session: Session, events: list[Event]) -> None:
        done = [e for e in session.driver.events or () if isinstance(e, TaskFinished)]
        if len(done) >= self.tasks and not session.stopping:
            session.stop()


def sums() -> tuple[foreplan.Flow, Any]:
    """Twelve tasks; what they come to is 36."""
    flow = foreplan.Flow("sums")
    numbers = [flow.task(operator.add, k, 1, cost=0.01) for k in range(8)]
    pairs = [flow.task(sum, numbers[k : k + 4], cost=0.01) for k in (0, 4)]
    return flow, flow.task(sum, pairs, cost=0.01)


def dask(cluster: Cluster) -> str:
    return cluster.address.replace("tcp://", "dask://")


def test_values_that_others_use(cluster: Cluster, data: Path) -> None:
    dask = pytest.importorskip("dask")
    one = dask.delayed(operator.add)(1, 2)
    two = dask.delayed(operator.mul)(one, 5)
    assert foreplan.compute(two, one, client=cluster.client, dir=data) == (15, 3)


@pytest.mark.parametrize(
    ("keep_results", "kept"),
    [(None, {1, 500, 50_000, 300_000}), (True, {1, 500, 50_000, 300_000, 2_000_000}), (False, {1})],
)
def test_which_results_between_are_kept(
    cluster: Cluster, data: Path, keep_results: bool | None, kept: set[int]
) -> None:
    """Those of 1 byte and 3 MB are asked for by their tasks; 2 MB are too many by default."""
    flow = foreplan.Flow("sizes")
    asked = {1, 3_000_000}
    sizes = [1, 500, 50_000, 300_000, 2_000_000, 3_000_000]
    parts = {n: flow.task(operator.mul, b"x", n, keep=n in asked) for n in sizes}
    total = flow.task(operator.add, flow.task(b"".join, [*parts.values()], name="all"), b"")
    run = foreplan.run(flow, dask(cluster), dir=data, keep_results=keep_results)
    check_run(run.run)
    assert len(run.result(total)) == sum(sizes)
    for size, task in parts.items():
        if size in kept | asked:
            assert run.result(task) == b"x" * size
        else:
            with pytest.raises(foreplan.ForeplanError, match="was not kept"):
                run.result(task)
    assert foreplan.run(flow, dask(cluster), dir=data, keep_results=keep_results).id == ""


@pytest.mark.parametrize("strategy", ["slack", "fifo", "always"])
def test_stopped_and_gone_on_with(cluster: Cluster, data: Path, strategy: str) -> None:
    flow, total = sums()
    stopped = foreplan.run(flow, dask(cluster), strategy, dir=data, listener=StopAfter(5))
    assert stopped.status == "stopped"
    again = foreplan.run(flow, dir=data, resume=stopped.id)  # there, as it began
    assert again.result(total) == 36
    check_run(again.run)
    assert set(again.run.platform.processor_names) == {"worker-0", "worker-1"}


FILES = {
    "name": "files",
    "tasks": {
        **{
            f"a{k}": {"run": f"echo {k} > a{k}", "outputs": [f"a{k}"], "cost": 0.01}
            for k in range(4)
        },
        "all": {
            "run": "cat a0 a1 a2 a3 > all",
            "inputs": [f"a{k}" for k in range(4)],
            "outputs": ["all"],
            "cost": 0.01,
        },
    },
}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("to", ["local:1", "local:3", "dask"])
def test_moved(cluster: Cluster, data: Path, shared: bool, to: str) -> None:
    """What was only in the memory of workers is made again, what is on disk is not."""
    options: dict[str, Any] = {"dir": data, "listener": StopAfter(2), "shared": shared}
    stopped = foreplan.run(FILES, dask(cluster), "slack", **options)
    assert stopped.status == "stopped"
    place = dask(cluster) if to == "dask" else to
    again: Outcome = foreplan.run(FILES, place, dir=data, resume=stopped.id)
    assert again.status == "finished", again.failures
    assert (data / "all").read_text().split() == ["0", "1", "2", "3"]
    check_run(again.run)
    assert (again.run.rewound == 0) == shared


def test_moved_from_here_to_dask(cluster: Cluster, data: Path) -> None:
    stopped = foreplan.run(FILES, "local:2", "slack", dir=data, listener=StopAfter(2))
    again = foreplan.run(FILES, dask(cluster), dir=data, resume=stopped.id)
    assert again.status == "finished", again.failures
    assert (data / "all").read_text().split() == ["0", "1", "2", "3"]


def test_what_dask_cannot_do_is_said(cluster: Cluster, data: Path) -> None:
    flow = foreplan.Flow("f")
    flow.task(abs, -1, timeout=10)
    outcome = foreplan.run(flow, dask(cluster), dir=data)
    assert any("time-outs of functions" in warning for warning in outcome.warnings)
    assert outcome.ok


def test_commands_are_strict_there_too(cluster: Cluster, data: Path) -> None:
    (data / "tool.sh").write_text("echo 1")
    tasks = {
        "pipe": {"run": "false | cat > a", "outputs": ["a"]},
        "other": {"run": "false; echo 1 > b", "outputs": ["b"], "shell": "sh"},
        "named": {"run": "sh tool.sh > c", "outputs": ["c"]},
        "shell": {"run": "true", "shell": "nosh"},
    }
    outcome = foreplan.run({"tasks": tasks}, dask(cluster), dir=data, keep_going=True)
    assert outcome.not_done == ("pipe", "named", "shell")
    assert [f.reason for f in outcome.failures if f.task != "named"] == [
        "it exited with code 1",
        "its shell 'nosh' is not on this machine",
    ]
    # only inputs travel; what is named besides is told
    assert [f.unlisted for f in outcome.failures] == [(), ("tool.sh",), ()]


def test_what_a_pattern_matches_here_must_travel(cluster: Cluster, data: Path) -> None:
    for k in (1, 2):
        (data / f"{k}.csv").write_text(f"{k}\n")
    use: dict[str, Any] = {"run": "for f in *.csv; do cat $f; done > all", "outputs": ["all"]}
    with pytest.raises(InputError, match=r"use names \*.csv, and so 1.csv, which does not travel"):
        foreplan.run({"tasks": {"use": use}}, dask(cluster), dir=data)
    assert not (data / ".foreplan").exists()
    listed = {"tasks": {"use": {**use, "inputs": ["1.csv", "2.csv"]}}}
    for work, shared in ((listed, False), ({"tasks": {"use": use}}, True)):
        assert foreplan.run(work, dask(cluster), dir=data, shared=shared).ok
        assert (data / "all").read_text() == "1\n2\n"


def test_two_runs_at_once(cluster: Cluster, data: Path) -> None:
    flow, total = sums()
    results = []

    def go() -> None:
        results.append(foreplan.run(flow, dask(cluster), dir=data).result(total))

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [36, 36]


def test_results_that_are_not_there(cluster: Cluster, data: Path) -> None:
    flow = foreplan.Flow("quotients")
    one = flow.task(operator.truediv, 2, 2, name="one")
    read = flow.task(operator.neg, one, name="read")
    bad = flow.task(operator.truediv, one, 0, name="bad")
    run = foreplan.run(flow, dask(cluster), dir=data, keep_going=True, keep_results=False)
    assert run.result(read) == -1
    with pytest.raises(ZeroDivisionError, match="division by zero") as caught:
        run.result(bad)
    assert "task 'bad' failed" in str(caught.value.__cause__)
    with pytest.raises(
        foreplan.ForeplanError, match="result of task 'one' was not kept, as other tasks"
    ):
        run.result(one)


class Watched(Silent):
    """Looks at what is on its way whenever something is shown."""

    def __init__(self) -> None:
        self.ahead: set[int] = set()
        self.unsent = 0

    def happened(self, session: Session, events: list[Event]) -> None:
        given: Any = session.machines._given  # type: ignore[attr-defined]
        self.ahead |= set(given.ahead)
        self.unsent += sum(
            s.attempt is not None and s.future is None for s in given.by_key.values()
        )


def test_nobody_waits_for_what_may_be_begun(cluster: Cluster, data: Path) -> None:
    """Tasks are on their way before anything is shown, and one of 0.1 s may be begun ahead."""
    flow, watched = foreplan.Flow("naps"), Watched()
    for _ in range(12):
        flow.task(time.sleep, 0.02, cost=0.1)
    outcome = foreplan.run(flow, dask(cluster), "static", dir=data, listener=watched)
    assert outcome.ok
    check_run(outcome.run)
    assert watched.unsent == 0
    assert len(watched.ahead) > 4


def noted(folder: Path, name: str) -> list[int]:
    """A result of some kilobytes; and a line for each call."""
    with (folder / "ran").open("a") as file:
        file.write(f"{name}\n")
    return [len(name)] * 5000


def gathered(folder: Path, *parts: list[int]) -> int:
    noted(folder, "gathered")
    while not (folder / "go").exists():
        time.sleep(0.01)
    return sum(part[0] for part in parts)


class KillWorker(Silent):
    """Kills the worker on which the last task runs, once all other results are at home."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.is_done = False

    def happened(self, session: Session, events: list[Event]) -> None:
        ran = self.folder / "ran"
        waits = self.is_done or session.machines._fetches.keys  # type: ignore[attr-defined]
        if waits or "gathered" not in (ran.read_text() if ran.exists() else ""):
            return
        (attempt,) = session.coordinator.state.running()
        self.cluster.kill(session.machines.platform.processor_names[attempt.processor])
        (self.folder / "go").touch()
        self.is_done = True


def test_results_outlive_their_worker(cluster: Cluster, data: Path, tmp_path: Path) -> None:
    flow = foreplan.Flow("losing")
    parts = [flow.task(noted, tmp_path, f"part-{k}") for k in range(6)]
    last = flow.task(gathered, tmp_path, *parts)
    try:
        listener = KillWorker(cluster, tmp_path)
        run = foreplan.run(flow, dask(cluster), dir=data, listener=listener)
        assert run.result(last) == 36
        check_run(run.run)
    finally:
        cluster.have(2)
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(ran) == ["gathered", "gathered", *(f"part-{k}" for k in range(6))]


def test_a_task_that_kills_its_workers_is_blamed(cluster: Cluster, data: Path) -> None:
    """Four deaths are too many, as for Dask; nobody starts a worker again here."""
    cluster.have(5)
    flow = foreplan.Flow("killer")
    other = flow.task(abs, -1)
    flow.task(os._exit, 7, after=other, name="killer")
    outcome = foreplan.run(flow, dask(cluster), dir=data, keep_going=True)
    [left] = cluster.client.run(os.getpid)
    cluster.have(2)
    [failure] = outcome.failures
    assert (outcome.status, failure.task, failure.cause) == ("failed", "killer", "lost")
    assert failure.reason.startswith("its worker died 4 times: tcp://")
    named = set(failure.reason.partition(": ")[2].split(", "))
    assert (len(named), left in named) == (4, False)
