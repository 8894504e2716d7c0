"""The cases of GTP (Hernandez, Cole): graphs, machines and scenarios drawn from a seed.

The paper names sizes, CCRs, bounds and the number of processors. The rest is chosen here: see
docs/results/gtp/README.md.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from foreplan import api
from foreplan.errors import InputError
from foreplan.files import printable
from foreplan.formats import load
from foreplan.generators import generate
from foreplan.generators.costs import Costs, to_workflow
from foreplan.generators.graph import Graph as Shape
from foreplan.generators.platform import generate_platform
from foreplan.model import Estimates, Workflow
from foreplan.scheduling.nsl import mean_path
from foreplan.simulation import reality, scenarios
from foreplan.simulation.reality import Reality
from foreplan.simulation.scenario import Scenario

# sections 6.1 and 6.2
SIZES = (50, 100, 300, 500, 1000)
CCRS = (0.1, 0.5, 1.5)
BOUNDS = tuple(k / 10 for k in range(10))
PROCESSORS = 10
MAIN_SIZE, MAIN_CCR = 300, 0.5  # SCE10-300
METHODS = ("sameprob", "samepred", "layrprob", "layrpred")

# not in the paper
EVENT_RATE = 2.0  # changes of each processor and link in the makespan that HEFT plans
BETA = 1.0  # a task's cost on a processor is 0.5 to 1.5 of its mean
SPREAD = 1.0  # a link's bandwidth is 0.5 to 1.5 of the mean


@dataclass(frozen=True, order=True)
class Graph:
    """A graph with its machines, by its parameters; `number` tells the method and the draws."""

    size: int = MAIN_SIZE
    ccr: float = MAIN_CCR
    number: int = 0
    seed: int = 0
    predecessors: float = 0.0  # of a task, in the mean; 0: as the methods have them
    spread: float = SPREAD
    beta: float = BETA
    stg: str = ""  # the folder that has the shapes instead


@dataclass(frozen=True)
class Case:
    """What happens to a graph's machines, and how far real durations are off the estimates."""

    bound: float = 0.4
    rate: float = EVENT_RATE
    failures: int = 0
    error: float = 0.0
    shared: bool = False  # transfers share the links; only at 0%


class Instance:
    """A graph drawn: the same tasks and the same events for any CCR, bound, or spread."""

    def __init__(self, graph: Graph) -> None:
        rng = np.random.default_rng([graph.seed, graph.size, graph.number])
        one, two, self.world = rng.integers(2**31, size=3).tolist()
        self.workflow = _workflow(graph, one)
        self.platform = generate_platform(
            PROCESSORS, heterogeneity=0.0, bandwidth_spread=graph.spread, price=0.0, seed=two
        )
        self.estimates = Estimates.declared(self.workflow, self.platform)
        self.planned = api.plan(self.workflow, self.platform, "heft").makespan
        self.path = mean_path(self.workflow, self.estimates.cost)
        self.work = float(self.estimates.cost.mean(axis=1).sum())

    def truth(self, case: Case) -> Reality:
        """The real durations, and the events of the scenario."""
        wf, pf = self.workflow, self.platform
        drawn = reality.draw(wf, pf, self.estimates, case.error, self.world)
        scenario = Scenario(case.bound, case.rate, case.failures)
        return scenarios.with_scenario(drawn, pf, scenario, self.planned, self.world)


def _workflow(graph: Graph, seed: int) -> Workflow:
    if graph.stg:
        costs = Costs(ccr=graph.ccr, beta=graph.beta, processors=PROCESSORS)
        found = shapes(graph.stg)[graph.size]
        name, shape = found[graph.number % len(found)]
        return to_workflow(name, shape, costs, np.random.default_rng(seed))
    method = METHODS[graph.number % len(METHODS)]
    options = {"ccr": graph.ccr, "beta": graph.beta, "processors": PROCESSORS}
    if graph.predecessors > 0:  # a probability gives the same graphs as the mean it makes for
        method = method.replace("prob", "pred")
        options["predecessors"] = graph.predecessors
    return generate(method, seed=seed, tasks=graph.size, **options)


Shapes = dict[int, list[tuple[str, Shape]]]  # by number of tasks, dummies not counted


@cache
def shapes(folder: str) -> Shapes:
    """The shapes of all files in a folder and below it, in the order of their paths."""
    found: Shapes = {}
    for path in stg_files(folder):
        workflow = load(path, resources=False)
        shape = _shape(workflow)
        if len(shape.producers):
            found.setdefault(workflow.n_tasks - 2 * shape.dummies, []).append((path.stem, shape))
    if not found:
        raise InputError("there is no .stg file with edges", source=printable(folder))
    return dict(sorted(found.items()))


def stg_files(folder: str) -> list[Path]:
    """All `.stg` files in a folder and below it."""
    if not Path(folder).is_dir():
        raise InputError("no such folder", source=printable(folder))
    return sorted(path for path in Path(folder).rglob("*.stg") if path.is_file())


def digest(folder: str) -> str:
    """What tells the files of a folder from others."""
    checksum = 0
    for path in stg_files(folder):
        checksum = zlib.crc32(path.read_bytes(), zlib.crc32(path.name.encode(), checksum))
    return f"{checksum:08x}"


def _shape(workflow: Workflow) -> Shape:
    """Tasks in a topological order; the dummies of the set stay without costs."""
    n = workflow.n_tasks
    _, producers, consumers = workflow.dependencies()
    producers, consumers = workflow.position[producers], workflow.position[consumers]
    order = np.lexsort((consumers, producers))
    cost = workflow.base_cost[workflow.order]
    alone = (
        (np.bincount(consumers, minlength=n) == 0).sum(),
        (np.bincount(producers, minlength=n) == 0).sum(),
    )
    dummies = n > 2 and alone == (1, 1) and cost[0] == 0 and cost[-1] == 0
    names = [workflow.task_names[task] for task in workflow.order.tolist()]
    return Shape(names, producers[order], consumers[order], dummies=bool(dummies))
