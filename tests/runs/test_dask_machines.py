"""Workers that join a Dask run in its middle, and workers that are drained before they go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.engine.kernels import arrays as a
from foreplan.model.events import ProcessorGone, ProcessorLeaving
from foreplan.runs import Outcome
from runs.people import Somebody, checked, once_each, slow_bytes, wait_for

pytest.importorskip("distributed")

from executors.cluster import Cluster

BIG = 2_000_000  # bytes: what is moved as soon as it is made
N = 6
SIZES = [BIG if k % 2 else 100 for k in range(N)]
COST = 0.05  # seconds; in fact, too, else the run takes its processors for fast or slow ones


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


def flow_of(data: Path) -> tuple[foreplan.Flow, Any]:
    """Results of all sizes; once all are made, they are read by tasks that each wait for a file."""
    flow = foreplan.Flow("held")
    made = [flow.task(slow_bytes, SIZES[k], COST, name=f"made{k}", cost=COST) for k in range(N)]
    all_made = flow.task(wait_for, str(data), *made, name="all", cost=0.01, category="all")
    held = []
    for k, part in enumerate(made):
        arguments = (str(data / f"held{k}"), part, made[0], all_made)
        held.append(flow.task(wait_for, *arguments, name=f"held{k}", cost=1.0))
    return flow, flow.task(sum, held, name="total", cost=0.01)


TOTAL = sum(SIZES) + N * (SIZES[0] + sum(SIZES))


def run(data: Path, cluster: Cluster, somebody: Somebody, strategy: str) -> Outcome:
    flow, total = flow_of(data)
    place = cluster.address.replace("tcp://", "dask://")
    outcome = foreplan.run(flow, place, strategy, dir=data, listener=somebody)
    assert somebody.error is None, somebody.error
    assert outcome.result(total) == TOTAL
    return outcome


def let_go(data: Path, *names: str) -> None:
    for name in names or [f"held{k}" for k in range(N)]:
        (data / name).touch()


def until_held(me: Somebody, processors: int) -> None:
    """Until so many processors are at a task that waits."""
    me.until(lambda: sum(task.startswith("held") for task in me.running()) == processors)


def until_gone(me: Somebody) -> None:
    """Until a worker is; the run hears of it later if it counts on results of that worker."""
    machines: Any = me.session.machines
    me.until(lambda: me.heard(ProcessorGone) or machines._leaving._late)


def test_joined_in_the_middle(data: Path, cluster: Cluster) -> None:
    cluster.have(1)

    def act(me: Somebody) -> None:
        until_held(me, 1)
        with pytest.raises(
            foreplan.ForeplanError, match=r"join by themselves.*`dask worker tcp://"
        ):
            me.ask(add=1)
        cluster.add()
        cluster.add()
        until_held(me, 3)  # nothing has ended meanwhile
        let_go(data)

    outcome = checked(run(data, cluster, Somebody(act), "aheft"))
    assert once_each(outcome)
    assert set(outcome.attempts.processor.tolist()) == {0, 1, 2}
    taken = [e for e in outcome.evaluations if e.reason.endswith("joined") and e.taken]
    assert taken
    assert all(e.makespan < e.projected for e in taken)


@pytest.mark.parametrize("strategy", ["aheft", "static", "fifo"])
def test_drained_before_it_goes(data: Path, cluster: Cluster, strategy: str) -> None:
    """No task is lost: each has one attempt, and none fails or is made again."""
    cluster.have(2)

    def act(me: Somebody) -> None:
        until_held(me, 2)
        name = me.session.coordinator.platform.processor_names[1]
        me.ask(drain=(name,))
        let_go(data, me.running_on(1))
        me.until_running({0})
        me.until(lambda: not cluster.only_on(name))
        cluster.kill(name)
        until_gone(me)
        let_go(data)

    outcome = checked(run(data, cluster, Somebody(act), strategy))
    assert once_each(outcome)
    assert outcome.rewound == 0
    assert set(outcome.attempts.end.tolist()) == {a.FINISHED}


@pytest.mark.parametrize("strategy", ["aheft", "fifo"])
@pytest.mark.parametrize("idle", [True, False])
def test_retired_by_dask(data: Path, cluster: Cluster, idle: bool, strategy: str) -> None:
    """Dask does not wait for what runs there; that, and nothing else, is run again."""
    cluster.have(3 if idle else 2)

    def act(me: Somebody) -> None:
        processors = 3 if idle else 2
        until_held(me, processors)
        p = processors - 1
        name = me.session.coordinator.platform.processor_names[p]
        if idle:
            me.ask(drain=(name,))
            let_go(data, me.running_on(p))
            me.until_running({0, 1})
        cluster.retire(name)
        until_gone(me)
        let_go(data)

    outcome = checked(run(data, cluster, Somebody(act), strategy))
    assert ProcessorLeaving in [type(e) for e in outcome.changes]
    assert outcome.rewound == 0
    assert len(outcome.attempts.task) == outcome.workflow.n_tasks + (not idle)
