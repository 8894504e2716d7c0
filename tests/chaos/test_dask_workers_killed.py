"""Dask workers are killed at random moments: the run completes while one is left."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import foreplan
from chaos.runs import MODULUS, limited, sums
from foreplan.checks.runs import check_run
from foreplan.model.events import Event, ProcessorGone, TaskFinished
from foreplan.runs import Session
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent
from repeated import repetitions

pytest.importorskip("distributed")


def flow_of(sources: list[list[int]]) -> foreplan.Flow:
    def total(first: int, *others: int) -> int:  # an inner function travels whole
        time.sleep(0.02)
        return (first + sum(others)) % MODULUS

    flow = foreplan.Flow("sums")
    tasks: list[Any] = []
    for i, row in enumerate(sources):
        tasks.append(flow.task(total, i, *(tasks[k] for k in row), name=f"t{i}", cost=0.02))
    return flow


class Killer(Silent):
    """Kills a worker whenever so many tasks have finished."""

    def __init__(self, plan: dict[int, int]) -> None:
        self.plan, self.finished, self.gone = plan, 0, 0  # pids by the number of finished tasks

    def happened(self, session: Session, events: list[Event]) -> None:
        self.finished += sum(isinstance(event, TaskFinished) for event in events)
        self.gone += sum(isinstance(event, ProcessorGone) for event in events)
        for count in [count for count in self.plan if count <= self.finished]:
            os.kill(self.plan.pop(count), signal.SIGKILL)


@pytest.mark.parametrize("seed", repetitions(few=1, share=0.1))
def test_two_of_three_die(tmp_path: Path, seed: int) -> None:
    from foreplan_benchmarks.dask_cluster import cluster

    rng, work = random.Random(seed), sums(60, seed)
    flow = flow_of(work.sources)
    with limited(), cluster([1.0, 1.0, 1.0]) as client:
        pids = list(client.run(os.getpid).values())
        first, second = sorted(rng.sample(range(2, 45), 2))
        killer = Killer(dict(zip((first, second), rng.sample(pids, 2), strict=True)))
        outcome = foreplan.run(
            flow, client, "slack", dir=tmp_path, use_history=False, listener=killer
        )
        assert outcome.status == "finished", outcome.failures
        assert outcome.result(flow.tasks[-1]) == work.expected[-1]  # which all others lead to
    assert not killer.plan
    assert killer.gone == 2
    replayed = replay(read(outcome.home / "journal.jsonl"), tmp_path)
    replayed.driver.coordinator.check_state()
    check_run(replayed.run())
