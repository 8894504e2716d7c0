"""GTP on Dask while workers are killed: right results, and only needed work is repeated."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from chaos.needed import check_only_needed
from chaos.runs import MODULUS, limited
from foreplan.checks.runs import check_run
from foreplan.model.events import Event, ProcessorGone, TaskFinished
from foreplan.runs import Outcome, Session
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.session import Silent
from repeated import repetitions

pytest.importorskip("distributed")

from executors.cluster import Cluster

N, WIDTH, WORKERS, KILLS = 220, 10, 4, 3
BYTES = (10, 10, 10, 50_000, 1_200_000)  # what a result weighs; the last moves as soon as made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


class Layers:
    """Values that flow along a random layered graph, and what they must come to."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.sources = [self._sources(rng, k) for k in range(N)]
        self.seconds = [rng.uniform(0.005, 0.06) for _ in range(N)]
        self.bytes = [rng.choice(BYTES) for _ in range(N)]
        read = {source for row in self.sources for source in row}
        self.products = [k for k in range(N) if k not in read]
        self.expected: list[int] = []
        for k, row in enumerate(self.sources):
            self.expected.append((k + sum((1 + i) * self.expected[i] for i in row)) % MODULUS)

    def _sources(self, rng: random.Random, k: int) -> list[int]:
        """Mostly of the layer before, some from long ago."""
        layer = k - k % WIDTH
        if layer == 0:
            return []
        near = rng.sample(range(layer - WIDTH, layer), rng.randint(1, 3))
        return sorted({*near, *rng.sample(range(layer), rng.choice((0, 0, 1)))})

    def flow(self) -> foreplan.Flow:
        def value(k: int, seconds: float, size: int, *read: tuple[int, int, bytes]) -> Any:
            time.sleep(seconds)  # an inner function travels whole
            return k, (k + sum((1 + i) * v for i, v, _ in read)) % MODULUS, bytes(size)

        flow, tasks = foreplan.Flow("layers"), list[Any]()
        for k, row in enumerate(self.sources):
            arguments = (k, self.seconds[k], self.bytes[k], *(tasks[i] for i in row))
            options: dict[str, Any] = {"cost": self.seconds[k], "size": self.bytes[k]}
            tasks.append(flow.task(value, *arguments, name=f"t{k}", **options))
        return flow

    def check(self, flow: foreplan.Flow, outcome: Outcome) -> None:
        found = {k: outcome.result(flow.tasks[k])[:2] for k in self.products}
        assert found == {k: (k, self.expected[k]) for k in self.products}


class Killer(Silent):
    """Kills workers, each when so many attempts have finished."""

    def __init__(self, cluster: Cluster, plan: dict[int, str]) -> None:
        self.cluster, self.plan, self.finished = cluster, plan, 0

    def happened(self, session: Session, events: list[Event]) -> None:
        self.finished += sum(isinstance(event, TaskFinished) for event in events)
        for count in [count for count in self.plan if count <= self.finished]:
            self.cluster.kill(self.plan.pop(count))


def checked(outcome: Outcome, directory: Path) -> None:
    """The validators find the run right, as it was and by its journal."""
    replayed = replay(read(RunHome(outcome.home).journal), directory)
    replayed.driver.coordinator.check_state()
    assert replayed.decisions == replayed.journalled
    check_run(outcome.run)
    check_run(replayed.run())


def three_of_four_die(cluster: Cluster, folder: Path, seed: int, strategy: str) -> dict[str, Any]:
    """A run in which workers are killed; what it was like."""
    rng, work = random.Random(seed), Layers(seed)
    flow = work.flow()
    cluster.have(WORKERS)
    names = rng.sample(sorted(w["name"] for w in _workers(cluster)), KILLS)
    killer = Killer(
        cluster, dict(zip(sorted(rng.sample(range(2, N - 20), KILLS)), names, strict=True))
    )
    moments = sorted(killer.plan)
    place = cluster.address.replace("tcp://", "dask://")
    with limited():
        outcome = foreplan.run(
            flow, place, strategy, dir=folder, use_history=False, listener=killer
        )
    assert outcome.status == "finished", outcome.failures
    work.check(flow, outcome)
    checked(outcome, folder)
    run = outcome.run
    assert [type(e) for e in run.changes].count(ProcessorGone) == KILLS
    counts = check_only_needed(run, reuse_copies="/c" in strategy)
    return {
        "kills": moments,
        "repeated": dict(counts),
        "migrations": run.migrations,
        "copies": run.copies_used,
        "levels": run.rewound_levels,
        "replans": run.replans,
        "makespan": round(run.makespan, 2),
    }


def _workers(cluster: Cluster) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = cluster.client.scheduler_info(n_workers=-1)["workers"]
    return list(found.values())


@pytest.mark.parametrize("seed", repetitions(few=1))
def test_three_of_four_die(cluster: Cluster, tmp_path: Path, seed: int) -> None:
    print(seed, three_of_four_die(cluster, tmp_path, seed, "gtp/c/r"))


@pytest.mark.parametrize("seed", repetitions(few=0, share=0.3))
@pytest.mark.parametrize("strategy", ["gtp", "gtp/c", "gtp/r"])
def test_under_the_others(cluster: Cluster, tmp_path: Path, seed: int, strategy: str) -> None:
    """Every strategy survives losses; without /c, copies on the way are worth less."""
    print(seed, strategy, three_of_four_die(cluster, tmp_path, seed, strategy))
