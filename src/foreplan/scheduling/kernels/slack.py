"""What a plan allows: slack and spare time (Zhao, Sakellariou, section 2), steps, equals."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.native import compiled


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
    exit, with slack and spare 0, stands here for the makespan, so there may be any number of exits.
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
        by_items, slack_by_items = spare_over_items(
            task, out_ptr, out_item, use_ptr, use_task, waits, item_size, startup, per_unit, host,
            hosts, start, finish, makespan, slack,
        )  # fmt: skip
        spare[task] = min(spare[task], by_items)
        slack[task] = min(slack[task], slack_by_items)
    return slack, spare


def spare_over_items(
    task: int, out_ptr: IntArray, out_item: IntArray, use_ptr: IntArray, use_task: IntArray,
    waits: BoolArray, item_size: FloatArray, startup: FloatArray, per_unit: FloatArray,
    host: IntArray, hosts: int, start: FloatArray, finish: FloatArray, makespan: float,
    slack: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Spare and slack of a task by those who wait for what it makes; else by the makespan."""
    least, least_slack, is_exit = np.inf, np.inf, True
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
            least = min(least, between)
            least_slack = min(least_slack, slack[consumer] + between)
    if is_exit:
        least = min(least, makespan - finish[task])
        least_slack = min(least_slack, makespan - finish[task])
    return least, least_slack


@compiled
def spare_times_of_wide(
    in_time: IntArray, next_ptr: IntArray, next_task: IntArray, out_ptr: IntArray,
    out_item: IntArray, use_ptr: IntArray, use_task: IntArray, waits: BoolArray,
    item_size: FloatArray, startup: FloatArray, per_unit: FloatArray, host: IntArray, hosts: int,
    start: FloatArray, finish: FloatArray, makespan: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """The same where tasks take several cores: the next task on any of them counts."""
    slack = np.zeros(len(start))
    spare = np.zeros(len(start))
    for k in range(len(in_time) - 1, -1, -1):
        task = in_time[k]
        spare[task], slack[task] = spare_over_items(
            task, out_ptr, out_item, use_ptr, use_task, waits, item_size, startup, per_unit, host,
            hosts, start, finish, makespan, slack,
        )  # fmt: skip
        for e in range(next_ptr[task], next_ptr[task + 1]):
            after = next_task[e]
            between = start[after] - finish[task]
            spare[task] = min(spare[task], between)
            slack[task] = min(slack[task], slack[after] + between)
    return slack, spare


@compiled
def count_steps(
    in_time: IntArray, done: BoolArray, next_ptr: IntArray, next_task: IntArray, out_ptr: IntArray,
    out_item: IntArray, use_ptr: IntArray, use_task: IntArray,
) -> FloatArray:  # fmt: skip
    """How many tasks that are not done must end one after another before each can start."""
    steps = np.zeros(len(done))
    for k in range(len(in_time)):
        task = in_time[k]
        if done[task]:
            continue
        after = steps[task] + 1.0
        for e in range(next_ptr[task], next_ptr[task + 1]):
            steps[next_task[e]] = max(steps[next_task[e]], after)
        for o in range(out_ptr[task], out_ptr[task + 1]):
            item = out_item[o]
            for u in range(use_ptr[item], use_ptr[item + 1]):
                steps[use_task[u]] = max(steps[use_task[u]], after)
    return steps


@compiled
def choose_equals(
    order: IntArray, start: FloatArray, finish: FloatArray, before: IntArray, chosen: IntArray,
    free: FloatArray, group: IntArray, first: IntArray, member: IntArray, slop: float,
) -> bool:  # fmt: skip
    """For each task in turn: its processor of before, if that is an idle equal of the chosen one.

    Equals of a processor are the members of its group, from its first on. False: nobody is idle.
    """
    for k in range(len(order)):
        task = order[k]
        p, other, found = chosen[task], -1, False
        for m in range(first[group[p]], first[group[p] + 1]):
            q = member[m]
            idle = free[q] <= start[task] + slop
            if idle and q == before[task]:  # where it was to run
                other, found = q, True
            elif idle and not found and (other < 0 or q == p):  # where it is now, or the first
                other = q
        if other < 0:
            return False
        chosen[task] = other
        free[other] = finish[task]
    return True


@compiled
def choose_equal_cores(
    order: IntArray, start: FloatArray, finish: FloatArray, before_ptr: IntArray,
    before: IntArray, ptr: IntArray, chosen: IntArray, free: FloatArray, group: IntArray,
    first: IntArray, member: IntArray, slop: float,
) -> bool:  # fmt: skip
    """The same where tasks take several cores: as many of those of before as are idle equals."""
    picked = np.full(len(chosen), -1, dtype=np.int32)
    taken = np.zeros(len(free), dtype=np.bool_)
    for k in range(len(order)):
        task = order[k]
        for rule in range(3):  # where it was to run, where it is now, the first
            for j in range(ptr[task], ptr[task + 1]):
                of = group[chosen[j]]
                for m in range(first[of], first[of + 1]):
                    q = member[m]
                    idle = not taken[q] and free[q] <= start[task] + slop
                    if picked[j] < 0 and idle:
                        was_there = False
                        for b in range(before_ptr[task], before_ptr[task + 1]):
                            was_there = was_there or before[b] == q
                        if rule == 2 or (rule == 1 and q == chosen[j]) or (rule == 0 and was_there):
                            picked[j] = q
                            taken[q] = True
        for j in range(ptr[task], ptr[task + 1]):
            if picked[j] < 0:
                return False
            chosen[j] = picked[j]
            taken[picked[j]] = False
            free[picked[j]] = finish[task]
    return True
