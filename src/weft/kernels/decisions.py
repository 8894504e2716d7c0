"""A new plan without leaving the kernels: posed, ranked, placed, judged, taken and watched.

It does what the coordinator does for planners and policies in Python, for the papers' own. Whatever
is out of the ordinary is left to the coordinator: nothing has been changed then.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from weft.arrays import BoolArray, FloatArray, IntArray, LongArray
from weft.kernels.board import (
    ANYWHERE,
    DONE,
    FINISHED,
    GIVEN_UP,
    GRACE,
    N_ATTEMPTS,
    N_MIGRATED,
    N_TRANSFERS,
    RUNNING,
    WAITING,
    Board,
)
from weft.kernels.list_planners import plan_listed
from weft.kernels.listing import by_rank, mean_cost, shortest_cost
from weft.kernels.placement import place_in_order
from weft.kernels.plans import install_plan, set_alarm
from weft.kernels.posing import (
    STANDS_STILL,
    cost_now,
    expected_finish,
    fill_known,
    full_speed,
    number_usable,
    per_unit_now,
    settle,
)
from weft.kernels.positioning import position
from weft.kernels.problem import Problem
from weft.kernels.ranks import upward_rank
from weft.kernels.situate import astray, copies, under_way
from weft.kernels.slack import spare_times
from weft.kernels.sorting import sort_by
from weft.kernels.staying import choose_equals
from weft.native import compiled

ROUNDING = 1e-9  # of the makespan: what differs by less is the same
# what is watched: no start, every start, those beyond the slack, those beyond the spare time
NO_START, EVERY_START, SLACK, SPARE = range(4)
GTP = -1  # the planner that is no list planner
# places in Taken.counts
EVALUATED, LEFT_OVER = range(2)  # left over: tasks that lost their inputs on the way


class Conduct(NamedTuple):
    """A policy as numbers: what it watches, what it replans for, and what it takes."""

    watches: int
    variance: float  # of durations and speeds
    early: float  # of the time left: what a task takes less than its estimate; infinite: no matter
    period: float  # seconds from one rescheduling point to the next; infinite: none
    share: float  # if above 0, of the makespan instead
    compares: bool  # a plan is taken if it ends earlier than the present one does from now
    margin: float  # by this share of the time left
    rewatches: bool  # if it is not taken, starts are late by the present one from now


class Ways(NamedTuple):
    """How plans are made: by which planner, and for which machines."""

    planner: int
    restart: bool
    stays: bool  # tasks keep their processor where an equal one of its host would do as well
    links_alike: bool
    startup: float  # of the mean link between the usable processors
    per_unit: float
    usable: BoolArray
    billing: FloatArray


class Taken(NamedTuple):
    """What was decided, for the record; and the plan that is followed."""

    counts: LongArray
    time: FloatArray
    late: IntArray  # the task that would have started late, or -1
    kind: IntArray  # else of the event that it was made for
    which: IntArray
    accepted: BoolArray
    makespan: FloatArray
    projected: FloatArray
    migrated: IntArray
    seconds: FloatArray
    on: IntArray  # plans, row by row
    start: FloatArray
    finish: FloatArray
    plan_on: IntArray  # the one that is followed
    plan_start: FloatArray
    plan_finish: FloatArray


@compiled
def plan_anew(
    board: Board, conduct: Conduct, ways: Ways, taken: Taken, first: bool, late: int, kind: int,
    which: int,
) -> bool:  # fmt: skip
    """Make a plan and judge it; whether that could be done here, else nothing has changed."""
    begun, n = time.perf_counter(), board.n_tasks
    number = np.empty(board.n_processors, dtype=np.int32)
    processors = number_usable(board, ways.usable, number)
    if processors <= 0 or not can_note(taken) or not has_room_for_a_plan(board):
        return False
    free = np.full(processors, board.clock[0])
    movable = np.full(n, True, dtype=np.bool_)
    settled_on = np.full(n, -1, dtype=np.int32)
    source_host = np.zeros(n, dtype=np.int32)
    ready_at = np.zeros(n)
    settle(
        board, ways.restart, number, ways.usable, free, movable, settled_on, source_host, ready_at
    )
    no_items = np.empty(0, dtype=np.int32)
    no_times = np.empty(0)
    n_copies = copies(board, no_items, no_items)
    n_moving = under_way(board, STANDS_STILL, no_items, no_times)
    known = n_copies + n_moving
    known_ptr = np.zeros(len(board.item_producer) + 1 if known > 0 else 0, dtype=np.int32)
    known_host = np.empty(known, dtype=np.int32)
    known_time = np.empty(known)
    known_whole = np.empty(known, dtype=np.bool_)
    if known > 0:
        fill_known(board, n_copies, n_moving, known_ptr, known_host, known_time, known_whole)
    lost = np.zeros(len(board.item_producer), dtype=np.bool_)
    n_lost = astray(board, lost)
    cost = cost_now(board, number, processors)
    at_full_speed = full_speed(board)
    per_unit = per_unit_now(board)
    host = np.empty(processors, dtype=np.int32)
    until = np.empty(processors)
    for p in range(board.n_processors):
        if number[p] >= 0:
            host[number[p]] = board.host[p]
            until[number[p]] = board.leaves[p]
    problem = Problem(
        n_tasks=n,
        n_processors=processors,
        n_hosts=board.n_hosts,
        links_alike=ways.links_alike and at_full_speed,
        order=board.order,
        in_ptr=board.in_ptr,
        in_item=board.in_item,
        out_ptr=board.out_ptr,
        out_item=board.out_item,
        use_ptr=board.use_ptr,
        use_task=board.use_task,
        item_size=board.item_size,
        item_producer=board.item_producer,
        cost=cost if len(cost) > 0 else board.estimate,
        host=host,
        startup=board.startup,
        per_unit=board.per_unit if at_full_speed else per_unit,
        free_from=free,
        until=until,
        movable=movable,
        settled_on=settled_on,
        source_host=source_host,
        ready_at=ready_at,
        known_ptr=known_ptr,
        known_host=known_host,
        known_time=known_time,
        known_whole=known_whole,
        astray=lost if n_lost > 0 else lost[0:0],
        anywhere=board.reuse == ANYWHERE,
        now=board.clock[0],
    )
    made, on, start, finish = candidate(board, problem, ways, number)
    if not made:
        return False
    if ways.stays and not first:
        stay(board, problem, ways, number, taken.plan_on, on, start, finish)
    makespan, projected, accepted = latest_of(finish), np.nan, True
    going_on = taken.plan_on.copy()
    going_start = np.zeros(n)
    going_finish = np.zeros(n)
    if conduct.compares and not first:
        projected = project(
            board, problem, ways, number, taken, going_on, going_start, going_finish
        )
        enough = projected - conduct.margin * (projected - board.clock[0])
        accepted = projected == np.inf or makespan < enough * (1 - ROUNDING)
    k, before = taken.counts[EVALUATED], board.counts[N_MIGRATED]
    for p in range(board.n_processors):
        board.reckoned[p] = board.availability[p]
    if accepted:
        in_time = by_start(board, start, finish)
        watch(board, conduct, problem, in_time, on, start, finish, makespan)
        follow(board, conduct, in_time, on, makespan)
        keep(taken, k, on, start, finish)
        if stranded(board):
            taken.counts[LEFT_OVER] = 1
    elif conduct.rewatches:
        in_time = by_start(board, going_start, going_finish)
        watch(board, conduct, problem, in_time, going_on, going_start, going_finish, projected)
    board.counts[GRACE] = 1
    taken.counts[EVALUATED] += 1
    taken.time[k] = board.clock[0]
    taken.late[k] = late
    taken.kind[k] = kind
    taken.which[k] = which
    taken.accepted[k] = accepted
    taken.makespan[k] = makespan
    taken.projected[k] = projected
    taken.migrated[k] = board.counts[N_MIGRATED] - before
    taken.seconds[k] = time.perf_counter() - begun
    return True


def can_note(taken: Taken) -> bool:
    """Whether there is room for one plan more in the record."""
    return bool(taken.counts[EVALUATED] < len(taken.time))


@compiled
def inputs_to_send(board: Board) -> int:
    """The most that a new plan may send at once: what is made, to every task that waits for it."""
    count = 0
    for task in range(board.n_tasks):
        if board.status[task] == WAITING:
            for e in range(board.in_ptr[task], board.in_ptr[task + 1]):
                producer = board.item_producer[board.in_item[e]]
                count += producer >= 0 and board.status[producer] == DONE
    return count


def has_room_for_a_plan(board: Board) -> bool:
    """Whether the logs are long enough for what a plan may send, and for an event after it."""
    under_way = 0
    for transfer in range(board.counts[N_TRANSFERS]):
        under_way += np.isnan(board.transfer_arrival[transfer])
    transfers = inputs_to_send(board) + board.counts[N_TRANSFERS] + under_way + board.burst
    attempts = board.counts[N_ATTEMPTS] + board.burst
    return bool(attempts <= len(board.attempt_task) and transfers <= len(board.transfer_item))


def candidate(
    board: Board, problem: Problem, ways: Ways, number: IntArray
) -> tuple[bool, IntArray, FloatArray, FloatArray]:
    """A schedule of all tasks by the planner; and whether every task has its place in it."""
    runs_on = np.full(problem.n_tasks, -1, dtype=np.int32)
    if ways.planner == GTP:  # the means are of costs at full availability (equations 1 and 2)
        weight = mean_estimate(board, number, problem.n_processors)
        rank = upward_rank(problem, weight, ways.startup, ways.per_unit)
        order = by_rank(problem, rank)
        for task in range(problem.n_tasks):
            if problem.movable[task]:
                runs_on[task] = problem.settled_on[task]
        on, start, finish = position(problem, order, runs_on)
    else:
        weight = mean_cost(problem.cost, problem.n_tasks, problem.n_processors)
        least = shortest_cost(problem)
        on, start, finish = plan_listed(
            problem, ways.planner, weight, least, ways.startup, ways.per_unit
        )
    made = True
    for task in range(problem.n_tasks):
        made = made and (on[task] >= 0 or not problem.movable[task])
    if made:
        complete(board, problem, number, on, start, finish)
    return made, on, start, finish


def mean_estimate(board: Board, number: IntArray, count: int) -> FloatArray:
    """The mean of what each task costs on the usable processors at full availability."""
    mean = np.empty(board.n_tasks)
    for task in range(board.n_tasks):
        total = 0.0
        for p in range(board.n_processors):
            if number[p] >= 0:
                total += board.estimate[task * board.n_processors + p]
        mean[task] = total / count
    return mean


def complete(
    board: Board, problem: Problem, number: IntArray, on: IntArray, start: FloatArray,
    finish: FloatArray,
) -> None:  # fmt: skip
    """A placement as a schedule: what has begun is as it is, what is given up takes no time."""
    back = np.empty(problem.n_processors, dtype=np.int32)
    for p in range(board.n_processors):
        if number[p] >= 0:
            back[number[p]] = p
    for task in range(board.n_tasks):
        if on[task] >= 0:
            on[task] = back[on[task]]
    for attempt in range(board.counts[N_ATTEMPTS]):
        if board.attempt_end[attempt] > FINISHED:
            continue
        task, p = board.attempt_task[attempt], board.attempt_on[attempt]
        if not problem.movable[task] or on[task] == p:
            on[task] = p
            start[task] = board.attempt_start[attempt]
            finish[task] = expected_finish(board, attempt)
    end = problem.now
    for task in range(board.n_tasks):
        if board.status[task] != GIVEN_UP:
            end = max(end, finish[task])
    for task in range(board.n_tasks):
        if board.status[task] == GIVEN_UP:
            on[task] = 0
            start[task] = end
            finish[task] = end


def latest_of(finish: FloatArray) -> float:
    """The makespan."""
    latest = 0.0
    for task in range(len(finish)):
        latest = max(latest, finish[task])
    return latest


def by_start(board: Board, start: FloatArray, finish: FloatArray) -> IntArray:
    """All tasks by start, then finish, then topological position: who comes before whom."""
    listed = board.order.copy()
    sort_by(finish, listed)
    sort_by(start, listed)
    return listed


def project(
    board: Board, problem: Problem, ways: Ways, number: IntArray, taken: Taken, on: IntArray,
    start: FloatArray, finish: FloatArray,
) -> float:  # fmt: skip
    """When the plan that is followed is expected to end; infinite if it cannot be followed.

    Each task where and in the order in which it stands there. It is written to on, start, finish.
    """
    nobody = np.empty(0)
    pins = np.empty(board.n_tasks, dtype=np.int32)
    count = 0
    for task in range(board.n_tasks):
        pins[task] = number[taken.plan_on[task]]
        if problem.movable[task]:
            count += 1
            if pins[task] < 0:
                return np.inf
    in_time = by_start(board, taken.plan_start, taken.plan_finish)
    order = np.empty(count, dtype=np.int32)
    at = 0
    for k in range(board.n_tasks):
        if problem.movable[in_time[k]]:
            order[at] = in_time[k]
            at += 1
    there, begins, ends = place_in_order(problem, order, pins, nobody, np.inf)
    for k in range(count):
        if there[order[k]] != pins[order[k]]:
            return np.inf
    complete(board, problem, number, there, begins, ends)
    for task in range(board.n_tasks):
        on[task] = there[task]
        start[task] = begins[task]
        finish[task] = ends[task]
    return latest_of(finish)


def stay(
    board: Board, problem: Problem, ways: Ways, number: IntArray, current: IntArray, on: IntArray,
    start: FloatArray, finish: FloatArray,
) -> None:  # fmt: skip
    """Where it can be, the same processor as by the current plan: see weft.staying."""
    group = np.empty(board.n_processors, dtype=np.int32)
    for p in range(board.n_processors):
        group[p] = p
        for q in range(p):
            if group[q] == q and group[p] == p and are_equal(board, problem, ways, number, p, q):
                group[p] = q
    free = np.full(board.n_processors, board.clock[0])
    for p in range(board.n_processors):
        if board.running[p] >= 0:
            free[p] = max(free[p], expected_finish(board, board.running[p]))
    first = np.zeros(board.n_processors + 1, dtype=np.int32)
    member = np.empty(board.n_processors, dtype=np.int32)
    at = 0
    for p in range(board.n_processors):
        for q in range(p, board.n_processors):
            if group[q] == p:
                member[at] = q
                at += 1
        first[p + 1] = at
    listed = by_start(board, start, finish)
    count = 0
    for k in range(board.n_tasks):
        if board.status[listed[k]] == WAITING:
            listed[count] = listed[k]
            count += 1
    waiting = listed[0:count]
    chosen = on.copy()
    slop = ROUNDING * max(1.0, latest_of(finish))
    if choose_equals(waiting, start, finish, current, chosen, free, group, first, member, slop):
        for task in range(board.n_tasks):
            on[task] = chosen[task]


def are_equal(board: Board, problem: Problem, ways: Ways, number: IntArray, p: int, q: int) -> bool:
    """Whether two usable processors of one host are as one to all that waits."""
    if number[p] < 0 or number[q] < 0 or board.host[p] != board.host[q]:
        return False
    if board.leaves[p] != board.leaves[q] or board.price[p] != board.price[q]:
        return False
    if ways.billing[p] * board.price[p] != 0 or ways.billing[q] * board.price[q] != 0:
        return False
    for task in range(board.n_tasks):
        row = task * problem.n_processors
        alike = problem.cost[row + number[p]] == problem.cost[row + number[q]]
        if board.status[task] == WAITING and not alike:
            return False
    return True


def watch(
    board: Board, conduct: Conduct, problem: Problem, in_time: IntArray, on: IntArray,
    start: FloatArray, finish: FloatArray, makespan: float,
) -> None:  # fmt: skip
    """Wake the policy by this plan from now on."""
    board.variance[0], board.early[0] = conduct.variance, np.inf
    if conduct.early < np.inf and makespan < np.inf:
        board.early[0] = conduct.early * (makespan - board.clock[0])
    if conduct.watches <= EVERY_START:
        never = np.inf if conduct.watches == NO_START else -np.inf
        for task in range(board.n_tasks):
            board.latest[task] = never
        return
    following = np.full(board.n_tasks, -1, dtype=np.int32)
    next_on = np.full(board.n_processors, -1, dtype=np.int32)
    host = np.empty(board.n_tasks, dtype=np.int32)
    for k in range(board.n_tasks - 1, -1, -1):
        task = in_time[k]
        following[task] = next_on[on[task]]
        next_on[on[task]] = task
        host[task] = board.host[on[task]]
    waits = np.empty(len(board.use_task), dtype=np.bool_)
    for item in range(len(board.item_producer)):
        for u in range(board.use_ptr[item], board.use_ptr[item + 1]):
            reader = board.use_task[u]
            waits[u] = board.status[reader] == WAITING
            if waits[u] and len(problem.known_ptr) > 0:
                for k in range(problem.known_ptr[item], problem.known_ptr[item + 1]):
                    if problem.known_host[k] == host[reader]:
                        waits[u] = False
    slack, spare = spare_times(
        in_time, following, board.out_ptr, board.out_item, board.use_ptr, board.use_task, waits,
        board.item_size, board.startup, problem.per_unit, host, board.n_hosts, start, finish,
        makespan,
    )  # fmt: skip
    for task in range(board.n_tasks):
        late = slack[task] if conduct.watches == SLACK else spare[task]
        board.latest[task] = start[task] + late + ROUNDING * makespan


def follow(
    board: Board, conduct: Conduct, in_time: IntArray, on: IntArray, makespan: float
) -> None:
    """Take the plan: what waits, and what runs elsewhere, goes into the queues."""
    moves = np.zeros(board.n_tasks, dtype=np.bool_)
    row = np.zeros(board.n_processors + 1, dtype=np.int32)
    count = 0
    for task in range(board.n_tasks):
        moves[task] = board.status[task] == WAITING
        if board.status[task] == RUNNING:
            moves[task] = on[task] != board.on[task]
        if moves[task]:
            row[on[task] + 1] += 1
            count += 1
    for p in range(board.n_processors):
        row[p + 1] += row[p]
    end = row.copy()
    queue = np.empty(count, dtype=np.int32)
    for k in range(board.n_tasks):
        task = in_time[k]
        if moves[task]:
            queue[end[on[task]]] = task
            end[on[task]] += 1
    processors = board.n_processors
    install_plan(board, on, queue, row[0:processors], end[0:processors])
    period = conduct.period
    if conduct.share > 0.0:
        period = conduct.share * makespan if conduct.share * makespan > 0.0 else np.inf
    set_alarm(board, period)


def keep(taken: Taken, k: int, on: IntArray, start: FloatArray, finish: FloatArray) -> None:
    """Note the plan, for the record and as the one that is followed."""
    n = len(on)
    for task in range(n):
        taken.on[k * n + task] = on[task]
        taken.start[k * n + task] = start[task]
        taken.finish[k * n + task] = finish[task]
        taken.plan_on[task] = on[task]
        taken.plan_start[task] = start[task]
        taken.plan_finish[task] = finish[task]


def stranded(board: Board) -> bool:
    """Whether a waiting task has no processor, or one that is gone."""
    found = False
    for task in range(board.n_tasks):
        if board.status[task] == WAITING:
            p = board.on[task]
            found = found or p < 0 or not board.present[p]
    return found
