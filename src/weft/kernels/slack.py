"""Slack and spare time of a plan (Zhao, Sakellariou, section 2), and the steps before its tasks."""

from __future__ import annotations

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.native import compiled


@compiled
def spare_times(
    in_time: IntArray, following: IntArray, out_ptr: IntArray, out_item: IntArray,
    use_ptr: IntArray, use_task: IntArray, waits: BoolArray, item_size: FloatArray,
    startup: FloatArray, per_unit: FloatArray, host: IntArray, hosts: int, start: FloatArray,
    finish: FloatArray, makespan: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Slack(i) = min over j of Slack(j) + Spare(i,j), and MinSpare(i) = min over j of Spare(i,j).

    j is a consumer that waits for an output of i (`waits`, by use), or the task that follows i on
    its processor (`following`).
    Spare is ST(j) - DAT(i,j) over an item, ST(j) - FT(i) on the processor. The papers' single
    exit, with slack and spare 0, stands here for the makespan, so any number of exits will do.
    """
    slack = np.zeros(len(start))
    spare = np.zeros(len(start))
    for k in range(len(in_time) - 1, -1, -1):
        task = in_time[k]
        slack[task] = np.inf
        spare[task] = np.inf
        if following[task] >= 0:
            spare[task] = start[following[task]] - finish[task]
            slack[task] = slack[following[task]] + spare[task]
        is_exit = True
        for o in range(out_ptr[task], out_ptr[task + 1]):
            item = out_item[o]
            for u in range(use_ptr[item], use_ptr[item + 1]):
                if not waits[u]:
                    continue
                is_exit = False
                consumer = use_task[u]
                link = host[task] * hosts + host[consumer]
                arrival = finish[task] + startup[link] + item_size[item] * per_unit[link]
                between = start[consumer] - arrival
                spare[task] = min(spare[task], between)
                slack[task] = min(slack[task], slack[consumer] + between)
        if is_exit:
            spare[task] = min(spare[task], makespan - finish[task])
            slack[task] = min(slack[task], makespan - finish[task])
    return slack, spare


@compiled
def count_steps(
    in_time: IntArray, done: BoolArray, following: IntArray, out_ptr: IntArray, out_item: IntArray,
    use_ptr: IntArray, use_task: IntArray,
) -> FloatArray:  # fmt: skip
    """How many tasks that are not done must end one after another before each can start."""
    steps = np.zeros(len(done))
    for k in range(len(in_time)):
        task = in_time[k]
        if done[task]:
            continue
        after = steps[task] + 1.0
        if following[task] >= 0:
            steps[following[task]] = max(steps[following[task]], after)
        for o in range(out_ptr[task], out_ptr[task + 1]):
            item = out_item[o]
            for u in range(use_ptr[item], use_ptr[item + 1]):
                steps[use_task[u]] = max(steps[use_task[u]], after)
    return steps
