"""A plan as another one that is as good, by which more tasks stay where they were to run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
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
    equal = _equals(situation, waiting)
    free, chosen = _free_from(situation), candidate.processor.copy()
    slop = ROUNDING * max(1.0, candidate.makespan)
    for task in candidate.in_time[waiting[candidate.in_time]].tolist():
        p, before, start = int(chosen[task]), int(current.processor[task]), candidate.start[task]
        idle = [q for q in equal.get(p, [p]) if free[q] <= start + slop]
        if not idle:  # it moves what runs, or its times are of another situation
            return candidate
        if before in idle:
            p = before
        elif p not in idle:
            p = idle[0]
        chosen[task], free[p] = p, candidate.finish[task]
    if bool((chosen == candidate.processor).all()):
        return candidate
    return replace(candidate, processor=chosen)


def _equals(situation: Situation, waiting: BoolArray) -> dict[int, list[int]]:
    """For each processor that has equals on its host, all of them.

    Where the time from first to last use is paid for, it matters who is used.
    """
    pf, cost = situation.platform, situation.cost[waiting]
    alike: dict[tuple[object, ...], list[int]] = {}
    for p in np.flatnonzero(situation.usable() & (pf.billing * pf.price == 0)).tolist():
        key = (int(pf.host[p]), float(pf.leaves[p]), float(pf.price[p]), cost[:, p].tobytes())
        alike.setdefault(key, []).append(p)
    return {p: group for group in alike.values() if len(group) > 1 for p in group}


def _free_from(situation: Situation) -> FloatArray:
    """When each processor is done with what it runs."""
    attempts = situation.attempts
    free = np.full(situation.platform.n_processors, situation.now)
    running: IntArray = np.flatnonzero(np.isnan(attempts.finish)).astype(np.int32)
    np.maximum.at(free, attempts.processor[running], situation.expected_finish()[running])
    return free
