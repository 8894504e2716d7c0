"""What weft itself costs: tasks that do nothing, beside the barest way to run them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from weft import api
from weft.experiments.dask_cluster import cluster
from weft.experiments.dask_speed import own_history
from weft.flow import Flow
from weft.model import Workflow

GOALS = {"dask functions": 0.8, "local commands": 0.7}


@dataclass(frozen=True)
class Overhead:
    """Tasks per second, bare and by weft, in turns; the best of each."""

    what: str
    tasks: int
    bare: float
    weft: float
    cpu_milliseconds: float  # of weft's own process, per task

    @property
    def ratio(self) -> float:
        """weft's throughput over the bare one."""
        return self.weft / self.bare

    @property
    def verdict(self) -> str:
        """Whether it is where it should be."""
        goal = GOALS[self.what]
        return "as it should be" if self.ratio >= goal else f"missed: goal {goal}"


def noop(number: int) -> int:
    """Nothing."""
    return number


def dask_functions(tasks: int = 10_000, repeats: int = 3) -> Overhead:
    """Functions that do nothing, on two Dask workers: plain futures, and weft."""

    def bare(client: Any, turn: int) -> None:
        futures = client.map(noop, range(tasks), key=[f"bare-{turn}-{k}" for k in range(tasks)])
        client.gather(futures)

    def ours(client: Any, folder: str) -> None:
        flow = Flow("noops")
        for number in range(tasks):
            flow.task(noop, number, cost=0.001)
        outcome = api.run(flow, client, "static", dir=folder)
        assert outcome.ok, outcome.failures

    with cluster((1.0, 1.0)) as client, own_history() as folder:
        return _in_turns(
            "dask functions",
            tasks,
            repeats,
            lambda turn: bare(client, turn),
            lambda turn: ours(client, folder),
        )


def local_commands(tasks: int = 1_000, processors: int = 2, repeats: int = 3) -> Overhead:
    """The command `true`, by a pool of threads, and by weft."""
    content = {"name": "trues", "tasks": {f"t{k}": {"run": "true"} for k in range(tasks)}}
    workflow: Workflow = api.load(content)

    def bare(turn: int) -> None:
        with ThreadPoolExecutor(processors) as pool:
            run = list(pool.map(lambda k: subprocess.run("true", shell=True), range(tasks)))
        assert all(process.returncode == 0 for process in run)

    with own_history() as folder:

        def ours(turn: int) -> None:
            outcome = api.run(workflow, f"local:{processors}", dir=folder)
            assert outcome.ok, outcome.failures

        return _in_turns("local commands", tasks, repeats, bare, ours)


def _in_turns(
    what: str,
    tasks: int,
    repeats: int,
    bare: Callable[[int], None],
    ours: Callable[[int], None],
) -> Overhead:
    """The best time of each, taken in turns; weft's first turn also imports."""
    bare_seconds, seconds, cpu = [], [], []
    ours(-1)
    for turn in range(repeats):
        begun = time.perf_counter()
        bare(turn)
        bare_seconds.append(time.perf_counter() - begun)
        begun, used = time.perf_counter(), time.process_time()
        ours(turn)
        seconds.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - used)
    return Overhead(
        what, tasks, tasks / min(bare_seconds), tasks / min(seconds), 1000 * min(cpu) / tasks
    )
