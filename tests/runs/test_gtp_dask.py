"""GTP on Dask: tasks migrate from workers that stand still, and to workers that come."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import foreplan
from chaos.runs import limited, until
from foreplan.model import Run
from foreplan.model.events import ProcessorGone, SpeedChanged
from foreplan.model.record import ENDS
from model.told import what
from runs.people import Somebody, checked

pytest.importorskip("distributed")

from executors.cluster import Cluster

STRATEGY = "gtp/c[period=0.1]"
LONG = 60.0  # seconds that a task is expected to take; in fact it waits for a file


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


def flow_of(data: Path, n: int, cost: float) -> tuple[foreplan.Flow, Any]:
    """Numbers that are made once a file is there, each with the mark of who has made it."""

    def make(k: int, folder: str) -> tuple[int, str]:
        import os
        import time
        import uuid
        from pathlib import Path

        mark = uuid.uuid4().hex
        Path(folder, f"begun{k}-{mark}-{os.getpid()}").touch()
        end = time.monotonic() + 60
        while not Path(folder, f"go{k}").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        Path(folder, f"ended{k}-{mark}").touch()
        return 10**k, mark

    def total(*made: tuple[int, str]) -> tuple[int, list[str]]:
        return sum(value for value, _ in made), [mark for _, mark in made]

    flow = foreplan.Flow("held")
    made = [flow.task(make, k, str(data), name=f"made{k}", cost=cost) for k in range(n)]
    return flow, flow.task(total, *made, name="total", cost=0.01)


def marks(data: Path, what: str, k: int) -> list[str]:
    """Who has begun with a number, or is through with it."""
    return [path.name.split("-")[1] for path in sorted(data.glob(f"{what}{k}-*"))]


def go(data: Path, *numbers: int) -> None:
    for k in numbers:
        (data / f"go{k}").touch()


@contextmanager
def stopped(cluster: Cluster) -> Iterator[Callable[[str], None]]:
    """Stops workers, which go on at the latest when this is over."""
    names: list[str] = []

    def stop(name: str) -> None:
        names.append(name)
        cluster.signal(name, signal.SIGSTOP)

    try:
        yield stop
    finally:
        for name in names:
            cluster.signal(name, signal.SIGCONT)


def run(
    data: Path, cluster: Cluster, act: Callable[[Somebody], None], n: int = 2, cost: float = LONG
) -> tuple[Run, list[str]]:
    """The run, found right, and the marks of those whose numbers were used."""
    flow, total = flow_of(data, n, cost)
    somebody, place = Somebody(act), cluster.address.replace("tcp://", "dask://")
    with limited(90):
        outcome = foreplan.run(flow, place, STRATEGY, dir=data, listener=somebody)
    assert somebody.error is None, somebody.error
    value, used = outcome.result(total)
    assert value == sum(10**k for k in range(n))
    assert all(mark in marks(data, "ended", k) for k, mark in enumerate(used))
    return checked(outcome), used


def attempts_at(run: Run, name: str) -> list[tuple[int, str]]:
    """The attempts at a task: where, and how they ended."""
    log, task = run.attempts, run.workflow.task_names.index(name)
    found = (log.task == task).nonzero()[0].tolist()
    return [(int(log.processor[k]), ENDS[log.end[k]]) for k in found]


def until_moved(me: Somebody, task: str, processor: int) -> None:
    """Until a task does not run there any more."""
    me.until(lambda: me.running().get(task) != processor)


@pytest.mark.parametrize("cost", [LONG, 0.5], ids=["in time", "overdue"])
def test_away_from_a_worker_that_stands_still(data: Path, cluster: Cluster, cost: float) -> None:
    cluster.have(2)
    moved: list[str] = []
    with stopped(cluster) as stop:

        def act(me: Somebody) -> None:
            me.until_running({0, 1})
            task = me.running_on(1)
            me.until(lambda: marks(data, "begun", int(task[-1])))
            stop(me.session.coordinator.platform.processor_names[1])
            me.until(lambda: any(what(e) == 0 for e in me.heard(SpeedChanged)))
            until_moved(me, task, 1)
            moved.append(task)
            go(data, 0, 1)

        outcome, _ = run(data, cluster, act, cost=cost)
        assert attempts_at(outcome, moved[0]) == [(1, "cancelled"), (0, "finished")]
        assert outcome.restarts == 1
        reasons = {e.reason for e in outcome.evaluations if e.taken and e.migrated}
        assert reasons == {"rescheduling point"}


def test_a_first_attempt_that_ends_after_all(data: Path, cluster: Cluster) -> None:
    """What comes of an attempt that was moved away is not taken for that of the next one."""
    cluster.have(2)
    both: list[tuple[int, str, str]] = []

    def act(me: Somebody) -> None:
        me.until_running({0, 1})
        task, other = me.running_on(1), me.running_on(0)
        number = int(task[-1])
        [first] = me.until(lambda: marks(data, "begun", number))
        me.session.machines.post(SpeedChanged(1, 0.0, 0.0))
        until_moved(me, task, 1)
        go(data, int(other[-1]))
        me.until(lambda: me.running() == {task: 0})
        [second] = me.until(lambda: set(marks(data, "begun", number)) - {first})
        both.append((number, first, second))
        go(data, number)  # both go on now

    outcome, used = run(data, cluster, act)
    [(number, first, second)] = both
    assert attempts_at(outcome, f"made{number}") == [(1, "cancelled"), (0, "finished")]
    assert used[number] == second
    until(lambda: first in marks(data, "ended", number), "the end of the first attempt")


def test_to_a_worker_that_comes_after_another_was_killed(data: Path, cluster: Cluster) -> None:
    cluster.have(2)

    def act(me: Somebody) -> None:
        me.until_running({0, 1})
        cluster.kill(me.session.coordinator.platform.processor_names[1])
        me.until(lambda: me.heard(ProcessorGone))
        me.until_running({0})
        cluster.add()
        me.until_running({0, 2})
        go(data, 0, 1, 2)

    outcome, _ = run(data, cluster, act, n=3)
    assert set(outcome.attempts.processor.tolist()) == {0, 1, 2}
    assert outcome.rewound == 0
    assert len(outcome.attempts.task) == 5  # what was killed was run again
