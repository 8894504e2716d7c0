"""The one validator of runs: what a run's record alone must satisfy, whoever drove it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.arrays import BoolArray, FloatArray, IntArray
from weft.errors import WeftError
from weft.model.estimates import Estimates
from weft.model.events import EventKind
from weft.model.record import ENDS, Run
from weft.model.schedule import Schedule

TOLERANCE = 1e-9  # of the times that are added up
RUNNING, FINISHED, FAILED, CANCELLED, REWOUND = range(len(ENDS))

Indices = npt.NDArray[np.int64]


class InvalidRunError(WeftError):
    """A run breaks a rule; `violations` names each one."""

    def __init__(self, violations: list[str]) -> None:
        self.violations = violations
        shown = violations[:10]
        more = f"\n... and {len(violations) - 10} more" if len(violations) > 10 else ""
        super().__init__("invalid run:\n" + "\n".join(shown) + more)


def check_run(run: Run, estimates: Estimates | None = None) -> None:
    """Raise InvalidRunError, naming what is violated.

    With the estimates that the planner had, the plans' durations are checked as well. Two things
    at one time may have happened in either order: the record does not say.
    """
    violations = _shape(run)
    if not violations:
        facts = _Facts(run)
        for rule in (_attempts, _presence, _work, _inputs, _sources, _arrivals, _moves):
            violations += rule(facts)
        violations += _evaluations(run)
        if run.plans and len(run.attempts.task) and not violations:
            violations += _Following(facts, estimates).check()
    if violations:
        raise InvalidRunError(violations)


class _Log:
    """Entries (key, time) in the order of their happening, found by key and time."""

    def __init__(self, key: npt.NDArray[Any], time: npt.NDArray[Any]) -> None:
        self.order = np.lexsort((time, key))
        self.key, self.time = key.astype(np.int64)[self.order], time[self.order]
        self.times = np.unique(time)
        self.code = self._code(self.key, self.time, True)

    def _code(self, key: npt.NDArray[Any], time: npt.NDArray[Any], up_to: bool) -> Indices:
        rank = np.searchsorted(self.times, time, side="right" if up_to else "left")
        code: Indices = key.astype(np.int64) * (len(self.times) + 1) + rank
        return code

    def last(
        self, key: npt.NDArray[Any], time: npt.NDArray[Any], before: bool = False
    ) -> tuple[Indices, FloatArray]:
        """The last entry of each key up to (or before) a time, -1 if none; and its time."""
        at = np.searchsorted(self.code, self._code(key, time, not before), side="right") - 1
        return self._found(at, key, -np.inf)

    def first(
        self, key: npt.NDArray[Any], time: npt.NDArray[Any], after: bool = False
    ) -> tuple[Indices, FloatArray]:
        """The first entry of each key from (or after) a time on, -1 if none; and its time."""
        at = np.searchsorted(self.code, self._code(key, time, after), side="right")
        return self._found(at, key, np.inf)

    def _found(
        self, at: Indices, key: npt.NDArray[Any], otherwise: float
    ) -> tuple[Indices, FloatArray]:
        if len(self.code) == 0:
            return np.full(len(at), -1), np.full(len(at), otherwise)
        inside = np.clip(at, 0, len(self.code) - 1)
        found = (at == inside) & (self.key[inside] == key)
        return np.where(found, self.order[inside], -1), np.where(
            found, self.time[inside], otherwise
        )


class _Trace:
    """A factor by key over time, 1 until it changes; how much it adds up to."""

    def __init__(self, key: IntArray, time: FloatArray, value: FloatArray) -> None:
        self.log, self.value, self.time = _Log(key, time), value, time
        order, ordered = self.log.order, self.log.key
        total = np.zeros(len(key))
        for k in range(len(order)):  # changes of the machines are few
            same = k > 0 and ordered[k] == ordered[k - 1]
            i, j = order[k], order[k - 1]
            total[i] = total[j] + value[j] * (time[i] - time[j]) if same else time[i]
        self.total = total

    def until(self, key: npt.NDArray[Any], time: FloatArray) -> FloatArray:
        """The integral from 0 to the times."""
        at, since = self.log.last(key, time)
        if len(self.value) == 0:
            return time
        with np.errstate(invalid="ignore"):
            later = self.total[at] + self.value[at] * (time - since)
        return np.where(at < 0, time, later)

    def at(self, key: npt.NDArray[Any], time: FloatArray, before: bool) -> FloatArray:
        """The factor at (or just before) the times."""
        at, _ = self.log.last(key, time, before)
        return np.where(at < 0, 1.0, self.value[at]) if len(self.value) else np.ones(len(time))


class _Facts:
    """What the rules ask of a record: who was there when, and what was held where."""

    def __init__(self, run: Run) -> None:
        self.run, self.wf, self.pf = run, run.workflow, run.platform
        self.end = run.makespan
        self.availability = self._trace(EventKind.AVAILABILITY)
        self.bandwidth = self._trace(EventKind.BANDWIDTH)
        self._come_and_go()

    def _trace(self, kind: EventKind) -> _Trace:
        rows = [(e.which, e.time, e.value) for e in self.run.changes if e.kind == kind]
        columns = np.array(rows, dtype=np.float64).reshape(-1, 3)
        return _Trace(columns[:, 0].astype(np.int32), columns[:, 1], columns[:, 2])

    def _come_and_go(self) -> None:
        """Joins and losses of processors, and with them of hosts."""
        host, here = self.pf.host, self.pf.present(0.0).copy()
        there = np.bincount(host[here], minlength=self.pf.n_hosts)
        turns = [(p, -np.inf, bool(here[p])) for p in range(len(here))]
        host_turns = [(h, -np.inf, count > 0) for h, count in enumerate(there)]
        for e in self.run.changes:
            if e.kind in (EventKind.JOINED, EventKind.GONE):
                joined = e.kind == EventKind.JOINED
                turns.append((e.which, e.time, joined))
                h, was_there = int(host[e.which]), there[host[e.which]] > 0
                here[e.which] = joined
                there[h] = np.count_nonzero(here[host == h])
                if (there[h] > 0) != was_there:
                    host_turns.append((h, e.time, joined))
        self.processors, self.processor_up = _turns(turns)
        self.hosts, self.host_up = _turns(host_turns)
        self.gone, _ = _turns([t for t in turns if not t[2]])
        self.losses, _ = _turns([t for t in host_turns if not t[2] and t[1] > -np.inf])
        lost_at = [t[1] for t in host_turns if not t[2] and t[1] > -np.inf]
        self.any_loss = np.array(sorted(lost_at), dtype=np.float64)

    def host_there(self, host: IntArray, time: FloatArray) -> BoolArray:
        """Whether the host is there, or just comes or goes."""
        at, turned = self.hosts.last(host, time)
        there: BoolArray = self.host_up[at] | (turned == time)
        return there

    @cached_property
    def gained(self) -> _Log:
        """When items became complete on hosts, by item x hosts + host: made, or arrived."""
        a, t, hosts = self.run.attempts, self.run.transfers, self.pf.n_hosts
        made = np.flatnonzero((a.end == FINISHED) | (a.end == REWOUND))
        each, items = _rows(self.wf.out_ptr, self.wf.out_item, a.task[made])
        came = np.flatnonzero(np.isfinite(t.arrival))
        key = [
            items.astype(np.int64) * hosts + self.pf.host[a.processor[made[each]]],
            t.item[came].astype(np.int64) * hosts + t.target[came],
        ]
        return _Log(np.concatenate(key), np.concatenate([a.finish[made[each]], t.arrival[came]]))

    def held(self, item: IntArray, host: IntArray, time: FloatArray) -> BoolArray:
        """Whether the item was complete on the host and not lost since."""
        at, since = self.gained.last(item.astype(np.int64) * self.pf.n_hosts + host, time)
        _, lost = self.losses.last(host, time, before=True)
        whole: BoolArray = (at >= 0) & (since >= lost)
        return whole

    def task(self, attempt: Any) -> str:
        """The task of an attempt, by name."""
        return repr(self.wf.task_names[self.run.attempts.task[attempt]])

    def processor(self, attempt: Any) -> str:
        """The processor of an attempt, by name."""
        return repr(self.pf.processor_names[self.run.attempts.processor[attempt]])

    def move(self, transfer: Any) -> str:
        """A transfer, by the names of its item and hosts."""
        t, hosts = self.run.transfers, self.pf.host_names
        name = self.wf.item_name(int(t.item[transfer]))
        return f"item {name!r} from {hosts[t.source[transfer]]!r} to {hosts[t.target[transfer]]!r}"


def _turns(rows: Iterable[tuple[int, float, bool]]) -> tuple[_Log, BoolArray]:
    listed = list(rows)
    key = np.array([row[0] for row in listed], dtype=np.int64)
    time = np.array([row[1] for row in listed], dtype=np.float64)
    return _Log(key, time), np.array([row[2] for row in listed], dtype=np.bool_)


def _rows(pointers: IntArray, values: IntArray, rows: IntArray) -> tuple[Indices, IntArray]:
    """The values of some rows of a CSR structure: the place in `rows`, and the value."""
    counts = np.diff(pointers)[rows]
    each = np.repeat(np.arange(len(rows)), counts)
    first = np.repeat(pointers[:-1][rows] - (np.cumsum(counts) - counts), counts)
    return each, values[first + np.arange(len(each))]


def _shape(run: Run) -> list[str]:
    """Indices and times that mean something, and logs in the order of time."""
    a, t, wf, pf = run.attempts, run.transfers, run.workflow, run.platform
    bad = (a.task < 0) | (a.task >= wf.n_tasks)
    bad |= (a.processor < 0) | (a.processor >= pf.n_processors)
    bad |= ~(np.isfinite(a.start) & np.isfinite(a.finish) & (a.start >= 0))
    bad |= (a.finish < a.start) | (a.end <= RUNNING) | (a.end >= len(ENDS))
    bad |= np.diff(a.start, prepend=0.0) < 0
    violations = [
        f"attempt {k} (task {_name(wf.task_names, a.task[k])}) is not over, is out of order, or "
        "has no meaning"
        for k in np.flatnonzero(bad)
    ]
    odd = (t.item < 0) | (t.item >= wf.n_items) | (t.source == t.target)
    odd |= (np.minimum(t.source, t.target) < 0) | (np.maximum(t.source, t.target) >= pf.n_hosts)
    odd |= ~(np.isfinite(t.sent) & (t.sent >= 0)) | (t.arrival < t.sent)
    odd |= np.diff(t.sent, prepend=0.0) < 0
    violations += [
        f"transfer {k} (of item {_item(run, int(t.item[k]))}) is out of order or has no meaning"
        for k in np.flatnonzero(odd)
    ]
    return violations + _changes(run)


def _name(names: tuple[str, ...], which: int) -> str:
    return repr(names[which]) if 0 <= which < len(names) else str(which)


def _item(run: Run, item: int) -> str:
    return repr(run.workflow.item_name(item)) if 0 <= item < run.workflow.n_items else str(item)


def _changes(run: Run) -> list[str]:
    """Who joins was away, who goes was there, and factors are factors."""
    here, clock, violations = run.platform.present(0.0).copy(), 0.0, []
    n, links = run.platform.n_processors, run.platform.n_hosts**2
    for e in run.changes:
        match e.kind:
            case EventKind.JOINED | EventKind.GONE:
                legal = 0 <= e.which < n and bool(here[e.which]) == (e.kind == EventKind.GONE)
                if legal:
                    here[e.which] = not here[e.which]
            case EventKind.AVAILABILITY:
                legal = 0 <= e.which < n and 0 <= e.value <= 1
            case EventKind.BANDWIDTH:
                legal = 0 <= e.which < links and 0 <= e.value < np.inf
            case _:
                legal = False
        if not legal or not clock <= e.time < np.inf:
            violations.append(f"{e} cannot have happened to the machines")
        clock = max(clock, e.time)
    return violations


def _attempts(f: _Facts) -> list[str]:
    """One attempt finishes each task, the last one; no two overlap on a task or a processor."""
    a, wf, violations = f.run.attempts, f.wf, list[str]()
    finished = np.bincount(a.task[a.end == FINISHED], minlength=wf.n_tasks)
    violations += [
        f"task {wf.task_names[t]!r} was finished {finished[t]} times"
        for t in np.flatnonzero(finished != 1)
    ]
    for key, on in ((a.task, "itself"), (a.processor, "")):
        order = np.argsort(key, kind="stable")
        first, second = order[:-1], order[1:]
        same = key[first] == key[second]
        clash = same & (a.start[second] < a.finish[first])
        violations += [
            f"tasks {f.task(i)} and {f.task(j)} overlap on {on or f.processor(i)}: "
            f"{a.finish[i]:g} > {a.start[j]:g}"
            for i, j in zip(first[clash], second[clash], strict=True)
        ]
        if on:
            after = same & (a.end[first] == FINISHED)
            violations += [f"task {f.task(i)} is run again, but finished" for i in first[after]]
            again = first[same & (a.end[first] == REWOUND)]
            started = a.start[second[same & (a.end[first] == REWOUND)]]
            at = np.searchsorted(f.any_loss, a.finish[again])
            lost = np.append(f.any_loss, np.inf)[at]
            violations += [
                f"task {f.task(i)} was rewound, but nothing was lost meanwhile"
                for i in again[lost > started]
            ]
    return violations


def _presence(f: _Facts) -> list[str]:
    """Attempts run while their processor is there; one that fails does so when it goes."""
    a, violations = f.run.attempts, list[str]()
    at, turned = f.processors.last(a.processor, a.start)
    away = ~f.processor_up[at] & ~((turned == a.start) & (a.finish == a.start))
    _, goes = f.gone.first(a.processor, a.start, after=True)
    violations += [
        f"task {f.task(k)} ran from {a.start[k]:g} to {a.finish[k]:g} on {f.processor(k)}, "
        "which was not there"
        for k in np.flatnonzero(away | (a.finish > goes))
    ]
    _, went = f.gone.last(a.processor, a.finish)
    told = {e.which for e in f.run.events or () if e.kind == EventKind.TASK_FAILED}
    violations += [
        f"task {f.task(k)} failed at {a.finish[k]:g}, but {f.processor(k)} did not go then"
        for k in np.flatnonzero((a.end == FAILED) & (went != a.finish))
        if k not in told
    ]
    return violations


def _work(f: _Facts) -> list[str]:
    """Finished attempts have done the work they needed, the others no more than that."""
    a = f.run.attempts
    done = f.availability.until(a.processor, a.finish) - f.availability.until(a.processor, a.start)
    slop = TOLERANCE * np.maximum(a.finish, np.nan_to_num(a.work))
    whole = (a.end == FINISHED) | (a.end == REWOUND)
    wrong = np.where(whole, np.abs(done - a.work) > slop, done > a.work + slop)
    return [
        f"task {f.task(k)} ({ENDS[a.end[k]]}) did {done[k]:g} of work on {f.processor(k)} and "
        f"needed {a.work[k]:g}"
        for k in np.flatnonzero(wrong)
    ]


def _inputs(f: _Facts) -> list[str]:
    """An attempt starts only when all its inputs are complete on its host."""
    a = f.run.attempts
    each, items = _rows(f.wf.in_ptr, f.wf.in_item, a.task)
    inner = f.wf.item_producer[items] >= 0
    each, items = each[inner], items[inner]
    missing = ~f.held(items, f.pf.host[a.processor[each]], a.start[each])
    return [
        f"task {f.task(each[e])} starts at {a.start[each[e]]:g} on {f.processor(each[e])} without "
        f"its input {f.wf.item_name(int(items[e]))!r}"
        for e in np.flatnonzero(missing)
    ]


def _sources(f: _Facts) -> list[str]:
    """Items are sent by a host that holds them, between hosts that are there."""
    t = f.run.transfers
    without = ~f.held(t.item, t.source, t.sent)
    away = ~f.host_there(t.source, t.sent) | ~f.host_there(t.target, t.sent)
    return [
        f"{f.move(k)} is sent at {t.sent[k]:g}, when it is not there to be sent"
        for k in np.flatnonzero(without)
    ] + [
        f"{f.move(k)} is sent at {t.sent[k]:g}, when one of the hosts is gone"
        for k in np.flatnonzero(away)
    ]


def _cut(f: _Facts) -> FloatArray:
    """When each transfer would be cut by a loss of one of its hosts after it was sent."""
    t = f.run.transfers
    _, source = f.losses.first(t.source, t.sent, after=True)
    _, target = f.losses.first(t.target, t.sent, after=True)
    return np.minimum(source, target)


def _cut_at_once(f: _Facts) -> BoolArray:
    """Whether a host of the transfer was lost just when it was sent."""
    t = f.run.transfers
    _, source = f.losses.last(t.source, t.sent)
    _, target = f.losses.last(t.target, t.sent)
    at_once: BoolArray = (source == t.sent) | (target == t.sent)
    return at_once


def _arrivals(f: _Facts) -> list[str]:
    """Startup, then data under the link's bandwidth; infinite if, and only if, cut by a loss."""
    t, cut = f.run.transfers, _cut(f)
    link = t.source.astype(np.int64) * f.pf.n_hosts + t.target
    flows = t.sent + f.pf.startup[t.source, t.target]
    needed = f.wf.item_size[t.item] * f.pf.time_per_unit[t.source, t.target]
    came = np.isfinite(t.arrival)
    until = np.where(came, t.arrival, np.where(np.isnan(t.arrival), f.end, np.minimum(cut, f.end)))
    slop = TOLERANCE * np.maximum(np.maximum(until, flows), needed)
    flowing = np.maximum(until, flows)
    moved = f.bandwidth.until(link, flowing) - f.bandwidth.until(link, flows)
    wrong = (np.abs(moved - needed) > slop) | (t.arrival < flows - slop)
    overdue = (moved > needed + slop) & ~(np.isinf(t.arrival) & _cut_at_once(f))
    uncut = np.isinf(t.arrival) & np.isinf(cut) & ~_cut_at_once(f)
    survived = (came & (t.arrival > cut)) | (np.isnan(t.arrival) & (f.end > cut))
    return (
        [
            f"{f.move(k)} arrives at {t.arrival[k]:g}: {moved[k]:g} of {needed[k]:g} seconds of "
            f"data since {flows[k]:g}"
            for k in np.flatnonzero(came & wrong)
        ]
        + [f"{f.move(k)} should have arrived" for k in np.flatnonzero(~came & overdue & ~uncut)]
        + [f"{f.move(k)} never arrives, but no host was lost" for k in np.flatnonzero(uncut)]
        + [f"{f.move(k)} goes on after a host was lost" for k in np.flatnonzero(survived)]
    )


def _moves(f: _Facts) -> list[str]:
    """One move per item and host at a time, and none to a host that holds the item."""
    t = f.run.transfers
    key = t.item.astype(np.int64) * f.pf.n_hosts + t.target
    over = np.where(np.isnan(t.arrival), np.inf, np.where(np.isinf(t.arrival), _cut(f), t.arrival))
    over = np.where(np.isinf(t.arrival) & _cut_at_once(f), t.sent, over)
    order = np.argsort(key, kind="stable")
    first, second = order[:-1], order[1:]
    clash = (key[first] == key[second]) & (t.sent[second] < over[first])
    _, gained = f.gained.last(key, t.sent, before=True)
    _, lost = f.losses.last(t.target, t.sent)
    needless = (gained > -np.inf) & (gained > lost)
    return [f"{f.move(k)} is under way already" for k in second[clash]] + [
        f"{f.move(k)} is sent at {t.sent[k]:g}, but is there since {gained[k]:g}"
        for k in np.flatnonzero(needless)
    ]


def _evaluations(run: Run) -> list[str]:
    """Asked in order; what was taken is what was followed."""
    times = [e.time for e in run.evaluations]
    violations = []
    if times != sorted(times):
        violations.append("the evaluations are not in the order of time")
    if len(run.plans) != len(run.plan_times) or list(run.plan_times) != sorted(run.plan_times):
        violations.append("the plans are not in the order of time")
    if run.considered < run.replans:
        violations.append(f"{run.replans} plans taken, of {run.considered} considered")
    taken = [(e.time, e.makespan) for e in run.evaluations if e.taken]
    followed = [(t, p.makespan) for t, p in zip(run.plan_times, run.plans, strict=False)]
    if run.plans and taken != followed[1:]:
        violations.append("the plans followed are not those that were taken")
    return violations


class _Following:
    """Plans against facts: what a plan may know, and that what starts is what it says."""

    def __init__(self, facts: _Facts, estimates: Estimates | None) -> None:
        self.f, self.estimates, self.run = facts, estimates, facts.run
        self.slop = TOLERANCE * facts.end
        a = self.run.attempts
        self.by_task = _Log(a.task, np.arange(len(a.task)))
        self.previous: dict[int, IntArray] = {}
        self.plan_of = self._assign()

    def check(self) -> list[str]:
        """Every attempt by the plan in force, and every plan by the facts then."""
        violations = self._starts()
        if not violations:
            violations += self._durations()
            latest, begun = np.full(self.f.wf.n_tasks, -1), 0
            for plan, now in zip(self.run.plans, self.run.plan_times, strict=True):
                before = int(np.searchsorted(self.run.attempts.start, now))
                latest[self.run.attempts.task[begun:before]] = np.arange(begun, before)
                begun = before
                violations += self._known(plan, now, latest)
        return violations

    def _assign(self) -> Indices:
        """The plan in force at every start; where several were, the first that fits."""
        start, times = self.run.attempts.start, np.array(self.run.plan_times)
        newest = np.searchsorted(times, start, side="right") - 1
        oldest = np.maximum(np.searchsorted(times, start, side="left") - 1, 0)
        plan_of = newest.copy()
        for k in np.flatnonzero(oldest < newest):
            least = oldest[k]
            if k > 0 and start[k - 1] == start[k]:
                least = max(least, plan_of[k - 1])
            fits = (n for n in range(least, newest[k]) if self._fits(n, np.array([k]))[0])
            plan_of[k] = next(fits, newest[k])
        return plan_of

    def _fits(self, n: int, attempts: Indices) -> BoolArray:
        """Whether attempts are where plan n says, each after the task planned before it."""
        a, plan = self.run.attempts, self.run.plans[n]
        right = plan.processor[a.task[attempts]] == a.processor[attempts]
        before = self._previous(n)[a.task[attempts]]
        run, _ = self.by_task.last(np.maximum(before, 0), attempts, before=True)
        in_turn = (before < 0) | ((run >= 0) & (a.processor[run] == a.processor[attempts]))
        fits: BoolArray = right & in_turn
        return fits

    def _previous(self, n: int) -> IntArray:
        """The task planned before each on its processor, -1 if none."""
        if n not in self.previous:
            plan = self.run.plans[n]
            _, queue = plan.queues(np.ones(self.f.wf.n_tasks, dtype=np.bool_))
            result = np.full(self.f.wf.n_tasks, -1, dtype=np.int32)
            same = plan.processor[queue[:-1]] == plan.processor[queue[1:]]
            result[queue[1:][same]] = queue[:-1][same]
            self.previous = {**{k: v for k, v in self.previous.items() if k > n - 64}, n: result}
        return self.previous[n]

    def _starts(self) -> list[str]:
        """Attempts are where and in what order the plan in force says."""
        f, violations = self.f, list[str]()
        early = np.flatnonzero(self.plan_of < 0)
        violations += [f"task {f.task(k)} starts before the first plan" for k in early]
        planned = np.flatnonzero(self.plan_of >= 0)
        by_plan = planned[np.argsort(self.plan_of[planned], kind="stable")]
        numbers, first = np.unique(self.plan_of[by_plan], return_index=True)
        for n, attempts in zip(numbers, np.split(by_plan, first[1:]), strict=True):
            violations += [
                f"task {f.task(k)} starts on {f.processor(k)} at {self.run.attempts.start[k]:g}, "
                f"which the plan of {self.run.plan_times[n]:g} does not say"
                for k in attempts[~self._fits(int(n), attempts)]
            ]
        return violations

    def _durations(self) -> list[str]:
        """What the planner expected each attempt to take; `ideal` knows it."""
        a, n = self.run.attempts, len(self.run.attempts.task)
        self.expected = np.empty(n)
        by_plan = np.argsort(self.plan_of, kind="stable")
        numbers, first = np.unique(self.plan_of[by_plan], return_index=True)
        for number, attempts in zip(numbers, np.split(by_plan, first[1:]), strict=True):
            plan, tasks = self.run.plans[number], a.task[attempts]
            with np.errstate(invalid="ignore"):
                self.expected[attempts] = plan.finish[tasks] - plan.start[tasks]
        if self.run.strategy.partition("[")[0] != "ideal":
            return []
        off = np.abs(self.expected - a.work) > self.slop
        return [
            f"task {self.f.task(k)} was to take {self.expected[k]:g}, but ideal knew {a.work[k]:g}"
            for k in np.flatnonzero(off)
        ]

    def _known(self, plan: Schedule, now: float, latest: Indices) -> list[str]:
        """Tasks begun keep facts, with what is expected of them; the others start from now on."""
        f, a, names = self.f, self.run.attempts, self.f.wf.task_names
        begun = np.flatnonzero(latest >= 0)
        k = latest[begun]
        lost = ((a.end[k] == FAILED) | (a.end[k] == CANCELLED)) & (a.finish[k] <= now)
        surely = lost & (a.finish[k] < now)
        at = np.searchsorted(f.any_loss, a.finish[k])
        lost |= (a.end[k] == REWOUND) & (np.append(f.any_loss, np.inf)[at] <= now)
        kept = (plan.processor[begun] == a.processor[k]) & (plan.start[begun] == a.start[k])
        timed = self._finishes(plan, now, begun, k)
        anew = plan.start >= now - self.slop
        at, turned = f.processors.last(plan.processor, np.full(len(names), now))
        anew &= f.processor_up[at] | (turned == now) | (f.pf.joins[plan.processor] > now)
        wrong = ~anew
        wrong[begun[~surely]] = (~(kept & timed) & ~(lost & anew[begun]))[~surely]
        violations = [
            f"the plan of {now:g} does not know task {names[t]!r} as it was then, or begins it "
            f"too early: {plan.start[t]:g} to {plan.finish[t]:g}"
            for t in np.flatnonzero(wrong)
        ]
        if self.estimates is not None:
            fresh = np.ones(len(names), dtype=np.bool_)
            fresh[begun[~lost | kept]] = False
            fresh[a.task[a.start == now]] = False  # begun just before, or just after
            violations += self._estimated(plan, np.flatnonzero(fresh), now)
        return violations

    def _finishes(self, plan: Schedule, now: float, tasks: Indices, k: Indices) -> BoolArray:
        """Whether the plan has the finish where it is known, and the expected one elsewhere."""
        a, trace, moment = self.run.attempts, self.f.availability, np.full(len(k), now)
        planned, p = plan.finish[tasks], a.processor[k]
        known = (planned == a.finish[k]) & (a.finish[k] <= now)
        done = trace.until(p, moment) - trace.until(p, a.start[k])
        left = np.maximum(0.0, self.expected[k] - done)
        expected = np.isnan(self.expected[k])
        for before in (False, True):  # a change of speed just then may have been known or not
            rate = trace.at(p, moment, before)
            with np.errstate(invalid="ignore"):
                ahead = np.where(rate > 0, (planned - now) * rate, 0.0)
            at_rate = (np.abs(ahead - left) <= self.slop) & (planned >= now)
            stopped = np.where(np.isinf(planned), left > 0, (planned == now) & (left <= self.slop))
            expected |= np.where(rate > 0, at_rate, stopped)
        right: BoolArray = known | (expected & (a.finish[k] >= now))
        return right

    def _estimated(self, plan: Schedule, tasks: Indices, now: float) -> list[str]:
        """Tasks not begun are planned with the estimates."""
        assert self.estimates is not None
        with np.errstate(invalid="ignore"):
            takes = plan.finish[tasks] - plan.start[tasks]
            slop = self.slop + TOLERANCE * np.nan_to_num(plan.finish[tasks], posinf=0.0)
            off = np.abs(takes - self.estimates.cost[tasks, plan.processor[tasks]]) > slop
        return [
            f"the plan of {now:g} gives task {self.f.wf.task_names[t]!r} a time that nobody "
            f"estimated: {plan.finish[t] - plan.start[t]:g}"
            for t in tasks[off]
        ]
