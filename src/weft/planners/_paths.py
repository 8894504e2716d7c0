"""The paths of LOSS and GAIN: which task is reassigned next, from a start until the money is right.

Sakellariou, Zhao, Tsiakkouri, Dikaiakos, "Scheduling Workflows with Budget Constraints", Figure 2
and section 3.4. Readings: a pair that is tried once is a task and a machine; equal weights go by
task, then machine; variant 2 asks for the whole schedule rebuilt with the one change, once, before
anything is reassigned, against the start schedule as it is. With care, GAIN2 asks once more when a
reassignment's turn comes, and undoes it if it does not shorten the makespan.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.kernels.reassignment import (
    gain_again_and_again,
    gain_in_order,
    gain_what_shortens,
    lose_again_and_again,
    lose_in_order,
    money_along,
    reassigned,
)
from weft.planners._reassigning import Table


def loss_path(
    table: Table, on: IntArray, makespan: float, variant: int, careful: bool, limit: float
) -> IntArray:
    """The reassignments of LOSS from an assignment until its tasks cost no more than the limit."""
    problem, money, total = table.planning.problem, table.money, table.spent_on(on)
    if variant == 3:
        moves, count = lose_again_and_again(
            problem, table.tasks, table.seconds, money, on.copy(), total, limit,
            careful,
        )  # fmt: skip
        return _taken(moves, count)
    pairs = table.pairs(on)
    now = pairs // table.processors
    lost, saved = _change(table, pairs, on, makespan, variant), money[_at(table, now, on)]
    saved = saved - money[pairs]
    pays = saved > 0
    weight = np.divide(lost, saved, out=np.zeros(len(pairs)), where=pays)
    counts = pays if careful else pays & (weight != 0)
    ranked = _sorted(pairs, weight, counts)
    return _taken(*lose_in_order(problem, ranked, money, on.copy(), total, limit, careful))


def gain_path(
    table: Table, on: IntArray, makespan: float, variant: int, careful: bool, limit: float
) -> IntArray:
    """The reassignments of GAIN from an assignment while its tasks cost no more than the limit."""
    return gain_paths(table, on, makespan, variant, careful)(limit)


def gain_paths(
    table: Table, on: IntArray, makespan: float, variant: int, careful: bool
) -> Callable[[float], IntArray]:
    """The same for one limit after another."""
    problem, money, total = table.planning.problem, table.money, table.spent_on(on)
    if variant == 3:
        return lambda limit: _taken(
            *gain_again_and_again(
                problem, table.tasks, table.seconds, money, on.copy(), total, limit, careful
            )
        )
    pairs = table.pairs(on)
    gained = -_change(table, pairs, on, makespan, variant)
    extra = money[pairs] - money[_at(table, pairs // table.processors, on)]
    free = careful & (extra <= 0)
    counts = (gained > 0) & (free | (extra != 0))
    weight = np.divide(gained, extra, out=np.full(len(pairs), np.inf), where=~free & (extra != 0))
    ranked = _sorted(pairs, -weight, counts)
    if variant == 2 and careful:
        if table.may_restart:
            return lambda limit: table.what_shortens(on, ranked, total, limit, makespan)
        return Shortening(table, on, ranked, total, makespan).within
    return lambda limit: _taken(
        *gain_in_order(problem, ranked, table.seconds, money, on.copy(), total, limit, careful)
    )


class Shortening:
    """GAIN2 with care, for one limit after another.

    With less money it goes the same way, up to the first reassignment that is too dear by then.
    """

    def __init__(
        self, table: Table, on: IntArray, pairs: IntArray, total: float, makespan: float
    ) -> None:
        self.table, self.on, self.pairs = table, on, pairs
        self.limit, self.count = -np.inf, 0
        self.taken = np.zeros(len(pairs), dtype=np.int32)
        self.totals, self.makespans = np.zeros(len(pairs) + 1), np.zeros(len(pairs) + 1)
        self.totals[0], self.makespans[0] = total, makespan

    def within(self, limit: float) -> IntArray:
        """The pairs that are taken while the tasks cost no more than the limit."""
        table, begin, kept = self.table, 0, 0
        if limit <= self.limit:
            dear = self.totals[1 : self.count + 1] > limit
            kept = int(dear.argmax()) if dear.any() else self.count
            begin = int(self.taken[kept]) if dear.any() else len(self.pairs)
        self.limit = limit
        self.count = gain_what_shortens(
            table.planning.problem, table.order, self.pairs, begin, table.money,
            after(table, self.on, self._first(kept)), table.workspace, table.shortest, limit,
            table.ends_anyhow, kept, self.taken, self.totals, self.makespans,
        )  # fmt: skip
        return self._first(self.count)

    def _first(self, count: int) -> IntArray:
        return self.pairs[self.taken[:count]]


def after(table: Table, on: IntArray, moves: IntArray) -> IntArray:
    """The assignment that the moves lead to."""
    return reassigned(table.planning.problem, on, moves)


def costs_along(table: Table, on: IntArray, moves: IntArray) -> FloatArray:
    """What the tasks cost after each number of moves, from none to all."""
    return money_along(table.planning.problem, table.money, on, table.spent_on(on), moves)


def _change(
    table: Table, pairs: IntArray, on: IntArray, makespan: float, variant: int
) -> FloatArray:
    """The time that each pair adds: to the task itself, or with variant 2 to the makespan."""
    if variant == 2:
        return table.makespans_after(on)[pairs] - makespan
    return table.seconds[pairs] - table.seconds[_at(table, pairs // table.processors, on)]


def _at(table: Table, tasks: IntArray, on: IntArray) -> IntArray:
    """The pairs of tasks with the processors they are on."""
    return tasks * np.int32(table.processors) + on[tasks]


def _sorted(pairs: IntArray, weight: FloatArray, counts: BoolArray) -> IntArray:
    chosen = pairs[counts]
    return chosen[np.argsort(weight[counts], kind="stable")].astype(np.int32)


def _taken(moves: IntArray, count: int) -> IntArray:
    return moves[:count].astype(np.int32)
