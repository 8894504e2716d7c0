"""When all is done by an assignment of hosts and widths, asked again and again (LOSS2, GAIN2).

An assignment is an option of each task: host x widths + the number of a width. The counterparts of
`trials`; here every question places all tasks anew.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.problem import Problem, fill_arrival
from foreplan.scheduling.kernels.reassignment import SHORTER
from foreplan.scheduling.kernels.space import Demands, Space, begin_space
from foreplan.scheduling.kernels.trials import HELPS
from foreplan.scheduling.kernels.wide import Placed, Wish, place_next


def pin(wish: Wish, task: int, option: int, widths: int) -> None:
    """Assign an option to a task."""
    wish.pin_host[task] = option // widths
    wish.pin_width[task] = option % widths


def end_of(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, limit: float
) -> float:
    """When all is done as it is pinned; infinite if a task fits nowhere, or from a limit on."""
    begin_space(problem, demands, space)
    latest = 0.0
    for task in wish.order:
        fill_arrival(problem, task, placed.source_host, placed.ready_at, placed.arrival)
        place_next(problem, demands, wish, space, placed, task)
        if placed.host_of[task] < 0:
            return np.inf
        latest = max(latest, placed.finish[task])
        if latest >= limit:
            return np.inf
    return latest


@compiled
def wide_makespans_after(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, on: IntArray,
    seconds: FloatArray, widths: int, limit: float,
) -> FloatArray:  # fmt: skip
    """When all is done if one task has another option, for every task and option."""
    columns = problem.n_hosts * widths
    result = np.full(problem.n_tasks * columns, np.inf)
    for task in wish.order:
        pin(wish, task, on[task], widths)
    for task in wish.order:
        for option in range(columns):
            if option == on[task] or seconds[task * columns + option] == np.inf:
                continue
            pin(wish, task, option, widths)
            result[task * columns + option] = end_of(problem, demands, wish, space, placed, limit)
        pin(wish, task, on[task], widths)
    return result


@compiled
def wide_makespans_along(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, on: IntArray,
    widths: int, moves: IntArray,
) -> FloatArray:  # fmt: skip
    """When all is done after each number of moves, from none to all."""
    columns = problem.n_hosts * widths
    result = np.empty(len(moves) + 1)
    for task in wish.order:
        pin(wish, task, on[task], widths)
    for k in range(len(moves) + 1):
        if k > 0:
            pin(wish, moves[k - 1] // columns, moves[k - 1] % columns, widths)
        result[k] = end_of(problem, demands, wish, space, placed, np.inf)
    return result


@compiled
def wide_gain_what_shortens(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, on: IntArray,
    widths: int, pairs: IntArray, money: FloatArray, total: float, limit: float, settled: float,
    makespan: float,
) -> tuple[IntArray, int]:  # fmt: skip
    """GAIN2 with care: of the pairs in order those that shorten the makespan, and are affordable.

    What is settled ends when it does. Which are taken, and how many; `on` is changed by them.
    """
    columns = problem.n_hosts * widths
    taken, count = np.empty(len(pairs), dtype=np.int32), 0
    for task in wish.order:
        pin(wish, task, on[task], widths)
    for k in range(len(pairs)):
        task, option = pairs[k] // columns, pairs[k] % columns
        extra = money[pairs[k]] - money[task * columns + on[task]]
        if total + extra > limit:
            continue
        pin(wish, task, option, widths)
        sooner = makespan * (1 - SHORTER)
        ends = max(settled, end_of(problem, demands, wish, space, placed, sooner))
        if ends < sooner:
            makespan, total = ends, total + extra
            on[task] = option
            taken[count] = pairs[k]
            count += 1
        else:
            pin(wish, task, on[task], widths)
    return taken, count


@compiled
def wide_descend(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, pinned: IntArray,
    seconds: FloatArray, widths: int, money: FloatArray, rate: float, spare: float, latest: float,
    sweeps: int,
) -> tuple[IntArray, int]:  # fmt: skip
    """The assignment that no single change betters, by makespan + rate x money; see `descend`."""
    columns = problem.n_hosts * widths
    on = pinned.copy()
    for task in wish.order:
        pin(wish, task, on[task], widths)
    best = end_of(problem, demands, wish, space, placed, np.inf)
    count = 0
    changed = True
    while changed and count < sweeps:
        changed = False
        count += 1
        for task in wish.order:
            row = task * columns
            for option in range(columns):
                extra = money[row + option] - money[row + on[task]]
                if option == on[task] or seconds[row + option] == np.inf:
                    continue
                if extra > spare or rate * extra >= best:
                    continue
                pin(wish, task, option, widths)
                dearer, below = rate * extra, best * (1 - HELPS)
                ends = end_of(problem, demands, wish, space, placed, below - dearer)
                if ends + dearer < below and (ends <= latest or ends < best):
                    best = ends
                    spare -= extra
                    on[task] = option
                    changed = True
                else:
                    pin(wish, task, on[task], widths)
    return on, count
