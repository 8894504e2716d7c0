"""How much delay a plan can take: slack and spare time of its tasks."""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, row_of_each
from weft.kernels.slack import count_steps, spare_times
from weft.model import Schedule, Situation

ROUNDING = 1e-9  # of the makespan: a delay below it is none


def slack_and_spare(
    schedule: Schedule, situation: Situation | None = None
) -> tuple[FloatArray, FloatArray]:
    """Slack and MinSpare of every task (Zhao, Sakellariou, section 2).

    The situation is the one that the schedule was made for: who waits for what, and how fast the
    links are. By default nothing has happened yet.
    """
    wf, pf = schedule.workflow, schedule.platform
    per_unit = pf.time_per_unit if situation is None else situation.time_per_unit
    return spare_times(
        schedule.in_time,
        _following(schedule),
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


def steps_before(schedule: Schedule, situation: Situation) -> FloatArray:
    """How many tasks must end one after another before each can start, those that run included.

    The situation is the one that the schedule was made for. What is done is no step any more.
    """
    wf = schedule.workflow
    done = np.zeros(wf.n_tasks, dtype=np.bool_)
    done[situation.attempts.task[~np.isnan(situation.attempts.finish)]] = True
    return count_steps(
        schedule.in_time, done, _following(schedule), wf.out_ptr, wf.out_item, wf.use_ptr,
        wf.use_task,
    )  # fmt: skip


def _following(schedule: Schedule) -> IntArray:
    """The task after each on its processor; -1: none."""
    pointers, queue = schedule.queue
    following = np.full(schedule.workflow.n_tasks, -1, dtype=np.int32)
    following[queue[:-1]] = queue[1:]
    ends = pointers[1:]
    following[queue[ends[ends > pointers[:-1]] - 1]] = -1  # nothing follows the last of a row
    return following


def _waits(schedule: Schedule, situation: Situation | None) -> BoolArray:
    """By item and reader: whether the reader waits for the item to be made.

    Who has begun, or will not run, waits for nothing: a producer that is rewound for the sake of
    another reader delays it no more. Nor does who has the item at hand, or on its way.
    """
    wf, pf = schedule.workflow, schedule.platform
    waiting = np.ones(wf.n_tasks, dtype=np.bool_)
    if situation is None:
        return waiting[wf.use_task]
    waiting[situation.attempts.task] = False
    if situation.given_up is not None:
        waiting &= ~situation.given_up
    waits = waiting[wf.use_task]
    items, hosts, _ = situation.known_arrivals()
    if len(items):
        item = row_of_each(wf.use_ptr).astype(np.int64)
        reader = pf.host[schedule.processor[wf.use_task]]
        waits &= ~np.isin(item * pf.n_hosts + reader, items.astype(np.int64) * pf.n_hosts + hosts)
    return waits
