"""The cases of LOSS and GAIN (Sakellariou, Zhao, Tsiakkouri, Dikaiakos): DAGs, costs and prices.

The paper names the types of DAGs, their size, the number of machines and the budgets. The rest is
chosen here: see docs/results/budget/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.generators import generate
from foreplan.model import Platform, Processor, Schedule, Situation, Workflow
from foreplan.scheduling.planners._reassigning import cheapest_of
from foreplan.scheduling.planning import planning_of

# section 4.1
MACHINES = 3
KS = tuple(k / 10 for k in range(1, 10))
FAMILIES: dict[str, dict[str, Any]] = {  # of about 100 tasks
    "fft": {"points": 16},
    "fork_join": {"stages": 9, "width": 10},
    "laplace": {"size": 10},
    "random_layered": {"tasks": 100},
}
FAMILY_NAMES = {
    "fft": "FFT",
    "fork_join": "fork-join",
    "laplace": "Laplace",
    "random_layered": "random",
}
STARTS = ("heft", "hbmct")

# Prices of the machines per second: by a draw u from 0 .. 1 each, and their mean speeds.
UNIFORM, NARROW, HALF = "uniform 1..10", "uniform 1..5", "uniform 0.5..1.5"
BY_SPEED, SPEED_ONLY = "speed x uniform 0.5..1.5", "in proportion to speed"
STEPS = "1, 2 and 3"
PRICES = (UNIFORM, NARROW, HALF, STEPS, BY_SPEED, SPEED_ONLY)


@dataclass(frozen=True, order=True)
class Reading:
    """What the paper leaves open: machines, costs, CCR and prices.

    Machines have speeds from 1 .. `speeds`: related, or unrelated where that is 1. A task's cost on
    a machine is within `beta`/2 of its mean by the speed, and that within `spread`/2 of the mean of
    all. A CCR of 0 is drawn for each DAG from 0.1 .. 1.
    """

    prices: str = UNIFORM
    ccr: float = 0.0
    beta: float = 0.6
    spread: float = 0.0
    speeds: float = 3.0


MAIN = Reading()
UNRELATED = Reading(ccr=1.0, beta=2 / 3, spread=2.0, speeds=1.0)


@dataclass(frozen=True, order=True)
class Dag:
    """A DAG with its machines, by its parameters; `number` tells the draws."""

    family: str
    number: int = 0
    seed: int = 0
    reading: Reading = field(default=MAIN)


@dataclass(frozen=True)
class Ends:
    """Between which two plans the budgets of equation 5 lie, and the metric of equation 6."""

    cheapest: tuple[float, float]  # makespan, cost
    start: tuple[float, float]

    @property
    def degenerate(self) -> bool:
        """Whether there is nothing between: the start is no faster, or no dearer."""
        (slow, least), (fast, most) = self.cheapest, self.start
        return fast >= slow or most <= least

    def budget(self, k: float) -> float:
        """Equation 5."""
        least, most = self.cheapest[1], self.start[1]
        return least + k * (most - least)

    def normalised(self, makespan: FloatArray) -> FloatArray:
        """Equation 6: 0 is as long as the cheapest assignment, 1 as short as the start."""
        slow, fast = self.cheapest[0], self.start[0]
        return (makespan - slow) / (fast - slow)


class Instance:
    """A DAG drawn: the same shape and the same draws whatever the reading."""

    def __init__(self, dag: Dag) -> None:
        stream = [dag.seed, list(FAMILIES).index(dag.family), dag.number]
        rng = np.random.default_rng(stream)
        one, self.world = rng.integers(2**31, size=2).tolist()
        ccr = rng.uniform(0.1, 1.0)
        priced, fast = rng.random(MACHINES), rng.random(MACHINES)
        speed = 1.0 + (dag.reading.speeds - 1.0) * fast
        self.workflow = _workflow(dag, one, dag.reading.ccr or ccr, speed)
        prices = _prices(dag.reading.prices, priced, self.workflow)
        self.platform = Platform.build(
            [Processor(f"p{p}", price=price) for p, price in enumerate(prices.tolist())]
        )

    def situation(self) -> Situation:
        """Before the start; a new one each time, so that no planner finds work done."""
        return Situation.at_start(self.workflow, self.platform)

    @cached_property
    def cheapest(self) -> Schedule:
        """Every task where it costs least; of equals the fastest, then the first."""
        planning = planning_of(self.situation())
        on = cheapest_of(planning.cost, planning.cost * self.platform.price)
        order = planning.by_rank(planning.upward_rank)
        return planning.schedule("cheapest", planning.place(order, pinned=on))

    @cached_property
    def starts(self) -> dict[str, Schedule]:
        """The plans of HEFT and HBMCT."""
        return {name: registry.planner(name).plan(self.situation()) for name in STARTS}

    def ends(self, start: str) -> Ends:
        """From the cheapest assignment to HEFT's plan, or HBMCT's."""
        low, high = self.cheapest, self.starts[start]
        return Ends((low.makespan, low.cost), (high.makespan, high.cost))


def _workflow(dag: Dag, seed: int, ccr: float, speed: FloatArray) -> Workflow:
    """The mean cost, and with it the CCR, is the same whatever the speeds."""
    reading = dag.reading
    drawn = generate(
        dag.family,
        seed=seed,
        processors=MACHINES,
        ccr=ccr,
        beta=reading.beta,
        spread=reading.spread,
        **FAMILIES[dag.family],
    )
    slower = (1 / speed) / (1 / speed).mean()
    costs = {f"p{p}": drawn.processor_cost[f"p{p}"] * slower[p] for p in range(MACHINES)}
    return replace(drawn, processor_cost=costs)


def _prices(kind: str, draws: FloatArray, workflow: Workflow) -> FloatArray:
    """One price per machine, by one draw each."""
    seconds = np.array([workflow.processor_cost[f"p{p}"].mean() for p in range(MACHINES)])
    speed = seconds.mean() / seconds
    found: FloatArray = {
        UNIFORM: 1.0 + 9.0 * draws,
        NARROW: 1.0 + 4.0 * draws,
        HALF: 0.5 + draws,
        STEPS: 1.0 + draws.argsort().argsort(),
        BY_SPEED: speed * (0.5 + draws),
        SPEED_ONLY: speed,
    }[kind]
    return found
