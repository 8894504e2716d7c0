"""The check that only needed work was repeated: it agrees with simulated runs, and can object."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import foreplan
from chaos.needed import check_only_needed
from foreplan.checks.runs import check_run
from foreplan.model import Item, Link, Platform, Processor, Run, Workflow
from foreplan.model.record import ENDS

N, PROCESSORS = 30, 4


def simulated(seed: int, strategy: str) -> Run:
    """A run that loses one to three of four processors, some of them for a while."""
    rng = random.Random(seed)
    readers: list[list[int]] = [[] for _ in range(N)]
    for k in range(1, N):
        for source in rng.sample(range(max(0, k - 8), k), min(k, rng.choice((1, 1, 2, 3)))):
            readers[source].append(k)
    items = [Item(rng.uniform(1, 20), k, row) for k, row in enumerate(readers) if row]
    costs = [rng.uniform(1, 10) for _ in range(N)]
    workflow = Workflow.from_items("random", [f"t{k}" for k in range(N)], costs, items)
    processors = [Processor(f"p{k}", host=f"h{k}") for k in range(PROCESSORS)]
    platform = Platform.build(processors, network=Link(time_per_unit=0.2, startup=0.1))
    return foreplan.simulate(
        workflow,
        platform,
        strategy,
        qoi=0.2,
        seed=seed,
        by_events=True,
        variability=0.4,
        failures=rng.randint(1, PROCESSORS - 1),
        return_after=rng.choice((15.0, float("inf"))),
    )


@pytest.mark.parametrize("strategy", ["gtp", "gtp/c", "gtp/r", "gtp/c/r"])
def test_simulated_runs(strategy: str) -> None:
    counts = dict.fromkeys(ENDS, 0)
    for seed in range(8):
        run = simulated(seed, strategy)
        check_run(run)
        for end, count in check_only_needed(run, reuse_copies="/c" in strategy).items():
            counts[end] += count
    assert counts["rewound"] > 5
    assert counts["failed"] > 5


def ending(run: Run, old: str, new: str) -> Run:
    """The run with one attempt that has ended otherwise."""
    end = run.attempts.end.copy()
    end[np.flatnonzero(end == ENDS.index(old))[0]] = ENDS.index(new)
    return replace(run, attempts=replace(run.attempts, end=end))


@pytest.mark.parametrize(("old", "new"), [("finished", "rewound"), ("rewound", "finished")])
def test_what_was_not_needed_is_found(old: str, new: str) -> None:
    run = next(run for seed in range(20) if (run := simulated(seed, "gtp/c/r")).rewound)
    with pytest.raises(AssertionError, match="needed"):
        check_only_needed(ending(run, old, new), reuse_copies=True)


def test_with_copies_less_is_needed() -> None:
    """By the other rule the same record does not pass: the two can be told apart."""
    runs = [simulated(seed, "gtp/c/r") for seed in range(20)]
    needless = 0
    for run in runs:
        try:
            check_only_needed(run, reuse_copies=False)
        except AssertionError:
            needless += 1
    assert needless
