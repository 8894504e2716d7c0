"""What is free over time: every core's gaps, and what is taken of each host and of the pools.

A core's idle time is a row of gaps as in `placement`. What tasks take of a host is a row of steps:
from a step's time on, until the next one's, so much of each kind is taken, and so many cores: if
too few are left at any instant, no core needs to be looked at. The pools, which all hosts share,
are one such row. All searches only ever move a start to a later time, so what they agree on is the
earliest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.scheduling.kernels.placement import fill_gap, find_gap
from foreplan.scheduling.kernels.problem import Problem


class Demands(NamedTuple):
    """What tasks take beside one core, and what there is: only where any task takes more.

    Matrices are flat, row by row: amount[task * (n_kinds + n_pools) + kind], capacity[host *
    n_kinds + kind] and then the pools, allowed[task * n_hosts + host]. The widths of a task ascend.
    A task's cores are written to its row at core_ptr. `run_core` has those of tasks that run and
    may move; what runs holds amounts of a host, and of the pools, until its expected end.
    """

    n_kinds: int
    n_pools: int
    capacity: FloatArray
    amount: FloatArray
    takes_kinds: BoolArray  # by task: whether it takes any amount of a host
    takes_pools: BoolArray
    width_ptr: IntArray
    width: IntArray
    factor: FloatArray  # of its cost, that the task takes on so many cores
    allowed: BoolArray
    host_ptr: IntArray
    host_core: IntArray  # the processors of each host
    host_cost: FloatArray  # tasks x hosts: its cost on each processor there, NaN: it differs
    core_ptr: IntArray
    run_ptr: IntArray
    run_core: IntArray
    held_task: IntArray
    held_host: IntArray
    held_until: FloatArray


class Space(NamedTuple):
    """The rows, each with the same room, and arrays to work in."""

    insertion: bool  # else a task starts when there is enough for good
    shortest: float  # gaps that are shorter are forgotten
    gap_room: int
    last: IntArray  # each core's last gap
    gap_start: FloatArray
    gap_end: FloatArray
    step_room: int
    steps: IntArray  # by host: how many
    step_time: FloatArray
    step_used: FloatArray
    pool_room: int
    pool_steps: IntArray  # one number
    pool_time: FloatArray
    pool_used: FloatArray
    barred: BoolArray  # cores that are not to be chosen now
    nearest: FloatArray
    length: FloatArray
    chosen: IntArray


GAPS, STEPS, POOLS = 1, 2, 3  # which rows are full


def begin_space(problem: Problem, demands: Demands, space: Space) -> None:
    """Nothing is placed: cores are free when they are, and what runs holds what it does."""
    columns = demands.n_kinds + 1
    for host in range(problem.n_hosts):
        space.steps[host] = 1
        space.step_time[host * space.step_room] = -np.inf
        for column in range(columns):
            space.step_used[host * space.step_room * columns + column] = 0.0
    space.pool_steps[0] = 1
    space.pool_time[0] = -np.inf
    for column in range(demands.n_pools + 1):
        space.pool_used[column] = 0.0
    for p in range(problem.n_processors):
        space.last[p] = p * space.gap_room
        space.gap_start[space.last[p]] = problem.free_from[p]
        space.gap_end[space.last[p]] = problem.until[p]
        space.barred[p] = False
        if space.insertion:
            count_core(demands, space, problem.host[p], -np.inf, problem.free_from[p])
            count_core(demands, space, problem.host[p], problem.until[p], np.inf)
    for k in range(len(demands.held_task)):
        task, host = demands.held_task[k], demands.held_host[k]
        hold_amounts(demands, space, task, host, -np.inf, demands.held_until[k], 0, 1.0)


def count_core(demands: Demands, space: Space, host: int, begins: float, ends: float) -> None:
    """A core of a host is not to be had for a time."""
    space.steps[host] = add_to_steps(
        space.step_time, space.step_used, host * space.step_room, space.steps[host],
        demands.n_kinds, demands.amount, 0, begins, ends, 1, 0.0,
    )  # fmt: skip


def hold_amounts(
    demands: Demands, space: Space, task: int, host: int, begins: float, ends: float, width: int,
    sign: float,
) -> None:  # fmt: skip
    """Note what a task takes of a host and of the pools; with a sign of -1 it is taken back.

    There must be room for two steps.
    """
    columns = demands.n_kinds + demands.n_pools
    if demands.takes_kinds[task] or width > 0:
        space.steps[host] = add_to_steps(
            space.step_time, space.step_used, host * space.step_room, space.steps[host],
            demands.n_kinds, demands.amount, task * columns, begins, ends, width, sign,
        )  # fmt: skip
    if demands.takes_pools[task]:
        space.pool_steps[0] = add_to_steps(
            space.pool_time, space.pool_used, 0, space.pool_steps[0], demands.n_pools,
            demands.amount, task * columns + demands.n_kinds, begins, ends, 0, sign,
        )  # fmt: skip


def add_to_steps(
    time: FloatArray, used: FloatArray, first: int, count: int, kinds: int,
    amount: FloatArray, row: int, begins: float, ends: float, width: int, sign: float,
) -> int:  # fmt: skip
    """Add amounts and cores to a row of steps, from one time to another; how many steps it has.

    The sign is that of the amounts; with 0 they do not count.
    """
    if begins >= ends:
        return count
    columns = kinds + 1
    count = cut_steps(time, used, first, count, columns, begins)
    count = cut_steps(time, used, first, count, columns, ends)
    k = step_at(time, first, count, begins)
    while k < count and time[first + k] < ends:
        at = (first + k) * columns
        if sign != 0.0:
            for kind in range(kinds):
                used[at + kind] += sign * amount[row + kind]
        used[at + kinds] += width
        k += 1
    return count


def cut_steps(
    time: FloatArray, used: FloatArray, first: int, count: int, columns: int, moment: float
) -> int:
    """Let a step begin at this time; how many there are then."""
    k = step_at(time, first, count, moment)
    if time[first + k] == moment or moment == np.inf:
        return count
    for later in range(first + count - 1, first + k, -1):
        time[later + 1] = time[later]
    for at in range((first + count) * columns - 1, (first + k + 1) * columns - 1, -1):
        used[at + columns] = used[at]
    time[first + k + 1] = moment
    for column in range(columns):
        used[(first + k + 1) * columns + column] = used[(first + k) * columns + column]
    return count + 1


def step_at(time: FloatArray, first: int, count: int, moment: float) -> int:
    """The step of a row at this time; the first one begins before all times."""
    low, high = 0, count - 1
    if moment >= time[first + high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if time[first + middle] <= moment:
            low = middle
        else:
            high = middle - 1
    return low


def enough_from(
    time: FloatArray, used: FloatArray, first: int, count: int, kinds: int,
    capacity: FloatArray, limit: int, amount: FloatArray, row: int, idle: int, begins: float,
    duration: float, for_good: bool, extra: float, below: float,
) -> float:  # fmt: skip
    """From when on, not before a time, amounts are free for so long, or for good.

    At most `idle` cores may be in use then. The time is looked at from its end: the last step that
    is too full is where to go on. Infinite if its end, and what is extra, would not be below.
    """
    k, columns = count - 1, kinds + 1
    if for_good:
        while k >= 0 and (k == count - 1 or time[first + k + 1] > begins):
            if not is_free(used, (first + k) * columns, kinds, capacity, limit, amount, row, idle):
                return time[first + k + 1] if k + 1 < count else np.inf
            k -= 1
        return begins
    k = step_at(time, first, count, begins)
    end, known = k, k - 1  # the last step of the time, and the last of which it is known
    while begins + duration + extra < below:
        while end + 1 < count and time[first + end + 1] < begins + duration:
            end += 1
        k = end
        while k > known and is_free(
            used, (first + k) * columns, kinds, capacity, limit, amount, row, idle
        ):
            k -= 1
        if k == known:
            return begins
        if k + 1 == count:
            return np.inf
        begins, known = time[first + k + 1], end
        end = max(end, k + 1)
    return np.inf


def is_free(
    used: FloatArray, at: int, kinds: int, capacity: FloatArray, limit: int, amount: FloatArray,
    row: int, idle: int,
) -> bool:  # fmt: skip
    """Whether amounts are free beside what is used, and no more cores are in use than may be."""
    if used[at + kinds] > idle:
        return False
    for kind in range(kinds):
        takes = amount[row + kind]
        if takes > 0.0 and used[at + kind] + takes > capacity[limit + kind]:
            return False
    return True


def gap_for(space: Space, p: int, ready: float, duration: float) -> int:
    """The first gap of a core that holds so long a time from then on; else its last one."""
    gap, first = space.last[p], p * space.gap_room
    if ready < space.gap_start[gap] and gap > first:
        gap = find_gap(space.gap_start, space.gap_end, first, gap, ready, duration)
    return int(gap)


def cores_from(
    problem: Problem, demands: Demands, space: Space, task: int, host: int, width: int,
    most: float, ready: float, duration: float, extra: float, below: float,
) -> float:  # fmt: skip
    """When so many cores have been idle for so long, each at its earliest; never: infinite.

    Only those on which the task costs no more than `most`. It is sure that they are idle together
    if the answer is the time that was asked for.
    """
    count, row, nearest = 0, task * problem.n_processors, space.nearest
    for k in range(demands.host_ptr[host], demands.host_ptr[host + 1]):
        p = demands.host_core[k]
        if problem.cost[row + p] > most or space.barred[p]:
            continue
        gap = gap_for(space, p, ready, duration)
        begins = max(space.gap_start[gap], ready)
        if begins + duration > space.gap_end[gap] or begins + duration + extra >= below:
            continue
        if count == width:
            if begins >= nearest[width - 1]:
                continue
            count -= 1
        at = count
        while at > 0 and nearest[at - 1] > begins:
            nearest[at] = nearest[at - 1]
            at -= 1
        nearest[at] = begins
        count += 1
        if count == width and nearest[width - 1] == ready:
            return ready
    return nearest[width - 1] if count == width else np.inf


def common_start(
    problem: Problem, demands: Demands, space: Space, task: int, host: int, width: int,
    most: float, duration: float, ready: float, extra: float, below: float,
) -> float:  # fmt: skip
    """The earliest start at which cores, amounts and pools are free together on a host.

    Infinite if its end, and what is extra, would not be below a bound.
    """
    columns = demands.n_kinds + demands.n_pools
    begins, for_good = ready, not space.insertion
    idle = demands.host_ptr[host + 1] - demands.host_ptr[host] - width
    while begins + duration + extra < below:
        then = begins
        if demands.takes_kinds[task] and duration > 0.0:
            then = enough_from(
                space.step_time, space.step_used, host * space.step_room, space.steps[host],
                demands.n_kinds, demands.capacity, host * demands.n_kinds, demands.amount,
                task * columns, idle, then, duration, for_good, extra, below,
            )  # fmt: skip
        if demands.takes_pools[task] and duration > 0.0 and then < np.inf:
            then = enough_from(
                space.pool_time, space.pool_used, 0, space.pool_steps[0], demands.n_pools,
                demands.capacity, problem.n_hosts * demands.n_kinds, demands.amount,
                task * columns + demands.n_kinds, problem.n_processors, then, duration, for_good,
                extra, below,
            )  # fmt: skip
        if then < np.inf:
            then = cores_from(
                problem, demands, space, task, host, width, most, then, duration, extra, below
            )
        if then == begins:
            return begins
        begins = then
    return np.inf


def choose_cores(
    problem: Problem, demands: Demands, space: Space, task: int, host: int, width: int,
    most: float, begins: float, duration: float,
) -> None:  # fmt: skip
    """Of the cores that are idle then, those whose gaps are tightest, to `space.chosen`.

    The shortest gap first, then the one that has been idle least, then the first core. The slowest
    of those that are chosen leads, the others follow by number.
    """
    count, row = 0, task * problem.n_processors
    for k in range(demands.host_ptr[host], demands.host_ptr[host + 1]):
        p = demands.host_core[k]
        if problem.cost[row + p] > most or space.barred[p]:
            continue
        gap = gap_for(space, p, begins, duration)
        since, until = space.gap_start[gap], space.gap_end[gap]
        if since > begins or begins + duration > until:
            continue
        length, idle = until - since, begins - since
        at = count
        while at > 0 and (
            length < space.length[at - 1]
            or (length == space.length[at - 1] and idle < space.nearest[at - 1])
        ):
            at -= 1
        if at == width:
            continue
        for later in range(min(count, width - 1), at, -1):
            space.length[later] = space.length[later - 1]
            space.nearest[later] = space.nearest[later - 1]
            space.chosen[later] = space.chosen[later - 1]
        space.length[at], space.nearest[at], space.chosen[at] = length, idle, p
        count = min(count + 1, width)
    lead_with_slowest(problem, task, space.chosen, 0, width)


def lead_with_slowest(problem: Problem, task: int, cores: IntArray, first: int, width: int) -> None:
    """Sort cores by number, but for the slowest, the first of equals, which leads."""
    for k in range(first + 1, first + width):
        p, at = cores[k], k
        while at > first and cores[at - 1] > p:
            cores[at] = cores[at - 1]
            at -= 1
        cores[at] = p
    row, slowest = task * problem.n_processors, first
    for k in range(first + 1, first + width):
        if problem.cost[row + cores[k]] > problem.cost[row + cores[slowest]]:
            slowest = k
    p = cores[slowest]
    for k in range(slowest, first, -1):
        cores[k] = cores[k - 1]
    cores[first] = p


def full_rows(demands: Demands, space: Space, task: int, host: int, width: int) -> int:
    """Which rows have no room for the task on the chosen cores of a host; 0: all have."""
    for k in range(width):
        p = space.chosen[k]
        if space.last[p] + 1 == (p + 1) * space.gap_room and space.shortest < np.inf:
            return GAPS
    if space.steps[host] + 2 > space.step_room:
        return STEPS
    if demands.takes_pools[task] and space.pool_steps[0] + 2 > space.pool_room:
        return POOLS
    return 0


def occupy(
    problem: Problem, demands: Demands, space: Space, task: int, host: int, width: int,
    begins: float, duration: float,
) -> None:  # fmt: skip
    """Put the task on the chosen cores."""
    ends = begins + duration
    for k in range(width):
        p = space.chosen[k]
        gap = gap_for(space, p, begins, duration)
        space.last[p] = fill_gap(
            space.gap_start, space.gap_end, gap, space.last[p], begins, ends, space.shortest
        )
    counted = width if space.insertion else 0
    hold_amounts(demands, space, task, host, begins, ends, counted, 1.0)
