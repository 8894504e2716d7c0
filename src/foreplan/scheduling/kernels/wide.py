"""Planning where tasks take several cores, memory and other amounts of hosts, and of pools.

The counterparts of `placement` and `list_planners`: what is chosen is a host and a width, and then
the cores there. Widths are tried as M-HEFT does (Casanova, Desprez, Suter); which may be tried at
all was decided before (docs/decisions/036-widths.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.native import compiled
from foreplan.scheduling.kernels.list_planners import choose
from foreplan.scheduling.kernels.placement import twice_as_long
from foreplan.scheduling.kernels.problem import Problem, begin_placing, fill_arrival
from foreplan.scheduling.kernels.ranks import waiting_counts
from foreplan.scheduling.kernels.space import (
    GAPS,
    STEPS,
    Demands,
    Space,
    begin_space,
    choose_cores,
    common_start,
    enough_from,
    full_rows,
    hold_amounts,
    lead_with_slowest,
    occupy,
)

IN_ORDER, BEST_PAIR, LARGEST_PAIR, POSITION, FOLLOW = range(5)


class Wish(NamedTuple):
    """How tasks are to be placed, and what is given for that; what is not needed is empty.

    In order: on pinned hosts and widths (pin_host[task] < 0: on any; pin_width: the number of a
    width, < 0: any), else where finish + bias[task, host] is least. Pairs: of all ready tasks the
    one with the smallest finish - bonus, then by place. Position: as GTP does, in order. Follow: in
    order, on the cores that are given (in the rows of core_ptr, so many of each).
    """

    how: int
    insertion: bool
    shortest: float
    order: IntArray
    pin_host: IntArray
    pin_width: IntArray
    bias: FloatArray
    bonus: FloatArray
    place: IntArray
    given_core: IntArray
    given_width: IntArray
    given_factor: FloatArray


class Placed(NamedTuple):
    """What is placed so far; of ready tasks, where each would go now (host_of, width_at, most)."""

    processor: IntArray
    start: FloatArray
    finish: FloatArray
    source_host: IntArray
    ready_at: FloatArray
    arrival: FloatArray
    core: IntArray
    wide: IntArray  # how many cores each has
    host_of: IntArray
    width_at: IntArray
    most: FloatArray
    waiting: IntArray
    ready: IntArray
    counts: IntArray  # how many are placed, how many are ready
    counted_on: BoolArray


@compiled
def place_wide(
    problem: Problem, demands: Demands, wish: Wish
) -> tuple[IntArray, FloatArray, FloatArray, IntArray, IntArray]:
    """Processor, start and finish of every task, its cores in the rows of core_ptr, and how many.

    A task that fits nowhere gets processor -1, and the placement ends there.
    """
    n, processors, hosts = problem.n_tasks, problem.n_processors, problem.n_hosts
    processor, start, finish, source_host, ready_at, _, arrival = begin_placing(problem)
    core = np.zeros(demands.core_ptr[n], dtype=np.int32)
    wide = np.zeros(n, dtype=np.int32)
    host_of = np.full(n, -1, dtype=np.int32)
    width_at = np.zeros(n, dtype=np.int32)
    most = np.zeros(n)
    waiting = waiting_counts(problem)
    ready = np.empty(n, dtype=np.int32)
    counts = np.zeros(2, dtype=np.int32)
    counted_on = np.zeros(processors, dtype=np.bool_)
    placed = Placed(
        processor=processor, start=start, finish=finish, source_host=source_host,
        ready_at=ready_at, arrival=arrival, core=core, wide=wide, host_of=host_of,
        width_at=width_at, most=most, waiting=waiting, ready=ready, counts=counts,
        counted_on=counted_on,
    )  # fmt: skip
    gap_room = 8 if wish.shortest < np.inf else 1
    step_room = pool_room = 2 * (len(demands.held_task) + most_cores(demands)) + 16
    last = np.zeros(processors, dtype=np.int32)
    gap_start = np.zeros(processors * gap_room)
    gap_end = np.zeros(processors * gap_room)
    steps = np.zeros(hosts, dtype=np.int32)
    step_time = np.zeros(hosts * step_room)
    step_used = np.zeros(hosts * step_room * (demands.n_kinds + 1))
    pool_steps = np.zeros(1, dtype=np.int32)
    pool_time = np.zeros(pool_room)
    pool_used = np.zeros(pool_room * (demands.n_pools + 1))
    barred = np.zeros(processors, dtype=np.bool_)
    nearest = np.zeros(processors)
    length = np.zeros(processors)
    chosen = np.zeros(processors, dtype=np.int32)
    begun = False
    while True:
        space = Space(
            insertion=wish.insertion, shortest=wish.shortest, gap_room=gap_room, last=last,
            gap_start=gap_start, gap_end=gap_end, step_room=step_room, steps=steps,
            step_time=step_time, step_used=step_used, pool_room=pool_room, pool_steps=pool_steps,
            pool_time=pool_time, pool_used=pool_used, barred=barred, nearest=nearest,
            length=length, chosen=chosen,
        )  # fmt: skip
        if not begun:
            begin_space(problem, demands, space)
            begun = True
        full = place_more(problem, demands, wish, space, placed)
        if full == 0:
            return processor, start, finish, core, wide
        if full == GAPS:
            for p in range(processors):
                last[p] += p * gap_room
            gap_start = spread(gap_start, processors, gap_room)
            gap_end = spread(gap_end, processors, gap_room)
            gap_room *= 2
        elif full == STEPS:
            step_time = spread(step_time, hosts, step_room)
            step_used = spread(step_used, hosts, step_room * (demands.n_kinds + 1))
            step_room *= 2
        else:
            pool_time = twice_as_long(pool_time)
            pool_used = twice_as_long(pool_used)
            pool_room *= 2


def most_cores(demands: Demands) -> int:
    """The cores of the largest host."""
    most = 0
    for host in range(len(demands.host_ptr) - 1):
        most = max(most, demands.host_ptr[host + 1] - demands.host_ptr[host])
    return most


def spread(values: FloatArray, rows: int, room: int) -> FloatArray:
    """The rows with as much room again for each."""
    wider = np.empty(2 * rows * room)
    for row in range(rows):
        for k in range(room):
            wider[2 * row * room + k] = values[row * room + k]
    return wider


def place_more(problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed) -> int:
    """Place more tasks; which rows are full, 0 if it has come to an end."""
    how = wish.how
    if how in (BEST_PAIR, LARGEST_PAIR):
        return place_pairs(problem, demands, wish, space, placed)
    while placed.counts[0] < len(wish.order):
        task = wish.order[placed.counts[0]]
        fill_arrival(problem, task, placed.source_host, placed.ready_at, placed.arrival)
        if how == IN_ORDER:
            full = place_next(problem, demands, wish, space, placed, task)
        elif how == POSITION:
            full = position_next(problem, demands, wish, space, placed, task)
        else:
            full = follow_next(problem, demands, wish, space, placed, task)
        if full > 0:
            return full
        if placed.processor[task] < 0:
            return 0
        placed.counts[0] += 1
    return 0


def place_next(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, task: int
) -> int:
    """Place a task where it ends first; which rows are too full for that, 0 if none is."""
    found = False
    if len(wish.pin_host) > 0 and wish.pin_host[task] >= 0:
        host, width = wish.pin_host[task], wish.pin_width[task]
        found = prefer(
            problem, demands, wish, space, placed, task, host, host + 1, width, np.inf
        )  # fmt: skip
    if not found:
        found = prefer(
            problem, demands, wish, space, placed, task, 0, problem.n_hosts, -1, np.inf
        )  # fmt: skip
    return settle_on(problem, demands, space, placed, task) if found else 0


def prefer(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, task: int,
    low: int, high: int, only: int, below: float,
) -> bool:  # fmt: skip
    """Note where among the hosts low..high-1 the task would end first now, if it fits anywhere.

    What counts is finish + bias, the first of equal hosts, the smaller of equal widths; only ends
    below a bound count. `only` is the number of the width that it must take, < 0: any.
    """
    placed.host_of[task] = -1
    best = below
    for host in range(low, high):
        pair = task * problem.n_hosts + host
        if not demands.allowed[pair]:
            continue
        ready = placed.arrival[host]
        extra = wish.bias[pair] if len(wish.bias) > 0 else 0.0
        cores = demands.host_ptr[host + 1] - demands.host_ptr[host]
        first = demands.width_ptr[task]
        for k in range(first, demands.width_ptr[task + 1]):
            if demands.width[k] > cores:
                break
            if only >= 0 and k - first != only:
                continue
            most = least_cost(problem, demands, task, host, -1.0, demands.width[k])
            while most < np.inf:
                duration = most * demands.factor[k]
                if ready + duration + extra >= best:
                    break  # not even an idle host would do
                begins = common_start(
                    problem, demands, space, task, host, demands.width[k], most, duration, ready,
                    extra, best,
                )  # fmt: skip
                if begins < np.inf:
                    best = begins + duration + extra
                    note(placed, task, host, k, most, begins, duration)
                most = least_cost(problem, demands, task, host, most, demands.width[k])
    if placed.host_of[task] < 0:
        placed.finish[task] = np.inf
    return bool(placed.host_of[task] >= 0)


def note(
    placed: Placed, task: int, host: int, width_at: int, most: float, begins: float,
    duration: float,
) -> None:  # fmt: skip
    """Note where a task would go."""
    placed.host_of[task] = host
    placed.width_at[task] = width_at
    placed.most[task] = most
    placed.start[task] = begins
    placed.finish[task] = begins + duration


def least_cost(
    problem: Problem, demands: Demands, task: int, host: int, above: float, width: int
) -> float:
    """The least cost above another that so many cores of a host do not exceed; else infinity.

    On equal cores there is just one.
    """
    same = demands.host_cost[task * problem.n_hosts + host]
    if not np.isnan(same):
        return same if same > above else np.inf
    row, cost = task * problem.n_processors, above
    while cost < np.inf:
        least, count = np.inf, 0
        for k in range(demands.host_ptr[host], demands.host_ptr[host + 1]):
            takes = problem.cost[row + demands.host_core[k]]
            if cost < takes < least:
                least = takes
        for k in range(demands.host_ptr[host], demands.host_ptr[host + 1]):
            count += problem.cost[row + demands.host_core[k]] <= least
        cost = least
        if count >= width:
            return cost
    return np.inf


def settle_on(problem: Problem, demands: Demands, space: Space, placed: Placed, task: int) -> int:
    """Place a task as it was noted; which rows are too full for that, 0 if none is."""
    host, k, most = placed.host_of[task], placed.width_at[task], placed.most[task]
    begins, width, duration = placed.start[task], demands.width[k], most * demands.factor[k]
    choose_cores(problem, demands, space, task, host, width, most, begins, duration)
    full = full_rows(demands, space, task, host, width)
    if full > 0:
        return full
    occupy(problem, demands, space, task, host, width, begins, duration)
    put_down(demands, placed, task, host, space.chosen, 0, width)
    for j in range(width):
        placed.counted_on[space.chosen[j]] = True
    return 0


def put_down(
    demands: Demands, placed: Placed, task: int, host: int, cores: IntArray, first: int, width: int
) -> None:
    """Write down where a task is, whose start and finish are known."""
    placed.wide[task] = width
    for k in range(width):
        placed.core[demands.core_ptr[task] + k] = cores[first + k]
    placed.processor[task] = cores[first]
    placed.source_host[task] = host
    placed.ready_at[task] = placed.finish[task]


def place_pairs(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed
) -> int:
    """Of all ready tasks at their earliest finish, the smallest finish - bonus goes first.

    A placement delays one host, and tasks of the same pools. Who fits as before has nothing
    better: all else is as it was, or later.
    """
    if placed.counts[0] == 0 and placed.counts[1] == 0:
        for task in range(problem.n_tasks):
            if problem.movable[task] and placed.waiting[task] == 0:
                join_ready(problem, demands, wish, space, placed, task)
    while placed.counts[1] > 0:
        at = choose(
            placed.ready, placed.counts[1], placed.finish, wish.bonus, wish.place,
            wish.how == LARGEST_PAIR,
        )  # fmt: skip
        task = placed.ready[at]
        host = placed.host_of[task]
        if host < 0:
            return 0
        full = settle_on(problem, demands, space, placed, task)
        if full > 0:
            return full
        placed.counts[0] += 1
        placed.counts[1] -= 1
        placed.ready[at] = placed.ready[placed.counts[1]]
        for k in range(placed.counts[1]):
            other = placed.ready[k]
            shared = demands.takes_pools[task] and demands.takes_pools[other]
            delayed = placed.host_of[other] == host or shared
            if delayed and not fits_as_noted(problem, demands, space, placed, other):
                fill_arrival(problem, other, placed.source_host, placed.ready_at, placed.arrival)
                prefer(
                    problem, demands, wish, space, placed, other, 0, problem.n_hosts, -1, np.inf
                )  # fmt: skip
        release_consumers(problem, demands, wish, space, placed, task)
    return 0


def release_consumers(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, task: int
) -> None:
    """What waited for the task alone is ready."""
    for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
        item = problem.out_item[o]
        for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
            consumer = problem.use_task[u]
            if problem.movable[consumer]:
                placed.waiting[consumer] -= 1
                if placed.waiting[consumer] == 0:
                    join_ready(problem, demands, wish, space, placed, consumer)


def join_ready(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, task: int
) -> None:
    """A task is ready: note where it would go."""
    fill_arrival(problem, task, placed.source_host, placed.ready_at, placed.arrival)
    prefer(problem, demands, wish, space, placed, task, 0, problem.n_hosts, -1, np.inf)
    placed.ready[placed.counts[1]] = task
    placed.counts[1] += 1


def fits_as_noted(
    problem: Problem, demands: Demands, space: Space, placed: Placed, task: int
) -> bool:
    """Whether a task still can start where and when it was noted."""
    host, k, most = placed.host_of[task], placed.width_at[task], placed.most[task]
    if host < 0:
        return False
    duration = most * demands.factor[k]
    begins = common_start(
        problem, demands, space, task, host, demands.width[k], most, duration,
        placed.start[task], 0.0, np.inf,
    )  # fmt: skip
    return bool(begins == placed.start[task])


def position_next(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, task: int
) -> int:
    """GTP's next task: one that runs stays, or begins from scratch where it ends earlier.

    Its cores and amounts are its own until it is known to move; see `placement.position`.
    """
    for host in range(problem.n_hosts):
        if space.steps[host] + 2 > space.step_room:
            return STEPS
    if space.pool_steps[0] + 2 > space.pool_room:
        return STEPS + 1
    first, end = demands.run_ptr[task], demands.run_ptr[task + 1]
    if first == end:
        return place_next(problem, demands, wish, space, placed, task)
    here, until = problem.host[demands.run_core[first]], problem.ready_at[task]
    stays_until = until
    for k in range(first, end):
        space.barred[demands.run_core[k]] = True
        if until > problem.until[demands.run_core[k]]:
            stays_until = np.inf
    hold_amounts(demands, space, task, here, -np.inf, until, 0, -1.0)
    moves = prefer(
        problem, demands, wish, space, placed, task, 0, problem.n_hosts, -1, stays_until
    )  # fmt: skip
    if moves:
        for k in range(first, end):
            p = demands.run_core[k]
            if not placed.counted_on[p]:
                space.gap_start[space.last[p]] = problem.now
        settle_on(problem, demands, space, placed, task)
    else:
        hold_amounts(demands, space, task, here, -np.inf, until, 0, 1.0)
        placed.start[task], placed.finish[task] = problem.now, until
        put_down(demands, placed, task, here, demands.run_core, first, end - first)
    for k in range(first, end):
        space.barred[demands.run_core[k]] = False
    return 0


def follow_next(
    problem: Problem, demands: Demands, wish: Wish, space: Space, placed: Placed, task: int
) -> int:
    """The next task on the cores that are given, once they are free for good, and all else is."""
    columns = demands.n_kinds + demands.n_pools
    first, width = demands.core_ptr[task], wish.given_width[task]
    host = problem.host[wish.given_core[first]]
    begins, most = placed.arrival[host], 0.0
    for k in range(width):
        p = wish.given_core[first + k]
        space.chosen[k] = p
        begins = max(begins, space.gap_start[space.last[p]])
        most = max(most, problem.cost[task * problem.n_processors + p])
    duration = most * wish.given_factor[task]
    if demands.takes_kinds[task] and duration > 0.0:
        begins = enough_from(
            space.step_time, space.step_used, host * space.step_room, space.steps[host],
            demands.n_kinds, demands.capacity, host * demands.n_kinds, demands.amount,
            task * columns, problem.n_processors, begins, duration, True, 0.0, np.inf,
        )  # fmt: skip
    if demands.takes_pools[task] and duration > 0.0 and begins < np.inf:
        begins = enough_from(
            space.pool_time, space.pool_used, 0, space.pool_steps[0], demands.n_pools,
            demands.capacity, problem.n_hosts * demands.n_kinds, demands.amount,
            task * columns + demands.n_kinds, problem.n_processors, begins, duration, True, 0.0,
            np.inf,
        )  # fmt: skip
    for k in range(width):
        if begins + duration > problem.until[space.chosen[k]] or begins == np.inf:
            return 0
    full = full_rows(demands, space, task, host, width)
    if full > 0:
        return full
    lead_with_slowest(problem, task, space.chosen, 0, width)
    placed.start[task], placed.finish[task] = begins, begins + duration
    occupy(problem, demands, space, task, host, width, begins, duration)
    put_down(demands, placed, task, host, space.chosen, 0, width)
    return 0


@compiled
def costs_by_host(
    cost: FloatArray, n_tasks: int, n_processors: int, host_ptr: IntArray, host_core: IntArray
) -> FloatArray:
    """By task and host: its cost on each processor there; NaN where they differ, or are none."""
    hosts = len(host_ptr) - 1
    table = np.full(n_tasks * hosts, np.nan)
    for task in range(n_tasks):
        row = task * n_processors
        for host in range(hosts):
            first, end = host_ptr[host], host_ptr[host + 1]
            if first == end:
                continue
            same, equal = cost[row + host_core[first]], True
            for k in range(first + 1, end):
                if cost[row + host_core[k]] != same:
                    equal = False
                    break
            if equal:
                table[task * hosts + host] = same
    return table


@compiled
def times_by_host(
    problem: Problem, demands: Demands, cost: FloatArray, host_cost: FloatArray
) -> FloatArray:
    """By task and host: the least that it takes there, at any width; infinite: it may not run.

    All of the host is taken to be idle. The cost may be another than now.
    """
    hosts = problem.n_hosts
    table = np.full(problem.n_tasks * hosts, np.inf)
    row = np.zeros(problem.n_processors)
    for task in range(problem.n_tasks):
        for host in range(hosts):
            pair = task * hosts + host
            if not demands.allowed[pair]:
                continue
            first, end = demands.host_ptr[host], demands.host_ptr[host + 1]
            same = host_cost[pair]
            if np.isnan(same):
                for k in range(first, end):
                    takes = cost[task * problem.n_processors + demands.host_core[k]]
                    at = k - first
                    while at > 0 and row[at - 1] > takes:
                        row[at] = row[at - 1]
                        at -= 1
                    row[at] = takes
            for k in range(demands.width_ptr[task], demands.width_ptr[task + 1]):
                width = demands.width[k]
                if width > end - first:
                    break
                takes = row[width - 1] if np.isnan(same) else same
                table[pair] = min(table[pair], takes * demands.factor[k])
    return table


@compiled
def mean_times(demands: Demands, table: FloatArray, n_tasks: int) -> FloatArray:
    """The mean of what each task takes over the cores of the hosts where it may run."""
    hosts = len(demands.host_ptr) - 1
    mean = np.zeros(n_tasks)
    for task in range(n_tasks):
        total, count = 0.0, 0
        for host in range(hosts):
            takes = table[task * hosts + host]
            if takes < np.inf:
                cores = demands.host_ptr[host + 1] - demands.host_ptr[host]
                total += takes * cores
                count += cores
        if count > 0:
            mean[task] = total / count
    return mean


@compiled
def median_times(demands: Demands, table: FloatArray, n_tasks: int) -> FloatArray:
    """The median of what each task takes over the cores of the hosts where it may run."""
    hosts = len(demands.host_ptr) - 1
    median = np.zeros(n_tasks)
    takes = np.zeros(hosts)
    cores = np.zeros(hosts, dtype=np.int32)
    for task in range(n_tasks):
        count, total = 0, 0
        for host in range(hosts):
            its, at = table[task * hosts + host], count
            if its == np.inf:
                continue
            while at > 0 and takes[at - 1] > its:
                takes[at], cores[at] = takes[at - 1], cores[at - 1]
                at -= 1
            takes[at] = its
            cores[at] = demands.host_ptr[host + 1] - demands.host_ptr[host]
            total += cores[at]
            count += 1
        if count > 0:
            low = nth_of(takes, cores, count, (total - 1) // 2)
            median[task] = (low + nth_of(takes, cores, count, total // 2)) / 2
    return median


def nth_of(takes: FloatArray, cores: IntArray, count: int, n: int) -> float:
    """The n-th number, from 0 on, of a sorted row in which each stands for so many."""
    k = 0
    while k < count - 1 and n >= cores[k]:
        n -= cores[k]
        k += 1
    return float(takes[k])


@compiled
def optimistic_times(
    problem: Problem, table: FloatArray, startup: float, per_unit: float
) -> FloatArray:
    """PEFT's table by hosts: OCT(i,h) = max_j min_g (OCT(j,g) + w(j,g) + c) (Arabnejad, Barbosa).

    w is the least that a task takes on a host, as `times_by_host` has it.
    """
    hosts = problem.n_hosts
    rest = np.zeros(problem.n_tasks * hosts)
    for k in range(problem.n_tasks - 1, -1, -1):
        task = problem.order[k]
        if not problem.movable[task]:
            continue
        for o in range(problem.out_ptr[task], problem.out_ptr[task + 1]):
            item = problem.out_item[o]
            transfer = startup + problem.item_size[item] * per_unit
            for u in range(problem.use_ptr[item], problem.use_ptr[item + 1]):
                consumer = problem.use_task[u]
                if not problem.movable[consumer]:
                    continue
                anywhere = np.inf
                for host in range(hosts):
                    at = consumer * hosts + host
                    anywhere = min(anywhere, rest[at] + table[at])
                if anywhere == np.inf:
                    continue  # it may run nowhere now
                for host in range(hosts):
                    at = consumer * hosts + host
                    least = min(rest[at] + table[at], anywhere + transfer)
                    rest[task * hosts + host] = max(rest[task * hosts + host], least)
    return rest
