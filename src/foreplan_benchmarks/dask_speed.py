"""foreplan beside Dask's own scheduler, on workers of unequal speed, with the same functions."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from foreplan import api
from foreplan.flow import Flow
from foreplan.generators import generate
from foreplan.model import Workflow
from foreplan_benchmarks.dask_cluster import SPEED, cluster

SPEEDS = {
    "strong": tuple(float(s) for s in np.geomspace(4, 0.25, 8)),
    "mild": tuple(float(s) for s in np.linspace(1.5, 0.5, 8)),
    "equal": (1.0,) * 8,
    "few": (1.0,) * 3,
}
GOALS = {"strong": 0.75, "mild": 0.92, "equal": 1.02, "few": 1.1}
BLIND_GOALS = {"few": 1.1}
BLIND_GOAL = 1.05
FEW, NAPS = "few", 60  # equal tasks of 0.1 s on few equal workers: nothing to gain, but to lose
CPU_SPEEDS, CPU_SHARE = (4.0, 2.0, 1.0, 0.5), 0.2  # of a core
SHAPES = {
    "montage": {"images": 34},
    "fork_join": {"stages": 6, "width": 29},
}

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Pair:
    """One workflow by Dask alone, by foreplan blind, and with the history of that run."""

    speeds: str
    shape: str
    tasks: int
    dask: float
    blind: float
    history: float


@dataclass(frozen=True)
class Ratios:
    """Makespans of foreplan over those of Dask: medians of the pairs, and the worst."""

    speeds: str
    shape: str
    tasks: int
    pairs: int
    dask: float  # seconds
    blind: float
    worst_blind: float
    history: float
    worst_history: float

    @property
    def verdict(self) -> str:
        """Whether both medians are where they should be."""
        goal = GOALS.get(self.speeds, GOALS["strong"])
        met = self.blind <= BLIND_GOALS.get(self.speeds, BLIND_GOAL), self.history <= goal
        words = [w for w, ok in zip(("blind", f"history > {goal}"), met, strict=True) if not ok]
        return "as it should be" if all(met) else f"missed: {', '.join(words)}"


def nap(seconds: float, *inputs: Any) -> int:
    """A task that takes its seconds over the speed of its worker."""
    time.sleep(seconds / float(os.environ.get(SPEED, "1")))
    return len(inputs)


def burn(seconds: float, *inputs: Any) -> int:
    """A task of so many seconds of CPU time, whatever share of it the worker gets."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return len(inputs)


def seconds_of(workflow: Workflow, seed: int, unit: float) -> list[float]:
    """True durations at speed 1, 0.1 to 1 s times the unit: alike in a category, but not equal."""
    rng = np.random.default_rng([seed, 0xDA5])
    typical: dict[str, float] = {}
    result = []
    for task in range(workflow.n_tasks):
        mean = typical.setdefault(_category(workflow, task), rng.uniform(0.15, 0.8))
        result.append(float(np.clip(mean * rng.uniform(0.8, 1.2), 0.1, 1.0)) * unit)
    return result


def _category(workflow: Workflow, task: int) -> str:
    given = workflow.spec(task).category
    return given or workflow.task_names[task].split("_")[0]


def flow_like(workflow: Workflow, seconds: Sequence[float], work: Callable[..., int]) -> Flow:
    """The same graph as a flow of functions, whose costs are not declared."""
    flow, tasks = Flow(workflow.name), dict[int, Any]()
    _, producers, consumers = workflow.dependencies()
    parents: dict[int, list[int]] = {}
    for producer, consumer in zip(producers.tolist(), consumers.tolist(), strict=True):
        parents.setdefault(consumer, []).append(producer)
    for task in workflow.order.tolist():
        needed = [tasks[p] for p in sorted(set(parents.get(task, [])))]
        category = f"{workflow.name}-{_category(workflow, task)}"
        tasks[task] = flow.task(work, seconds[task], *needed, category=category)
    return flow


def by_dask(client: Any, flow: Flow) -> float:
    """The makespan of Dask's own scheduler: all submitted at once, it does the rest."""
    _, calls = flow.build()
    begun = time.perf_counter()
    futures: list[Any] = []
    for task, call in enumerate(calls):
        assert call is not None
        arguments = [futures[a.task] if hasattr(a, "task") else a for a in call.args]
        futures.append(client.submit(call.function, *arguments, key=f"own-{task}-{begun}"))
    client.gather(futures)
    taken = time.perf_counter() - begun
    client.cancel(futures)
    return taken


def by_foreplan(client: Any, flow: Flow, folder: str, strategy: str = "auto") -> float:
    """The makespan of foreplan with whatever history it has."""
    begun = time.perf_counter()
    outcome = api.run(flow, client, strategy, dir=folder, force=True, progress=False)
    taken = time.perf_counter() - begun
    if outcome.status == "stopped":  # by SIGTERM, which the run has handled in our place
        raise KeyboardInterrupt
    assert outcome.ok, outcome.failures
    return taken


@contextmanager
def own_history() -> Iterator[str]:
    """A folder for runs, and an empty history, while this lasts."""
    before = os.environ.get("FOREPLAN_HOME")
    with tempfile.TemporaryDirectory(prefix="foreplan-bench-") as folder:
        os.environ["FOREPLAN_HOME"] = os.path.join(folder, "history")
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["FOREPLAN_HOME"]
            else:
                os.environ["FOREPLAN_HOME"] = before


def pair(
    client: Any, speeds: str, shape: str, seed: int, unit: float, work: Callable[..., int] = nap
) -> Pair:
    """The three makespans of one workflow, one after the other on one cluster.

    The first pair of a process is foreplan's very first run: its imports, there and here, count.
    """
    flow = _naps(unit) if speeds == FEW else _graph(shape, seed, unit, work)
    tasks = flow.build()[0].n_tasks
    with own_history() as folder:
        order = (0, 1) if seed % 2 else (1, 0)  # neither always goes first
        taken: dict[int, float] = {}
        for which in order:
            taken[which] = (
                by_dask(client, flow) if which == 0 else by_foreplan(client, flow, folder)
            )
        known = by_foreplan(client, flow, folder)
    return Pair(speeds, shape, tasks, taken[0], taken[1], known)


def _graph(shape: str, seed: int, unit: float, work: Callable[..., int]) -> Flow:
    workflow = generate(shape, seed=seed, **SHAPES[shape])
    return flow_like(workflow, seconds_of(workflow, seed, unit), work)


def _naps(unit: float) -> Flow:
    flow = Flow("naps")
    for _ in range(NAPS):
        flow.task(nap, 0.1 * unit)
    return flow


def compare(
    which: Sequence[str],
    shapes: Sequence[str],
    pairs: int,
    unit: float,
    progress: Progress = lambda share: None,
) -> list[Pair]:
    """Pairs for every kind of cluster and every shape."""
    result = []
    for number, speeds in enumerate(which):
        with cluster(SPEEDS[speeds]) as client:
            for seed in range(pairs):
                for shape in shapes if speeds != FEW else ("naps",):
                    result.append(pair(client, speeds, shape, seed, unit))
                progress((number + (seed + 1) / pairs) / len(which))
    return result


def under_quotas(pairs: int, progress: Progress = lambda share: None) -> list[Pair]:
    """The same with real work, where quotas of CPU time make the workers unequal."""
    result = []
    with cluster(CPU_SPEEDS, CPU_SHARE) as client:
        for seed in range(pairs):
            result.append(pair(client, "cpu quotas", "fork_join", seed, CPU_SHARE, burn))
            progress((seed + 1) / pairs)
    return result


def ratios(pairs: Sequence[Pair]) -> list[Ratios]:
    """Medians and worst cases, by kind of cluster and shape."""
    kinds = dict.fromkeys((p.speeds, p.shape, p.tasks) for p in pairs)
    result = []
    for speeds, shape, tasks in kinds:
        own = [p for p in pairs if (p.speeds, p.shape) == (speeds, shape)]
        blind = [p.blind / p.dask for p in own]
        known = [p.history / p.dask for p in own]
        middle = statistics.median
        seconds = middle([p.dask for p in own])
        result.append(
            Ratios(
                speeds,
                shape,
                tasks,
                len(own),
                seconds,
                middle(blind),
                max(blind),
                middle(known),
                max(known),
            )
        )
    return result
