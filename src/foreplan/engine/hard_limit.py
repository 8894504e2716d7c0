"""A budget that is a limit: work ends when the money does, and begins only if it can be paid."""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.attempts import cancel
from foreplan.engine.kernels.dispatch import dispatch
from foreplan.engine.kernels.rules import make_good
from foreplan.model import Platform, Usage, Workflow, affordable
from foreplan.model.money import ROUNDING

if TYPE_CHECKING:
    from foreplan.engine.coordinator import Coordinator

LEAD = 1.0  # seconds before a billing unit that cannot be paid: work must be over when it begins
LEAD_SHARE = 0.1  # of a unit, where that is less
MOST_UNITS = 1000  # that are looked at ahead; then it is looked again
NOBODY = np.empty(0, dtype=np.int32)


def end_of_money(coordinator: Coordinator) -> tuple[float, IntArray]:
    """When what runs will have used up the budget, and on which processors it must end then.

    A billing unit is paid when it begins; where it cannot be, work ends a little before it.
    """
    state, platform, used = coordinator.state, coordinator.platform, coordinator.usage()
    busy = np.flatnonzero(state.arrays.running >= 0).astype(np.int32)
    price, billing, budget = platform.price, platform.billing, coordinator.tracker.budget
    metered = busy[(price[busy] > 0) & (billing[busy] == 0)]
    rate = float((price[metered] * state.cores_paid(metered)).sum())
    left = budget - used.cost(platform)
    billed = busy[(price[busy] > 0) & (billing[busy] > 0)]
    units = [(_next_unit(used, platform, int(p)), int(p)) for p in billed]
    heapq.heapify(units)
    at = coordinator.now
    for _ in range(MOST_UNITS):
        gone = at + max(0.0, left) / rate if rate > 0 else math.inf
        if not units or gone <= units[0][0]:
            return gone, metered
        unit, p = heapq.heappop(units)
        left, at = left - rate * max(0.0, unit - at), max(at, unit)
        if billing[p] * price[p] > left + ROUNDING * budget:
            return at, np.array([p], dtype=np.int32)
        left -= float(billing[p] * price[p])
        heapq.heappush(units, (unit + float(billing[p]), p))
    return at, NOBODY


def _next_unit(used: Usage, platform: Platform, p: int) -> float:
    """When the next billing unit of a processor in use is about to begin."""
    unit = float(platform.billing[p])
    span = float(used.last[p] - used.first[p])
    begun = max(1.0, math.ceil(span / unit * (1 - ROUNDING)))
    return float(used.first[p]) + begun * unit - lead(unit)


def lead(unit: float) -> float:
    """How long before a billing unit work ends that must not reach it."""
    return min(LEAD, LEAD_SHARE * unit)


def _ceilings(workflow: Workflow, timeout: float | None) -> FloatArray:
    """The time-out of every task, 0 for none."""
    given = (workflow.spec(task).timeout for task in range(workflow.n_tasks))
    return np.array([(timeout if t is None else t) or 0.0 for t in given])


def _gated(ceiling: FloatArray, platform: Platform) -> BoolArray:
    """The tasks that are begun only if that can be paid: with a time-out, or where units begin."""
    mask: BoolArray = (ceiling > 0) | bool((platform.billing > 0).any())
    return mask


def worst_cost(coordinator: Coordinator, task: int, p: int) -> float:
    """What is spent if this task is begun now, and all that runs takes as long as it may.

    What has no time-out is taken to end as expected.
    """
    state, ceiling, now = coordinator.state, coordinator.ceiling, coordinator.now
    arrays, platform = state.arrays, coordinator.platform
    busy, expected = state.expected_ends(now)
    attempts = arrays.running[busy]
    most = ceiling[arrays.attempt_task[attempts]]
    until = np.where(most > 0, arrays.attempt_start[attempts] + most, expected)
    until = np.maximum(now, until)
    cores, beyond = state.place_of(task)
    longest = max(float(ceiling[task]), lead(float(platform.billing[p])))
    shares = float(np.dot((state.cores_paid(busy) - 1.0) * platform.price[busy], until - now))
    shares += beyond * float(platform.price[p]) * longest
    sure = coordinator.usage().with_running(busy, now, until)
    it = np.array(cores, dtype=np.int32), now, np.full(len(cores), now + longest)
    return sure.with_running(*it).cost(platform) + shares


def more_for_timeouts(coordinator: Coordinator) -> float:
    """What must be there beyond the estimates, so that every time-out can be paid in its turn."""
    arrays, ceiling, platform = coordinator.state.arrays, coordinator.ceiling, coordinator.platform
    tasks = np.flatnonzero(coordinator.waiting() & (ceiling > 0) & (arrays.on >= 0))
    p = arrays.on[tasks]
    over = ceiling[tasks] - arrays.estimate[tasks * arrays.n_processors + p]
    most = np.zeros(platform.n_processors)  # one runs on each at a time
    for task, longer in zip(tasks.tolist(), np.maximum(0.0, over).tolist(), strict=True):
        cores, beyond = coordinator.state.place_of(task)
        np.maximum.at(most, list(cores), longer * platform.price[list(cores)])
        most[cores[0]] += longer * beyond * platform.price[cores[0]]
    return float(most.sum())


def set_gates(coordinator: Coordinator) -> None:
    """Where the budget is a limit, some tasks are begun only if that can be paid."""
    gates, tracker = coordinator.state.arrays.gated, coordinator.tracker
    gates[:] = False
    if tracker.cuts:
        coordinator.ceiling = _ceilings(coordinator.workflow, tracker.timeout)
        gates[:] = _gated(coordinator.ceiling, coordinator.platform)


def cut_off(coordinator: Coordinator) -> bool:
    """End what runs and cannot be paid any more; whether there was any."""
    arrays, (at, where) = coordinator.state.arrays, end_of_money(coordinator)
    if coordinator.now < at * (1 - ROUNDING) or not len(where):
        return False
    # what was expected to take no time has begun when no money was left: it would for ever
    if (arrays.attempt_start[arrays.running[where]] >= coordinator.now).all():
        second = float(coordinator.platform.price[where[0]])  # so much more is surely enough to try
        task = int(arrays.attempt_task[arrays.running[where[0]]])
        _hold_back(coordinator, task, coordinator.tracker.budget + second)
    for attempt in dict.fromkeys(arrays.running[where].tolist()):  # each of them once
        coordinator.call(cancel, attempt)
    coordinator.call(make_good)  # an input may have been lost while they ran
    return True


def _waiting_for_money(coordinator: Coordinator) -> list[tuple[int, int]]:
    """The tasks that could begin but for money, and where."""
    arrays = coordinator.state.arrays
    if arrays.counts[a.HELD_BACK] or coordinator.asked is not None:
        return []
    idle = arrays.present & (arrays.running < 0) & (arrays.leaves > coordinator.now)
    places = np.flatnonzero(idle & (arrays.queue_at < arrays.queue_end)).tolist()
    nexts = [(int(arrays.queue[arrays.queue_at[p]]), p) for p in places]
    first = {p: task for task, p in nexts}
    return [
        (task, p)
        for task, p in nexts
        if arrays.gated[task]
        and arrays.missing[task] == 0
        and arrays.on[task] == p
        and all(first.get(core) == task for core in coordinator.state.place_of(task)[0])
    ]


def begin_payable(coordinator: Coordinator) -> int:
    """Begin what had to wait for money, if it can be paid; -1, or a task that would be late."""
    late, gates = -1, coordinator.state.arrays.gated
    for task, p in _waiting_for_money(coordinator):
        cost = worst_cost(coordinator, task, p)
        if late >= 0 or not affordable(cost, coordinator.tracker.budget):
            continue
        gates[task] = False
        late = int(coordinator.call(dispatch, p))
        gates[task] = True
    return late


def wait_for_money(coordinator: Coordinator) -> None:
    """If nothing runs any more, and what is next cannot be paid: the run is held back."""
    state, dear = coordinator.state, _waiting_for_money(coordinator)
    if not dear or state.running() or state.under_way():
        return
    task, p = dear[0]
    needed = coordinator.money().projected + more_for_timeouts(coordinator)
    _hold_back(coordinator, task, float(np.fmax(worst_cost(coordinator, task, p), needed)))


def _hold_back(coordinator: Coordinator, task: int, needed: float) -> None:
    """Begin nothing more: a task cannot be paid."""
    coordinator.tracker.note_overrun(needed, coordinator.now)
    coordinator.tracker.dear, coordinator.tracker.holds = task, True
    coordinator.state.hold_back(True)
