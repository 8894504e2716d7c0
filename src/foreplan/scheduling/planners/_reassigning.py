"""What LOSS and GAIN work on: a situation's tasks with their time and cost on every processor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.errors import UnaffordableError
from foreplan.model import Freedom, Schedule, Situation, affordable, forecast
from foreplan.model.money import ROUNDING
from foreplan.scheduling.kernels.reassignment import (
    SHORTER,
    gain_what_shortens,
    makespans_after,
    makespans_along,
    reassigned,
)
from foreplan.scheduling.kernels.trials import TrialSpace, descend, workspace_for
from foreplan.scheduling.planning import Placement, planning_of

Descent = tuple[IntArray, int]  # where it leads, and its sweeps
SAME_COST = 1e-12  # of what a task costs: less is rounding, as where prices go by speed


class BudgetTable:
    """One situation under a budget: assignments of its movable tasks, and schedules from them.

    An assignment is the number of a usable processor for each task. A running task that may move
    takes on its own processor what is left of it, elsewhere all of it.
    """

    def __init__(self, situation: Situation, freedom: Freedom, budget: float) -> None:
        self.situation = situation
        self.budget = min(budget, situation.budget)
        self.planning = planning_of(situation, freedom)
        self.order = self.planning.by_rank(self.planning.upward_rank)
        self.tasks = np.sort(self.order)
        self._pose()
        self._asked: dict[tuple[bytes, bytes], FloatArray] = {}
        self._made: dict[tuple[int, bytes, bytes], Schedule] = {}
        self._descents: dict[tuple[bytes, bytes, float, int, float, float], Descent] = {}
        self._costs: dict[int, tuple[Schedule, float]] = {}

    @staticmethod
    def of(situation: Situation, freedom: Freedom, budget: float) -> BudgetTable:
        """The table of a situation; where tasks need more than one core, by hosts and widths."""
        if planning_of(situation, freedom).fitting is None:
            return BudgetTable(situation, freedom, budget)
        from foreplan.scheduling.planners._wide_reassigning import WideTable

        return WideTable(situation, freedom, budget)

    def _pose(self) -> None:
        """What each task takes and costs wherever it may be assigned to."""
        problem = self.choices = self.planning.problem
        self.processors = problem.n_processors
        self.runs_on = self.planning.runs_on
        self.seconds = self._seconds()
        price = self.situation.platform.price[self.planning.usable]
        self.money = self.seconds * np.tile(price, problem.n_tasks)

    def _seconds(self) -> FloatArray:
        problem, running = self.planning.problem, np.flatnonzero(self.runs_on >= 0)
        seconds: FloatArray = problem.cost.copy()
        left = problem.ready_at[running] - self.situation.now
        seconds[running * self.processors + self.runs_on[running]] = left
        return seconds

    @cached_property
    def exact(self) -> bool:
        """Whether a schedule costs what its tasks cost, each where it is assigned to."""
        stay = np.isinf(self.planning.problem.until).all()
        return self.situation.platform.adds_up and bool(stay)

    @cached_property
    def settled(self) -> float:
        """The money that no assignment changes: spent, and committed to what stays."""
        situation, attempts = self.situation, self.situation.attempts
        stays = np.isnan(attempts.finish) & (self.runs_on[attempts.task] < 0)
        return situation.committed(stays).cost(situation.platform)

    @property
    def limit(self) -> float:
        """What the movable tasks may cost."""
        return self.budget + ROUNDING * abs(self.budget) - self.settled

    def pairs(self, on: IntArray) -> IntArray:
        """Every task with every processor that it is not on."""
        p = np.arange(self.processors, dtype=np.int32)
        every = self.tasks[:, None] * np.int32(self.processors) + p[None, :]
        elsewhere: IntArray = every[p[None, :] != on[self.tasks][:, None]]
        return elsewhere

    def place_of(self, schedule: Schedule) -> IntArray:
        """The assignment of a schedule."""
        return self.planning.number[schedule.processor]

    def spent_on(self, on: IntArray) -> float:
        """What an assignment costs, but for billing units, transfers and what is settled."""
        return float(self.money[self.tasks * self.processors + on[self.tasks]].sum())

    def cost(self, schedule: Schedule) -> float:
        """What everything costs in the end, by this schedule."""
        known = self._costs.get(id(schedule))
        if known is None:  # it is kept with its schedule, so that no other gets the same number
            known = schedule, forecast(schedule, self.situation).projected
            self._costs[id(schedule)] = known
        return known[1]

    def affords(self, schedule: Schedule) -> bool:
        """Whether that is within the budget."""
        return affordable(self.cost(schedule), self.budget)

    def schedule(self, on: IntArray, planner: Any) -> Schedule:
        """The tasks in rank order, each where it is assigned to, filling gaps."""
        key = id(planner), on.tobytes(), self.order.tobytes()  # no planner ends before its table
        if key not in self._made:  # searches come to the same assignment in many ways
            self._made[key] = self.planning.schedule(planner, self.placement(on))
        return self._made[key]

    def placement(self, on: IntArray) -> Placement:
        """The same as arrays.

        If a task fits nowhere before processors leave, those before it go where they end first.
        """
        placed, freed = self._placed(on), 0
        while (lost := self._first_lost(placed)) > freed:
            freed, pinned = lost, on.copy()
            early = self.order[:freed]
            pinned[early[self.runs_on[early] < 0]] = -1
            placed = self._placed(pinned)
        return placed

    def _first_lost(self, placed: Placement) -> int:
        """The place in the order of the first task that fits nowhere, 0 if there is none."""
        lost: BoolArray = placed[0][self.order] < 0
        return int(lost.argmax()) if len(lost) else 0

    def _placed(self, on: IntArray) -> Placement:
        """The tasks where they are assigned to, -1: anywhere. What runs and stays is as it is."""
        if not self.may_restart:
            return self.planning.place(self.order, pinned=on)
        problem, stays = self.planning.problem, (self.runs_on >= 0) & (self.runs_on == on)
        moved = self.runs_on[(self.runs_on >= 0) & ~stays]
        free = problem.free_from.copy()
        free[moved] = self.situation.now
        order = self.order[~stays[self.order]]
        placed = self.planning.place(order, pinned=on, free_from=free)
        back = (self.runs_on >= 0) & ~stays & (placed[0] == self.runs_on)
        if back.any():  # it fits nowhere else, so it goes on where it is
            return self._placed(np.where(back, self.runs_on, on).astype(np.int32))
        placed[0][stays] = on[stays]
        placed[1][stays], placed[2][stays] = self.situation.now, problem.ready_at[stays]
        return placed

    def makespans_after(self, on: IntArray, limit: float = np.inf) -> FloatArray:
        """When all is done if one task is elsewhere, for every pair; infinite from a limit on."""
        if limit < np.inf:
            return self._makespans_after(on, limit)
        key = on.tobytes(), self.order.tobytes()
        if key not in self._asked:  # variants and budgets ask alike
            self._asked[key] = self._makespans_after(on, limit)
        return self._asked[key]

    def _makespans_after(self, on: IntArray, limit: float) -> FloatArray:
        if not self.may_restart:
            ends = makespans_after(
                self.planning.problem, self.order, on, self.workspace, self.shortest, limit
            )
            latest: FloatArray = np.maximum(ends, self.ends_anyhow)
            return latest
        result, changed = np.full(len(self.money), np.inf), on.copy()
        for pair in self.pairs(on).tolist():
            task, p = divmod(pair, self.processors)
            changed[task] = p
            result[pair] = self.ends(changed)
            changed[task] = on[task]
        return result

    def makespans_along(self, on: IntArray, moves: IntArray) -> FloatArray:
        """When all is done after each number of moves, from none to all."""
        if not self.may_restart:
            ends = makespans_along(
                self.planning.problem, self.order, on, self.workspace, self.shortest, moves,
            )  # fmt: skip
            latest: FloatArray = np.maximum(ends, self.ends_anyhow)
            return latest
        current = on.copy()
        result = [self.ends(current)]
        for pair in moves.tolist():
            current[pair // self.processors] = pair % self.processors
            result.append(self.ends(current))
        return np.array(result)

    def shortening(
        self, on: IntArray, pairs: IntArray, makespan: float
    ) -> Callable[[float], IntArray]:
        """What GAIN2 with care takes of the pairs, for one limit after another."""
        total = self.spent_on(on)
        if self.may_restart:
            return lambda limit: self.what_shortens(on, pairs, total, limit, makespan)
        return Shortening(self, on, pairs, total, makespan).take_within

    def what_shortens(
        self, on: IntArray, pairs: IntArray, total: float, limit: float, makespan: float
    ) -> IntArray:
        """The pairs that shorten the makespan when their turn comes, and are affordable then.

        Tasks that run may be begun anew; see `Shortening` where none may.
        """
        current, taken = on.copy(), []
        for pair in pairs.tolist():
            task, p = divmod(pair, self.processors)
            here = current[task]
            extra = self.money[pair] - self.money[task * self.processors + here]
            if total + extra > limit:
                continue
            current[task] = p
            ends = self.ends(current)
            if ends < makespan * (1 - SHORTER):
                makespan, total = ends, total + extra
                taken.append(pair)
            else:
                current[task] = here
        return np.array(taken, dtype=np.int32)

    def ends(self, on: IntArray) -> float:
        """When all is done by an assignment; never if a task fits nowhere."""
        processor, _, finish, _ = self.placement(on)
        if processor[self.tasks].min(initial=0) < 0:
            return np.inf
        return max(self.ends_anyhow, float(finish[self.tasks].max(initial=0.0)))

    @cached_property
    def may_restart(self) -> bool:
        """Whether tasks that run may be begun anew elsewhere."""
        return bool((self.runs_on >= 0).any())

    @cached_property
    def ends_anyhow(self) -> float:
        """When what is settled is done."""
        problem = self.planning.problem
        return float(problem.ready_at[~problem.movable].max(initial=0.0))

    @cached_property
    def workspace(self) -> TrialSpace:
        """Where the kernels try assignments."""
        return workspace_for(self.planning.problem)

    @cached_property
    def shortest(self) -> float:
        """The shortest time that any task takes anywhere."""
        return float(self.planning.problem.cost.min(initial=np.inf))

    @property
    def steps(self) -> int:
        """The inner steps of one schedule, roughly."""
        return len(self.tasks) + len(self.planning.problem.in_item)

    def descent(
        self, on: IntArray, rate: float, sweeps: int, spare: float = np.inf, latest: float = np.inf
    ) -> Descent:
        """Where a descent from an assignment leads, and its sweeps; money counts `rate` seconds."""
        key = on.tobytes(), self.order.tobytes(), rate, sweeps, spare, latest
        if key not in self._descents:  # several paths end in the same assignment
            self._descents[key] = descend(
                self.planning.problem, self.order, on, self.workspace, self.shortest, self.money,
                rate, spare, latest, sweeps,
            )  # fmt: skip
        return self._descents[key]

    @cached_property
    def cheapest_assignment(self) -> IntArray:
        """Every task where it costs least; of equals the fastest, then the first."""
        shape = -1, self.processors
        return cheapest_of(self.seconds.reshape(shape), self.money.reshape(shape))

    def cheapest(self, planner: Any) -> Schedule:
        """The cheapest schedule known: where costs do not add up, one processor alone may be."""
        best = self.schedule(self.cheapest_assignment, planner)
        if not self.situation.platform.adds_up:
            for p in range(self.processors):
                alone = np.full(len(self.runs_on), p, dtype=np.int32)
                for on in (alone, np.where(self.runs_on >= 0, self.runs_on, alone)):
                    other = self.schedule(on.astype(np.int32), planner)
                    best = other if self.cost(other) < self.cost(best) else best
        return best

    def best_of(self, *schedules: Schedule) -> Schedule:
        """The fastest of those that are affordable, the cheaper of equals, then the first."""
        within = [schedule for schedule in schedules if self.affords(schedule)]
        return min(within, key=lambda schedule: (schedule.makespan, self.cost(schedule)))

    def cheapest_affordable(self, planner: Any, *known: Schedule) -> Schedule:
        """The cheapest schedule, of those known too; UnaffordableError if that is over budget."""
        cheapest = min([self.cheapest(planner), *known], key=self.cost)
        if not self.affords(cheapest):
            cost = self.cost(cheapest)
            raise UnaffordableError(self.budget, cost, cheapest.makespan, cheapest)
        return cheapest


def cheapest_of(seconds: FloatArray, money: FloatArray) -> IntArray:
    """Where each task costs least, but for rounding; of equals the fastest, then the first."""
    least = money.min(axis=1, keepdims=True)
    dearer = money > least * (1 + SAME_COST)
    fastest: IntArray = np.where(dearer, np.inf, seconds).argmin(axis=1).astype(np.int32)
    return fastest


class Shortening:
    """GAIN2 with care, for one limit after another.

    With less money it goes the same way, up to the first reassignment that is too dear by then.
    """

    def __init__(
        self, table: BudgetTable, on: IntArray, pairs: IntArray, total: float, makespan: float
    ) -> None:
        self.table, self.on, self.pairs = table, on, pairs
        self.limit, self.count = -np.inf, 0
        self.taken = np.zeros(len(pairs), dtype=np.int32)
        self.totals, self.makespans = np.zeros(len(pairs) + 1), np.zeros(len(pairs) + 1)
        self.totals[0], self.makespans[0] = total, makespan

    def take_within(self, limit: float) -> IntArray:
        """The pairs that are taken while the tasks cost no more than the limit."""
        table, begin, kept = self.table, 0, 0
        if limit <= self.limit:
            dear = self.totals[1 : self.count + 1] > limit
            kept = int(dear.argmax()) if dear.any() else self.count
            begin = int(self.taken[kept]) if dear.any() else len(self.pairs)
        self.limit = limit
        self.count = gain_what_shortens(
            table.choices, table.order, self.pairs, begin, table.money,
            reassigned(table.choices, self.on, self._first(kept)), table.workspace, table.shortest,
            limit, table.ends_anyhow, kept, self.taken, self.totals, self.makespans,
        )  # fmt: skip
        return self._first(self.count)

    def _first(self, count: int) -> IntArray:
        return self.pairs[self.taken[:count]]
