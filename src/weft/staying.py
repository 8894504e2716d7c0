"""A plan as another one that is as good, by which more tasks stay where they were to run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, csr
from weft.kernels.staying import choose_equals
from weft.model import Schedule, Situation

ROUNDING = 1e-9  # of the makespan: tasks that overlap by less do not


def staying(candidate: Schedule, current: Schedule, situation: Situation) -> Schedule:
    """The same start for every task, and where it can be the same processor as by the current plan.

    Equal processors of one host are as one: whichever of them is idle may have the next task.
    """
    waiting = np.ones(candidate.workflow.n_tasks, dtype=np.bool_)
    waiting[situation.attempts.task] = False
    if situation.given_up is not None:
        waiting &= ~situation.given_up
    chosen, in_time = candidate.processor.copy(), candidate.in_time
    group = _groups(situation, waiting)
    first, members = csr(group, np.arange(len(group), dtype=np.int32), len(group))
    stays = choose_equals(
        in_time[waiting[in_time]], candidate.start, candidate.finish, current.processor, chosen,
        _free_from(situation), group, first, members, ROUNDING * max(1.0, candidate.makespan),
    )  # fmt: skip
    if not stays:  # it moves what runs, or its times are of another situation
        return candidate
    if bool((chosen == candidate.processor).all()):
        return candidate
    return replace(candidate, processor=chosen)


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


def _free_from(situation: Situation) -> FloatArray:
    """When each processor is done with what it runs."""
    attempts = situation.attempts
    free = np.full(situation.platform.n_processors, situation.now)
    running: IntArray = np.flatnonzero(np.isnan(attempts.finish)).astype(np.int32)
    np.maximum.at(free, attempts.processor[running], situation.expected_finish()[running])
    return free
