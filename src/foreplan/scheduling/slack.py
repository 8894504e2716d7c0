"""What a plan allows: slack and spare time of its tasks, and other processors that are as good."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, csr, row_of_each
from foreplan.model import Schedule, Situation
from foreplan.model.resources import Cores, held
from foreplan.scheduling.kernels.slack import (
    choose_equal_cores,
    choose_equals,
    count_steps,
    spare_times,
    spare_times_of_wide,
)

ROUNDING = 1e-9  # of the makespan: a delay or an overlap below it is none


def slack_and_spare(
    schedule: Schedule, situation: Situation | None = None
) -> tuple[FloatArray, FloatArray]:
    """Slack and MinSpare of every task (Zhao, Sakellariou, section 2).

    The situation is the one that the schedule was made for: who waits for what, and how fast the
    links are. By default nothing has happened yet.
    """
    wf, pf = schedule.workflow, schedule.platform
    per_unit = pf.time_per_unit if situation is None else situation.time_per_unit
    rest = (
        wf.out_ptr,
        wf.out_item,
        wf.use_ptr,
        wf.use_task,
        _waits(schedule, situation),
        wf.item_size,
        pf.startup.reshape(-1),
        per_unit.reshape(-1),
        pf.host[schedule.processor],
        pf.n_hosts,
        schedule.start,
        schedule.finish,
        schedule.makespan,
    )
    if schedule.cores is None:
        return spare_times(schedule.in_time, _following(schedule), *rest)
    pointers, after = _next(schedule)
    return spare_times_of_wide(schedule.in_time, pointers, after, *rest)


def steps_before(schedule: Schedule, situation: Situation) -> FloatArray:
    """How many tasks must end one after another before each can start, those that run included.

    The situation is the one that the schedule was made for. What is done is no step any more.
    """
    wf = schedule.workflow
    done = np.zeros(wf.n_tasks, dtype=np.bool_)
    done[situation.attempts.task[~np.isnan(situation.attempts.finish)]] = True
    return count_steps(
        schedule.in_time, done, *_next(schedule), wf.out_ptr, wf.out_item, wf.use_ptr, wf.use_task
    )


def _following(schedule: Schedule) -> IntArray:
    """The task after each on its processor; -1: none."""
    pointers, queue = schedule.queue
    following = np.full(schedule.workflow.n_tasks, -1, dtype=np.int32)
    following[queue[:-1]] = queue[1:]
    ends = pointers[1:]
    following[queue[ends[ends > pointers[:-1]] - 1]] = -1  # nothing follows the last of a row
    return following


def _next(schedule: Schedule) -> tuple[IntArray, IntArray]:
    """The tasks after each on its processors."""
    pointers, queue = schedule.queue
    row = row_of_each(pointers)
    same = row[:-1] == row[1:]
    return csr(queue[:-1][same], queue[1:][same], schedule.workflow.n_tasks)


def _waits(schedule: Schedule, situation: Situation | None) -> BoolArray:
    """By item and reader: whether the reader waits for the item to be made.

    Who has begun, or will not run, waits for nothing: a producer that is rewound for the sake of
    another reader delays it no more. Nor does who has the item at hand, or on its way.
    """
    wf, pf = schedule.workflow, schedule.platform
    if situation is None:
        return np.ones(len(wf.use_task), dtype=np.bool_)
    waits = situation.waiting()[wf.use_task]
    items, hosts, _ = situation.known_arrivals()
    if len(items):
        item = row_of_each(wf.use_ptr).astype(np.int64)
        reader = pf.host[schedule.processor[wf.use_task]]
        waits &= ~np.isin(item * pf.n_hosts + reader, items.astype(np.int64) * pf.n_hosts + hosts)
    return waits


def staying(candidate: Schedule, current: Schedule, situation: Situation) -> Schedule:
    """The same start for every task, and where it can be the same processor as by the current plan.

    Equal processors of one host are as one: whichever of them is idle may have the next task.
    """
    waiting = situation.waiting()
    in_time = candidate.in_time
    group = _groups(situation, waiting)
    first, members = csr(group, np.arange(len(group), dtype=np.int32), len(group))
    order, slop = in_time[waiting[in_time]], ROUNDING * max(1.0, candidate.makespan)
    free = situation.free_from()
    if candidate.cores is not None:
        rows, before = held(current.processor, current.cores)
        pointers, before = csr(rows, before, len(waiting))
        chosen = candidate.cores.processor.copy()
        stays = choose_equal_cores(
            order, candidate.start, candidate.finish, pointers, before, candidate.cores.ptr, chosen,
            free, group, first, members, slop,
        )  # fmt: skip
        if not stays or bool((chosen == candidate.cores.processor).all()):
            return candidate
        cores = _led_by_slowest(Cores(candidate.cores.ptr, chosen), situation.cost, waiting)
        return replace(candidate, processor=cores.processor[cores.ptr[:-1]], cores=cores)
    chosen = candidate.processor.copy()
    stays = choose_equals(
        order, candidate.start, candidate.finish, current.processor, chosen, free, group, first,
        members, slop,
    )  # fmt: skip
    if not stays:  # it moves what runs, or its times are of another situation
        return candidate
    if bool((chosen == candidate.processor).all()):
        return candidate
    return replace(candidate, processor=chosen)


def _led_by_slowest(cores: Cores, cost: FloatArray, which: BoolArray) -> Cores:
    """Of these tasks the slowest core first, the first of equals, the others by number."""
    rows, numbers = row_of_each(cores.ptr), cores.processor
    leads = np.lexsort((numbers, -cost[rows, numbers], rows))[cores.ptr[:-1]]
    key = numbers.copy()
    key[leads] = -1
    kept = ~which[rows]
    key[kept] = np.arange(len(rows))[kept]
    return Cores(cores.ptr, numbers[np.lexsort((key, rows))])


def _groups(situation: Situation, waiting: BoolArray) -> IntArray:
    """A number for each processor, the same for those that are equal and on one host.

    Where the time from first to last use is paid for, it matters who is used.
    """
    pf, cost = situation.platform, situation.cost[waiting]
    group: IntArray = np.arange(pf.n_processors, dtype=np.int32)
    alike: dict[tuple[object, ...], int] = {}
    for p in np.flatnonzero(situation.usable() & (pf.billing * pf.price == 0)).tolist():
        key = (int(pf.host[p]), float(pf.leaves[p]), float(pf.price[p]), cost[:, p].tobytes())
        group[p] = alike.setdefault(key, p)
    return group
