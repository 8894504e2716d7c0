"""How fast the planners are: times, growth, memory, and a peer in the same run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InputError, UnaffordableError
from foreplan.generators import generate, generate_platform
from foreplan.model import Platform, Processor, Situation, Workflow

PEER_LIMIT = 200  # tasks: beyond that the pure Python peer takes minutes


@dataclass(frozen=True)
class Timing:
    """One planner on one instance: the best of several calls."""

    planner: str
    tasks: int
    processors: int
    edges: int
    milliseconds: float
    makespan: float


def instance(tasks: int, processors: int, out_degree: int = 5, seed: int = 1) -> Situation:
    """A random layered workflow with costs per processor, and a price of each."""
    workflow = generate(
        "random_layered", seed=seed, tasks=tasks, out_degree=out_degree, processors=processors
    )
    prices = np.random.default_rng(seed).uniform(1.0, 10.0, processors).tolist()
    platform = Platform.build([Processor(f"p{k}", price=price) for k, price in enumerate(prices)])
    return Situation.at_start(workflow, platform)


def midway(situation: Situation) -> Situation:
    """The same with a budget midway between the cheapest plan and HEFT's."""
    heft = registry.planner("heft").plan(situation).cost
    try:
        cheapest = registry.planner("loss1[budget=0]").plan(situation).cost
    except UnaffordableError as error:
        cheapest = error.cost
    return replace(situation, budget=(cheapest + max(heft, cheapest)) / 2)


def measure(planner: str, situation: Situation, seconds: float = 1.0) -> Timing:
    """The best call within about the given time."""
    chosen = registry.planner(planner)
    if registry.within_budget(chosen) is chosen:
        situation = midway(situation)
    best, spent, schedule = float("inf"), 0.0, None
    while schedule is None or (spent < seconds and spent + best < 4 * seconds):
        fresh = replace(situation)  # else what was worked out for it before is used again
        begun = time.perf_counter()
        schedule = chosen.plan(fresh)
        took = time.perf_counter() - begun
        best, spent = min(best, took), spent + took
    check_schedule(schedule, situation)
    workflow, platform = situation.workflow, situation.platform
    return Timing(
        planner=planner,
        tasks=workflow.n_tasks,
        processors=platform.n_processors,
        edges=workflow.n_edges,
        milliseconds=1000 * best,
        makespan=schedule.makespan,
    )


def growth(
    sizes: list[int],
    processors: list[int],
    limit: float = 1.0,
    progress: Callable[[float], None] = lambda share: None,
) -> Iterator[Timing]:
    """Every planner over sizes and processors; one that took longer than the limit stops there."""
    slow: set[tuple[str, int]] = set()
    cells = [(tasks, p) for tasks in sizes for p in processors]
    for number, (tasks, p) in enumerate(cells):
        progress(number / len(cells))
        situation = instance(tasks, p)
        for planner in registry.planner_names():
            if (planner, p) in slow:
                continue
            timing = measure(planner, situation, seconds=0.5)
            if timing.milliseconds > 1000 * limit:
                slow.add((planner, p))
            yield timing


@dataclass(frozen=True)
class Large:
    """One large plan in a process of its own: time and the process's peak memory."""

    tasks: int
    processors: int
    edges: int
    generate_seconds: float
    plan_seconds: float
    peak_gigabytes: float


def large(tasks: int, processors: int, out_degree: int) -> Large:
    """Plan in a fresh process, so that its peak memory is the plan's own."""
    code = (
        "import json, sys; from foreplan_benchmarks.plan_speed import _large_here;"
        "print(json.dumps(_large_here(*map(int, sys.argv[1:]))))"
    )
    command = [sys.executable, "-c", code, str(tasks), str(processors), str(out_degree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InputError(f"planning {tasks} tasks failed: {done.stderr.strip()[-500:]}")
    return Large(**json.loads(done.stdout))


def _large_here(tasks: int, processors: int, out_degree: int) -> dict[str, Any]:
    begun = time.perf_counter()
    situation = instance(tasks, processors, out_degree)
    generated = time.perf_counter()
    schedule = registry.planner("heft").plan(situation)
    planned = time.perf_counter()
    peak = peak_gigabytes()
    check_schedule(schedule, situation)
    result = Large(
        tasks=tasks,
        processors=processors,
        edges=situation.workflow.n_edges,
        generate_seconds=generated - begun,
        plan_seconds=planned - generated,
        peak_gigabytes=peak,
    )
    return asdict(result)


def peak_gigabytes() -> float:
    """The most memory that this process has had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


@dataclass(frozen=True)
class Peer:
    """HEFT by foreplan and by anrg-saga on the same instance."""

    tasks: int
    processors: int
    foreplan_milliseconds: float
    saga_milliseconds: float
    foreplan_makespan: float
    saga_makespan: float


def peer_installed() -> bool:
    """Return whether anrg-saga is installed; the extra `bench` has it."""
    return importlib.util.find_spec("saga") is not None


def against_saga(tasks: int, processors: int, seed: int = 1) -> Peer:
    """The same graph and machines (costs divided by speeds) through both."""
    from saga import Network, TaskGraph
    from saga.schedulers import HeftScheduler

    workflow = generate("random_layered", seed=seed, tasks=tasks, single_ends=True)
    platform = generate_platform(processors, seed=seed)
    ours = measure("heft", Situation.at_start(workflow, platform))
    graph, network = _saga_graph(workflow, TaskGraph), _saga_network(platform, Network)
    begun = time.perf_counter()
    theirs = HeftScheduler().schedule(network, graph)
    took = time.perf_counter() - begun
    return Peer(
        tasks, processors, ours.milliseconds, 1000 * took, ours.makespan, float(theirs.makespan)
    )


def _saga_graph(workflow: Workflow, task_graph: Any) -> Any:
    names = workflow.task_names
    items, producers, consumers = workflow.dependencies()
    return task_graph.create(
        tasks=list(zip(names, workflow.base_cost.tolist(), strict=True)),
        dependencies=[
            (names[i], names[j], float(workflow.item_size[k]))
            for k, i, j in zip(items, producers, consumers, strict=True)
        ],
    )


def _saga_network(platform: Platform, network: Any) -> Any:
    names, per_unit = platform.processor_names, platform.time_per_unit
    fast = 1e12  # inside a processor transfers take no time
    links: Callable[[int, int], float] = lambda a, b: fast if a == b else 1 / per_unit[a, b]  # noqa: E731
    return network.create(
        nodes=list(zip(names, platform.speed.tolist(), strict=True)),
        edges=[
            (x, y, float(links(a, b))) for a, x in enumerate(names) for b, y in enumerate(names)
        ],
    )
