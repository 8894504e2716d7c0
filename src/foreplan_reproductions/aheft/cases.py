"""The cases of AHEFT (Yu, Shi): DAG types, resource models, and the instances drawn from a seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from foreplan.arrays import FloatArray
from foreplan.generators import generate
from foreplan.generators.platform import growing_platform
from foreplan.model import Estimates, Platform, Workflow
from foreplan.model.events import Event
from foreplan.simulation.reality import platform_changes

RANDOM, BLAST, WIEN2K = "random", "blast", "wien2k"
# Table 5's v is the parallelism, as the text says, or the number of all jobs.
BLAST_JOBS, WIEN2K_JOBS = "blast-jobs", "wien2k-jobs"
KINDS = (RANDOM, BLAST, WIEN2K, BLAST_JOBS, WIEN2K_JOBS)
APPLICATIONS = KINDS[1:]

# Tables 2 and 5
CCRS = (0.1, 0.5, 1.0, 5.0, 10.0)
BETAS = (0.1, 0.25, 0.5, 0.75, 1.0)
OUT_DEGREES = (0.1, 0.2, 0.3, 0.4, 1.0)
SIZES = {RANDOM: (20, 40, 60, 80, 100), **dict.fromkeys(APPLICATIONS, (200, 400, 600, 800, 1000))}
POOLS = {RANDOM: (10, 20, 30, 40, 50), **dict.fromkeys(APPLICATIONS, (20, 40, 60, 80, 100))}
INTERVALS = (400.0, 800.0, 1200.0, 1600.0)
SHARES = (0.10, 0.15, 0.20, 0.25)

NO_LEVELS, NEAR, LEVELS = "no levels", "near", "levels"  # shapes of random DAGs
SHAPES = (NO_LEVELS, NEAR, LEVELS)

# The paper gives none: with these, HEFT's average is near the published one (docs/results/aheft).
MEAN_COST = {
    RANDOM: 96.0, NEAR: 79.0, LEVELS: 120.0,
    BLAST: 91.0, WIEN2K: 83.0, BLAST_JOBS: 229.0, WIEN2K_JOBS: 110.0,
}  # fmt: skip

BLOCK = 64  # processors whose costs are drawn at a time
WAVES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # of joins: few platforms serve all short runs
KEPT = 300  # machines; the links of more take too much memory to be kept


@dataclass(frozen=True, order=True)
class Model:
    """A resource model: R at the start, every Delta units of time delta x R more join."""

    pool: int
    interval: float
    share: float


@dataclass(frozen=True)
class Dag:
    """A DAG by its parameters: size is v."""

    kind: str
    size: int
    ccr: float
    beta: float
    out_degree: float  # 0 for the applications, whose shape is given
    instance: int
    seed: int = 0

    @property
    def numbers(self) -> list[int]:
        """What the DAG's random numbers depend on."""
        out = 0 if self.kind != RANDOM else OUT_DEGREES.index(self.out_degree)
        sizes = SIZES[self.kind]
        size = sizes.index(self.size) if self.size in sizes else 100 + self.size
        place = (KINDS.index(self.kind), size, CCRS.index(self.ccr), BETAS.index(self.beta), out)
        return [self.seed, *place, self.instance]


def types(kind: str) -> list[tuple[int, float, float, float]]:
    """All DAG types: (size, CCR, beta, out_degree), 625 at random, 125 of an application."""
    outs = OUT_DEGREES if kind == RANDOM else (0.0,)
    return [(v, c, b, o) for v, c, o, b in product(SIZES[kind], CCRS, outs, BETAS)]


def models(kind: str) -> list[Model]:
    """All 80 resource models."""
    return [Model(r, d, s) for r, d, s in product(POOLS[kind], INTERVALS, SHARES)]


class Instance:
    """A DAG with its costs; those of processor k are the same in all resource models."""

    def __init__(self, dag: Dag, shape: str = NO_LEVELS) -> None:
        self.dag = dag
        rng = np.random.default_rng(dag.numbers)
        mean = MEAN_COST[dag.kind if shape == NO_LEVELS else shape]
        if dag.kind == RANDOM and shape != LEVELS:
            self.workflow = without_levels(rng, dag, mean, near=shape == NEAR)
        else:
            self.workflow = _generated(rng, dag, mean)
        self._cost: FloatArray = np.empty((self.workflow.n_tasks, 0))
        self._estimates = Estimates(self._cost)

    def estimates(self, processors: int) -> Estimates:
        """The cost of every task on the first so many processors."""
        while self._cost.shape[1] < processors:
            block = self._block(self._cost.shape[1] // BLOCK)
            self._cost = np.concatenate([self._cost, block], axis=1)
        if self._estimates.cost.shape[1] != processors:
            self._estimates = Estimates(self._cost[:, :processors])
        return self._estimates

    def _block(self, number: int) -> FloatArray:
        """Uniform in w_i (1 - beta/2) .. w_i (1 + beta/2)."""
        rng = np.random.default_rng([*self.dag.numbers, 1, number])
        factors = 1.0 - self.dag.beta * (rng.random((self.workflow.n_tasks, BLOCK)) - 0.5)
        block: FloatArray = self.workflow.base_cost[:, None] * factors
        return block


def without_levels(rng: np.random.Generator, dag: Dag, mean: float, near: bool) -> Workflow:
    """Every job but the last feeds 1 .. out_degree x v later ones: any of them, or of the next.

    The paper names neither levels nor a shape: the most out edges of a node is all that it says.
    """
    v = dag.size
    most = max(1, round(dag.out_degree * v))
    later = np.arange(v) - np.arange(v)[:, None]
    allowed = (later > 0) & (later <= (most if near else v))
    wanted = np.minimum(rng.integers(1, most, size=v, endpoint=True), allowed.sum(axis=1))
    lot = np.where(allowed, rng.random((v, v)), np.inf)
    place = lot.argsort(axis=1).argsort(axis=1)
    producers, consumers = np.nonzero(place < wanted[:, None])
    cost = 2 * mean * (1.0 - rng.random(v))  # 0 excluded
    volumes = 1.0 - rng.random(len(producers))
    volumes *= dag.ccr * cost.mean() / volumes.mean()
    names = [f"n{i}" for i in range(v)]
    edges = producers.astype(np.int32), consumers.astype(np.int32)
    return Workflow.from_edges("random", names, *edges, volumes, base_cost=cost)


def _generated(rng: np.random.Generator, dag: Dag, mean: float) -> Workflow:
    """An application, or a random DAG in levels, by `foreplan generate`."""
    options: dict[str, Any] = {"ccr": dag.ccr, "mean_cost": mean, "seed": int(rng.integers(2**62))}
    if dag.kind == RANDOM:
        options |= {"tasks": dag.size, "out_share": dag.out_degree}
        return generate("random_layered", **options)
    ways = {BLAST_JOBS: (dag.size - 2) // 4, WIEN2K_JOBS: (dag.size - 8) // 2}
    family = BLAST if dag.kind in (BLAST, BLAST_JOBS) else WIEN2K
    return generate(family, parallelism=ways.get(dag.kind, dag.size), **options)


def waves(interval: float, until: float) -> int:
    """How often machines join before this time, or a little more often."""
    needed = math.ceil(until / interval) - 1
    return 0 if needed < 1 else next((w for w in WAVES if w >= needed), needed)


def machines(model: Model, times: int) -> tuple[Platform, list[Event]]:
    """The machines of a model that joins so many times, and their joins as events."""
    many = model.pool * (1 + model.share * times) > KEPT
    return _built(model, times) if many else _kept(model, times)


def _built(model: Model, times: int) -> tuple[Platform, list[Event]]:
    platform = growing_platform(model.pool, model.interval, model.share, model.interval * times)
    return platform, list[Event](platform_changes(platform))


_kept = lru_cache(maxsize=1024)(_built)
