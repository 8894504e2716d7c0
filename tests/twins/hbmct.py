"""HBMCT, hybrid balanced minimum completion time (Sakellariou, Zhao)."""

from __future__ import annotations

from math import inf

from foreplan.model import Situation

from .partial_schedule import PartialSchedule, Placement
from .ranks import by_rank, rank_u


def hbmct(situation: Situation) -> dict[int, Placement]:
    """Groups of independent tasks in rank order, each group balanced by single moves."""
    partial = PartialSchedule(situation)
    for group in groups(partial, by_rank(partial, rank_u(situation))):
        balanced = balance(partial, group)
        if latest(balanced) == inf:  # some processor leaves too early: one by one instead
            for task in group:
                partial.place_earliest(task, partial.usable, insertion=False)
            continue
        for task, (p, start, finish) in balanced.items():
            partial.placed[task] = (p, start, finish)
            partial.busy[p].append((start, finish))
    return partial.placed


def groups(partial: PartialSchedule, order: list[int]) -> list[list[int]]:
    """The order cut wherever a task reads from a task of the group it would join."""
    cut: list[list[int]] = []
    for task in order:
        producers = {producer for _, producer in partial.inputs[task]}
        if not cut or producers & set(cut[-1]):
            cut.append([])
        cut[-1].append(task)
    return cut


def balance(partial: PartialSchedule, group: list[int]) -> dict[int, Placement]:
    """Every task where it is cheapest; then moves off the last processor while they help."""
    where = {task: cheapest(partial, task) for task in group}
    while True:
        now = timed(partial, group, where)
        ends = {p: max(f for q, _, f in now.values() if q == p) for p in set(where.values())}
        last = min(ends, key=lambda p: (-ends[p], p))
        best, move = inf, None
        for task in [t for t in group if where[t] == last]:
            for p in partial.usable:
                if p == last:
                    continue
                then = timed(partial, group, where | {task: p})
                end = max(f for q, _, f in then.values() if q in (last, p))
                if end < best:
                    best, move = end, {task: p}
        if move is None or not best < ends[last] * (1 - 1e-9):
            return now
        where |= move


def cheapest(partial: PartialSchedule, task: int) -> int:
    """The first processor on which the task costs least."""
    return min(partial.usable, key=lambda p: partial.cost[task][p])


def timed(
    partial: PartialSchedule, group: list[int], where: dict[int, int]
) -> dict[int, Placement]:
    """When each task of the group runs, if they are placed so; infinite after a leave."""
    result: dict[int, Placement] = {}
    for p in partial.usable:
        clock = partial.free(p)
        mine = [task for task in group if where[task] == p]
        free = clock
        for task in sorted(mine, key=lambda t: max(free, partial.data_ready(t, p))):
            start = max(clock, partial.data_ready(task, p))
            clock = start + partial.cost[task][p]
            result[task] = (p, start, clock if clock <= partial.leaves[p] else inf)
    return result


def latest(placements: dict[int, Placement]) -> float:
    """The last finish."""
    return max(finish for _, _, finish in placements.values())
