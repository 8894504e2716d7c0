"""When all is done by an assignment, asked again and again with one task elsewhere.

The tasks before it in the order stay as they are, so they are placed once; those after it are
placed until it is sure that the end is too late. The times are those of `place_in_order`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreplan.arrays import FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.placement import earliest, fill_gap, find_gap
from foreplan.scheduling.kernels.problem import Problem, fill_arrival

SURE = 1 - 1e-9  # of a bound that is added up in another order than the times are


class TrialSpace(NamedTuple):
    """A part of the order as it is placed: where products are and from when on, and all gaps.

    A processor's gaps are a row as in `placement`, with room for one per task. The kept rows are
    those to go back to. `after` is the least time from a task's end to the end of all.
    """

    source_host: IntArray
    ready_at: FloatArray
    arrival: FloatArray
    first: IntArray
    last: IntArray
    gap_start: FloatArray
    gap_end: FloatArray
    kept_last: IntArray
    kept_start: FloatArray
    kept_end: FloatArray
    after: FloatArray
    nobody: FloatArray  # an empty bias
    stay: bool  # no processor leaves, so that every task fits where it is assigned to


def workspace_for(problem: Problem) -> TrialSpace:
    """Arrays for orders of this problem."""
    processors, gaps = problem.n_processors, problem.n_processors * (problem.n_tasks + 1)
    return TrialSpace(
        source_host=problem.source_host.copy(),
        ready_at=problem.ready_at.copy(),
        arrival=np.zeros(problem.n_hosts),
        first=np.arange(processors, dtype=np.int32) * np.int32(problem.n_tasks + 1),
        last=np.zeros(processors, dtype=np.int32),
        gap_start=np.zeros(gaps),
        gap_end=np.zeros(gaps),
        kept_last=np.zeros(processors, dtype=np.int32),
        kept_start=np.zeros(gaps),
        kept_end=np.zeros(gaps),
        after=np.zeros(problem.n_tasks),
        nobody=np.empty(0),
        stay=bool(np.isinf(problem.until).all()),
    )


def clear(problem: Problem, work: TrialSpace) -> None:
    """Nothing of the order is placed."""
    for p in range(problem.n_processors):
        work.last[p] = work.first[p]
        work.gap_start[work.first[p]] = problem.free_from[p]
        work.gap_end[work.first[p]] = problem.until[p]


def keep(problem: Problem, work: TrialSpace) -> None:
    """Remember the gaps as they are."""
    for p in range(problem.n_processors):
        work.kept_last[p] = work.last[p]
        for k in range(work.first[p], work.last[p] + 1):
            work.kept_start[k] = work.gap_start[k]
            work.kept_end[k] = work.gap_end[k]


def go_back(problem: Problem, work: TrialSpace) -> None:
    """Make the gaps what they were when they were kept."""
    for p in range(problem.n_processors):
        work.last[p] = work.kept_last[p]
        for k in range(work.first[p], work.last[p] + 1):
            work.gap_start[k] = work.kept_start[k]
            work.gap_end[k] = work.kept_end[k]


def place_one(problem: Problem, task: int, p: int, shortest: float, work: TrialSpace) -> float:
    """Place a task where it is assigned to; if it does not fit, where it ends first. When it ends.

    That is never if it fits nowhere.
    """
    ready, gap = 0.0, -1
    if p >= 0:
        ready = arrival_at(problem, task, problem.host[p], work)
        cost = problem.cost[task * problem.n_processors + p]
        gap = work.last[p]
        if ready < work.gap_start[gap] and gap > work.first[p]:
            gap = find_gap(work.gap_start, work.gap_end, work.first[p], gap, ready, cost)
        ends = max(work.gap_start[gap], ready) + cost
        if ends > work.gap_end[gap] or ends == np.inf:
            gap = -1
    if gap < 0:
        fill_arrival(problem, task, work.source_host, work.ready_at, work.arrival)
        p, gap = earliest(
            problem, task, 0, problem.n_processors, work.arrival, work.nobody, work.first,
            work.last, work.gap_start, work.gap_end,
        )  # fmt: skip
        if p < 0:
            return np.inf
        ready = work.arrival[problem.host[p]]
    begins = max(work.gap_start[gap], ready)
    ends = begins + problem.cost[task * problem.n_processors + p]
    work.source_host[task] = problem.host[p]
    work.ready_at[task] = ends
    work.last[p] = fill_gap(work.gap_start, work.gap_end, gap, work.last[p], begins, ends, shortest)
    return float(ends)


def arrival_at(problem: Problem, task: int, host: int, work: TrialSpace) -> float:
    """When all inputs of the task are on one host, as `fill_arrival` says it."""
    if len(problem.known_ptr) > 0 or len(problem.astray) > 0:
        fill_arrival(problem, task, work.source_host, work.ready_at, work.arrival)
        return float(work.arrival[host])
    latest = 0.0
    for e in range(problem.in_ptr[task], problem.in_ptr[task + 1]):
        item = problem.in_item[e]
        producer = problem.item_producer[item]
        if producer < 0:
            continue
        here = work.ready_at[producer]
        if not problem.links_alike:
            link = work.source_host[producer] * problem.n_hosts + host
            here = here + problem.startup[link] + problem.item_size[item] * problem.per_unit[link]
        elif work.source_host[producer] != host:
            here = here + problem.startup[1] + problem.item_size[item] * problem.per_unit[1]
        latest = max(latest, here)
    return latest


def place_rest(
    problem: Problem, order: IntArray, k: int, on: IntArray, shortest: float, work: TrialSpace,
    latest: float, dearer: float, limit: float,
) -> float:  # fmt: skip
    """Place the order from its k-th task on; when all is done, if those before end at the latest.

    It is infinite if that and what is dearer do not stay below the limit: then the rest may be left
    out. `work.after` must hold for this assignment, but for the k-th task.
    """
    for j in range(k, len(order)):
        task = order[j]
        ends = place_one(problem, task, on[task], shortest, work)
        latest = max(latest, ends)
        after = work.after[task] if j > k else least_after(problem, task, on, work)
        if latest + dearer >= limit or (ends + after) * SURE + dearer >= limit:
            return np.inf
    return latest


def fill_after(problem: Problem, order: IntArray, on: IntArray, work: TrialSpace) -> None:
    """For every task the least time from its end to the end of all, by this assignment."""
    for k in range(len(order) - 1, -1, -1):
        work.after[order[k]] = least_after(problem, order[k], on, work)


def least_after(problem: Problem, task: int, on: IntArray, work: TrialSpace) -> float:
    """The same for one task, from what is known of those that use what it makes."""
    least = 0.0
    if not work.stay or on[task] < 0:
        return least
    source = problem.host[on[task]]
    for e in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
        item = problem.out_item[e]
        if len(problem.known_ptr) > 0 and problem.known_ptr[item] < problem.known_ptr[item + 1]:
            continue  # it may come from elsewhere
        if len(problem.astray) > 0 and problem.astray[item]:
            continue
        for k in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
            user = problem.use_task[k]
            if not problem.movable[user] or on[user] < 0:
                continue
            takes = problem.cost[user * problem.n_processors + on[user]] + work.after[user]
            host = problem.host[on[user]]
            if not problem.links_alike:
                link = source * problem.n_hosts + host
                takes += problem.startup[link] + problem.item_size[item] * problem.per_unit[link]
            elif source != host:
                takes += problem.startup[1] + problem.item_size[item] * problem.per_unit[1]
            least = max(least, takes)
    return least


HELPS = 1e-12  # of the makespan: less is no help


@compiled
def descend(
    problem: Problem, order: IntArray, pinned: IntArray, work: TrialSpace, shortest: float,
    money: FloatArray, rate: float, spare: float, latest: float, sweeps: int,
) -> tuple[IntArray, int]:  # fmt: skip
    """The assignment that no single change betters, by makespan + rate x money; and the sweeps.

    After so many it ends anyhow. No change may cost more than there is to spare, or have all done
    later than the latest. Every change that helps is made at once, in the order of the tasks.
    """
    processors = problem.n_processors
    on = pinned.copy()
    clear(problem, work)
    best = place_rest(problem, order, 0, on, shortest, work, 0.0, 0.0, np.inf)
    count = 0
    changed = True
    while changed and count < sweeps:
        changed = False
        count += 1
        clear(problem, work)
        fill_after(problem, order, on, work)
        so_far = 0.0  # when all tasks before this one are done
        for k in range(len(order)):
            task = order[k]
            row = task * processors
            keep(problem, work)
            for p in range(processors):
                here = on[task]
                extra = money[row + p] - money[row + here]
                if p == here or extra > spare or rate * extra >= best:
                    continue
                on[task] = p
                dearer, limit = rate * extra, best * (1 - HELPS)
                ends = place_rest(problem, order, k, on, shortest, work, so_far, dearer, limit)
                go_back(problem, work)
                if ends + dearer < limit and (ends <= latest or ends < best):
                    best = ends
                    spare -= extra
                    changed = True
                else:
                    on[task] = here
            so_far = max(so_far, place_one(problem, task, on[task], shortest, work))
    return on, count
