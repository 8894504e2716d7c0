"""One planning call: a Situation as the kernels' flat arrays, and their answer as a Schedule."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, csr, frozen, sealed
from weft.errors import PlanningError
from weft.kernels.list_planners import plan_listed
from weft.kernels.listing import by_rank, mean_cost
from weft.kernels.placement import place_in_order
from weft.kernels.problem import Problem
from weft.kernels.ranks import upward_rank
from weft.model import Estimates, Freedom, Reuse, Schedule, Situation
from weft.spec import spec_of

Placement = tuple[IntArray, FloatArray, FloatArray]

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
            free_from=self._free_from(),
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

    def _free_from(self) -> FloatArray:
        """A processor is free from now, or from the expected end of what it runs."""
        situation, attempts = self.situation, self.situation.attempts
        free = np.full(situation.platform.n_processors, situation.now, dtype=np.float64)
        if len(attempts.task):
            running = np.isnan(attempts.finish)
            np.maximum.at(free, attempts.processor[running], situation.expected_finish()[running])
        return sealed(free[self.usable])

    def _settled(self) -> dict[str, Any]:
        """Tasks that have begun stay; their outputs can leave once made, and not before now."""
        situation, attempts = self.situation, self.situation.attempts
        n, host = situation.workflow.n_tasks, situation.platform.host
        movable = np.ones(n, dtype=np.bool_)
        settled_on = np.full(n, -1, dtype=np.int32)
        source_host = np.zeros(n, dtype=np.int32)
        ready_at = np.zeros(n)
        if len(attempts.task):
            number = np.full(situation.platform.n_processors, -1, dtype=np.int32)
            number[self.usable] = np.arange(len(self.usable))
            movable[attempts.task] = False
            if self.freedom == Freedom.RESTART:  # where nothing new starts, let it end
                movable[attempts.task] = (
                    np.isnan(attempts.finish) & (situation.usable()[attempts.processor])
                )
            settled_on[attempts.task] = number[attempts.processor]
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
        return mean_cost(self.problem.cost, self.problem.n_tasks, self.problem.n_processors)

    @cached_property
    def _least(self) -> float:
        """The smallest cost of all."""
        if self._estimates is not None:
            return self._estimates.least
        return float(self.problem.cost.min(initial=np.inf))

    @property
    def _estimates(self) -> Estimates | None:
        """The estimates, if they are what all processors take now."""
        situation = self.situation
        as_they_are = self._all_usable and situation.cost is situation.estimates.cost
        return situation.estimates if as_they_are else None

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
        return placement

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

        The processors may be free at other times than the situation says.
        """
        shortest = self._least if insertion else np.inf
        pins = _NO_PINS if pinned is None else pinned
        extra = _NO_BIAS if bias is None else bias
        problem = self.problem
        problem = problem if free_from is None else problem._replace(free_from=free_from)
        return place_in_order(problem, order, pins, extra, shortest)

    def line(self, order: IntArray) -> IntArray:
        """The place of each task in an order."""
        place = np.zeros(self.problem.n_tasks, dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return place

    def schedule(self, planner: Any, placement: Placement) -> Schedule:
        """The kernel's placement as a schedule of all tasks."""
        situation, attempts = self.situation, self.situation.attempts
        processor, start, finish = placement
        if processor.min(initial=0) < 0:
            self._check_all_placed(processor)
        processor = self.usable[processor] if not self._all_usable else processor
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
        )

    def _check_all_placed(self, processor: IntArray) -> None:
        lost: BoolArray = self.problem.movable & (processor < 0)
        if lost.any():
            order = self.situation.workflow.order
            task = self.situation.workflow.task_names[order[lost[order]][0]]
            raise PlanningError(f"no processor can finish task {task!r} before it leaves")


_latest: tuple[Planning, ...] = ()


def planning_of(situation: Situation, freedom: Freedom = Freedom.NOT_STARTED) -> Planning:
    """The same for whoever asks of the same situation: a planner, then a projection."""
    global _latest
    for known in _latest:
        if known.situation is situation and known.freedom is freedom:
            return known
    planning = Planning(situation, freedom)
    _latest = (planning,)
    return planning


_NO_PINS: IntArray = np.empty(0, dtype=np.int32)
_NO_BIAS: FloatArray = np.empty(0)
_NONE_ASTRAY: BoolArray = frozen([], np.bool_)
_NOTHING_KNOWN = {
    "known_ptr": frozen([], np.int32),
    "known_host": frozen([], np.int32),
    "known_time": frozen([], np.float64),
    "known_whole": frozen([], np.bool_),
}
