"""A new plan without leaving the kernels: posed, ranked, placed, judged, taken and watched.

It does what the coordinator does for planners and policies in Python, for the papers' own. Whatever
is out of the ordinary is left to the coordinator: nothing has been changed then.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray, LongArray
from foreplan.engine.kernels.arrays import (
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
    RunArrays,
)
from foreplan.engine.kernels.plans import install_plan, set_alarm
from foreplan.engine.kernels.posing import (
    cost_now,
    expected_finish,
    fill_known,
    full_speed,
    list_copies,
    list_under_way,
    mark_astray,
    number_usable,
    per_unit_now,
    settle,
)
from foreplan.native import compiled
from foreplan.scheduling.kernels.list_planners import GTP, plan_listed
from foreplan.scheduling.kernels.placement import place_in_order, position
from foreplan.scheduling.kernels.problem import Problem
from foreplan.scheduling.kernels.ranks import by_rank, mean_cost, shortest_cost, upward_rank
from foreplan.scheduling.kernels.slack import choose_equals, spare_times
from foreplan.sorting import sort_by

ROUNDING = 1e-9  # of the makespan: what differs by less is the same
# what is watched: no start, every start, those beyond the slack, those beyond the spare time
NO_START, EVERY_START, SLACK, SPARE = range(4)
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
    state: RunArrays, conduct: Conduct, ways: Ways, taken: Taken, first: bool, late: int, kind: int,
    which: int,
) -> bool:  # fmt: skip
    """Make a plan and judge it; whether that could be done here, else nothing has changed."""
    begun, n = time.perf_counter(), state.n_tasks
    number = np.empty(state.n_processors, dtype=np.int32)
    processors = number_usable(state, ways.usable, number)
    if processors <= 0 or not can_note(taken) or not has_room_for_a_plan(state):
        return False
    free = np.full(processors, state.clock[0])
    movable = np.full(n, True, dtype=np.bool_)
    settled_on = np.full(n, -1, dtype=np.int32)
    source_host = np.zeros(n, dtype=np.int32)
    ready_at = np.zeros(n)
    settle(
        state, ways.restart, number, ways.usable, free, movable, settled_on, source_host, ready_at
    )
    no_items = np.empty(0, dtype=np.int32)
    no_times = np.empty(0)
    n_copies = list_copies(state, no_items, no_items)
    n_moving = list_under_way(state, no_items, no_times)
    known = n_copies + n_moving
    known_ptr = np.zeros(len(state.item_producer) + 1 if known > 0 else 0, dtype=np.int32)
    known_host = np.empty(known, dtype=np.int32)
    known_time = np.empty(known)
    known_whole = np.empty(known, dtype=np.bool_)
    if known > 0:
        fill_known(state, n_copies, n_moving, known_ptr, known_host, known_time, known_whole)
    lost = np.zeros(len(state.item_producer), dtype=np.bool_)
    n_lost = mark_astray(state, lost)
    cost = cost_now(state, number, processors)
    at_full_speed = full_speed(state)
    per_unit = per_unit_now(state)
    host = np.empty(processors, dtype=np.int32)
    until = np.empty(processors)
    for p in range(state.n_processors):
        if number[p] >= 0:
            host[number[p]] = state.host[p]
            until[number[p]] = state.leaves[p]
    problem = Problem(
        n_tasks=n,
        n_processors=processors,
        n_hosts=state.n_hosts,
        links_alike=ways.links_alike and at_full_speed,
        order=state.order,
        in_ptr=state.in_ptr,
        in_item=state.in_item,
        out_ptr=state.out_ptr,
        out_item=state.out_item,
        use_ptr=state.use_ptr,
        use_task=state.use_task,
        item_size=state.item_size,
        item_producer=state.item_producer,
        cost=cost if len(cost) > 0 else state.estimate,
        host=host,
        startup=state.startup,
        per_unit=state.per_unit if at_full_speed else per_unit,
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
        anywhere=state.reuse == ANYWHERE,
        now=state.clock[0],
    )
    made, on, start, finish = candidate(state, problem, ways, number)
    if not made:
        return False
    if ways.stays and not first:
        stay(state, problem, ways, number, taken.plan_on, on, start, finish)
    makespan, projected, accepted = latest_of(finish), np.nan, True
    going_on = taken.plan_on.copy()
    going_start = np.zeros(n)
    going_finish = np.zeros(n)
    if conduct.compares and not first:
        projected = project(
            state, problem, ways, number, taken, going_on, going_start, going_finish
        )
        accepted = projected == np.inf  # the current plan cannot go on
        if not accepted:
            enough = projected - conduct.margin * (projected - state.clock[0])
            accepted = makespan < enough * (1 - ROUNDING)
    k, before = taken.counts[EVALUATED], state.counts[N_MIGRATED]
    for p in range(state.n_processors):
        state.reckoned[p] = state.availability[p]
    if accepted:
        in_time = by_start(state, start, finish)
        watch(state, conduct, problem, in_time, on, start, finish, makespan)
        follow(state, conduct, in_time, on, makespan)
        keep(taken, k, on, start, finish)
        if stranded(state):
            taken.counts[LEFT_OVER] = 1
    elif conduct.rewatches:
        in_time = by_start(state, going_start, going_finish)
        watch(state, conduct, problem, in_time, going_on, going_start, going_finish, projected)
    state.counts[GRACE] = 1
    taken.counts[EVALUATED] += 1
    taken.time[k] = state.clock[0]
    taken.late[k] = late
    taken.kind[k] = kind
    taken.which[k] = which
    taken.accepted[k] = accepted
    taken.makespan[k] = makespan
    taken.projected[k] = projected
    taken.migrated[k] = state.counts[N_MIGRATED] - before
    taken.seconds[k] = time.perf_counter() - begun
    return True


def can_note(taken: Taken) -> bool:
    """Whether there is room for one plan more in the record."""
    return bool(taken.counts[EVALUATED] < len(taken.time))


@compiled
def inputs_to_send(state: RunArrays) -> int:
    """The most that a new plan may send at once: what is made, to every task that waits for it."""
    count = 0
    for task in range(state.n_tasks):
        if state.status[task] == WAITING:
            for e in range(state.in_ptr[task], state.in_ptr[task + 1]):
                producer = state.item_producer[state.in_item[e]]
                count += producer >= 0 and state.status[producer] == DONE
    return count


def has_room_for_a_plan(state: RunArrays) -> bool:
    """Whether the logs are long enough for what a plan may send, and for an event after it."""
    under_way = 0
    for transfer in range(state.counts[N_TRANSFERS]):
        under_way += np.isnan(state.transfer_arrival[transfer])
    transfers = inputs_to_send(state) + state.counts[N_TRANSFERS] + under_way + state.burst
    attempts = state.counts[N_ATTEMPTS] + state.burst
    return bool(attempts <= len(state.attempt_task) and transfers <= len(state.transfer_item))


def candidate(
    state: RunArrays, problem: Problem, ways: Ways, number: IntArray
) -> tuple[bool, IntArray, FloatArray, FloatArray]:
    """A schedule of all tasks by the planner; and whether every task has its place in it."""
    runs_on = np.full(problem.n_tasks, -1, dtype=np.int32)
    if ways.planner == GTP:  # the means are of costs at full availability (equations 1 and 2)
        weight = mean_estimate(state, number, problem.n_processors)
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
        complete(state, problem, number, on, start, finish)
    return made, on, start, finish


def mean_estimate(state: RunArrays, number: IntArray, count: int) -> FloatArray:
    """The mean of what each task costs on the usable processors at full availability."""
    mean = np.empty(state.n_tasks)
    for task in range(state.n_tasks):
        total = 0.0
        for p in range(state.n_processors):
            if number[p] >= 0:
                total += state.estimate[task * state.n_processors + p]
        mean[task] = total / count
    return mean


def complete(
    state: RunArrays, problem: Problem, number: IntArray, on: IntArray, start: FloatArray,
    finish: FloatArray,
) -> None:  # fmt: skip
    """A placement as a schedule: what has begun is as it is, what is given up takes no time."""
    back = np.empty(problem.n_processors, dtype=np.int32)
    for p in range(state.n_processors):
        if number[p] >= 0:
            back[number[p]] = p
    for task in range(state.n_tasks):
        if on[task] >= 0:
            on[task] = back[on[task]]
    for attempt in range(state.counts[N_ATTEMPTS]):
        if state.attempt_end[attempt] > FINISHED:
            continue
        task, p = state.attempt_task[attempt], state.attempt_on[attempt]
        if not problem.movable[task] or on[task] == p:
            on[task] = p
            start[task] = state.attempt_start[attempt]
            finish[task] = expected_finish(state, attempt)
    end = problem.now
    for task in range(state.n_tasks):
        if state.status[task] < GIVEN_UP:
            end = max(end, finish[task])
    for task in range(state.n_tasks):
        if state.status[task] >= GIVEN_UP:
            on[task] = 0
            start[task] = end
            finish[task] = end


def latest_of(finish: FloatArray) -> float:
    """The makespan."""
    latest = 0.0
    for task in range(len(finish)):
        latest = max(latest, finish[task])
    return latest


def by_start(state: RunArrays, start: FloatArray, finish: FloatArray) -> IntArray:
    """All tasks by start, then finish, then topological position: who comes before whom."""
    listed = state.order.copy()
    sort_by(finish, listed)
    sort_by(start, listed)
    return listed


def project(
    state: RunArrays, problem: Problem, ways: Ways, number: IntArray, taken: Taken, on: IntArray,
    start: FloatArray, finish: FloatArray,
) -> float:  # fmt: skip
    """When the plan that is followed is expected to end; infinite if it cannot be followed.

    Each task where and in the order in which it stands there. It is written to on, start, finish.
    """
    nobody = np.empty(0)
    pins = np.empty(state.n_tasks, dtype=np.int32)
    count = 0
    for task in range(state.n_tasks):
        pins[task] = number[taken.plan_on[task]]
        if problem.movable[task]:
            count += 1
            if pins[task] < 0:
                return np.inf
    in_time = by_start(state, taken.plan_start, taken.plan_finish)
    order = np.empty(count, dtype=np.int32)
    at = 0
    for k in range(state.n_tasks):
        if problem.movable[in_time[k]]:
            order[at] = in_time[k]
            at += 1
    there, begins, ends = place_in_order(problem, order, pins, nobody, np.inf)
    for k in range(count):
        if there[order[k]] != pins[order[k]]:
            return np.inf
    complete(state, problem, number, there, begins, ends)
    for task in range(state.n_tasks):
        on[task] = there[task]
        start[task] = begins[task]
        finish[task] = ends[task]
    return latest_of(finish)


def stay(
    state: RunArrays, problem: Problem, ways: Ways, number: IntArray, current: IntArray,
    on: IntArray, start: FloatArray, finish: FloatArray,
) -> None:  # fmt: skip
    """Where it can be, the same processor as by the current plan: see `scheduling.slack`."""
    group = np.empty(state.n_processors, dtype=np.int32)
    for p in range(state.n_processors):
        group[p] = p
        for q in range(p):
            if group[q] == q and group[p] == p and are_equal(state, problem, ways, number, p, q):
                group[p] = q
    free = np.full(state.n_processors, state.clock[0])
    for p in range(state.n_processors):
        if state.running[p] >= 0:
            free[p] = max(free[p], expected_finish(state, state.running[p]))
    first = np.zeros(state.n_processors + 1, dtype=np.int32)
    member = np.empty(state.n_processors, dtype=np.int32)
    at = 0
    for p in range(state.n_processors):
        for q in range(p, state.n_processors):
            if group[q] == p:
                member[at] = q
                at += 1
        first[p + 1] = at
    listed = by_start(state, start, finish)
    count = 0
    for k in range(state.n_tasks):
        if state.status[listed[k]] == WAITING:
            listed[count] = listed[k]
            count += 1
    waiting = listed[0:count]
    chosen = on.copy()
    slop = ROUNDING * max(1.0, latest_of(finish))
    if choose_equals(waiting, start, finish, current, chosen, free, group, first, member, slop):
        for task in range(state.n_tasks):
            on[task] = chosen[task]


def are_equal(
    state: RunArrays, problem: Problem, ways: Ways, number: IntArray, p: int, q: int
) -> bool:
    """Whether two usable processors of one host are as one to all that waits."""
    if number[p] < 0 or number[q] < 0 or state.host[p] != state.host[q]:
        return False
    if state.leaves[p] != state.leaves[q] or state.price[p] != state.price[q]:
        return False
    if ways.billing[p] * state.price[p] != 0 or ways.billing[q] * state.price[q] != 0:
        return False
    for task in range(state.n_tasks):
        row = task * problem.n_processors
        alike = problem.cost[row + number[p]] == problem.cost[row + number[q]]
        if state.status[task] == WAITING and not alike:
            return False
    return True


def watch(
    state: RunArrays, conduct: Conduct, problem: Problem, in_time: IntArray, on: IntArray,
    start: FloatArray, finish: FloatArray, makespan: float,
) -> None:  # fmt: skip
    """Wake the policy by this plan from now on."""
    state.variance[0], state.early[0] = conduct.variance, np.inf
    if conduct.early < np.inf and makespan < np.inf:
        state.early[0] = conduct.early * (makespan - state.clock[0])
    if conduct.watches <= EVERY_START:
        never = np.inf if conduct.watches == NO_START else -np.inf
        for task in range(state.n_tasks):
            state.latest[task] = never
        return
    following = np.full(state.n_tasks, -1, dtype=np.int32)
    next_on = np.full(state.n_processors, -1, dtype=np.int32)
    host = np.empty(state.n_tasks, dtype=np.int32)
    for k in range(state.n_tasks - 1, -1, -1):
        task = in_time[k]
        following[task] = next_on[on[task]]
        next_on[on[task]] = task
        host[task] = state.host[on[task]]
    waits = np.empty(len(state.use_task), dtype=np.bool_)
    for item in range(len(state.item_producer)):
        for u in range(state.use_ptr[item], state.use_ptr[item + 1]):
            reader = state.use_task[u]
            waits[u] = state.status[reader] == WAITING
            if waits[u] and len(problem.known_ptr) > 0:
                for k in range(problem.known_ptr[item], problem.known_ptr[item + 1]):
                    if problem.known_host[k] == host[reader]:
                        waits[u] = False
    slack, spare = spare_times(
        in_time, following, state.out_ptr, state.out_item, state.use_ptr, state.use_task, waits,
        state.item_size, state.startup, problem.per_unit, host, state.n_hosts, start, finish,
        makespan,
    )  # fmt: skip
    for task in range(state.n_tasks):
        late = slack[task] if conduct.watches == SLACK else spare[task]
        state.latest[task] = start[task] + late + ROUNDING * makespan


def follow(
    state: RunArrays, conduct: Conduct, in_time: IntArray, on: IntArray, makespan: float
) -> None:
    """Take the plan: what waits, and what runs elsewhere, goes into the queues."""
    moves = np.zeros(state.n_tasks, dtype=np.bool_)
    row = np.zeros(state.n_processors + 1, dtype=np.int32)
    count = 0
    for task in range(state.n_tasks):
        moves[task] = state.status[task] == WAITING
        if state.status[task] == RUNNING:
            moves[task] = on[task] != state.on[task]
        if moves[task]:
            row[on[task] + 1] += 1
            count += 1
    for p in range(state.n_processors):
        row[p + 1] += row[p]
    end = row.copy()
    queue = np.empty(count, dtype=np.int32)
    for k in range(state.n_tasks):
        task = in_time[k]
        if moves[task]:
            queue[end[on[task]]] = task
            end[on[task]] += 1
    processors = state.n_processors
    install_plan(state, on, queue, row[0:processors], end[0:processors])
    period = conduct.period
    if conduct.share > 0.0:
        period = conduct.share * makespan if conduct.share * makespan > 0.0 else np.inf
    set_alarm(state, period)


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


def stranded(state: RunArrays) -> bool:
    """Whether a waiting task has no processor, or one that is gone."""
    found = False
    for task in range(state.n_tasks):
        if state.status[task] == WAITING:
            p = state.on[task]
            found = found or p < 0 or not state.present[p]
    return found
