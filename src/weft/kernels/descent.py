"""Descent over assignments: one task after another goes where time and money together are least."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.placement import place_in_order
from weft.kernels.problem import Problem
from weft.native import compiled

HELPS = 1e-12  # of the makespan: less is no help


@compiled
def descend(
    problem: Problem, order: IntArray, pinned: IntArray, nobody: FloatArray, shortest: float,
    money: FloatArray, rate: float, spare: float, latest: float, sweeps: int,
) -> tuple[IntArray, int]:  # fmt: skip
    """The assignment that no single change betters, by makespan + rate x money; and the sweeps.

    After so many it ends anyhow. No change may cost more than there is to spare, or have all done
    later than the latest. Every change that helps is made at once, in the order of the tasks.
    """
    processors = problem.n_processors
    on = pinned.copy()
    best = latest_finish(problem, order, on, nobody, shortest)
    count = 0
    changed = True
    while changed and count < sweeps:
        changed = False
        count += 1
        for k in range(len(order)):
            task = order[k]
            row = task * processors
            for p in range(processors):
                here = on[task]
                extra = money[row + p] - money[row + here]
                if p == here or extra > spare or rate * extra >= best:
                    continue
                on[task] = p
                ends = latest_finish(problem, order, on, nobody, shortest)
                helps = ends + rate * extra < best * (1 - HELPS)
                if helps and (ends <= latest or ends < best):
                    best = ends
                    spare -= extra
                    changed = True
                else:
                    on[task] = here
    return on, count


def latest_finish(
    problem: Problem, order: IntArray, on: IntArray, nobody: FloatArray, shortest: float
) -> float:
    """When all of the order is done."""
    where, _, finish = place_in_order(problem, order, on, nobody, shortest)
    latest = 0.0
    for k in range(len(order)):
        ends = finish[order[k]] if where[order[k]] >= 0 else np.inf  # it fits nowhere
        latest = max(latest, ends)
    return latest
