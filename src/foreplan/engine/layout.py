"""The arrays of a run: made when nothing has happened, and made larger while it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from foreplan.arrays import frozen, pieces
from foreplan.contracts import Dispatch, Priority
from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.amounts import hold
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.model import Estimates, Platform, Reuse, Workflow
from foreplan.model.resources import Demand

LOGS = {
    "attempt_task": np.int32,
    "attempt_on": np.int32,
    "attempt_start": np.float64,
    "attempt_finish": np.float64,
    "attempt_end": np.int8,
    "worked": np.float64,
    "since": np.float64,
    "transfer_item": np.int32,
    "transfer_from": np.int32,
    "transfer_to": np.int32,
    "transfer_sent": np.float64,
    "transfer_arrival": np.float64,
    "moved": np.float64,
    "moved_since": np.float64,
    "transfer_forgotten": np.float64,
}
BY_ATTEMPT = {name for name in LOGS if name.startswith("attempt")} | {"worked", "since"}
# what attempts hold beside one core, each a row of one, of all cores, or of all amounts
HELD = ("attempt_wide", "attempt_core", "attempt_amount", "attempt_factor", "attempt_beyond")


def empty(
    wf: Workflow, pf: Platform, estimates: Estimates, dispatch: Dispatch, priority: Priority | None,
    reuse: Reuse,
) -> RunArrays:  # fmt: skip
    """Nothing has happened; the processors that join at 0 are there. No plan is followed yet."""
    n, p, h = wf.n_tasks, pf.n_processors, pf.n_hosts
    burst = _burst(wf, p, dispatch)
    attempts, transfers = n + burst, len(wf.use_task) + burst
    logs: dict[str, Any] = {
        name: np.zeros(attempts if name in BY_ATTEMPT else transfers, dtype=dtype)
        for name, dtype in LOGS.items()
    }
    # many are small, and a run of a hundred tasks takes little longer than to make them one by one
    none = pieces(np.full(3 * n + p, -1, dtype=np.int32), on=n, attempt=n, turn=n, running=p)
    never = pieces(
        np.full(2 * n + 5, np.inf), latest=n, rests=n, wake=2, variance=1, early=1, allowance=1
    )
    ones = pieces(np.ones(2 * p + h * h), availability=p, reckoned=p, bandwidth=h * h)
    arrays = RunArrays(
        n_tasks=n,
        n_processors=p,
        n_hosts=h,
        dispatch=int(dispatch),
        last_come=priority is not None and priority.last_come,
        reuse=int(reuse),
        burst=burst,
        order=wf.order,
        in_ptr=wf.in_ptr,
        in_item=wf.in_item,
        out_ptr=wf.out_ptr,
        out_item=wf.out_item,
        use_ptr=wf.use_ptr,
        use_task=wf.use_task,
        item_producer=wf.item_producer,
        host=pf.host,
        startup=pf.startup.reshape(-1),
        per_unit=pf.time_per_unit.reshape(-1),
        item_size=wf.item_size,
        clock=np.zeros(1),
        counts=np.zeros(a.COUNTS, dtype=np.int64),
        status=np.zeros(n, dtype=np.int8),
        missing=np.zeros(n, dtype=np.int32),
        delay=np.zeros(1),
        steps=np.zeros(n),
        gated=np.zeros(n, dtype=np.bool_),
        rank=wf.position if priority is None else frozen(priority.rank, np.int32),
        tie=wf.position if priority is None else frozen(priority.tie, np.int32),
        unmade=np.zeros(n, dtype=np.int32),
        ready=np.zeros(n + 1, dtype=np.int32),
        **_for_min_min(n, p, h) if dispatch == Dispatch.MIN_MIN else NO_MIN_MIN,
        estimate=estimates.cost.reshape(-1),
        present=pf.present(0.0).copy(),
        leaves=pf.leaves.copy(),
        price=pf.price,
        queue=np.zeros(max(n, p), dtype=np.int32),
        queue_at=np.zeros(p, dtype=np.int32),
        queue_end=np.zeros(p, dtype=np.int32),
        held=np.zeros(wf.n_items * h, dtype=np.int8),
        commands=np.zeros(2 * (transfers + attempts), dtype=np.int32),
        **none,
        **never,
        **ones,
        **logs,
    )
    return arrays if estimates.needs is None else with_needs(arrays, wf, pf, estimates)


def with_needs(arrays: RunArrays, wf: Workflow, pf: Platform, estimates: Estimates) -> RunArrays:
    """The arrays with what tasks take beside one core; where none was known, they hold nothing.

    What is held already is still held, and everyone stays where it is.
    """
    assert estimates.needs is not None
    needs, demand = estimates.needs, Demand.of(wf, pf, estimates.needs)
    n, p, h, log = arrays.n_tasks, pf.n_processors, pf.n_hosts, len(arrays.attempt_task)
    room = int(min(needs.most_cores.max(initial=1), np.bincount(pf.host).max()))
    room = max(room, arrays.most_cores)
    columns = len(needs.kinds) + len(needs.pools)
    host_core = np.argsort(pf.host, kind="stable").astype(np.int32)
    host_ptr = np.searchsorted(pf.host[host_core], np.arange(h + 1)).astype(np.int32)
    old, just_in_time = arrays.most_cores, arrays.dispatch == a.READY_QUEUE
    if old == 0:  # each task has one core, and every attempt
        core, attempt_core = arrays.on.astype(np.int32), arrays.attempt_on
        held: dict[str, Any] = {
            "wide": np.ones(n, dtype=np.int32),
            "line": np.zeros(n, dtype=np.int32),
            "claim": np.zeros(n * columns if just_in_time else 0),
            "attempt_wide": np.ones(log, dtype=np.int32),
            "attempt_amount": np.zeros(log * columns),
            "attempt_factor": np.ones(log),
            "attempt_beyond": np.zeros(log),
        }
    else:
        core, attempt_core = arrays.core, arrays.attempt_core
        held = {name: getattr(arrays, name) for name in (*HELD, "wide", "line", "claim")}
    held["core"] = _rows(core, max(1, old), room)
    held["attempt_core"] = _rows(attempt_core, max(1, old), room)
    most = max(int(np.minimum(needs.most_cores, room).sum()), p, len(arrays.queue))
    if just_in_time and len(arrays.inputs_at) == 0:
        held |= {"inputs_at": np.zeros(n), "candidate": np.zeros(n, dtype=np.int32)}
    if arrays.dispatch == a.MIN_MIN:
        held["old_queue"] = np.zeros(most, dtype=np.int32)
    queue = np.zeros(most, dtype=np.int32)
    queue[: len(arrays.queue)] = arrays.queue
    arrays = arrays._replace(
        most_cores=room,
        n_kinds=len(needs.kinds),
        n_pools=len(needs.pools),
        need=needs.amount.reshape(-1).copy(),
        capacity=demand.capacity,
        free=demand.capacity.copy(),
        allowed=demand.allowed.reshape(-1).copy(),
        paid=demand.paid.reshape(-1).copy(),
        width_ptr=needs.width_ptr,
        width=needs.width,
        factor=needs.factor,
        host_ptr=host_ptr,
        host_core=host_core,
        core_key=np.zeros(p),
        queue=queue,
        **held,
    )
    hold_again(arrays)
    return arrays


def _rows(flat: Any, old: int, room: int) -> Any:
    """Rows of so many, made longer or shorter."""
    rows = flat.reshape(-1, old)
    same = np.zeros((len(rows), room), dtype=flat.dtype)
    same[:, : min(old, room)] = rows[:, :room]
    return same.reshape(-1)


def hold_again(arrays: RunArrays) -> None:
    """Take from what is free all that is held: by attempts, and claimed just in time."""
    columns = arrays.n_kinds + arrays.n_pools
    arrays.free[:] = arrays.capacity
    amounts = arrays.attempt_amount.reshape(-1, columns)
    its_open = np.flatnonzero(arrays.attempt_end[: arrays.counts[a.N_ATTEMPTS]] == a.OPEN)
    for attempt in its_open.tolist():
        hold(arrays, int(arrays.host[arrays.attempt_on[attempt]]), amounts[attempt], 0, 1.0)
    for task in np.flatnonzero((arrays.status == a.WAITING) & (arrays.on >= 0)).tolist():
        if len(arrays.claim):
            row = task * columns
            hold(arrays, int(arrays.host[arrays.on[task]]), arrays.claim, row, 1.0)


def _for_min_min(n: int, p: int, h: int) -> dict[str, Any]:
    """What only Min-Min needs."""
    ints = {"candidate": n, "best": n, "row": p + 1, "old_queue": max(n, p)}
    floats = {"inputs_at": n, "done_at": n, "free_from": p, "arrival": h}
    return {
        **{name: np.zeros(size, dtype=np.int32) for name, size in ints.items()},
        **{name: np.zeros(size) for name, size in floats.items()},
    }


NO_MIN_MIN = _for_min_min(0, 0, 0)


def grown(arrays: RunArrays, wf: Workflow, pf: Platform, estimates: Estimates) -> RunArrays:
    """The same arrays on a platform with more processors, at its end; they have yet to join.

    The needs of tasks may be others, too.
    """
    h, more = arrays.n_hosts, pf.n_processors - arrays.n_processors
    held = np.zeros((len(arrays.item_producer), pf.n_hosts), dtype=np.int8)
    held[:, :h] = arrays.held.reshape(-1, h)
    bandwidth = np.ones((pf.n_hosts, pf.n_hosts))
    bandwidth[:h, :h] = arrays.bandwidth.reshape(h, h)
    burst = arrays.burst + more
    if arrays.dispatch == a.READY_QUEUE:
        burst += more * int(np.diff(arrays.in_ptr).max(initial=0))
    queue = np.zeros(max(len(arrays.queue), pf.n_processors), dtype=np.int32)
    queue[: len(arrays.queue)] = arrays.queue
    if arrays.dispatch == a.MIN_MIN:
        more_room = _for_min_min(arrays.n_tasks, pf.n_processors, pf.n_hosts)
        arrays = arrays._replace(**{**more_room, "inputs_at": arrays.inputs_at})
    arrays = arrays._replace(
        n_processors=pf.n_processors,
        n_hosts=pf.n_hosts,
        burst=burst,
        host=pf.host,
        startup=pf.startup.reshape(-1),
        per_unit=pf.time_per_unit.reshape(-1),
        estimate=estimates.cost.reshape(-1),
        present=np.concatenate([arrays.present, np.zeros(more, dtype=np.bool_)]),
        leaves=np.concatenate([arrays.leaves, pf.leaves[arrays.n_processors :]]),
        price=pf.price,
        running=np.concatenate([arrays.running, np.full(more, -1, dtype=np.int32)]),
        queue=queue,
        queue_at=np.concatenate([arrays.queue_at, np.zeros(more, dtype=np.int32)]),
        queue_end=np.concatenate([arrays.queue_end, np.zeros(more, dtype=np.int32)]),
        availability=np.concatenate([arrays.availability, np.ones(more)]),
        reckoned=np.concatenate([arrays.reckoned, np.ones(more)]),
        held=held.reshape(-1),
        bandwidth=bandwidth.reshape(-1),
    )
    return arrays if estimates.needs is None else with_needs(arrays, wf, pf, estimates)


# by task, and what a new one has there
BY_TASK = {
    **dict.fromkeys(("status", "missing", "steps", "gated", "unmade"), 0),
    **dict.fromkeys(("on", "attempt", "turn"), -1),
    **dict.fromkeys(("latest", "rests"), np.inf),
}


def with_tasks(
    arrays: RunArrays, wf: Workflow, pf: Platform, estimates: Estimates, priority: Priority | None
) -> RunArrays:
    """The same arrays of a workflow with more tasks and items, at its end, that wait.

    Whoever reads what they make lacks it from now on.
    """
    n, old, items = wf.n_tasks, arrays.n_tasks, len(arrays.item_producer)
    p, h = pf.n_processors, pf.n_hosts
    longer: dict[str, Any] = {
        name: _longer(getattr(arrays, name), n, fill) for name, fill in BY_TASK.items()
    }
    if arrays.most_cores:
        rows = {"wide": 1, "line": 1, "core": arrays.most_cores}
        rows["claim"] = arrays.n_kinds + arrays.n_pools if len(arrays.claim) else 0
        longer |= {k: _longer(getattr(arrays, k), n * wide, 0) for k, wide in rows.items()}
    if arrays.dispatch == a.MIN_MIN:
        longer |= {k: v for k, v in _for_min_min(n, p, h).items() if k != "inputs_at"}
    if len(arrays.inputs_at):
        longer["inputs_at"] = _longer(arrays.inputs_at, n, 0)
        longer["candidate"] = np.zeros(n, dtype=np.int32)
    arrays = arrays._replace(
        n_tasks=n,
        burst=_burst(wf, p, Dispatch(arrays.dispatch)),
        order=wf.order,
        in_ptr=wf.in_ptr,
        in_item=wf.in_item,
        out_ptr=wf.out_ptr,
        out_item=wf.out_item,
        use_ptr=wf.use_ptr,
        use_task=wf.use_task,
        item_producer=wf.item_producer,
        item_size=wf.item_size,
        rank=wf.position if priority is None else frozen(priority.rank, np.int32),
        tie=wf.position if priority is None else frozen(priority.tie, np.int32),
        ready=_longer(arrays.ready, n + 1, 0),
        estimate=estimates.cost.reshape(-1),
        queue=_longer(arrays.queue, max(n, p, len(arrays.queue)), 0),
        held=_longer(arrays.held, wf.n_items * h, 0),
        **longer,
    )
    for reader in wf.use_task[wf.use_ptr[items] :].tolist():
        if reader < old:
            arrays.unmade[reader] += 1
            arrays.missing[reader] += arrays.on[reader] >= 0
    _place_items_of_known_tasks(arrays, wf, items, old)
    return arrays if estimates.needs is None else with_needs(arrays, wf, pf, estimates)


def _place_items_of_known_tasks(arrays: RunArrays, wf: Workflow, items: int, tasks: int) -> None:
    """Put new items of tasks that were known before where the former items of these tasks are."""
    held = arrays.held.reshape(-1, arrays.n_hosts)
    makers = wf.item_producer[items:]
    for item in (items + np.flatnonzero((makers >= 0) & (makers < tasks))).tolist():
        maker = int(wf.item_producer[item])
        made = wf.out_item[wf.out_ptr[maker] : wf.out_ptr[maker + 1]]
        is_here = (held[made[made < items]] == a.HERE).any(axis=0)
        held[item, is_here] = a.HERE


def _longer(array: Any, length: int, fill: float) -> Any:
    more = np.full(length - len(array), fill, dtype=array.dtype)
    return np.concatenate([array, more])


def _burst(wf: Workflow, p: int, dispatch: Dispatch) -> int:
    """The most commands of one event: all outputs sent, a start everywhere, the next alarm."""
    burst = wf.widest_fan + p + 2
    if dispatch == Dispatch.PLANNED:
        return burst
    fan_in = np.diff(wf.in_ptr)  # inputs sent to every processor, or of every task
    most = int(fan_in.sum()) if dispatch == Dispatch.MIN_MIN else p * int(fan_in.max(initial=0))
    return burst + most


def larger(arrays: RunArrays) -> RunArrays:
    """The same arrays with twice the room in the logs."""
    longer: dict[str, Any] = {}
    for name in (*LOGS, *(HELD if arrays.most_cores else ()), "commands"):
        old = getattr(arrays, name)
        longer[name] = np.concatenate([old, np.zeros_like(old)])
    return arrays._replace(**longer)
