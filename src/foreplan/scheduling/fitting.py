"""Where tasks need more than one core: a situation's demand as arrays, and plans that fit."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, csr, row_of_each
from foreplan.errors import PlanningError
from foreplan.model import Schedule, Situation
from foreplan.model.resources import Cores, Demand, Needs, held
from foreplan.scheduling.kernels.list_planners import (
    CPOP,
    DLS,
    HEFT_AT_THE_END,
    MAX_MIN,
    MIN_MIN,
    PEFT,
)
from foreplan.scheduling.kernels.ranks import critical_path, downward_rank, ready_order, upward_rank
from foreplan.scheduling.kernels.space import Demands
from foreplan.scheduling.kernels.wide import (
    BEST_PAIR,
    FOLLOW,
    IN_ORDER,
    LARGEST_PAIR,
    POSITION,
    Wish,
    costs_by_host,
    mean_times,
    median_times,
    optimistic_times,
    place_wide,
    times_by_host,
)

if TYPE_CHECKING:
    from foreplan.scheduling.planning import Placement, Planning

ROUNDING = 1e-9  # of a capacity: what is more by less fits


def needed(situation: Situation) -> Demand | None:
    """What tasks need beside one core, if that matters on these machines at all."""
    demand = situation.demand
    if demand is None:
        return None
    needs, hosts = demand.needs, situation.platform.n_hosts
    if (needs.width != 1).any() or not demand.allowed.all():
        return demand
    return demand if any(len(part) for part in _columns(demand, hosts)) else None


def _columns(demand: Demand, hosts: int) -> tuple[IntArray, IntArray]:
    """The kinds of hosts that may run short, and the pools that anybody takes from."""
    needs, kinds = demand.needs, len(demand.needs.kinds)
    taken: BoolArray = np.any(needs.amount > 0, axis=0)
    short: BoolArray = np.any(
        np.isfinite(demand.capacity[: hosts * kinds].reshape(hosts, kinds)), axis=0
    )
    return (
        np.flatnonzero(taken[:kinds] & short).astype(np.int32),
        np.flatnonzero(taken[kinds:]).astype(np.int32),
    )


def efficient(needs: Needs, bound: float) -> BoolArray:
    """Which widths do enough for their cores: factor(w0) w0 / (factor(w) w), w0 the smallest."""
    task = row_of_each(needs.width_ptr)
    least = needs.width_ptr[:-1][task]
    work = needs.factor * needs.width
    kept: BoolArray = work[least] >= bound * work * (1 - ROUNDING)
    return kept


class Fitting:
    """A planning call in which tasks need more than one core."""

    def __init__(self, planning: Planning, demand: Demand) -> None:
        self.planning, self.demand = planning, demand
        self.problem, self.situation = planning.problem, planning.situation
        self._known: dict[float, Demands] = {}

    @cached_property
    def hosts(self) -> tuple[IntArray, IntArray]:
        """The usable processors of every host."""
        numbers = np.arange(self.problem.n_processors, dtype=np.int32)
        return csr(self.problem.host, numbers, self.problem.n_hosts)

    @cached_property
    def host_cost(self) -> FloatArray:
        """By task and host, what it costs on each processor there; NaN where they differ."""
        problem = self.problem
        return costs_by_host(problem.cost, problem.n_tasks, problem.n_processors, *self.hosts)

    @cached_property
    def core_ptr(self) -> IntArray:
        """Room for the cores of every task."""
        most, attempts = self.demand.needs.most_cores.copy(), self.situation.attempts
        if attempts.cores is not None:
            np.maximum.at(most, attempts.task, attempts.cores.width)
        return _pointers(most)

    def demands(self, efficiency: float) -> Demands:
        """The demand as the kernels have it, with the widths that are efficient enough."""
        if efficiency not in self._known:
            self._known[efficiency] = self._posed(efficiency)
        return self._known[efficiency]

    def _posed(self, efficiency: float) -> Demands:
        needs, situation, problem = self.demand.needs, self.situation, self.problem
        hosts, kinds = problem.n_hosts, len(needs.kinds)
        of_hosts, of_pools = _columns(self.demand, hosts)
        capacity = np.concatenate(
            [
                self.demand.capacity[: hosts * kinds].reshape(hosts, kinds)[:, of_hosts].ravel(),
                self.demand.capacity[hosts * kinds :][of_pools],
            ]
        )
        taken = (needs.amount[:, of_hosts], needs.amount[:, kinds + of_pools])
        takes: list[BoolArray] = [np.any(part > 0, axis=1) for part in taken]
        kept = efficient(needs, efficiency)
        per_task = np.add.reduceat(kept, needs.width_ptr[:-1]) if len(kept) else kept
        attempts = situation.attempts
        running = np.flatnonzero(np.isnan(attempts.finish))
        held_task = attempts.task[running]
        run_ptr, run_core = self._running_cores
        return Demands(
            n_kinds=len(of_hosts),
            n_pools=len(of_pools),
            capacity=capacity * (1 + ROUNDING),
            amount=np.ascontiguousarray(np.hstack(taken)).reshape(-1),
            takes_kinds=takes[0],
            takes_pools=takes[1],
            width_ptr=_pointers(per_task),
            width=needs.width[kept],
            factor=needs.factor[kept],
            allowed=self.demand.allowed.reshape(-1),
            host_ptr=self.hosts[0],
            host_core=self.hosts[1],
            host_cost=self.host_cost,
            core_ptr=self.core_ptr,
            run_ptr=run_ptr,
            run_core=run_core,
            held_task=held_task,
            held_host=situation.platform.host[attempts.processor[running]],
            held_until=np.maximum(situation.now, situation.expected_finish()[running]),
        )

    @cached_property
    def _running_cores(self) -> tuple[IntArray, IntArray]:
        """The cores of every task that runs and may move."""
        attempts, problem = self.situation.attempts, self.problem
        rows, processors = held(attempts.processor, attempts.cores)
        may = np.isnan(attempts.finish) & problem.movable[attempts.task]
        of = may[rows]
        return csr(attempts.task[rows[of]], self.planning.number[processors[of]], problem.n_tasks)

    def times(self, demands: Demands, cost: FloatArray | None = None) -> FloatArray:
        """By task and host, the least that it takes there; infinite where it may not run."""
        problem, host_cost = self.problem, self.host_cost
        if cost is None:
            cost = problem.cost
        else:
            host_cost = costs_by_host(cost, problem.n_tasks, problem.n_processors, *self.hosts)
        return times_by_host(problem, demands, cost, host_cost)

    def mean_times(self, efficiency: float, cost: FloatArray | None = None) -> FloatArray:
        """The mean of that over the cores of the hosts where a task may run."""
        demands = self.demands(efficiency)
        return mean_times(demands, self.times(demands, cost), self.problem.n_tasks)

    def shortest(self, demands: Demands) -> float:
        """The least that any task takes anywhere."""
        least = np.minimum.reduceat(demands.factor, demands.width_ptr[:-1])
        return float((self.planning.cost.min(axis=1) * least).min(initial=np.inf))

    def listed(self, planner: int, efficiency: float) -> Placement:
        """What a list planner makes of it."""
        planning, problem, link = self.planning, self.problem, self.planning.mean_link
        demands = self.demands(efficiency)
        times = self.times(demands)
        if planner == PEFT:
            rest = optimistic_times(problem, times, *link)
            ranked = planning.by_rank(mean_times(demands, rest, problem.n_tasks))
            return self.place(ready_order(problem, ranked), demands, bias=rest)
        mean = mean_times(demands, times, problem.n_tasks)
        rank = upward_rank(problem, mean, *link)
        if planner == CPOP:
            ranked = planning.by_rank(rank + downward_rank(problem, mean, *link))
            order = ready_order(problem, ranked)
            pins = self._path_on_one_host(order, rank, times, mean)
            return self.place(order, demands, pin_host=pins)
        order = planning.by_rank(rank)
        if planner in (DLS, MIN_MIN, MAX_MIN):
            bonus = np.zeros(problem.n_tasks)
            if planner == DLS:
                median = median_times(demands, times, problem.n_tasks)
                bonus = upward_rank(problem, median, 0.0, 0.0) + median
            how = LARGEST_PAIR if planner == MAX_MIN else BEST_PAIR
            return self.place(order, demands, how=how, bonus=bonus, insertion=False)
        return self.place(order, demands, insertion=planner != HEFT_AT_THE_END)

    def _path_on_one_host(
        self, order: IntArray, rank: FloatArray, times: FloatArray, mean: FloatArray
    ) -> IntArray:
        """CPOP's critical path on the host where it takes least.

        What may not run there counts what it takes on average, and is not pinned.
        """
        pins = np.full(self.problem.n_tasks, -1, dtype=np.int32)
        if len(order) == 0:
            return pins
        workflow, link = self.situation.workflow, self.planning.mean_link
        path = critical_path(self.problem, rank, workflow.position, int(order[0]), *link)
        takes = times.reshape(self.problem.n_tasks, -1)[path]
        may = np.isfinite(takes)
        total = np.where(may, takes, mean[path][:, None]).sum(axis=0)
        host = int(np.where(np.diff(self.hosts[0]) > 0, total, np.inf).argmin())
        pins[path[may[:, host]]] = host
        return pins

    def position(self, order: IntArray, efficiency: float) -> Placement:
        """Global task positioning: what runs stays, or begins from scratch elsewhere."""
        return self.place(order, self.demands(efficiency), how=POSITION, insertion=False)

    def follow(self, plan: Schedule, order: IntArray) -> Placement | None:
        """Tasks in order on the cores that a plan has for them; None if it cannot be."""
        needs, movable = self.demand.needs, self.problem.movable
        rows, processors = held(plan.processor, plan.cores)
        core, width = self.planning.number[processors], np.bincount(rows, minlength=len(movable))
        wanted = movable[rows]
        room = np.diff(self.core_ptr)
        factor = needs.factor_of(np.arange(len(width), dtype=np.int32), width.astype(np.int32))
        if (core[wanted] < 0).any() or np.isnan(factor[movable]).any():
            return None
        fits = width <= room
        at = _within(_pointers(np.where(fits, width, 0)), self.core_ptr)
        given = np.zeros(int(self.core_ptr[-1]), dtype=np.int32)
        given[at] = core[fits[rows]]
        placement = self.place(
            order,
            self.demands(0.0),
            how=FOLLOW,
            insertion=False,
            given=(given, width.astype(np.int32), factor),
        )
        return None if (placement.processor[movable] < 0).any() else placement

    def place(
        self,
        order: IntArray,
        demands: Demands,
        *,
        how: int = IN_ORDER,
        insertion: bool = True,
        pin_host: IntArray | None = None,
        pin_width: IntArray | None = None,
        bias: FloatArray | None = None,
        bonus: FloatArray | None = None,
        given: tuple[IntArray, IntArray, FloatArray] | None = None,
        free_from: FloatArray | None = None,
    ) -> Placement:
        """Tasks by the kernel; see there."""
        from foreplan.scheduling.planning import Placement

        problem, nobody = self.problem, np.empty(0, dtype=np.int32)
        problem = problem if free_from is None else problem._replace(free_from=free_from)
        if pin_host is not None and pin_width is None:
            pin_width = np.full(len(pin_host), -1, dtype=np.int32)
        places = np.zeros(problem.n_tasks, dtype=np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        wish = Wish(
            how=how,
            insertion=insertion,
            shortest=self.shortest(demands) if insertion else np.inf,
            order=order,
            pin_host=nobody if pin_host is None else pin_host,
            pin_width=nobody if pin_width is None else pin_width,
            bias=np.empty(0) if bias is None else bias,
            bonus=np.empty(0) if bonus is None else bonus,
            place=places,
            given_core=nobody if given is None else given[0],
            given_width=nobody if given is None else given[1],
            given_factor=np.empty(0) if given is None else given[2],
        )
        processor, start, finish, core, width = place_wide(problem, demands, wish)
        ptr = _pointers(width)
        cores = Cores(ptr, core[_within(ptr, demands.core_ptr)])
        return Placement(processor, start, finish, cores)

    def cores_of_all(self, processor: IntArray, placed: Cores | None, kept: BoolArray) -> Cores:
        """The cores of all tasks of a schedule: placed ones, and those of attempts that are kept.

        A task that is neither stands for one core, its processor.
        """
        attempts, usable = self.situation.attempts, self.planning.usable
        nothing = np.zeros(len(processor) + 1, dtype=np.int32)
        cores = placed or Cores(nothing, nothing[:0])
        rows, processors = held(attempts.processor, attempts.cores)
        n, m = len(processor), len(attempts.task)
        widths: list[IntArray] = [
            cores.width,
            np.bincount(rows, minlength=m).astype(np.int32),
            np.ones(n, dtype=np.int32),
        ]
        every = Cores(
            _pointers(np.concatenate(widths)),
            np.concatenate([usable[cores.processor], processors, processor]),
        )
        row = np.where(cores.width > 0, np.arange(n), n + m + np.arange(n))
        row[attempts.task[kept]] = n + np.flatnonzero(kept)
        return every.take(row.astype(np.int32))

    def refuse(self, planner: str) -> PlanningError:
        """Why a planner that knows only single cores cannot plan these tasks."""
        needs, allowed = self.demand.needs, self.demand.allowed
        wide = needs.width[needs.width_ptr[:-1]] > 1
        choice = np.diff(needs.width_ptr) > 1
        task = int((wide | choice | (needs.amount > 0).any(axis=1) | ~allowed.all(axis=1)).argmax())
        if wide[task]:
            asks = f"takes {needs.width[needs.width_ptr[task]]} cores"
        elif choice[task]:
            asks = "may take several cores"
        elif (needs.amount[task] > 0).any():
            kind = [*needs.kinds, *needs.pools][int((needs.amount[task] > 0).argmax())]
            asks = f"needs {kind}"
        else:
            asks = "may not run on every host"
        return PlanningError(
            f"{planner} plans tasks that take one core and nothing else, and "
            f"{self.situation.workflow.task_names[task]!r} {asks}: "
            "use heft, cpop, peft, dls, min-min, max-min or gtp"
        )


def _pointers(counts: IntArray | BoolArray) -> IntArray:
    pointers = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def _within(ptr: IntArray, room: IntArray) -> IntArray:
    """Where the entries of rows stand in an array that has more room for each."""
    width = np.diff(ptr)
    at = np.arange(int(ptr[-1]), dtype=np.int32) + np.repeat(room[:-1] - ptr[:-1], width)
    return at.astype(np.int32)
