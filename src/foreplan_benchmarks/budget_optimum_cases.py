"""Small random instances in whole numbers, with a price on every machine, and their budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.errors import InputError
from foreplan.generators import generate
from foreplan.model import Platform, Processor, Schedule, Situation, Workflow

FAMILIES = ("fft", "fork_join", "laplace", "random_layered")
MACHINES = 3
LEAST_TASKS, MOST_TASKS = 9, 20
MEAN_COST = 50.0  # before rounding: a task takes 1 to about 250
SLOWEST = 2.0  # the slowest machine takes up to so many times as long as the fastest
DEAREST = 40.0  # the price per second of a machine of slowness 1
CCRS = (0.2, 1.0, 3.0)
BETA = 0.5


@dataclass(frozen=True, eq=False)
class Case:
    """An instance, and what the cheapest assignment and HEFT's plan of it cost."""

    family: str
    number: int
    ccr: float
    situation: Situation

    @property
    def name(self) -> str:
        """The family and the number."""
        return f"{self.family}-{self.number}"

    @cached_property
    def cheapest(self) -> int:
        """The cost of the cheapest assignment."""
        return int((self.situation.cost * self.situation.platform.price).min(axis=1).sum())

    @cached_property
    def heft(self) -> Schedule:
        """HEFT's plan."""
        return registry.planner("heft").plan(self.situation)

    def budget(self, k: float) -> int:
        """Equation 5 of the paper, rounded down: cheapest + k (HEFT - cheapest)."""
        span = round(self.heft.cost) - self.cheapest
        # as a fraction of 1,000, so that 0.3 is not a little less
        return self.cheapest + span * round(1000 * k) // 1000


def cases(tasks: int, runs: int, seed: int, families: Sequence[str] = FAMILIES) -> list[Case]:
    """So many instances of each family, of `tasks` tasks at most."""
    if not LEAST_TASKS <= tasks <= MOST_TASKS:
        raise InputError(f"must be from {LEAST_TASKS} to {MOST_TASKS}, not {tasks}", place="tasks")
    return [
        _case(family, number, tasks, [seed, FAMILIES.index(family), number])
        for number in range(runs)
        for family in families
    ]


def _case(family: str, number: int, tasks: int, seed: Sequence[int]) -> Case:
    """The first draw in which money buys time: HEFT's plan is dearer than the cheapest."""
    rng = np.random.default_rng(seed)
    while True:
        ccr = CCRS[number % len(CCRS)]
        case = Case(family, number, ccr, _situation(family, tasks, ccr, rng))
        if case.heft.cost > case.cheapest:
            return case


def _situation(family: str, tasks: int, ccr: float, rng: np.random.Generator) -> Situation:
    options = _shape(family, tasks, rng) | {"ccr": ccr, "beta": BETA, "processors": MACHINES}
    drawn = generate(family, seed=int(rng.integers(2**31)), mean_cost=MEAN_COST, **options)
    slowness = np.sort(rng.uniform(1.0, SLOWEST, MACHINES))
    # per unit of work the fast machine is dearer: otherwise nobody would buy the slow one
    price = np.rint(DEAREST / slowness**2 * rng.uniform(0.8, 1.2, MACHINES))
    columns = {
        f"p{p}": np.maximum(1.0, np.rint(drawn.processor_cost[f"p{p}"] * slowness[p]))
        for p in range(MACHINES)
    }
    workflow = _rounded(drawn, columns)
    machines = [Processor(f"p{p}", price=float(price[p])) for p in range(MACHINES)]
    return Situation.at_start(workflow, Platform.build(machines))


def _shape(family: str, tasks: int, rng: np.random.Generator) -> dict[str, Any]:
    """The options that give a family `tasks` tasks or a few less."""
    if family == "fft":
        return {"points": 4 if tasks >= 15 else 2}
    if family == "laplace":
        return {"size": math.isqrt(tasks)}
    if family == "fork_join":
        stages = int(rng.integers(1, 4)) if tasks >= 13 else int(rng.integers(1, 3))
        return {"stages": stages, "width": (tasks - 1) // stages - 1}
    return {
        "tasks": int(rng.integers(max(LEAST_TASKS - 1, tasks - 6), tasks, endpoint=True)),
        "alpha": float(rng.choice([0.5, 1.0, 2.0])),
        "out_degree": int(rng.integers(1, 4)),
    }


def _rounded(drawn: Workflow, columns: dict[str, FloatArray]) -> Workflow:
    _, producers, consumers = drawn.dependencies()
    volumes = np.rint(drawn.item_size)
    return Workflow.from_edges(
        drawn.name, drawn.task_names, producers, consumers, volumes, processor_cost=columns
    )
