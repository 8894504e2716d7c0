"""The one validator of runs: what a run's record alone must satisfy, whoever drove it."""

from __future__ import annotations

import numpy as np

from foreplan.arrays import BoolArray, FloatArray
from foreplan.checks.amounts import amounts_held
from foreplan.checks.plans import Following, evaluations, stopped_by_plans
from foreplan.checks.run_facts import (
    FAILED,
    FINISHED,
    REWOUND,
    RUNNING,
    TOLERANCE,
    RunFacts,
    rows_of,
)
from foreplan.errors import RulesBrokenError
from foreplan.model.estimates import Estimates
from foreplan.model.events import (
    ItemLost,
    LinkChanged,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    SpeedChanged,
    TaskFailed,
)
from foreplan.model.money import affordable
from foreplan.model.record import ENDS, Run
from foreplan.model.resources import held

COME_BACK = (ProcessorJoined, ProcessorLeaving)  # what was announced before is off


class InvalidRunError(RulesBrokenError):
    """A run breaks a rule; `violations` names each one."""

    what = "run"


def check_run(run: Run, estimates: Estimates | None = None) -> None:
    """Raise InvalidRunError, naming what is violated.

    With the estimates that the planner had, the plans' durations are checked as well. Two things
    at one time may have happened in either order: the record does not say.
    """
    violations = _shape(run)
    if not violations:
        facts = RunFacts(run)
        for rule in (_attempts, _presence, _drained, _work, _inputs, _sources, _arrivals, _moves):
            violations += rule(facts)
        violations += _added(facts)
        violations += stopped_by_plans(facts) + evaluations(run) + _budget(run)
        violations += amounts_held(facts, None if run.added else estimates)
        if run.plans and len(run.attempts.task) and not violations:
            violations += Following(facts, estimates).check()
    if violations:
        raise InvalidRunError(violations)


def _shape(run: Run) -> list[str]:
    """Indices and times that mean something, and logs in the order of time."""
    a, t, wf, pf = run.attempts, run.transfers, run.workflow, run.platform
    bad = (a.task < 0) | (a.task >= wf.n_tasks)
    bad |= (a.processor < 0) | (a.processor >= pf.n_processors)
    bad |= ~(np.isfinite(a.start) & np.isfinite(a.finish) & (a.start >= 0))
    bad |= (a.finish < a.start) | (a.end <= RUNNING) | (a.end >= len(ENDS))
    bad |= np.diff(a.start, prepend=0.0) < 0
    bad |= _odd_cores(run)
    violations = [
        f"attempt {k} (task {_name(wf.task_names, a.task[k])}) is not over, is out of order, or "
        "has no meaning"
        for k in np.flatnonzero(bad)
    ]
    odd = (t.item < 0) | (t.item >= wf.n_items) | (t.source == t.target)
    odd |= (np.minimum(t.source, t.target) < 0) | (np.maximum(t.source, t.target) >= pf.n_hosts)
    odd |= ~(np.isfinite(t.sent) & (t.sent >= 0)) | (t.arrival < t.sent)
    odd |= np.diff(t.sent, prepend=0.0) < 0
    odd |= ~(t.forgotten >= t.sent) | (np.isfinite(t.arrival) & (t.forgotten < t.arrival))
    violations += [
        f"transfer {k} (of item {_item(run, int(t.item[k]))}) is out of order or has no meaning"
        for k in np.flatnonzero(odd)
    ]
    return violations + _changes(run)


def _odd_cores(run: Run) -> BoolArray:
    """The attempts whose cores are not distinct ones of one host, their processor first."""
    a, odd = run.attempts, np.zeros(len(run.attempts.task), dtype=np.bool_)
    if a.cores is None:
        return odd
    for k in range(len(odd)):
        cores = a.cores.of(k).tolist()
        known = bool(cores) and all(0 <= p < run.platform.n_processors for p in cores)
        one_host = known and len({int(run.platform.host[p]) for p in cores}) == 1
        odd[k] = not one_host or cores[0] != a.processor[k] or len(set(cores)) < len(cores)
    return odd


def _added(facts: RunFacts) -> list[str]:
    """Nothing of what is added begins before it is."""
    run, violations = facts.run, list[str]()
    for time, first in run.added:
        early = (run.attempts.task >= first) & (run.attempts.start < time)
        violations += [
            f"task {facts.task(k)} starts at {run.attempts.start[k]:g}, before it is added at "
            f"{time:g}"
            for k in np.flatnonzero(early)
        ]
    return violations


def _budget(run: Run) -> list[str]:
    """It sets out with a plan that is affordable, and says so when the budget is not enough."""
    violations = []
    if not run.real and run.plans and not affordable(run.plans[0].cost, run.budget):
        violations.append(
            f"the first plan costs {run.plans[0].cost:g}, more than the budget of {run.budget:g}"
        )
    if not run.within_budget and not run.over_budget_at <= run.makespan:
        violations.append(
            f"it cost {run.cost:g}, more than the budget of {run.budget:g}, and never said so"
        )
    return violations


def _name(names: tuple[str, ...], which: int) -> str:
    return repr(names[which]) if 0 <= which < len(names) else str(which)


def _item(run: Run, item: int) -> str:
    return repr(run.workflow.item_name(item)) if 0 <= item < run.workflow.n_items else str(item)


def _changes(run: Run) -> list[str]:
    """Who joins was away, who goes was there, and factors are factors."""
    here, clock, violations = run.platform.present(0.0).copy(), 0.0, []
    n, links = run.platform.n_processors, run.platform.n_hosts**2
    for e in run.changes:
        match e:
            case ProcessorJoined() | ProcessorGone():
                legal = 0 <= e.processor < n and here[e.processor] == isinstance(e, ProcessorGone)
                if legal:
                    here[e.processor] = not here[e.processor]
            case SpeedChanged():
                legal = 0 <= e.processor < n and 0 <= e.availability <= 1
            case LinkChanged():
                legal = 0 <= e.link < links and 0 <= e.bandwidth < np.inf
            case ProcessorLeaving():
                legal = 0 <= e.processor < n and bool(here[e.processor])
            case ItemLost():
                legal = 0 <= e.place < run.workflow.n_items * run.platform.n_hosts
            case _:
                legal = False
        if not legal or not clock <= e.time < np.inf:
            violations.append(f"{e} cannot have happened to the machines")
        clock = max(clock, e.time)
    return violations


def _drained(f: RunFacts) -> list[str]:
    """Nothing starts on a processor after the time of its leave was told and has come."""
    a, violations = f.run.attempts, list[str]()
    for k, e in enumerate(f.run.changes):
        if not isinstance(e, ProcessorLeaving):
            continue
        later = (
            x
            for x in f.run.changes[k + 1 :]
            if isinstance(x, COME_BACK) and x.processor == e.processor
        )
        until = next((x.time for x in later), np.inf)
        rows, processors = held(a.processor, a.cores)
        there = np.isin(np.arange(len(a.task)), rows[processors == e.processor])
        late = there & (a.start > max(e.time, e.gone_at)) & (a.start < until)
        violations += [
            f"task {f.task(i)} starts on {f.processor(i)} at {a.start[i]:g}, which was to leave "
            f"at {e.gone_at:g}"
            for i in np.flatnonzero(late)
        ]
    return violations


def _attempts(f: RunFacts) -> list[str]:
    """One attempt finishes each task, the last one; no two overlap on a task or a processor.

    A run that stopped because the budget was not enough has tasks left.
    """
    a, wf, violations = f.run.attempts, f.wf, list[str]()
    finished = np.bincount(a.task[a.end == FINISHED], minlength=wf.n_tasks)
    stopped = not np.isnan(f.run.over_budget_at)  # for lack of money
    violations += [
        f"task {wf.task_names[t]!r} was finished {finished[t]} times"
        for t in np.flatnonzero((finished > 1) | ((finished < 1) & (not stopped)))
    ]
    rows, processors = held(a.processor, a.cores)
    for who, key, on in ((np.arange(len(a.task)), a.task, "itself"), (rows, processors, "")):
        order = np.argsort(key, kind="stable")
        first, second = who[order[:-1]], who[order[1:]]
        same = key[order[:-1]] == key[order[1:]]
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


def _presence(f: RunFacts) -> list[str]:
    """Attempts run while all their cores are there; one that fails does so when one goes."""
    a, violations = f.run.attempts, list[str]()
    rows, cores = held(a.processor, a.cores)
    start, finish, names = a.start[rows], a.finish[rows], f.pf.processor_names
    at, turned = f.processors.last(cores, start)
    away = ~f.processor_up[at] & ~((turned == start) & (finish == start))
    _, goes = f.gone.first(cores, start, after=True)
    violations += [
        f"task {f.task(rows[k])} ran from {start[k]:g} to {finish[k]:g} on {names[cores[k]]!r}, "
        "which was not there"
        for k in np.flatnonzero(away | (finish > goes))
    ]
    _, went = f.gone.last(cores, finish)
    one_went = np.isin(np.arange(len(a.task)), rows[went == finish])
    told = {e.attempt for e in f.run.events or () if isinstance(e, TaskFailed)}
    violations += [
        f"task {f.task(k)} failed at {a.finish[k]:g}, but {f.processor(k)} did not go then"
        for k in np.flatnonzero((a.end == FAILED) & ~one_went)
        if k not in told
    ]
    return violations


def _work(f: RunFacts) -> list[str]:
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


def _inputs(f: RunFacts) -> list[str]:
    """An attempt starts only when all its inputs are complete on its host."""
    a = f.run.attempts
    each, items = rows_of(f.wf.in_ptr, f.wf.in_item, a.task)
    inner = f.wf.item_producer[items] >= 0
    each, items = each[inner], items[inner]
    missing = ~f.held(items, f.pf.host[a.processor[each]], a.start[each])
    return [
        f"task {f.task(each[e])} starts at {a.start[each[e]]:g} on {f.processor(each[e])} without "
        f"its input {f.wf.item_name(int(items[e]))!r}"
        for e in np.flatnonzero(missing)
    ]


def _sources(f: RunFacts) -> list[str]:
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


def _cut(f: RunFacts) -> FloatArray:
    """When each transfer would be cut by a loss of one of its hosts, or was forgotten."""
    t = f.run.transfers
    _, source = f.losses.first(t.source, t.sent, after=True)
    _, target = f.losses.first(t.target, t.sent, after=True)
    _, item = f.item_losses.first(f.at_source, t.sent, after=True)
    lost = np.minimum(np.minimum(source, target), item)
    return np.where(np.isinf(t.arrival), np.minimum(lost, t.forgotten), lost)


def _cut_at_once(f: RunFacts) -> BoolArray:
    """Whether a host of the transfer was lost just when it was sent."""
    t = f.run.transfers
    _, source = f.losses.last(t.source, t.sent)
    _, target = f.losses.last(t.target, t.sent)
    _, item = f.item_losses.last(f.at_source, t.sent)
    at_once: BoolArray = (source == t.sent) | (target == t.sent) | (item == t.sent)
    at_once |= t.forgotten == t.sent
    return at_once


def _arrivals(f: RunFacts) -> list[str]:
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
    if f.run.real:  # they take what they take
        wrong[:] = overdue[:] = False
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


def _moves(f: RunFacts) -> list[str]:
    """One move per item and host at a time, and none to a host that holds the item."""
    t = f.run.transfers
    key = t.item.astype(np.int64) * f.pf.n_hosts + t.target
    over = np.where(np.isnan(t.arrival), np.inf, np.where(np.isinf(t.arrival), _cut(f), t.arrival))
    over = np.where(np.isinf(t.arrival) & _cut_at_once(f), t.sent, over)
    order = np.argsort(key, kind="stable")
    first, second = order[:-1], order[1:]
    clash = (key[first] == key[second]) & (t.sent[second] < over[first])
    _, gained = f.gained.last(key, t.sent, before=True)
    lost = f.lost(key, t.target, t.sent, before=False)
    needless = (gained > -np.inf) & (gained > lost)
    return [f"{f.move(k)} is under way already" for k in second[clash]] + [
        f"{f.move(k)} is sent at {t.sent[k]:g}, but is there since {gained[k]:g}"
        for k in np.flatnonzero(needless)
    ]
