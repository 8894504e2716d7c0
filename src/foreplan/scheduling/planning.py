"""One planning call: a Situation as the kernels' flat arrays, and their answer as a Schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, csr, frozen, sealed
from foreplan.errors import InputError, PlanningError
from foreplan.model import Freedom, Reuse, Schedule, Situation
from foreplan.model.resources import Cores, held
from foreplan.scheduling.kernels.list_planners import plan_listed
from foreplan.scheduling.kernels.placement import place_in_order, position
from foreplan.scheduling.kernels.problem import Problem
from foreplan.scheduling.kernels.ranks import by_rank, mean_cost, upward_rank
from foreplan.spec import spec_of

if TYPE_CHECKING:
    from foreplan.scheduling.fitting import Fitting


class Placement(NamedTuple):
    """Where and when each task is placed, by numbers of usable processors; -1: nowhere."""

    processor: IntArray
    start: FloatArray
    finish: FloatArray
    cores: Cores | None = None  # None: each takes its processor


EFFICIENCY = 0.5  # of what cores do for a task, against the fewest that it may take
TOO_LARGE = "the costs and volumes are too large to add up"


class Planning:
    """What every planner needs: the problem, means over the usable processors, orders by rank."""

    def __init__(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> None:
        self.situation, self.freedom = situation, freedom
        self.usable = np.flatnonzero(situation.usable()).astype(np.int32)
        if len(self.usable) == 0:
            given_up = 0 if situation.given_up is None else int(situation.given_up.sum())
            if len(situation.attempts.task) + given_up < situation.workflow.n_tasks:
                raise PlanningError(f"no processor can be used at time {situation.now:g}")
            self.usable = np.arange(situation.platform.n_processors, dtype=np.int32)
        self.problem = self._pose()
        self.n_movable = int(np.count_nonzero(self.problem.movable))
        self.fitting = self._fit() if situation.estimates.needs is not None else None

    def _fit(self) -> Fitting | None:
        """What plans tasks that need more than one core; None if all take one, and no more."""
        from foreplan.scheduling.fitting import Fitting, needed

        demand = needed(self.situation)
        return None if demand is None else Fitting(self, demand)

    def _pose(self) -> Problem:
        situation, usable = self.situation, self.usable
        wf, pf = situation.workflow, situation.platform
        cost, everyone = situation.cost, self._all_usable
        return Problem(
            n_tasks=wf.n_tasks,
            n_processors=len(usable),
            n_hosts=pf.n_hosts,
            links_alike=pf.links_alike and situation.full_speed,
            order=wf.order,
            in_ptr=wf.in_ptr,
            in_item=wf.in_item,
            out_ptr=wf.out_ptr,
            out_item=wf.out_item,
            use_ptr=wf.use_ptr,
            use_task=wf.use_task,
            item_size=wf.item_size,
            item_producer=wf.item_producer,
            cost=cost.reshape(-1) if everyone else sealed(cost[:, usable].reshape(-1)),
            host=pf.host if everyone else sealed(pf.host[usable]),
            startup=pf.startup.reshape(-1),
            per_unit=situation.time_per_unit.reshape(-1),
            free_from=sealed(situation.free_from()[usable]),
            until=pf.leaves if everyone else sealed(pf.leaves[usable]),
            **self._settled(),
            **self._known(),
            astray=_NONE_ASTRAY if situation.astray is None else situation.astray,
            anywhere=situation.reuse == Reuse.ANYWHERE,
            now=situation.now,
        )

    @cached_property
    def _all_usable(self) -> bool:
        return len(self.usable) == self.situation.platform.n_processors

    @cached_property
    def number(self) -> IntArray:
        """The number of each processor among the usable ones; -1: it is none."""
        number = np.full(self.situation.platform.n_processors, -1, dtype=np.int32)
        number[self.usable] = np.arange(len(self.usable), dtype=np.int32)
        return number

    @cached_property
    def runs_on(self) -> IntArray:
        """The number of the processor on which each movable task runs, -1 where it does not."""
        problem, begun = self.problem, self.situation.attempts.task
        runs_on = np.full(problem.n_tasks, -1, dtype=np.int32)
        movable = begun[problem.movable[begun]]
        runs_on[movable] = problem.settled_on[movable]
        return runs_on

    def _settled(self) -> dict[str, Any]:
        """Tasks that have begun stay; their outputs can leave once made, and not before now."""
        situation, attempts = self.situation, self.situation.attempts
        n, host = situation.workflow.n_tasks, situation.platform.host
        movable = np.ones(n, dtype=np.bool_)
        settled_on = np.full(n, -1, dtype=np.int32)
        source_host = np.zeros(n, dtype=np.int32)
        ready_at = np.zeros(n)
        if len(attempts.task):
            movable[attempts.task] = False
            if self.freedom == Freedom.RESTART:  # where nothing new starts, let it end
                movable[attempts.task] = np.isnan(attempts.finish) & self._all_here()
            settled_on[attempts.task] = self.number[attempts.processor]
            source_host[attempts.task] = host[attempts.processor]
            ready_at[attempts.task] = np.maximum(situation.now, situation.expected_finish())
        if situation.given_up is not None:
            movable &= ~situation.given_up
        return {
            "movable": sealed(movable),
            "settled_on": sealed(settled_on),
            "source_host": sealed(source_host),
            "ready_at": sealed(ready_at),
        }

    def _all_here(self) -> BoolArray:
        """Which attempts hold no processor that may not be used."""
        attempts, usable = self.situation.attempts, self.situation.usable()
        rows, processors = held(attempts.processor, attempts.cores)
        gone = np.bincount(rows, weights=~usable[processors], minlength=len(attempts.task))
        here: BoolArray = gone == 0
        return here

    def _known(self) -> dict[str, Any]:
        situation = self.situation
        if len(situation.copies.item) + len(situation.transfers.item) == 0:
            return _NOTHING_KNOWN
        items, hosts, times = situation.known_arrivals()
        entries = np.arange(len(items), dtype=np.int32)
        pointers, by_item = csr(items, entries, situation.workflow.n_items)
        return {
            "known_ptr": pointers,
            "known_host": sealed(hosts[by_item]),
            "known_time": sealed(times[by_item]),
            "known_whole": sealed(by_item < len(situation.copies.item)),
        }

    @cached_property
    def cost(self) -> FloatArray:
        """The cost matrix over the usable processors."""
        return self.problem.cost.reshape(self.problem.n_tasks, self.problem.n_processors)

    @cached_property
    def mean_cost(self) -> FloatArray:
        """The mean cost of each task."""
        if self.fitting is not None:
            return self.fitting.mean_times(EFFICIENCY)
        return mean_cost(self.problem.cost, self.problem.n_tasks, self.problem.n_processors)

    @cached_property
    def _least(self) -> float:
        """The smallest cost of all; the estimates know it if they are what all take now."""
        situation = self.situation
        if self._all_usable and situation.cost is situation.estimates.cost:
            return situation.estimates.least
        return float(self.problem.cost.min(initial=np.inf))

    @cached_property
    def mean_link(self) -> tuple[float, float]:
        """Startup and time per unit of the mean link between the usable processors."""
        platform = self.situation.platform
        everyone = self._all_usable
        link = platform.mean_link if everyone else platform.mean_link_among(self.usable)
        return link.startup, link.time_per_unit

    @cached_property
    def upward_rank(self) -> FloatArray:
        """HEFT's rank: mean costs and mean transfer times."""
        return upward_rank(self.problem, self.mean_cost, *self.mean_link)

    def by_rank(self, rank: FloatArray) -> IntArray:
        """The movable tasks, highest rank first, then by topological position."""
        order = by_rank(self.problem, rank)
        if len(order) < self.n_movable:
            raise PlanningError(TOO_LARGE)
        return order

    def listed(self, planner: int) -> Placement:
        """What a list planner among the kernels makes of it."""
        placement = plan_listed(self.problem, planner, self.mean_cost, self._least, *self.mean_link)
        if self.n_movable and (placement[0] < 0).all():
            self.by_rank(self.upward_rank)  # which says so if that is why
        return Placement(*placement)

    def position(self, order: IntArray, efficiency: float) -> Placement:
        """What GTP's kernel makes of an order."""
        if self.fitting is not None:
            return self.fitting.position(order, efficiency)
        return Placement(*position(self.problem, order, self.runs_on))

    def place(
        self,
        order: IntArray,
        *,
        pinned: IntArray | None = None,
        bias: FloatArray | None = None,
        insertion: bool = True,
        free_from: FloatArray | None = None,
    ) -> Placement:
        """Earliest finish in the given order; see the kernel for pins and bias.

        The processors may be free at other times than the situation says. Where tasks need more
        than one core, a pin means the processor's host, and of its biases the least counts.
        """
        if self.fitting is not None:
            return self._place_wide(self.fitting, order, pinned, bias, insertion, free_from)
        shortest = self._least if insertion else np.inf
        pins = _NO_PINS if pinned is None else pinned
        extra = _NO_BIAS if bias is None else bias
        problem = self.problem
        problem = problem if free_from is None else problem._replace(free_from=free_from)
        return Placement(*place_in_order(problem, order, pins, extra, shortest))

    def _place_wide(
        self,
        fitting: Fitting,
        order: IntArray,
        pinned: IntArray | None,
        bias: FloatArray | None,
        insertion: bool,
        free_from: FloatArray | None,
    ) -> Placement:
        problem, hosts = self.problem, None
        if pinned is not None:
            hosts = np.where(pinned < 0, -1, problem.host[pinned]).astype(np.int32)
        if bias is not None:
            least = np.full((problem.n_hosts, problem.n_tasks), np.inf)
            rows = bias.reshape(problem.n_tasks, problem.n_processors).T
            np.minimum.at(least, problem.host, rows)
            bias = np.ascontiguousarray(least.T).reshape(-1)
        return fitting.place(
            order,
            fitting.demands(EFFICIENCY),
            insertion=insertion,
            pin_host=hosts,
            bias=bias,
            free_from=free_from,
        )

    def schedule(self, planner: Any, placement: Placement) -> Schedule:
        """The kernel's placement as a schedule of all tasks."""
        situation, attempts, fitting = self.situation, self.situation.attempts, self.fitting
        processor, start, finish, cores = placement
        if processor.min(initial=0) < 0:
            self._check_all_placed(processor)
        processor = self.usable[processor] if not self._all_usable else processor
        kept: BoolArray = np.empty(0, dtype=np.bool_)
        if len(attempts.task):
            kept = ~self.problem.movable[attempts.task]
            kept |= processor[attempts.task] == attempts.processor
            begun = attempts.task[kept]
            processor[begun] = attempts.processor[kept]
            start[begun] = attempts.start[kept]
            finish[begun] = situation.expected_finish()[kept]
        if situation.given_up is not None:  # they stand in the schedule, but take no time
            processor[situation.given_up] = 0
            end = float(finish[~situation.given_up].max(initial=situation.now))
            start[situation.given_up] = finish[situation.given_up] = end
        return Schedule(
            planner=planner if isinstance(planner, str) else spec_of(planner),
            workflow=situation.workflow,
            platform=situation.platform,
            processor=sealed(processor),
            start=sealed(start),
            finish=sealed(finish),
            cores=fitting.cores_of_all(processor, cores, kept) if fitting else None,
            needs=situation.estimates.needs,
        )

    def _check_all_placed(self, processor: IntArray) -> None:
        lost: BoolArray = self.problem.movable & (processor < 0)
        if lost.any():
            order = self.situation.workflow.order
            task = self.situation.workflow.task_names[order[lost[order]][0]]
            if self.fitting is not None:
                raise PlanningError(
                    f"no host that can be used at time {self.situation.now:g} has what task "
                    f"{task!r} needs for as long as it takes"
                )
            raise PlanningError(f"no processor can finish task {task!r} before it leaves")


_latest: tuple[Planning, ...] = ()


def planning_of(situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Planning:
    """The same for whoever asks of the same situation: a planner, then a projection."""
    global _latest
    for known in _latest:
        if known.situation is situation and known.freedom is freedom:
            return known
    planning = Planning(situation, freedom)
    _latest = (
        planning,
        *_latest[:1],
    )  # a second opinion asks of two
    return planning


class ListPlanner:
    """What the list planners among the kernels have in common."""

    name: ClassVar[str]

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by the kernel; what has begun stays."""
        planning = planning_of(situation)
        if planning.fitting is not None:
            raise planning.fitting.refuse(self.name)
        return planning.schedule(self, planning.listed(self.kernel))

    @property
    def kernel(self) -> int:
        """Which of the kernels' list planners it is."""
        raise NotImplementedError


@dataclass(frozen=True)
class WidePlanner(ListPlanner):
    """Those that plan tasks of several cores too, and what else tasks need.

    Of a task's widths those count whose efficiency is at least this (docs/decisions/036-widths.md).
    """

    efficiency: float = field(default=EFFICIENCY, kw_only=True)

    def __post_init__(self) -> None:
        check_efficiency(self.name, self.efficiency)

    def plan(self, situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Schedule:
        """A schedule by the kernel; what has begun stays."""
        planning = planning_of(situation)
        if planning.fitting is None:
            return planning.schedule(self, planning.listed(self.kernel))
        return planning.schedule(self, planning.fitting.listed(self.kernel, self.efficiency))


def check_efficiency(planner: str, efficiency: float) -> None:
    """A share, or no bound at all."""
    if not 0 <= efficiency <= 1:
        place = f"{planner}[efficiency]"
        raise InputError(f"must be a share from 0 to 1, not {efficiency:g}", place=place)


_NO_PINS: IntArray = np.empty(0, dtype=np.int32)
_NO_BIAS: FloatArray = np.empty(0)
_NONE_ASTRAY: BoolArray = frozen([], np.bool_)
_NOTHING_KNOWN = {
    "known_ptr": frozen([], np.int32),
    "known_host": frozen([], np.int32),
    "known_time": frozen([], np.float64),
    "known_whole": frozen([], np.bool_),
}
