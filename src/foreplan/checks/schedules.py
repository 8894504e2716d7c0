"""The one validator of schedules: what every planner's result must satisfy."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.errors import InvalidScheduleError
from foreplan.model.money import affordable, forecast
from foreplan.model.resources import held
from foreplan.model.schedule import Schedule
from foreplan.model.situation import Freedom, Reuse, Situation
from foreplan.quantities import many

TOLERANCE = 1e-9  # relative to the makespan


def check_schedule(
    schedule: Schedule,
    situation: Situation | None = None,
    freedom: Freedom = Freedom.NOT_STARTED,
) -> None:
    """Raise InvalidScheduleError, naming what is violated; the situation defaults to the start."""
    if situation is None:
        situation = Situation.at_start(schedule.workflow, schedule.platform)
    violations = _shape(schedule)
    if not violations:
        begun = np.zeros(schedule.workflow.n_tasks, dtype=np.bool_)
        begun[_kept(schedule, situation, freedom)[0]] = True
        if situation.given_up is not None:  # what will not run can break no rule
            begun |= situation.given_up
        slop = TOLERANCE * max(1.0, schedule.makespan)
        for rule in (_early, _durations, _presence, _overlap, _precedence, _places, _capacity):
            violations += rule(schedule, situation, begun, slop)
        violations += _facts(schedule, situation, freedom, slop)
        violations += _budget(schedule, situation)
    if violations:
        raise InvalidScheduleError(violations)


def _shape(schedule: Schedule) -> list[str]:
    n = schedule.workflow.n_tasks
    for name in ("processor", "start", "finish"):
        if len(getattr(schedule, name)) != n:
            return [f"{name} has {len(getattr(schedule, name))} entries for {n} tasks"]
    unknown = (schedule.processor < 0) | (schedule.processor >= schedule.platform.n_processors)
    violations = [f"task {_task(schedule, t)} is on no processor" for t in np.flatnonzero(unknown)]
    untimed = ~(np.isfinite(schedule.start) & np.isfinite(schedule.finish))
    violations += [f"task {_task(schedule, t)} has no time" for t in np.flatnonzero(untimed)]
    return violations or _rows(schedule)


def _rows(s: Schedule) -> list[str]:
    """Cores are distinct and of one host, and the processor is the first of them."""
    if s.cores is None:
        return []
    n, ptr = s.workflow.n_tasks, s.cores.ptr
    if len(ptr) != n + 1 or ptr[0] != 0 or (np.diff(ptr) < 0).any():
        return [f"cores has {len(ptr) - 1} rows for {n} tasks"]
    violations = []
    for task in range(n):
        cores = s.cores.of(task).tolist()
        known = all(0 <= p < s.platform.n_processors for p in cores)
        if not cores or not known:
            violations.append(f"task {_task(s, task)} has no cores")
        elif len(set(cores)) < len(cores):
            violations.append(f"task {_task(s, task)} has a core twice")
        elif len({int(s.platform.host[p]) for p in cores}) > 1:
            violations.append(f"task {_task(s, task)} has cores of several hosts")
        elif cores[0] != s.processor[task]:
            violations.append(f"the first core of task {_task(s, task)} is not its processor")
    return violations


def _budget(s: Schedule, situation: Situation) -> list[str]:
    """All of it costs no more than it may, what is spent included."""
    cost = forecast(s, situation).projected
    if affordable(cost, situation.budget):
        return []
    return [f"it costs {cost:g}, more than the budget of {situation.budget:g}"]


def _kept(s: Schedule, situation: Situation, freedom: Freedom) -> tuple[IntArray, BoolArray]:
    """The tasks that have begun, but for running ones that were moved; and which those are."""
    attempts = situation.attempts
    kept: BoolArray = np.ones(len(attempts.task), dtype=np.bool_)
    if freedom == Freedom.RESTART:
        moved = s.processor[attempts.task] != attempts.processor
        kept = ~(moved & np.isnan(attempts.finish))
    return attempts.task[kept], kept


def _facts(s: Schedule, situation: Situation, freedom: Freedom, slop: float) -> list[str]:
    """Tasks that have begun stay where and when they were."""
    attempts, (tasks, kept) = situation.attempts, _kept(s, situation, freedom)
    moved = s.processor[tasks] != attempts.processor[kept]
    moved |= np.abs(s.start[tasks] - attempts.start[kept]) > slop
    moved |= np.abs(s.finish[tasks] - situation.expected_finish()[kept]) > slop
    if s.cores is not None or attempts.cores is not None:
        pairs = zip(tasks.tolist(), np.flatnonzero(kept).tolist(), strict=True)
        others = [_cores(s, t) != _begun_on(situation, k) for t, k in pairs]
        moved |= np.array(others, dtype=np.bool_)
    return [
        f"task {_task(s, t)} has begun, but the schedule puts it elsewhere" for t in tasks[moved]
    ]


def _begun_on(situation: Situation, attempt: int) -> list[int]:
    attempts = situation.attempts
    if attempts.cores is None:
        return [int(attempts.processor[attempt])]
    return sorted(attempts.cores.of(attempt).tolist())


def _cores(s: Schedule, task: SupportsIndex) -> list[int]:
    """The processors that a task holds, by number."""
    if s.cores is None:
        return [int(s.processor[task])]
    return sorted(s.cores.of(int(task)).tolist())


def _early(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    """Nothing new starts before now."""
    early = ~begun & (s.start < situation.now - slop)
    return [
        f"task {_task(s, t)} starts at {s.start[t]:g}, before now ({situation.now:g})"
        for t in np.flatnonzero(early)
    ]


def _durations(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    tasks = np.arange(s.workflow.n_tasks)
    needed = situation.cost[tasks, s.processor]
    violations = []
    if situation.estimates.needs is not None:
        needed = needed.copy()
        for t in np.flatnonzero(~begun).tolist():
            needed[t] *= _share(situation, t, len(_cores(s, t)))
            if (situation.cost[t, _cores(s, t)] > situation.cost[t, s.processor[t]]).any():
                violations.append(f"task {_task(s, t)} has a slower core than its first")
    wrong = ~begun & ~(np.abs(s.finish - s.start - needed) <= slop)
    for t in np.flatnonzero(wrong).tolist():
        if np.isnan(needed[t]):
            given = many(len(_cores(s, t)), "core")
            violations.append(f"task {_task(s, t)} is given {given}, and requests another number")
            continue
        violations.append(
            f"task {_task(s, t)} takes {s.finish[t] - s.start[t]:g} on {_processor(s, t)}, "
            f"but its cost there is {needed[t]:g}"
        )
    return violations


def _share(situation: Situation, task: int, width: int) -> float:
    """Of its cost, what a task takes on so many cores; NaN: it may not take so many."""
    needs = situation.estimates.needs
    assert needs is not None
    first, end = int(needs.width_ptr[task]), int(needs.width_ptr[task + 1])
    shares = dict(zip(needs.width[first:end].tolist(), needs.factor[first:end], strict=True))
    return float(shares.get(width, np.nan))


def _presence(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    joins, leaves = s.platform.joins[s.processor], s.platform.leaves[s.processor]
    here = (
        np.ones(s.platform.n_processors, np.bool_)
        if situation.present is None
        else situation.present
    )
    gone = ~begun & ~here[s.processor]
    if s.cores is not None:
        rows = [s.cores.of(t) for t in range(s.workflow.n_tasks)]
        joins = np.array([s.platform.joins[cores].max() for cores in rows])
        leaves = np.array([s.platform.leaves[cores].min() for cores in rows])
        gone = ~begun & np.array([not here[cores].all() for cores in rows])
    absent = ~begun & ((s.start < joins - slop) | (s.finish > leaves + slop))
    # what is known to be gone; a processor that has yet to join may be planned on from then on
    return [
        f"task {_task(s, t)} is planned on {_processor(s, t)}, which cannot be used now"
        for t in np.flatnonzero(gone & ~absent)
    ] + [
        f"task {_task(s, t)} runs from {s.start[t]:g} to {s.finish[t]:g} on {_processor(s, t)}, "
        f"which is there from {joins[t]:g} to {leaves[t]:g}"
        for t in np.flatnonzero(absent)
    ]


def _overlap(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    task, processor = held(s.processor, s.cores)
    order = np.lexsort((s.finish[task], s.start[task], processor))
    first, second = order[:-1], order[1:]
    same = processor[first] == processor[second]
    clash = same & (s.start[task[second]] < s.finish[task[first]] - slop)
    return [
        f"tasks {_task(s, task[a])} and {_task(s, task[b])} overlap on "
        f"{s.platform.processor_names[processor[a]]!r}: "
        f"{s.finish[task[a]]:g} > {s.start[task[b]]:g}"
        for a, b in zip(first[clash], second[clash], strict=True)
    ]


def _places(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    """Tasks are on hosts where they may run."""
    demand = situation.demand
    if demand is None:
        return []
    wrong = ~begun & ~demand.allowed[np.arange(len(begun)), s.platform.host[s.processor]]
    return [
        f"task {_task(s, t)} may not run on the host of {_processor(s, t)}"
        for t in np.flatnonzero(wrong)
    ]


def _capacity(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    """At no instant is more taken of a host, or of a pool, than there is."""
    demand = situation.demand
    if demand is None:
        return []
    counts = np.ones(len(begun), dtype=np.bool_)
    if situation.given_up is not None:
        counts &= ~situation.given_up
    needs, hosts = demand.needs, s.platform.n_hosts
    kinds, host = len(needs.kinds), s.platform.host[s.processor]
    violations = []
    for k, kind in enumerate(needs.kinds):
        for h in range(hosts):
            there, limit = counts & (host == h), float(demand.capacity[h * kinds + k])
            name = f"{kind} of host {s.platform.host_names[h]!r}"
            violations += _sums(s, situation, there, needs.amount[:, k], limit, name, slop)
    for k, pool in enumerate(needs.pools):
        limit, amount = float(demand.capacity[hosts * kinds + k]), needs.amount[:, kinds + k]
        violations += _sums(s, situation, counts, amount, limit, f"the pool {pool!r}", slop)
    return violations


def _sums(
    s: Schedule,
    situation: Situation,
    which: BoolArray,
    amount: FloatArray,
    limit: float,
    name: str,
    slop: float,
) -> list[str]:
    """The first instant from now on at which tasks take more than there is, by a sweep over time.

    What runs already may hold more than that; then nothing may be added to it.
    """
    tasks = np.flatnonzero(which & (amount > 0) & (s.finish - s.start > 2 * slop)).tolist()
    events = [(s.start[t] + slop, 1, t) for t in tasks] + [
        (s.finish[t] - slop, 0, t) for t in tasks
    ]
    running = set(situation.attempts.task.tolist())
    taken: set[int] = set()
    for time, begins, task in sorted(events):
        if not begins:
            taken.discard(task)
            continue
        taken.add(task)
        total = sum(amount[t] for t in taken)
        if total > limit + TOLERANCE * abs(limit) and task not in running:
            return [
                f"at {time:g}, when task {_task(s, task)} runs, {total:g} is taken of {name}, "
                f"which has {limit:g}"
            ]
    return []


def _precedence(s: Schedule, situation: Situation, begun: BoolArray, slop: float) -> list[str]:
    items, producers, consumers = s.workflow.dependencies()
    arrival = _arrivals(s, situation, items, producers, consumers)
    early = ~begun[consumers] & (s.start[consumers] < arrival - slop)
    return [
        f"task {_task(s, consumers[e])} starts at {s.start[consumers[e]]:g}, before its input "
        f"{s.workflow.item_name(int(items[e]))!r} arrives at {arrival[e]:g}"
        for e in np.flatnonzero(early)
    ]


def _arrivals(
    s: Schedule, situation: Situation, items: IntArray, producers: IntArray, consumers: IntArray
) -> FloatArray:
    """When each item is on its consumer's host, given what is known of it in the situation."""
    per_unit, target = situation.time_per_unit, s.platform.host[s.processor[consumers]]
    arrival = s.arrivals(items, producers, consumers, situation.now, per_unit)
    from_copies = np.full(len(items), situation.reuse == Reuse.ANYWHERE)
    if situation.astray is not None:
        arrival[situation.astray[items]] = np.inf
        from_copies |= situation.astray[items]
    copies = situation.copies
    for e in np.flatnonzero(from_copies):
        source = copies.host[copies.item == items[e]]
        takes = s.platform.startup[source, target[e]]
        takes = takes + s.workflow.item_size[items[e]] * per_unit[source, target[e]]
        arrival[e] = min(arrival[e], situation.now + takes.min(initial=np.inf))
    known_item, known_host, known_time = situation.known_arrivals()
    if len(known_item) == 0:
        return arrival
    hosts = s.platform.n_hosts
    keys = known_item.astype(np.int64) * hosts + known_host
    by_key = np.argsort(keys, kind="stable")
    wanted = items.astype(np.int64) * hosts + target
    at = np.minimum(np.searchsorted(keys[by_key], wanted), len(keys) - 1)
    found = keys[by_key][at] == wanted
    return np.where(found, known_time[by_key][at], arrival)


def _task(s: Schedule, task: SupportsIndex) -> str:
    return repr(s.workflow.task_names[task])


def _processor(s: Schedule, task: SupportsIndex) -> str:
    return repr(s.platform.processor_names[s.processor[task]])
