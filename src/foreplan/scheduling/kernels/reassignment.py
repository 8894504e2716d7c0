"""Tasks reassigned one by one under a budget (Sakellariou, Zhao, Tsiakkouri, Dikaiakos: Figure 2).

`seconds` and `money` are tasks x processors, flat; a pair is task x processors + processor, and is
tried at most once. A careful choice never moves a task to a processor that is not cheaper (LOSS)
or not faster (GAIN) than the one it is on by then; the paper's own may. A careful GAIN2 goes by the
makespan alone. What is reassigned is written to `moves`, and counted.
"""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.problem import Problem
from foreplan.scheduling.kernels.ranks import places
from foreplan.scheduling.kernels.trials import (
    TrialSpace,
    clear,
    fill_after,
    go_back,
    keep,
    place_one,
    place_rest,
)

SHORTER = 1e-12  # of the makespan: what is shorter by less is rounding


@compiled
def reassign_in_order(
    problem: Problem, pairs: IntArray, seconds: FloatArray, money: FloatArray, on: IntArray,
    total: float, limit: float, gains: bool, careful: bool,
) -> tuple[IntArray, int]:  # fmt: skip
    """LOSS1 and LOSS2: in the given order until it costs no more than the limit.

    With `gains` GAIN1 and the paper's GAIN2: in the given order what is affordable.
    """
    moves, count = np.empty(len(pairs), dtype=np.int32), 0
    for k in range(len(pairs)):
        if not gains and total <= limit:
            break
        task, p = pairs[k] // problem.n_processors, pairs[k] % problem.n_processors
        now = task * problem.n_processors + on[task]
        extra = money[pairs[k]] - money[now]
        if gains and (total + extra > limit or (careful and seconds[pairs[k]] >= seconds[now])):
            continue
        if not gains and careful and extra >= 0:
            continue
        on[task] = p
        total += extra
        moves[count] = pairs[k]
        count += 1
    return moves, count


@compiled
def gain_what_shortens(
    problem: Problem, order: IntArray, pairs: IntArray, begin: int, money: FloatArray,
    on: IntArray, work: TrialSpace, shortest: float, limit: float, settled: float, count: int,
    taken: IntArray, totals: FloatArray, makespans: FloatArray,
) -> int:  # fmt: skip
    """GAIN2 with care: what does not shorten the makespan, as it is by then, is undone.

    So many are taken before it begins with a pair; it notes which are taken, and the total and the
    makespan after each, and before the first. What is settled ends when it does.
    """
    place = places(problem, order)
    fill_after(problem, order, on, work)
    for k in range(begin, len(pairs)):
        task, p = pairs[k] // problem.n_processors, pairs[k] % problem.n_processors
        here = on[task]
        extra = money[pairs[k]] - money[task * problem.n_processors + here]
        if totals[count] + extra > limit:
            continue
        so_far = 0.0
        clear(problem, work)
        for j in range(place[task]):
            so_far = max(so_far, place_one(problem, order[j], on[order[j]], shortest, work))
        on[task] = p
        sooner = makespans[count] * (1 - SHORTER)
        ends = place_rest(problem, order, place[task], on, shortest, work, so_far, 0.0, sooner)
        if max(settled, ends) < sooner:
            taken[count] = k
            count += 1
            totals[count] = totals[count - 1] + extra
            makespans[count] = max(settled, ends)
            fill_after(problem, order, on, work)
        else:
            on[task] = here
    return count


@compiled
def reassign_again_and_again(
    problem: Problem, tasks: IntArray, seconds: FloatArray, money: FloatArray, on: IntArray,
    total: float, limit: float, gains: bool, careful: bool,
) -> tuple[IntArray, int]:  # fmt: skip
    """LOSS3, or GAIN3: the weights are worked out anew after every reassignment."""
    tried = np.zeros(problem.n_tasks * problem.n_processors, dtype=np.bool_)
    best = np.full(len(tasks), -1, dtype=np.int32)
    weight = np.full(len(tasks), np.inf)
    tree = np.full(tree_size(len(tasks)), -1, dtype=np.int32)
    moves = np.empty(len(tried), dtype=np.int32)
    size, processors, count = len(tree) // 2, problem.n_processors, 0
    for k in range(len(tasks)):
        best[k], weight[k] = best_change(
            seconds, money, processors, tasks[k], on, tried, gains, careful
        )
        tree[size + k] = k
    for node in range(size - 1, 0, -1):
        settle(tree, node, weight)
    while (gains or total > limit) and len(tasks) > 0 and weight[tree[1]] < np.inf:
        k = tree[1]
        task, p = tasks[k], best[k]
        extra = money[task * processors + p] - money[task * processors + on[task]]
        tried[task * processors + p] = True
        if not gains or total + extra <= limit:
            on[task] = p
            total += extra
            moves[count] = task * processors + p
            count += 1
        best[k], weight[k] = best_change(
            seconds, money, processors, task, on, tried, gains, careful
        )
        climb(tree, size + k, weight)
    return moves, count


def best_change(
    seconds: FloatArray, money: FloatArray, processors: int, task: int, on: IntArray,
    tried: BoolArray, gains: bool, careful: bool,
) -> tuple[int, float]:  # fmt: skip
    """The processor that loses least time per money saved (equation 3); infinite if none does.

    To the letter a weight of 0 does not count; a careful choice takes savings that cost no time.
    With `gains`, the one that gains most time per money spent (equation 4), its weight negative.
    To the letter what costs no more does not count, and what costs less comes last; a careful
    choice takes both first.
    """
    row, best, least = task * processors, -1, np.inf
    now = row + on[task]
    for p in range(processors):
        longer, extra = seconds[row + p] - seconds[now], money[row + p] - money[now]
        if tried[row + p]:
            continue
        if gains:
            if longer >= 0 or (extra == 0 and not careful):
                continue
            weight = -np.inf if careful and extra <= 0 else longer / extra
        else:
            if extra >= 0:
                continue
            weight = longer / -extra
            if weight == 0 and not careful:
                continue
        if weight < least:
            best, least = p, weight
    return best, least


def tree_size(leaves: int) -> int:
    """The nodes of a tournament of so many: twice the next power of two."""
    size = 1
    while size < leaves:
        size *= 2
    return 2 * size


def settle(tree: IntArray, node: int, weight: FloatArray) -> None:
    """Let the lighter of two win, the first of equals."""
    left, right = tree[2 * node], tree[2 * node + 1]
    first = right < 0 or weight[left] <= weight[right]
    tree[node] = left if first else right


def climb(tree: IntArray, leaf: int, weight: FloatArray) -> None:
    """A leaf has another weight: play its matches again."""
    node = leaf // 2
    while node > 0:
        settle(tree, node, weight)
        node //= 2


@compiled
def makespans_after(
    problem: Problem, order: IntArray, on: IntArray, work: TrialSpace, shortest: float,
    limit: float,
) -> FloatArray:  # fmt: skip
    """LOSS2 and GAIN2: when all is done if one task is elsewhere, for every task and processor.

    What is not done before the limit is never done.
    """
    processors = problem.n_processors
    result, pinned = np.full(problem.n_tasks * processors, np.inf), on.copy()
    clear(problem, work)
    fill_after(problem, order, pinned, work)
    so_far = 0.0
    for k in range(len(order)):
        task = order[k]
        here = pinned[task]
        keep(problem, work)
        for p in range(processors):
            if p == here:
                continue
            pinned[task] = p
            result[task * processors + p] = place_rest(
                problem, order, k, pinned, shortest, work, so_far, 0.0, limit
            )
            go_back(problem, work)
        pinned[task] = here
        so_far = max(so_far, place_one(problem, task, here, shortest, work))
    return result


@compiled
def makespans_along(
    problem: Problem, order: IntArray, on: IntArray, work: TrialSpace, shortest: float,
    moves: IntArray,
) -> FloatArray:  # fmt: skip
    """When all is done after each number of moves, from none to all."""
    result, pinned = np.empty(len(moves) + 1), on.copy()
    for k in range(len(moves) + 1):
        if k > 0:
            pinned[moves[k - 1] // problem.n_processors] = moves[k - 1] % problem.n_processors
        clear(problem, work)
        result[k] = place_rest(problem, order, 0, pinned, shortest, work, 0.0, 0.0, np.inf)
    return result


@compiled
def money_along(
    problem: Problem, money: FloatArray, on: IntArray, total: float, moves: IntArray
) -> FloatArray:
    """What the tasks cost after each number of moves, from none to all."""
    result, current = np.empty(len(moves) + 1), on.copy()
    result[0] = total
    for k in range(len(moves)):
        task, p = moves[k] // problem.n_processors, moves[k] % problem.n_processors
        before = money[task * problem.n_processors + current[task]]
        result[k + 1] = result[k] + money[moves[k]] - before
        current[task] = p
    return result


@compiled
def reassigned(problem: Problem, on: IntArray, moves: IntArray) -> IntArray:
    """The assignment after all moves; of several of one task the last one counts."""
    result = on.copy()
    for k in range(len(moves)):
        result[moves[k] // problem.n_processors] = moves[k] % problem.n_processors
    return result
