"""The validators of a run's own state: what must hold between two events, and what can happen.

Everything is worked out anew from the logs, slowly and plainly.
"""

from __future__ import annotations

import math
from collections import Counter
from math import isnan

import numpy as np

from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.engine.kernels.fitting import is_possible
from foreplan.engine.kernels.ready_heap import goes_before
from foreplan.engine.state import RunState
from foreplan.errors import ForeplanError
from foreplan.model.events import (
    BudgetChanged,
    Event,
    ItemArrived,
    ItemLost,
    LimitsDue,
    LinkChanged,
    Paused,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    RetryDue,
    SpeedChanged,
    TaskFailed,
    TaskFinished,
    TasksOverdue,
    Woken,
)

SLOP = 1e-9  # of an amount: so much may be lost in sums


class BrokenStateError(ForeplanError):
    """The state of a run contradicts itself: a fault in the rules."""


def check_state(state: RunState, pending: bool = False) -> None:
    """Status, attempts, queues, missing inputs and held items agree with each other.

    While an answer of the planner is pending, a task that could start may be held back.
    """
    arrays = state.arrays
    _check_attempts(state)
    _check_items(arrays)
    if arrays.most_cores:
        _check_amounts(state)
    _check_queues(arrays)
    if arrays.dispatch != a.PLANNED:
        _check_ready_queue(arrays)
    elif not pending:
        _check_nothing_idle(arrays)


def _must(holds: object, otherwise: str) -> None:
    if not holds:
        raise BrokenStateError(otherwise)


def _inputs(arrays: RunArrays, task: int) -> list[int]:
    """The items that a task reads and another makes."""
    items = arrays.in_item[arrays.in_ptr[task] : arrays.in_ptr[task + 1]].tolist()
    return [item for item in items if arrays.item_producer[item] >= 0]


def _held(arrays: RunArrays, item: int, host: int) -> int:
    return int(arrays.held[item * arrays.n_hosts + host])


def _check_attempts(state: RunState) -> None:
    arrays = state.arrays
    n = int(arrays.counts[a.N_ATTEMPTS])
    latest: dict[int, int] = {}
    finished: Counter[int] = Counter()
    running: dict[int, int] = {}
    for k in range(n):
        task, p, end = (
            int(log[k]) for log in (arrays.attempt_task, arrays.attempt_on, arrays.attempt_end)
        )
        _must(latest.get(task, -1) < k, "attempts of a task are logged in order")
        latest[task] = k
        _must(arrays.attempt_start[k] <= arrays.clock[0], f"attempt {k} starts in the future")
        if end == a.OPEN:
            _must(isnan(arrays.attempt_finish[k]), f"attempt {k} runs, but has a finish")
            for core in state.cores_of(k):
                _must(core not in running, f"two attempts run on processor {core}")
                running[core] = k
        else:
            _must(
                arrays.attempt_start[k] <= arrays.attempt_finish[k] <= arrays.clock[0],
                f"attempt {k} ends at no possible time",
            )
        finished[task] += end == a.FINISHED
        _must(arrays.since[k] >= arrays.attempt_start[k], f"attempt {k} worked before it started")
        _must(arrays.worked[k] >= 0, f"attempt {k} has done less than nothing")
    for p in range(arrays.n_processors):
        _must(arrays.running[p] == running.get(p, -1), f"processor {p} does not know what it runs")
        _must(arrays.present[p] or p not in running, f"processor {p} is gone, but runs an attempt")
    for task in range(arrays.n_tasks):
        _must(
            arrays.attempt[task] == latest.get(task, -1),
            f"task {task} does not know its latest attempt",
        )
        end = int(arrays.attempt_end[latest[task]]) if task in latest else -1
        expected = {a.OPEN: a.RUNNING, a.FINISHED: a.DONE}.get(end, a.WAITING)
        if expected == a.WAITING and arrays.status[task] in (a.GIVEN_UP, a.RESTING):
            continue
        _must(
            arrays.status[task] == expected, f"task {task} is not what its latest attempt makes it"
        )
        _must(
            finished[task] == (expected == a.DONE),
            f"task {task} has finished more than once, or never",
        )
        if expected == a.RUNNING:
            _must(
                arrays.on[task] == arrays.attempt_on[latest[task]],
                f"task {task} runs elsewhere than it says",
            )
    _must(
        arrays.counts[a.N_DONE] == sum(finished.values()), "the number of finished tasks is wrong"
    )
    _must(
        arrays.counts[a.N_GIVEN_UP] == (arrays.status == a.GIVEN_UP).sum(),
        "the number of tasks given up is wrong",
    )
    resting = arrays.status == a.RESTING
    _must(arrays.counts[a.N_RESTING] == resting.sum(), "the number of tasks that rest is wrong")
    _must(
        not resting.any() or np.isfinite(arrays.rests[resting]).any(),
        "tasks rest, and none of them until a time",
    )
    _must(
        arrays.counts[a.N_REWOUND] == (arrays.attempt_end[:n] == a.REWOUND).sum(),
        "the number of rewound tasks is wrong",
    )


def _check_amounts(state: RunState) -> None:
    """What is free is what nobody holds, and never below nothing; cores are of one host."""
    arrays = state.arrays
    kinds, columns = arrays.n_kinds, arrays.n_kinds + arrays.n_pools
    held = np.zeros(len(arrays.capacity))

    def note(host: int, amounts: list[float]) -> None:
        held[host * kinds : (host + 1) * kinds] += amounts[:kinds]
        held[arrays.n_hosts * kinds :] += amounts[kinds:]

    for k in range(int(arrays.counts[a.N_ATTEMPTS])):
        cores = state.cores_of(k)
        hosts = {int(arrays.host[core]) for core in cores}
        _must(len(hosts) == 1 and len(set(cores)) == len(cores), f"attempt {k} has odd cores")
        _must(cores[0] == arrays.attempt_on[k], f"attempt {k} has another first core")
        if arrays.attempt_end[k] == a.OPEN:
            note(hosts.pop(), list(state.amounts_of(k)))
    for task in range(arrays.n_tasks if len(arrays.claim) else 0):
        claimed = arrays.claim[task * columns : (task + 1) * columns].tolist()
        waits = arrays.status[task] == a.WAITING and arrays.on[task] >= 0
        _must(waits or not any(claimed), f"task {task} has claimed, and waits nowhere")
        if waits:
            note(int(arrays.host[arrays.on[task]]), claimed)
    for place, most in enumerate(arrays.capacity.tolist()):
        left = most - held[place]
        near = left == arrays.free[place] or abs(left - arrays.free[place]) <= SLOP * most
        _must(near, f"of amount {place} {left:g} are free, not {arrays.free[place]:g}")
        _must(left >= -SLOP * most, f"of amount {place} more is held than there is")


def _check_items(arrays: RunArrays) -> None:
    """What is held was gained, what is moving has one transfer, and nothing needed is lost."""
    there = {int(arrays.host[p]) for p in range(arrays.n_processors) if arrays.present[p]}
    gained, moving = set(), Counter[tuple[int, int]]()
    for k in range(int(arrays.counts[a.N_ATTEMPTS])):
        if arrays.attempt_end[k] in (a.FINISHED, a.REWOUND):
            task, host = int(arrays.attempt_task[k]), int(arrays.host[arrays.attempt_on[k]])
            for item in arrays.out_item[arrays.out_ptr[task] : arrays.out_ptr[task + 1]].tolist():
                gained.add((item, host))
    for k in range(int(arrays.counts[a.N_TRANSFERS])):
        where = int(arrays.transfer_item[k]), int(arrays.transfer_to[k])
        _must(arrays.transfer_from[k] != arrays.transfer_to[k], f"transfer {k} goes nowhere")
        if isnan(arrays.transfer_arrival[k]):
            moving[where] += 1
            _must(
                _held(arrays, where[0], int(arrays.transfer_from[k])) == a.HERE,
                f"transfer {k} comes from where the item is not",
            )
        elif arrays.transfer_arrival[k] <= arrays.clock[0]:
            gained.add(where)
    for item in range(len(arrays.item_producer)):
        for host in range(arrays.n_hosts):
            state = _held(arrays, item, host)
            _must(moving[item, host] <= 1, f"item {item} is moved to host {host} twice at a time")
            # a producer that was rewound may make what is still on its way
            _must(
                state == a.MOVING or state == a.HERE or moving[item, host] == 0,
                f"item {item} moves to host {host}, which does not know",
            )
            _must(
                state != a.MOVING or moving[item, host] == 1,
                f"item {item} does not move to host {host}",
            )
            _must(
                state != a.HERE or (item, host) in gained, f"item {item} never came to host {host}"
            )
            _must(
                state == a.ABSENT or host in there, f"item {item} is on host {host}, which is gone"
            )
    for task in range(arrays.n_tasks):
        if arrays.status[task] == a.WAITING:
            for item in _inputs(arrays, task):
                if arrays.status[arrays.item_producer[item]] == a.DONE:
                    copies = [_held(arrays, item, host) for host in range(arrays.n_hosts)]
                    _must(a.HERE in copies, f"item {item} is nowhere, but task {task} needs it")


def _check_queues(arrays: RunArrays) -> None:
    """A waiting task with a processor is in its queue, and counts what is not on the host."""
    queued: dict[int, int] = {}
    for p in range(arrays.n_processors):
        row = arrays.queue[arrays.queue_at[p] : arrays.queue_end[p]].tolist()
        _must(not row or arrays.present[p], f"processor {p} is gone, but has a queue")
        _must(
            arrays.dispatch != a.READY_QUEUE or len(row) <= 1,
            f"processor {p} has more than one task, just in time",
        )
        for task in row:
            if arrays.most_cores:
                first = task * arrays.most_cores
                cores = arrays.core[first : first + arrays.wide[task]].tolist()
                _must(p in cores, f"task {task} is in the queue of a core that it has not")
                at = [list(_queue(arrays, core)).count(task) for core in cores]
                _must(set(at) == {1}, f"task {task} is not in the queues of all its cores")
                queued[task] = cores[0]
                continue
            _must(task not in queued, f"task {task} is in two queues")
            queued[task] = p
    for task in range(arrays.n_tasks):
        waiting = arrays.status[task] == a.WAITING
        _must(
            (task in queued) == (waiting and arrays.on[task] >= 0),
            f"task {task} and the queues disagree",
        )
        if task not in queued:
            continue
        _must(arrays.on[task] == queued[task], f"task {task} is in another processor's queue")
        host = int(arrays.host[queued[task]])
        states = [(item, _held(arrays, item, host)) for item in _inputs(arrays, task)]
        absent = [item for item, state in states if state != a.HERE]
        _must(
            arrays.missing[task] == len(absent),
            f"task {task} lacks {absent}, not {arrays.missing[task]} items",
        )
        for item, state in states:  # what is made is pushed
            _must(
                state != a.ABSENT or arrays.status[arrays.item_producer[item]] != a.DONE,
                f"item {item} is made, but not on its way to task {task}",
            )


def _queue(arrays: RunArrays, p: int) -> list[int]:
    row: list[int] = arrays.queue[arrays.queue_at[p] : arrays.queue_end[p]].tolist()
    return row


def _check_nothing_idle(arrays: RunArrays) -> None:
    """No processor is idle whose next task could start.

    Where tasks take amounts, the first in line for them could; others may have to let it pass.
    """
    if arrays.most_cores:
        _check_first_in_line(arrays)
        return
    for p in range(arrays.n_processors if arrays.counts[a.HELD_BACK] == 0 else 0):
        if arrays.leaves[p] <= arrays.clock[0]:
            continue  # what is left in its queue is planned elsewhere when that is told
        if arrays.present[p] and arrays.running[p] < 0 and arrays.queue_at[p] < arrays.queue_end[p]:
            task = arrays.queue[arrays.queue_at[p]]
            _must(
                arrays.missing[task] > 0 or arrays.gated[task],
                f"processor {p} is idle, and its next task could start",
            )


def _check_first_in_line(arrays: RunArrays) -> None:
    """Of tasks that are first on all their cores, with their inputs, the first lacks amounts."""
    waits = list[int]()
    for task in range(arrays.n_tasks if arrays.counts[a.HELD_BACK] == 0 else 0):
        if arrays.status[task] != a.WAITING or arrays.on[task] < 0:
            continue
        first = task * arrays.most_cores
        cores = arrays.core[first : first + arrays.wide[task]]
        idle = arrays.present[cores] & (arrays.running[cores] < 0)
        idle &= arrays.leaves[cores] > arrays.clock[0]
        next_there = all(_queue(arrays, int(core))[:1] == [task] for core in cores)
        if idle.all() and next_there and arrays.missing[task] == 0 and not arrays.gated[task]:
            waits.append(task)
    if waits:
        task = min(waits, key=lambda task: int(arrays.line[task]))
        _must(not _has_amounts(arrays, task), f"task {task} is first in line, and could start")


def _has_amounts(arrays: RunArrays, task: int) -> bool:
    """Whether all that a task needs beside cores is free."""
    kinds, columns = arrays.n_kinds, arrays.n_kinds + arrays.n_pools
    need = arrays.need[task * columns : (task + 1) * columns]
    host = int(arrays.host[arrays.on[task]])
    pools = arrays.free[arrays.n_hosts * kinds :]
    free = np.concatenate([arrays.free[host * kinds : (host + 1) * kinds], pools])
    return bool((need <= free).all())


def _check_ready_queue(arrays: RunArrays) -> None:
    """The heap holds the tasks that are ready and have no processor; none of those is idle."""
    ready = arrays.ready[: arrays.counts[a.N_READY]].tolist()
    _must(len(ready) == len(set(ready)), "a task is in the ready queue twice")
    for k in range(1, len(ready)):
        behind = goes_before(arrays, ready[k], ready[(k - 1) // 2])
        _must(not behind, "the ready queue is out of order")
    for task in range(arrays.n_tasks):
        free = arrays.status[task] == a.WAITING and arrays.on[task] < 0
        producers = [arrays.item_producer[item] for item in _inputs(arrays, task)]
        unmade = sum(arrays.status[producer] != a.DONE for producer in producers)
        # what no host can have now is ready again when the machines change
        parked = arrays.most_cores > 0 and not is_possible(arrays, task)
        _must(
            (task in ready) == (free and unmade == 0) or (parked and free and unmade == 0),
            f"task {task} is ready and not in the ready queue, or the other way round",
        )
        _must(not free or arrays.unmade[task] == unmade, f"task {task} miscounts what is not made")
    if arrays.most_cores:
        _check_none_fits(arrays, ready)
        return
    for p in range(arrays.n_processors if arrays.counts[a.HELD_BACK] == 0 else 0):
        idle = arrays.present[p] and arrays.running[p] < 0 and arrays.leaves[p] > arrays.clock[0]
        _must(
            not ready or not idle or arrays.queue_at[p] < arrays.queue_end[p],
            f"processor {p} is idle while tasks are in the ready queue",
        )


def _check_none_fits(arrays: RunArrays, ready: list[int]) -> None:
    """The first of the ready tasks that a host can run fits on none as it is now."""
    able = [task for task in ready if is_possible(arrays, task)]
    if arrays.dispatch != a.READY_QUEUE or arrays.counts[a.HELD_BACK] or not able:
        return
    first = able[0]
    for task in able:
        first = task if goes_before(arrays, task, first) else first
    for host in range(arrays.n_hosts):
        mine = np.flatnonzero(arrays.host == host)
        idle = arrays.present[mine] & (arrays.running[mine] < 0)
        idle &= (arrays.leaves[mine] > arrays.clock[0]) & (
            arrays.queue_at[mine] >= arrays.queue_end[mine]
        )
        enough = idle.sum() >= arrays.width[arrays.width_ptr[first]]
        allowed = arrays.allowed[first * arrays.n_hosts + host]
        row = first * (arrays.n_kinds + arrays.n_pools)
        need = arrays.need[row : row + arrays.n_kinds + arrays.n_pools]
        here = arrays.free[host * arrays.n_kinds : (host + 1) * arrays.n_kinds]
        free = np.concatenate([here, arrays.free[arrays.n_hosts * arrays.n_kinds :]])
        fits = enough and allowed and (need <= free).all()
        _must(not fits, f"task {first} is first in the ready queue, and fits on host {host}")


class IllegalEventError(ForeplanError):
    """An event that cannot have happened in this state; the state is as it was."""


def check_event(state: RunState, event: Event) -> None:
    """Refuse an event that cannot have happened; nothing is changed by it."""
    now = float(state.arrays.clock[0])
    if not math.isfinite(event.time) or event.time < now:
        raise IllegalEventError(f"{event} lies before the last event, at {now:g}")
    if not _is_legal(state, event):
        raise IllegalEventError(f"{event} cannot happen now")


def _is_legal(state: RunState, event: Event) -> bool:
    arrays = state.arrays
    match event:
        case TaskFinished() | TaskFailed():
            known = 0 <= event.attempt < arrays.counts[a.N_ATTEMPTS]
            return bool(known and arrays.attempt_end[event.attempt] == a.OPEN)
        case ItemArrived():
            known = 0 <= event.transfer < arrays.counts[a.N_TRANSFERS]
            return bool(known and np.isnan(arrays.transfer_arrival[event.transfer]))
        case LinkChanged():
            return 0 <= event.link < arrays.n_hosts**2 and 0 <= event.bandwidth < np.inf
        case ItemLost():
            return 0 <= event.place < len(arrays.held)
        case BudgetChanged():
            return event.budget >= 0
        case Paused() | Woken() | LimitsDue() | TasksOverdue() | RetryDue():
            return True
        case ProcessorJoined() | ProcessorGone() | ProcessorLeaving() | SpeedChanged():
            return 0 <= event.processor < arrays.n_processors and _can_happen(arrays, event)
    return False


def _can_happen(
    arrays: a.RunArrays, event: ProcessorJoined | ProcessorGone | ProcessorLeaving | SpeedChanged
) -> bool:
    """Whether that can happen to its processor now."""
    here = bool(arrays.present[event.processor])
    match event:
        case ProcessorJoined():
            return not here
        case ProcessorLeaving():
            return here and not math.isnan(event.gone_at)
        case SpeedChanged():
            return 0 <= event.availability <= 1
    return here
