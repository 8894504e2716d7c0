"""The same where tasks need more than one core: a task is assigned to a host, and to a width."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.model import Schedule
from foreplan.scheduling.kernels.space import Demands, Space
from foreplan.scheduling.kernels.wide import IN_ORDER, Placed, Wish
from foreplan.scheduling.kernels.wide_trials import (
    wide_descend,
    wide_gain_what_shortens,
    wide_makespans_after,
    wide_makespans_along,
)
from foreplan.scheduling.planners._reassigning import BudgetTable, Descent, cheapest_of
from foreplan.scheduling.planning import Placement


class WideTable(BudgetTable):
    """An assignment is an option of each task: host x widths + the number of its width.

    All of a task's widths are options, whatever their efficiency: what cores cost is in the money.
    """

    def _pose(self) -> None:
        planning, situation = self.planning, self.situation
        assert planning.fitting is not None
        self.fitting = planning.fitting
        self.demands: Demands = self.fitting.demands(0.0)
        hosts = planning.problem.n_hosts
        counts = np.diff(self.demands.width_ptr)
        self.widths = int(counts.max(initial=1))
        self.processors = hosts * self.widths
        self.choices = planning.problem._replace(n_processors=self.processors)
        at = (
            np.minimum(np.arange(self.widths), counts[:, None] - 1)
            + self.demands.width_ptr[:-1, None]
        )
        there = np.arange(self.widths) < counts[:, None]
        self.width = np.where(there, self.demands.width[at], 0)  # tasks x widths
        factor = np.where(there, self.demands.factor[at], np.inf)
        cost = self._costs_by_width()
        seconds = np.where(np.isfinite(cost), cost * factor[:, None, :], np.inf)
        paid = np.maximum(self.width[:, None, :], self.fitting.demand.paid[:, :, None])
        self.runs_on = self._running_options()
        running = np.flatnonzero(self.runs_on >= 0)
        self.seconds = seconds.reshape(-1)
        left = planning.problem.ready_at[running] - situation.now
        self.seconds[running * self.processors + self.runs_on[running]] = left
        each = (paid * self._prices[None, :, None]).reshape(-1)
        self.money = np.where(np.isfinite(self.seconds), self.seconds, 0.0) * each
        self.money[np.isinf(self.seconds)] = np.inf

    @cached_property
    def _prices(self) -> FloatArray:
        """What a second of a core costs on each host, on average."""
        price, host = (
            self.situation.platform.price[self.planning.usable],
            self.planning.problem.host,
        )
        hosts = self.planning.problem.n_hosts
        total = np.bincount(host, weights=price, minlength=hosts)
        return np.asarray(total / np.maximum(1, np.bincount(host, minlength=hosts)))

    def _costs_by_width(self) -> FloatArray:
        """Tasks x hosts x widths: the cost on the slowest of the fastest so many cores."""
        problem, demands = self.planning.problem, self.demands
        n, hosts = problem.n_tasks, problem.n_hosts
        result = np.full((n, hosts, self.widths), np.inf)
        allowed = demands.allowed.reshape(n, hosts)
        for host in range(hosts):
            cores = demands.host_core[demands.host_ptr[host] : demands.host_ptr[host + 1]]
            if len(cores) == 0:
                continue
            cost = np.sort(self.planning.cost[:, cores], axis=1)
            fits = (self.width > 0) & (self.width <= len(cores)) & allowed[:, host, None]
            picked = np.take_along_axis(cost, np.clip(self.width - 1, 0, len(cores) - 1), axis=1)
            result[:, host, :] = np.where(fits, picked, np.inf)
        return result

    def _running_options(self) -> IntArray:
        """The option of every task that runs and may move; -1: it is none."""
        problem, attempts = self.planning.problem, self.situation.attempts
        result = np.full(problem.n_tasks, -1, dtype=np.int32)
        for k in np.flatnonzero(problem.movable[attempts.task]).tolist():
            task, width = int(attempts.task[k]), 1
            if attempts.cores is not None:
                width = int(attempts.cores.width[k])
            number = int((self.width[task] == width).argmax())
            host = int(self.situation.platform.host[attempts.processor[k]])
            result[task] = host * self.widths + number
        return result

    @cached_property
    def exact(self) -> bool:
        """Whether a schedule costs what its tasks cost, each where it is assigned to."""
        platform, planning = self.situation.platform, self.planning
        stay = bool(np.isinf(planning.problem.until).all()) and platform.adds_up
        here = np.diff(self.demands.host_ptr) > 0
        alike = not np.isnan(self.demands.host_cost.reshape(-1, len(here))[:, here]).any()
        price = platform.price[planning.usable]
        return stay and alike and bool((price == self._prices[planning.problem.host]).all())

    def pairs(self, on: IntArray) -> IntArray:
        """Every task with every option that it has, but for the one that it is on."""
        pairs = super().pairs(on)
        possible: IntArray = pairs[np.isfinite(self.seconds[pairs])]
        return possible

    def place_of(self, schedule: Schedule) -> IntArray:
        """The assignment of a schedule."""
        width = np.ones(len(self.width), dtype=np.int32)
        if schedule.cores is not None:
            width = schedule.cores.width
        number = (self.width == width[:, None]).argmax(axis=1)
        host = self.situation.platform.host[schedule.processor]
        options: IntArray = (host * self.widths + number).astype(np.int32)
        return options

    def _placed(self, on: IntArray) -> Placement:
        if not self.may_restart:
            return self._pinned(on, self.order, self.demands, None)
        stays = (self.runs_on >= 0) & (self.runs_on == on)
        moved = np.flatnonzero((self.runs_on >= 0) & ~stays)
        free, demands = self.planning.problem.free_from.copy(), self.demands
        for task in moved.tolist():
            free[demands.run_core[demands.run_ptr[task] : demands.run_ptr[task + 1]]] = (
                self.situation.now
            )
        holds = ~np.isin(demands.held_task, moved)
        demands = demands._replace(
            held_task=demands.held_task[holds],
            held_host=demands.held_host[holds],
            held_until=demands.held_until[holds],
        )
        placed = self._pinned(on, self.order[~stays[self.order]], demands, free)
        ran_on = np.full(len(on), -1, dtype=np.int32)
        runs = np.flatnonzero(self.runs_on >= 0)
        ran_on[runs] = self.demands.run_core[self.demands.run_ptr[runs]]
        back = (ran_on >= 0) & ~stays & (placed.processor == ran_on)
        if back.any():  # it fits nowhere else, or best where it is: so it goes on there
            return self._placed(np.where(back, self.runs_on, on).astype(np.int32))
        placed.processor[stays] = ran_on[stays]
        placed.start[stays] = self.situation.now
        placed.finish[stays] = self.planning.problem.ready_at[stays]
        return placed

    def _pinned(
        self, on: IntArray, order: IntArray, demands: Demands, free_from: FloatArray | None
    ) -> Placement:
        return self.fitting.place(
            order,
            demands,
            pin_host=np.where(on < 0, -1, on // self.widths).astype(np.int32),
            pin_width=np.where(on < 0, -1, on % self.widths).astype(np.int32),
            free_from=free_from,
        )

    def _makespans_after(self, on: IntArray, limit: float) -> FloatArray:
        if self.may_restart:
            return super()._makespans_after(on, limit)
        ends = wide_makespans_after(
            self.planning.problem, self.demands, *self._room(), on, self.seconds, self.widths, limit
        )
        latest: FloatArray = np.maximum(ends, self.ends_anyhow)
        return latest

    def makespans_along(self, on: IntArray, moves: IntArray) -> FloatArray:
        """When all is done after each number of moves, from none to all."""
        if self.may_restart:
            return super().makespans_along(on, moves)
        ends = wide_makespans_along(
            self.planning.problem, self.demands, *self._room(), on, self.widths, moves
        )
        latest: FloatArray = np.maximum(ends, self.ends_anyhow)
        return latest

    def shortening(
        self, on: IntArray, pairs: IntArray, makespan: float
    ) -> Callable[[float], IntArray]:
        """What GAIN2 with care takes of the pairs, for one limit after another."""
        total = self.spent_on(on)
        return lambda limit: self.what_shortens(on, pairs, total, limit, makespan)

    def what_shortens(
        self, on: IntArray, pairs: IntArray, total: float, limit: float, makespan: float
    ) -> IntArray:
        """The pairs that shorten the makespan when their turn comes, and are affordable then."""
        if self.may_restart:
            return super().what_shortens(on, pairs, total, limit, makespan)
        taken, count = wide_gain_what_shortens(
            self.planning.problem, self.demands, *self._room(), on.copy(), self.widths, pairs,
            self.money, total, limit, self.ends_anyhow, makespan,
        )  # fmt: skip
        return taken[:count]

    def descent(
        self, on: IntArray, rate: float, sweeps: int, spare: float = np.inf, latest: float = np.inf
    ) -> Descent:
        """Where a descent from an assignment leads, and its sweeps; money counts `rate` seconds."""
        key = on.tobytes(), self.order.tobytes(), rate, sweeps, spare, latest
        if key not in self._descents:
            self._descents[key] = wide_descend(
                self.planning.problem, self.demands, *self._room(), on, self.seconds, self.widths,
                self.money, rate, spare, latest, sweeps,
            )  # fmt: skip
        return self._descents[key]

    def _room(self) -> tuple[Wish, Space, Placed]:
        """Where the kernels try assignments, in the order that is set now."""
        wish, space, placed = self._arrays
        return wish._replace(order=self.order), space, placed

    @cached_property
    def _arrays(self) -> tuple[Wish, Space, Placed]:
        problem, demands = self.planning.problem, self.demands
        n, processors, hosts = problem.n_tasks, problem.n_processors, problem.n_hosts
        gaps, held = len(self.tasks) + 2, len(demands.held_task) + processors
        steps = 2 * (len(self.tasks) + held) + 2
        whole, nobody = np.int32, np.empty(0, dtype=np.int32)
        wish = Wish(
            how=IN_ORDER, insertion=True, shortest=self.shortest, order=self.order,
            pin_host=np.full(n, -1, dtype=whole), pin_width=np.full(n, -1, dtype=whole),
            bias=np.empty(0), bonus=np.empty(0), place=nobody, given_core=nobody,
            given_width=nobody, given_factor=np.empty(0),
        )  # fmt: skip
        space = Space(
            insertion=True, shortest=self.shortest, gap_room=gaps,
            last=np.zeros(processors, dtype=whole), gap_start=np.empty(processors * gaps),
            gap_end=np.empty(processors * gaps), step_room=steps,
            steps=np.zeros(hosts, dtype=whole), step_time=np.empty(hosts * steps),
            step_used=np.empty(hosts * steps * (demands.n_kinds + 1)), pool_room=steps,
            pool_steps=np.zeros(1, dtype=whole), pool_time=np.empty(steps),
            pool_used=np.empty(steps * (demands.n_pools + 1)),
            barred=np.zeros(processors, np.bool_), nearest=np.empty(processors),
            length=np.empty(processors),
            chosen=np.empty(processors, dtype=whole),
        )  # fmt: skip
        placed = Placed(
            processor=np.full(n, -1, dtype=whole), start=np.zeros(n), finish=np.zeros(n),
            source_host=problem.source_host.copy(), ready_at=problem.ready_at.copy(),
            arrival=np.zeros(hosts), core=np.empty(int(demands.core_ptr[-1]), dtype=whole),
            wide=np.zeros(n, dtype=whole), host_of=np.full(n, -1, dtype=whole),
            width_at=np.zeros(n, dtype=whole), most=np.zeros(n), waiting=nobody, ready=nobody,
            counts=np.zeros(2, dtype=whole), counted_on=np.zeros(processors, np.bool_),
        )  # fmt: skip
        return wish, space, placed

    @cached_property
    def shortest(self) -> float:
        """The shortest time that any task takes anywhere."""
        return float(self.fitting.shortest(self.demands))

    @property
    def steps(self) -> int:
        """The inner steps of one schedule, roughly: tasks are tried on all cores of a host."""
        problem = self.planning.problem
        cores = 1 + problem.n_processors // problem.n_hosts
        return len(self.tasks) * cores + len(problem.in_item)

    def cheapest(self, planner: Any) -> Schedule:
        """The cheapest schedule known: where costs do not add up, one host alone may be."""
        best = self.schedule(self.cheapest_assignment, planner)
        if not self.situation.platform.adds_up:
            shape = -1, self.processors
            for host in range(self.planning.problem.n_hosts):
                first = host * self.widths
                part = slice(first, first + self.widths)
                money = self.money.reshape(shape)[:, part]
                alone = first + cheapest_of(self.seconds.reshape(shape)[:, part], money)
                may = np.isfinite(money).any(axis=1)
                alone = np.where(may, alone, self.cheapest_assignment)
                for on in (alone, np.where(self.runs_on >= 0, self.runs_on, alone)):
                    other = self.schedule(on.astype(np.int32), planner)
                    best = other if self.cost(other) < self.cost(best) else best
        return best
