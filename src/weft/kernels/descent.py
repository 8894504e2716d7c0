"""Descent over assignments: one task after another goes where time and money together are least."""

from __future__ import annotations

import numpy as np

from weft.arrays import FloatArray, IntArray
from weft.kernels.problem import Problem
from weft.kernels.trials import (
    Workspace,
    clear,
    fill_after,
    go_back,
    keep,
    place_one,
    place_rest,
)
from weft.native import compiled

HELPS = 1e-12  # of the makespan: less is no help


@compiled
def descend(
    problem: Problem, order: IntArray, pinned: IntArray, work: Workspace, shortest: float,
    money: FloatArray, rate: float, spare: float, latest: float, sweeps: int,
) -> tuple[IntArray, int]:  # fmt: skip
    """The assignment that no single change betters, by makespan + rate x money; and the sweeps.

    After so many it ends anyhow. No change may cost more than there is to spare, or have all done
    later than the latest. Every change that helps is made at once, in the order of the tasks.
    """
    processors = problem.n_processors
    on = pinned.copy()
    clear(problem, work)
    best = place_rest(problem, order, 0, on, shortest, work, 0.0, 0.0, np.inf)
    count = 0
    changed = True
    while changed and count < sweeps:
        changed = False
        count += 1
        clear(problem, work)
        fill_after(problem, order, on, work)
        so_far = 0.0  # when all tasks before this one are done
        for k in range(len(order)):
            task = order[k]
            row = task * processors
            keep(problem, work)
            for p in range(processors):
                here = on[task]
                extra = money[row + p] - money[row + here]
                if p == here or extra > spare or rate * extra >= best:
                    continue
                on[task] = p
                dearer, limit = rate * extra, best * (1 - HELPS)
                ends = place_rest(problem, order, k, on, shortest, work, so_far, dearer, limit)
                go_back(problem, work)
                if ends + dearer < limit and (ends <= latest or ends < best):
                    best = ends
                    spare -= extra
                    changed = True
                else:
                    on[task] = here
            so_far = max(so_far, place_one(problem, task, on[task], shortest, work))
    return on, count
