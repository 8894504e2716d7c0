"""Plans, runs and plays of many kinds, told as fingerprints: the same, whatever computes them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from foreplan import registry
from foreplan.errors import ForeplanError
from foreplan.ic import best_order
from foreplan.ic.shapes import compose
from foreplan.model import Run, Schedule, Situation
from simulation.worlds import random_case, specs
from twins.priced import with_prices
from twins.situations import random_situation

FIELDS = ("processor", "start", "finish")


def fingerprint(*arrays: Any) -> str:
    """Of the bits of all arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def of_plan(plan: Schedule) -> str:
    """All that a plan says."""
    return fingerprint(*(getattr(plan, name) for name in FIELDS))


def of_run(run: Run) -> str:
    """All that happened in a run."""
    a, t = run.attempts, run.transfers
    happened = [a.task, a.processor, a.start, a.finish, a.end, t.item, t.source, t.target, t.sent]
    plans = [getattr(plan, name) for plan in run.plans for name in FIELDS]
    return fingerprint(*happened, t.arrival, t.forgotten, *plans)


def plans(rounds: int) -> dict[str, str]:
    """Every planner in random situations, midway and at the start."""
    found = {}
    for name in registry.planner_names():
        for seed in range(rounds):
            rng = np.random.default_rng(seed)
            situation = with_prices(random_situation(rng, exact=False), rng)
            found[f"{name} {seed}"] = _planned(name, situation)
    return found


def _planned(name: str, situation: Situation) -> str:
    """The plan, with a budget or by a deadline where it takes one; or that there is none."""
    heft = registry.planner("heft").plan(situation)
    limits = {
        "best-affordable": f"[budget={heft.cost * 0.9!r}]",
        "cheapest-in-time": f"[deadline={heft.makespan * 1.2!r}]",
        **{f"{way}{k}": f"[budget={heft.cost * 0.9!r}]" for way in ("loss", "gain") for k in "123"},
    }
    try:
        return of_plan(registry.planner(name + limits.get(name, "")).plan(situation))
    except ForeplanError as error:
        return str(error)


def runs(rounds: int) -> dict[str, str]:
    """Every strategy in random worlds, natively and event by event."""
    return {
        f"{spec} {seed}": of_run(random_case(seed, stops=False).run(spec, by_events=seed % 3 == 0))
        for spec in specs(["heft"])
        for seed in range(rounds)
    }


def plays(rounds: int) -> dict[str, str]:
    """Orders of the pebble game."""
    found = {}
    for blocks in ("w", "m", "wnm", "q2"):
        for seed in range(rounds):
            dag = compose(blocks, np.random.default_rng(seed), 60).dag
            found[f"{blocks} {seed}"] = fingerprint(best_order(dag))
    return found


def everything(rounds: int) -> dict[str, str]:
    """All of it."""
    return {**plans(rounds), **runs(rounds), **plays(rounds)}


if __name__ == "__main__":
    import sys

    print(json.dumps(everything(int(sys.argv[1]))))
