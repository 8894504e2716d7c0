"""Plans against facts: nothing is used before it is known, and plans are followed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from foreplan.arrays import BoolArray, FloatArray, IntArray
from foreplan.checks.run_facts import CANCELLED, FAILED, REWOUND, TOLERANCE, Indices, Log, RunFacts
from foreplan.ends import LEFT_THERE, STANDS_STILL
from foreplan.model.estimates import Estimates
from foreplan.model.events import ProcessorJoined, ProcessorLeaving
from foreplan.model.money import MONEY_GONE
from foreplan.model.record import Run
from foreplan.model.resources import Cores, Demand, grown_needs, one_each
from foreplan.model.schedule import Schedule


class Following:
    """Plans against facts: what a plan may know, and that what starts is what it says."""

    def __init__(self, facts: RunFacts, estimates: Estimates | None) -> None:
        # of tasks that are added later no plan before knows: see `_all_tasks`
        run = facts.run
        self.n_known = [len(plan.processor) for plan in run.plans]
        self.f, self.estimates, self.run = facts, None if run.added else estimates, run
        if run.added:
            self.run = replace(run, plans=tuple(_all_tasks(plan, run) for plan in run.plans))
        self.slop = TOLERANCE * facts.end
        a = self.run.attempts
        self.by_task = Log(a.task, np.arange(len(a.task)))
        self.previous: dict[int, IntArray] = {}
        self._no_places: dict[int, BoolArray] = {}
        self.plan_of = self._assign()

    def check(self) -> list[str]:
        """Every attempt by the plan in force, and every plan by the facts then."""
        violations = self._starts()
        # on real machines estimates change while a run goes on, and things happen at one instant
        if not violations and not self.run.real:
            violations += self._durations()
            latest, begun = np.full(self.f.wf.n_tasks, -1), 0
            for n, now in enumerate(self.run.plan_times):
                before = int(np.searchsorted(self.run.attempts.start, now))
                latest[self.run.attempts.task[begun:before]] = np.arange(begun, before)
                begun = before
                violations += self._known(n, now, latest)
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
        known: BoolArray = a.task[attempts] < self.n_known[n]
        if a.cores is not None:
            fits = [self._fits_cores(n, k) for k in attempts.tolist()]
            return np.array(fits, dtype=np.bool_) & known
        right = known & (plan.processor[a.task[attempts]] == a.processor[attempts])
        before = self._previous(n)[a.task[attempts]]
        run, _ = self.by_task.last(np.maximum(before, 0), attempts, before=True)
        in_turn = (before < 0) | ((run >= 0) & (a.processor[run] == a.processor[attempts]))
        in_place: BoolArray = right & in_turn
        return in_place

    def _fits_cores(self, n: int, k: int) -> bool:
        """The same of an attempt on all of its cores, each after the task planned before it."""
        a, plan = self.run.attempts, self.run.plans[n]
        assert a.cores is not None
        task, cores = int(a.task[k]), a.cores.of(k).tolist()
        planned = (plan.cores or one_each(plan.processor)).of(task).tolist()
        had_begun = plan.start[task] < self.run.plan_times[n] - self.slop
        no_place = self._no_place(n).copy()
        if self.estimates is not None and not self.estimates.cost[task].any():
            no_place[task] = False  # it takes no time wherever it is
        if cores != planned or had_begun or no_place[task]:
            return False
        pointers, queue = plan.queue
        for core in cores:
            row = queue[pointers[core] : pointers[core + 1]]
            row = row[~no_place[row]].tolist()
            at = row.index(task) - 1
            while at >= 0 and self._has_lost_its_place(n, row[at], float(a.start[k])):
                at -= 1
            before = np.array([row[at]]) if at >= 0 else np.empty(0, dtype=np.int64)
            run, _ = self.by_task.last(before, np.full(len(before), k), before=True)
            if len(run) and (run[0] < 0 or core not in a.cores.of(int(run[0])).tolist()):
                return False
        return True

    def _has_lost_its_place(self, n: int, task: int, time: float) -> bool:
        """Whether a core that a plan has for a task was gone by a time: it makes way for others."""
        cores = (self.run.plans[n].cores or one_each(self.run.plans[n].processor)).of(task)
        _, gone = self.f.gone.first(cores, np.full(len(cores), self.run.plan_times[n]))
        return bool((gone <= time).any())

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
        early = np.flatnonzero((self.plan_of < 0) & ~self._just_in_time())
        violations += [f"task {f.task(k)} starts before the first plan" for k in early]
        for n, attempts in self._by_plan(np.flatnonzero(self.plan_of >= 0)):
            violations += [
                f"task {f.task(k)} starts on {f.processor(k)} at {self.run.attempts.start[k]:g}, "
                f"which the plan of {self.run.plan_times[n]:g} does not say"
                for k in attempts[~self._fits(n, attempts) & ~self._just_in_time()[attempts]]
            ]
        return violations

    def _just_in_time(self) -> BoolArray:
        """Attempts that may have started before the run began to follow plans, if it did later.

        Some of those that start at that very instant did; the record does not say which.
        """
        since, start = self.run.planned_from, self.run.attempts.start
        may_be: BoolArray = (start < since) | ((start == since) & (since > 0))
        return may_be

    def _by_plan(self, attempts: Indices) -> Iterator[tuple[int, Indices]]:
        """The attempts of each plan, in the order of the plans."""
        ordered = attempts[np.argsort(self.plan_of[attempts], kind="stable")]
        numbers, first = np.unique(self.plan_of[ordered], return_index=True)
        return zip(numbers.tolist(), np.split(ordered, first[1:]), strict=False)

    @cached_property
    def expected(self) -> FloatArray:
        """What the planner expected each attempt to take; NaN where nobody knows."""
        a, expected = self.run.attempts, np.full(len(self.run.attempts.task), np.nan)
        if self.estimates is None and self.run.new_estimates and not self._ideal:
            return expected
        for number, attempts in self._by_plan(np.arange(len(expected))):
            plan, tasks = self.run.plans[number], a.task[attempts].astype(np.int64)
            work = self._works(plan, self.run.plan_times[number], tasks)
            wanted = a.work[attempts] if self._ideal else self._wanted(number, tasks)
            closer = np.abs(work[1] - wanted) < np.abs(work[0] - wanted)
            expected[attempts] = np.where(closer, work[1], work[0])
        return expected

    def _durations(self) -> list[str]:
        """`ideal` knows what each attempt takes."""
        work = self.run.attempts.work
        off = np.abs(self.expected - work) > self.slop if self._ideal else np.zeros(0)
        return [
            f"task {self.f.task(k)} was to take {self.expected[k]:g}, but ideal knew {work[k]:g}"
            for k in np.flatnonzero(off)
        ]

    @property
    def _ideal(self) -> bool:
        return self.run.strategy.partition("[")[0] == "ideal"

    def _works(self, plan: Schedule, now: float, tasks: Indices) -> list[FloatArray]:
        """What a plan takes tasks for, at full availability: it reckons with that of its time.

        A change just then may have been known or not.
        """
        with np.errstate(invalid="ignore"):
            takes = plan.finish[tasks] - plan.start[tasks]
        p, moment = plan.processor[tasks], np.full(len(tasks), now)
        rates = (self.f.availability.at(p, moment, before) for before in (False, True))
        return [takes * np.maximum(rate, STANDS_STILL) for rate in rates]

    def _wanted(self, number: int, tasks: Indices) -> FloatArray:
        """What was estimated when a plan was made, as far as that is known."""
        plan, now = self.run.plans[number], self.run.plan_times[number]
        costs = self._costs(now)
        if not costs:
            return np.full(len(tasks), np.nan)
        return costs[-1][tasks, plan.processor[tasks]] * self._shares(tasks, plan.cores)

    def _shares(self, tasks: Indices, cores: Cores | None) -> FloatArray:
        """The share of its cost that each task takes on the cores that it has in a plan."""
        needs = self.estimates.needs if self.estimates is not None else None
        if needs is None or cores is None:
            return np.ones(len(tasks))
        return needs.factor_of(tasks.astype(np.int32), cores.width[tasks])

    def _costs(self, now: float) -> list[FloatArray]:
        """The estimates that a plan of this time may rest on; they may have changed just then."""
        if self.estimates is None:
            return []
        news = self.run.new_estimates
        known = [self.estimates, *(new.estimates for new in news if new.time < now)][-1:]
        known += [new.estimates for new in news if new.time == now]
        return [estimates.cost for estimates in known]

    def _known(self, n: int, now: float, latest: Indices) -> list[str]:
        """Tasks begun keep facts, with what is expected of them; the others start from now on."""
        plan = self.run.plans[n]
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
        shut_out = self._no_place(n)
        wrong &= ~shut_out
        wrong[self.n_known[n] :] = False
        violations = [
            f"the plan of {now:g} does not know task {names[t]!r} as it was then, or begins it "
            f"too early: {plan.start[t]:g} to {plan.finish[t]:g}"
            for t in np.flatnonzero(wrong)
        ]
        if self.estimates is not None:
            fresh = np.ones(len(names), dtype=np.bool_)
            fresh[begun[~lost | kept]] = False
            fresh &= ~shut_out
            fresh[a.task[a.start == now]] = False  # begun just before, or just after
            violations += self._estimated(plan, np.flatnonzero(fresh), now)
        return violations

    def _no_place(self, n: int) -> BoolArray:
        """The tasks for which a plan has no place; looked for once."""
        if n not in self._no_places:
            self._no_places[n] = self._shut_out(self.run.plans[n], self.run.plan_times[n])
        return self._no_places[n]

    def _shut_out(self, plan: Schedule, now: float) -> BoolArray:
        """Tasks that are planned to take no time, because no host could run them then.

        Nor what needs their results.
        """
        f, out = self.f, np.zeros(self.f.wf.n_tasks, dtype=np.bool_)
        needs = plan.needs or (self.estimates.needs if self.estimates is not None else None)
        if needs is None:
            return out
        everyone = np.arange(f.pf.n_processors)
        at, turned = f.processors.last(everyone, np.full(len(everyone), now))
        there = f.processor_up[at] & (turned < now) & ~self._leaving(now)
        cores = np.bincount(f.pf.host[there], minlength=f.pf.n_hosts)
        allowed = Demand.of(f.wf, f.pf, needs).allowed
        least = needs.width[needs.width_ptr[:-1]]
        for task in f.wf.order.tolist():
            nowhere = not (allowed[task] & (cores >= least[task])).any()
            made = f.wf.item_producer[f.wf.in_item[f.wf.in_ptr[task] : f.wf.in_ptr[task + 1]]]
            out[task] = nowhere or bool(out[made[made >= 0]].any())
        out &= plan.start == plan.finish
        return out

    def _leaving(self, now: float) -> BoolArray:
        """The processors on which nothing new starts any more, as was announced."""
        leaving = self.f.pf.leaves <= now
        for e in self.run.changes:
            if isinstance(e, ProcessorLeaving) and e.time <= now:
                leaving[e.processor] = e.gone_at <= now
            elif isinstance(e, ProcessorJoined) and e.time < now:
                leaving[e.processor] = False
        return leaving

    def _finishes(self, plan: Schedule, now: float, tasks: Indices, k: Indices) -> BoolArray:
        """Whether the plan has the finish where it is known, and the expected one elsewhere."""
        a, trace, moment = self.run.attempts, self.f.availability, np.full(len(k), now)
        planned, p = plan.finish[tasks], a.processor[k]
        known = (planned == a.finish[k]) & (a.finish[k] <= now)
        done = trace.until(p, moment) - trace.until(p, a.start[k])
        expected = np.isnan(self.expected[k])
        works = [self.expected[k]]
        if self.run.new_estimates:
            share = self._shares(tasks, plan.cores)
            works += [cost[tasks, p] * share for cost in self._costs(now)]
        for before in (False, True):  # a change of speed just then may have been known or not
            actual = trace.at(p, moment, before)
            rate = np.maximum(actual, STANDS_STILL)
            for work in works:
                overdue = np.where(actual < STANDS_STILL, LEFT_THERE * work, 0.0)
                left = np.where(work > done, work - done, overdue)
                expected |= (np.abs((planned - now) * rate - left) <= self.slop) & (planned >= now)
        right: BoolArray = known | (expected & (a.finish[k] >= now))
        return right

    def _estimated(self, plan: Schedule, tasks: Indices, now: float) -> list[str]:
        """Tasks not begun are planned with the estimates."""
        off = np.ones(len(tasks), dtype=np.bool_)
        slop = self.slop + TOLERANCE * np.nan_to_num(plan.finish[tasks], posinf=0.0)
        share = self._shares(tasks, plan.cores)
        for work in self._works(plan, now, tasks):
            for cost in self._costs(now):
                with np.errstate(invalid="ignore"):
                    off &= np.abs(work - cost[tasks, plan.processor[tasks]] * share) > slop
        return [
            f"the plan of {now:g} gives task {self.f.wf.task_names[t]!r} a time that nobody "
            f"estimated: {plan.finish[t] - plan.start[t]:g}"
            for t in tasks[off]
        ]


def _all_tasks(plan: Schedule, run: Run) -> Schedule:
    """A plan with all tasks of a run; those that it does not know stand at its end."""
    if len(plan.processor) == run.workflow.n_tasks:
        return plan
    cost = np.zeros((run.workflow.n_tasks, run.platform.n_processors))
    needs = None if plan.needs is None else grown_needs(run.workflow, plan.needs, None)
    return plan.with_tasks(run.workflow, Estimates(cost, needs))


def stopped_by_plans(f: RunFacts) -> list[str]:
    """Only a new plan, or want of money, stops what runs; a plan leaves behind what was sent."""
    a, t, taken = f.run.attempts, f.run.transfers, (e for e in f.run.evaluations if e.taken)
    times = [*f.run.plan_times, *(e.time for e in taken)]
    cuts = [e.time for e in f.run.evaluations if e.reason == MONEY_GONE]
    stopped = (a.end == CANCELLED) & ~np.isin(a.finish, times + cuts)
    left = np.isfinite(t.forgotten) & ~np.isin(t.forgotten, times)
    return [
        f"task {f.task(k)} is cancelled at {a.finish[k]:g}, when there is no new plan"
        for k in np.flatnonzero(stopped)
    ] + [
        f"{f.move(k)} is forgotten at {t.forgotten[k]:g}, when there is no new plan"
        for k in np.flatnonzero(left)
    ]


def evaluations(run: Run) -> list[str]:
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
