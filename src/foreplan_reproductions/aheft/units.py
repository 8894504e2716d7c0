"""The units of the AHEFT experiment: one DAG with all its resource models."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from foreplan.version import __version__
from foreplan_reproductions.aheft import runs
from foreplan_reproductions.aheft.cases import (
    BETAS,
    CCRS,
    INTERVALS,
    KINDS,
    MEAN_COST,
    OUT_DEGREES,
    POOLS,
    RANDOM,
    SHARES,
    SIZES,
    Dag,
    Model,
    models,
    types,
)
from foreplan_reproductions.aheft.runs import Columns


@dataclass(frozen=True)
class Settings:
    """What the figures depend on. Instances are per DAG type; of a sample, rounds of 125 or 25."""

    full: bool
    seed: int = 0
    random: int = 10
    applications: int = 1
    readings: int = 1  # rounds of 25 DAGs of each kind

    def described(self) -> dict[str, Any]:
        """As the head of a checkpoint says it."""
        return {**asdict(self), "mean_cost": MEAN_COST, "foreplan": __version__}


FULL = Settings(full=True, random=10, applications=1, readings=12)
SAMPLE = Settings(full=False, random=3, applications=2, readings=3)


@dataclass(frozen=True)
class Unit:
    """One DAG with its resource models; of the part `main` or `readings`."""

    number: int
    part: str
    dag: Dag
    models: tuple[Model, ...]


@lru_cache(maxsize=4)
def units(settings: Settings) -> tuple[Unit, ...]:
    """All units, by number."""
    found: list[tuple[str, Dag, tuple[Model, ...]]] = []
    for kind in KINDS:
        rounds = settings.random if kind == RANDOM else settings.applications
        if settings.full:
            every = tuple(models(kind))
            found += [("main", dag, every) for dag in _all(kind, rounds, settings.seed)]
        else:
            some = _sampled(kind, rounds, 3 if kind == RANDOM else 2, settings.seed)
            found += [("main", dag, _some_models(kind, k)) for k, dag in enumerate(some)]
        some = _sampled(kind, settings.readings, 2, settings.seed)
        found += [("readings", dag, _few_models(kind, k)) for k, dag in enumerate(some)]
    return tuple(Unit(number, *unit) for number, unit in enumerate(found))


def _all(kind: str, rounds: int, seed: int) -> list[Dag]:
    return [
        Dag(kind, *kinds, instance, seed) for instance in range(rounds) for kinds in types(kind)
    ]


def _sampled(kind: str, rounds: int, strength: int, seed: int) -> list[Dag]:
    """Per round 5^strength DAGs; any `strength` parameters meet in all values equally often."""
    n, dags = 5, []
    for k in range(rounds):
        for digits in np.ndindex(*(n,) * strength):
            a, b, c = (*digits, digits[0] + digits[1] + k)[:3]
            d = digits[0] + 2 * digits[1] + sum(digits[2:]) + k
            out = OUT_DEGREES[d % n] if kind == RANDOM else 0.0
            dags.append(Dag(kind, SIZES[kind][a], CCRS[b], BETAS[c % n], out, k, seed))
    return dags


def _some_models(kind: str, shift: int) -> tuple[Model, ...]:
    """20 of the 80 models: every R with every Delta and every delta."""
    return tuple(
        Model(pool, interval, SHARES[(i + j + shift) % len(SHARES)])
        for j, pool in enumerate(POOLS[kind])
        for i, interval in enumerate(INTERVALS)
    )


def _few_models(kind: str, number: int) -> tuple[Model, ...]:
    """A random DAG's readings: every Delta and every delta once; an application's: one model."""
    pools, (k, a, b) = POOLS[kind], (number // 25, number // 5 % 5, number % 5)
    if kind != RANDOM:
        i, j = divmod(7 * number % 16, 4)  # all 16 pairs in turn
        return (Model(pools[(a + 3 * b + k) % 5], INTERVALS[j], SHARES[i]),)
    return tuple(
        Model(pools[(a + 3 * b + i + k) % 5], interval, SHARES[(number // 4 + i + k) % 4])
        for i, interval in enumerate(INTERVALS)
    )


def measured(settings: Settings, unit: Unit) -> Columns:
    """All runs, or all readings, of a unit."""
    compared = runs.compare if unit.part == "main" else runs.compare_readings
    return compared(unit.dag, unit.models)
