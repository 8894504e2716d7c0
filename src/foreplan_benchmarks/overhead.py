"""What foreplan itself costs: tasks that do nothing, beside the barest way to run them."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from foreplan import api
from foreplan.executors.command import usual_shell
from foreplan.flow import Flow
from foreplan.model import Workflow
from foreplan_benchmarks.dask_cluster import cluster
from foreplan_benchmarks.dask_speed import own_history

EACH, ONE = "commands, a directory each", "commands, one directory"
FUNCTIONS = "dask functions"
GOALS = {FUNCTIONS: 0.8, EACH: 0.85, ONE: 0.85}


@dataclass(frozen=True)
class Overhead:
    """Tasks per second, bare and by foreplan: the best turn of each, and the ratio of each turn."""

    what: str
    tasks: int
    bare: float
    foreplan: float
    ratios: tuple[float, ...]
    cpu_milliseconds: float  # of foreplan's own process, per task

    @property
    def ratio(self) -> float:
        """foreplan's throughput over the bare one: the median of the turns."""
        return statistics.median(self.ratios)

    @property
    def verdict(self) -> str:
        """Whether it is where it should be."""
        goal = GOALS[self.what]
        return "as it should be" if self.ratio >= goal else f"missed: goal {goal}"


def noop(number: int) -> int:
    """Nothing."""
    return number


def dask_functions(tasks: int = 10_000, repeats: int = 3) -> Overhead:
    """Functions that do nothing, on two Dask workers: plain futures, and foreplan."""

    def bare(client: Any, turn: int) -> None:
        futures = client.map(noop, range(tasks), key=[f"bare-{turn}-{k}" for k in range(tasks)])
        client.gather(futures)

    def ours(client: Any, folder: str) -> None:
        flow = Flow("noops")
        for number in range(tasks):
            flow.task(noop, number, cost=0.001)
        outcome = api.run(flow, client, "static", dir=folder, force=True, progress=False)
        assert outcome.ok, outcome.failures

    with cluster((1.0, 1.0)) as client, own_history() as folder:
        return _in_turns(
            {FUNCTIONS: lambda turn: bare(client, turn)},
            lambda turn: ours(client, folder),
            tasks,
            repeats,
        )[0]


def local_commands(tasks: int = 1_000, processors: int = 2, repeats: int = 5) -> list[Overhead]:
    """The command `true`, by as many threads as foreplan has processors, and by foreplan.

    The threads give it to the same shell with the same flags, in an empty directory of its own, as
    foreplan does, or all in one directory.
    """
    content = {"name": "trues", "tasks": {f"t{k}": {"run": "true"} for k in range(tasks)}}
    workflow: Workflow = api.load(content)
    program, strict = usual_shell()
    run = partial(
        subprocess.run,
        [program, "-c", strict + "true"],
        stdin=subprocess.DEVNULL,
        process_group=0,
        check=True,
    )

    def one_each(_: int) -> None:
        with tempfile.TemporaryDirectory(prefix="foreplan-bench-") as folder:
            run(cwd=folder)

    def bare(command: Callable[[int], Any]) -> None:
        with ThreadPoolExecutor(processors) as pool:
            list(pool.map(command, range(tasks)))

    with own_history() as folder:

        def ours(turn: int) -> None:
            outcome = api.run(
                workflow, f"local:{processors}", dir=folder, force=True, progress=False
            )
            assert outcome.ok, outcome.failures

        return _in_turns(
            {EACH: lambda turn: bare(one_each), ONE: lambda turn: bare(lambda _: run(cwd=folder))},
            ours,
            tasks,
            repeats,
        )


def _in_turns(
    bare: Mapping[str, Callable[[int], None]],
    ours: Callable[[int], None],
    tasks: int,
    repeats: int,
) -> list[Overhead]:
    """Each way and foreplan in turns; foreplan's first turn, with its imports, is left out."""
    seconds: dict[str, list[float]] = {what: [] for what in bare}
    own, cpu = list[float](), list[float]()
    ours(-1)
    for turn in range(repeats):
        for what, way in bare.items():
            seconds[what].append(_timed(way, turn))
        used = time.process_time()
        own.append(_timed(ours, turn))
        cpu.append(time.process_time() - used)
    return [
        Overhead(
            what,
            tasks,
            tasks / min(taken),
            tasks / min(own),
            tuple(b / o for b, o in zip(taken, own, strict=True)),
            1000 * min(cpu) / tasks,
        )
        for what, taken in seconds.items()
    ]


def _timed(way: Callable[[int], None], turn: int) -> float:
    begun = time.perf_counter()
    way(turn)
    return time.perf_counter() - begun
