"""One run's decisions: a state machine over the transition rules, with no clock of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from foreplan.arrays import BoolArray
from foreplan.contracts import TAKEN, Dispatch, Notice, Order, Policy, Verdict, Watch, is_order
from foreplan.engine.budget import (
    BudgetTracker,
    experience_of,
    money_of,
)
from foreplan.engine.check_state import (
    BrokenStateError,
    IllegalEventError,
    check_event,
    check_state,
)
from foreplan.engine.deadline import TOO_LATE, Deadline
from foreplan.engine.delays import Delays
from foreplan.engine.event_numbers import NUMBERS
from foreplan.engine.hard_limit import (
    begin_payable,
    cut_off,
    end_of_money,
    set_gates,
    wait_for_money,
)
from foreplan.engine.kernels import arrays as a
from foreplan.engine.kernels.arrays import RunArrays
from foreplan.engine.kernels.decisions import inputs_to_send
from foreplan.engine.kernels.dispatch import dispatch, dispatch_all, fill_ready_queue, hand_out
from foreplan.engine.kernels.fitting import mark_shut_out
from foreplan.engine.kernels.plans import install_plan, install_plan_of_cores, set_alarm
from foreplan.engine.kernels.rules import apply_event
from foreplan.engine.meter import Meter
from foreplan.engine.retries import COUNTED, Next, Retries, RetryPolicy
from foreplan.engine.state import RunState, TaskState
from foreplan.engine.tries import Amounts, Tries
from foreplan.engine.triggers import LIMITS, PLANNED, Occasion, first_reason, left_over, reason_of
from foreplan.model import (
    Estimates,
    Evaluation,
    Freedom,
    Money,
    Platform,
    Reuse,
    Schedule,
    Situation,
    Usage,
    Workflow,
    forecast,
)
from foreplan.model.causes import OUT_OF_MEMORY
from foreplan.model.events import (
    BudgetChanged,
    CancelTask,
    Command,
    Event,
    ItemArrived,
    LimitsDue,
    LinkChanged,
    NewEstimates,
    NewPlan,
    NewStrategy,
    Prepare,
    Replan,
    RetryDue,
    SpeedChanged,
    TaskFailed,
    TaskFinished,
    TasksAdded,
    TasksOverdue,
    WakeAt,
    Woken,
)
from foreplan.model.money import MONEY_GONE, ROUNDING
from foreplan.model.resources import alike, one_each

# where there is a plan, no task that waits gets a place by these, or loses its own
CALM = (
    TaskFinished,
    ItemArrived,
    SpeedChanged,
    LinkChanged,
    TasksOverdue,
)
CAN_WAIT = (TaskFinished, SpeedChanged, TasksOverdue, Woken)  # no machine changed
FAILED_AS = {Next.NEVER: a.FOR_GOOD, Next.LATER: a.FOR_A_WHILE}  # as the rules are told
MOST_AHEAD = 256  # tasks that an executor is told of in advance, per processor


class Coordinator:
    """Events in, commands out. Planning itself is asked for by a Replan command."""

    def __init__(
        self,
        workflow: Workflow,
        platform: Platform,
        estimates: Estimates,
        strategy: Policy | Order,
        retry_policy: RetryPolicy | None = None,
        rest: float = 0.0,
        tracker: BudgetTracker | None = None,
        deadline: float = math.inf,
        reads: Mapping[int, float] | None = None,
    ) -> None:
        self.workflow, self.platform, self.estimates = workflow, platform, estimates
        self.declared = platform  # without what was announced since
        self.retries = Retries(retry_policy or RetryPolicy(), workflow)
        self.tracker, self.deadline = tracker or BudgetTracker(), Deadline(deadline)
        self.delays, self.meter, self.tries = Delays(), Meter(), Tries(workflow, reads)
        # real planning takes time: after a plan of s seconds, late starts are let be for rest x s
        self.rest, self._rested = rest, 0.0
        self.policy, priority, self.order = None, None, strategy if is_order(strategy) else None
        dispatch, reuse = Dispatch.PLANNED, Reuse.IN_PLACE
        if is_order(strategy):
            dispatch, priority = strategy.dispatch, strategy.priority(workflow)
        else:
            self.policy, reuse = strategy, strategy.reuse
        self.state = RunState(workflow, platform, estimates, dispatch, priority, reuse)
        self.plan: Schedule | None = None
        self.version = 0
        self.asked: Replan | None = None
        self.evaluations: list[Evaluation] = []
        self._situation: Situation | None = None
        self._stranded: bool | None = None  # as long as that is known
        self.left_over = False
        self.expanded: dict[int, str] = {}  # tasks that have added others, what they printed
        self._deferred: Event | None = None  # variance that has to wait for the end of the rest
        self._woken_at = math.inf  # the alarm that was asked for last, for the sake of limits too
        self._retry_at = math.inf  # the alarm for the sake of tasks that rest
        self.ceiling = np.zeros(workflow.n_tasks)  # the time-outs, where they must be payable
        set_gates(self)

    @property
    def n_done(self) -> int:
        """How many tasks are done."""
        return self.state.count(TaskState.DONE)

    @property
    def given_up(self) -> list[int]:
        """The tasks that will not be tried again."""
        tasks: list[int] = self.state.tasks(TaskState.GIVEN_UP).tolist()
        return tasks

    @property
    def done(self) -> bool:
        """Whether every task is done, or given up."""
        over = self.n_done + self.state.count(TaskState.GIVEN_UP)
        return over == self.state.arrays.n_tasks

    @property
    def halted(self) -> bool:
        """Whether the run is held back and nothing runs any more."""
        return self.state.held_back and not self.state.running()

    @property
    def freedom(self) -> Freedom:
        """What a new plan may move: while the run is held back, what runs is to end."""
        if self.policy is None or self.state.held_back:
            return Freedom.NOT_STARTED
        return self.policy.freedom

    @property
    def now(self) -> float:
        """The time of the last event."""
        return self.state.now

    def situation(self) -> Situation:
        """Everything known now; read off the state once for each moment."""
        if self._situation is None:
            situation = self.state.situation(self.workflow, self.platform, self.estimates)
            if self.estimates.needs is not None:
                situation = self._without_shut_out(situation)
            if self.platform.price.any() or self.platform.link_price.any():
                situation = replace(situation, usage=self.usage())
                situation = self.tracker.in_view_of(situation, self.prudence())
            self._situation = situation
        return self._situation

    def prudence(self) -> float:
        """How many times as long as expected what is left may take, where that is reckoned with."""
        if not (self.tracker.kept and self.tracker.learns):
            return 1.0
        return experience_of(self.state).prudent(float(self.state.count(TaskState.WAITING)))

    def money(self) -> Money:
        """Spent by now, committed to what runs, and planned, as the plan is expected to go on.

        Without a plan nobody knows what is to come.
        """
        return money_of(self.plan, self.situation())

    def handle(self, event: Event | NewPlan | NewEstimates | TasksAdded) -> list[Command]:
        """One event; what is to be done about it."""
        outgrown = ""
        if isinstance(event, TasksAdded):
            return self._take_tasks(event)
        if isinstance(event, NewEstimates):
            # processors that are new say so themselves, when they join
            changed = event.platform.n_processors == self.platform.n_processors
            needs = self.estimates.needs
            self.learn(event)
            if self.policy is None and self.estimates.needs is not needs:  # perhaps more fits now
                self.make_room()
                self.call(fill_ready_queue)
                self.call(hand_out)
            late = -1
        elif isinstance(event, NewPlan):
            late, changed = self.take(event), False
        else:
            check_event(self.state, event)
            calm = isinstance(event, CALM) and self.policy is not None
            calm = calm and self.estimates.needs is None  # time alone can shut a task out
            stranded = self._stranded if calm else None
            self.make_room()
            which, value = event.numbers()
            if isinstance(event, COUNTED):
                value = FAILED_AS.get(self.count(event), value)
            self.delays.measure(event, self.state)
            other = self.take_sizes(event) if isinstance(event, TaskFinished) else []
            kind = NUMBERS[type(event)]
            late, changed = self.call(apply_event, kind, which, event.time, value)
            self._stranded = stranded
            outgrown = self._outgrown(other) if other else ""
            if isinstance(event, BudgetChanged):
                self._renew_budget(event.budget)
            if isinstance(event, Woken | LimitsDue | RetryDue):
                self.forget_alarm()
        change = event if changed and not isinstance(event, NewPlan) else None
        cut = self.tracker.cuts and cut_off(self)
        if outgrown and not cut:
            replan: Replan | None = self._ask_at_once(change, outgrown)
        else:
            replan = self._ask_for_money(change) if cut else self._decide(late, change)
        commands = self._take_commands(cut)
        return commands if replan is None else [*commands, replan]

    def count(self, event: Event) -> Next:
        """Count failures and losses, and say what becomes of the task.

        What ran out of memory gets more, and is tried again as long as a host has more; how often,
        if the task says so.
        """
        if isinstance(event, TaskFailed) and self.estimates.needs is not None:
            then, known = self.tries.after(event, self.state, self.estimates, self.platform)
            if known is not self.estimates:
                self.estimates = known
                self.state.set_needs(self.workflow, self.platform, known)
            if then == Amounts.NO_MORE:
                return self.retries.give_up(self.state)
            task = self.state.attempt(event.attempt).task
            if then == Amounts.MORE and OUT_OF_MEMORY not in dict(self.workflow.spec(task).retry):
                return Next.AT_ONCE
        return self.retries.count(event, self.state)

    def _decide(self, late: int, change: Event | NewEstimates | None) -> Replan | None:
        """Wake the policy; where the budget is a limit, begin what can be paid."""
        if not self.tracker.cuts:
            return self.consider(late, change)
        late = begin_payable(self) if late < 0 and change is None else late
        replan = self.consider(late, change)
        if self.asked is None:
            wait_for_money(self)
        return replan

    def _ask_for_money(self, change: Event | NewEstimates | None) -> Replan:
        """What ran was cut off: only what costs nothing can still be done, if anything."""
        return self._ask_at_once(change, MONEY_GONE)

    def _ask_at_once(self, change: Event | NewEstimates | None, why: str) -> Replan:
        """Ask for a plan that must be taken, whatever the policy says."""
        self._take_for_money()
        self._note(change)
        self.version += 1
        self.asked = Replan(self.version, self.now, why, forced=True)
        return self.asked

    def take_sizes(self, event: TaskFinished) -> list[int]:
        """Have tasks need what they ask for by the size of what was made; those that do."""
        if not self.tries.wants_sizes:
            return []
        tasks, known = self.tries.made(event, self.state, self.estimates)
        if tasks:
            assert known.needs is not None
            self.estimates = known
            self.state.set_needs_of(tasks, self.workflow, self.platform, known.needs)
        return tasks

    def _outgrown(self, tasks: list[int]) -> str:
        """Why another plan is needed: a task needs more by now than the host of its place has."""
        if self.policy is None or not self.anything_to_plan() or not self._usable():
            return ""
        arrays = self.state.arrays
        for task in tasks:
            place = int(arrays.on[task])
            waits = arrays.status[task] == a.WAITING and place >= 0
            if waits and not arrays.allowed[task * arrays.n_hosts + arrays.host[place]]:
                return f"{self.workflow.task_names[task]} needs more than its host has"
        return ""

    def _take_commands(self, cut: bool) -> list[Command]:
        """What is to be done; the alarm is set for whatever comes first."""
        commands = self.state.take_commands()
        retry = self.state.next_retry()
        if retry < self._retry_at:
            self._retry_at = retry
            commands.append(WakeAt(retry, RetryDue))
        if not (self.tracker.cuts or self.deadline.kept):
            return commands
        commands = [c for c in commands if not (isinstance(c, WakeAt) and c.by is Woken)]
        if cut:
            ends = (replace(c, at_once=True) if isinstance(c, CancelTask) else c for c in commands)
            commands = list(ends)
        alarm = self.alarm()
        if alarm.time < self._woken_at * (1 - ROUNDING):
            self._woken_at = alarm.time
            commands.append(alarm)
        return commands

    def alarm(self) -> WakeAt:
        """The next rescheduling point, or the next look at money and time if that is before."""
        point, look = float(self.state.arrays.wake[0]), math.inf
        if self.deadline.kept and self.plan is not None:
            look = self.deadline.next_look(self.now)
        if self.tracker.cuts:
            look = min(look, end_of_money(self)[0])
        return WakeAt(look, LimitsDue) if look < point else WakeAt(point)

    def forget_alarm(self) -> None:
        """Whoever was to wake it is gone, with the process that drove the run."""
        self._woken_at = self._retry_at = math.inf

    def pass_time(self, now: float) -> None:
        """Let it be this time, with nothing heard before it."""
        if now > self.now:
            self.state.arrays.clock[0], self._situation = now, None

    def switch(self, policy: Policy, new: NewStrategy) -> list[Command]:
        """Follow plans from now on; the first one is asked for at once."""
        if self.policy is not None or not math.isfinite(new.time) or new.time < self.now:
            raise IllegalEventError(f"no change to {new.strategy} is possible at {new.time:g}")
        self.state.arrays.clock[0] = new.time
        self.state.release_claims()
        reuse = int(policy.reuse)
        self.state.arrays = self.state.arrays._replace(dispatch=a.PLANNED, reuse=reuse)
        self.policy, self._situation, self._stranded = policy, None, None
        self.version += 1
        self.asked = Replan(self.version, new.time, new.because, forced=True)
        return [*self.state.take_commands(), self.asked]

    def _take_tasks(self, new: TasksAdded) -> list[Command]:
        """Begin those that can begin, or ask for a plan with places for them."""
        self.add_tasks(new)
        if self.policy is None:
            self.make_room()
            self.call(fill_ready_queue)
            self.call(hand_out)
            return self._take_commands(False)
        self.version += 1
        name = self.workflow.task_names[new.by]
        self.asked = Replan(self.version, new.time, f"{name} added tasks", forced=True)
        return [*self._take_commands(False), self.asked]

    def add_tasks(self, new: TasksAdded) -> None:
        """Reckon with tasks that were not known before; they have no place yet."""
        if not math.isfinite(new.time) or new.time < self.now or new.by in self.expanded:
            raise IllegalEventError(f"no tasks can be added at {new.time:g} by task {new.by}")
        if new.workflow.task_names[: self.workflow.n_tasks] != self.workflow.task_names:
            raise IllegalEventError("tasks are added to another workflow")
        if new.estimates.cost.shape != (new.workflow.n_tasks, self.platform.n_processors):
            raise IllegalEventError("the estimates of added tasks are for others")
        self.state.arrays.clock[0] = new.time
        priority = None if self.order is None else self.order.priority(new.workflow)
        self.tries.grow(new.workflow, new.reads)
        estimates = self.tries.by_sizes(new.reads, self.state, new.estimates)[1]
        self.state.add_tasks(new.workflow, self.platform, estimates, priority)
        self.workflow, self.estimates = new.workflow, estimates
        self.retries.workflow = new.workflow
        if self.plan is not None:
            self.plan = self.plan.with_tasks(new.workflow, estimates)
        self.ceiling = np.zeros(new.workflow.n_tasks)
        self.expanded[new.by] = new.digest
        self._situation = self._stranded = None
        set_gates(self)

    def learn(self, new: NewEstimates) -> None:
        """Reckon with other estimates, and with processors that were not known before."""
        if not math.isfinite(new.time) or new.time < self.now:
            raise IllegalEventError(f"new estimates at {new.time:g}, before {self.now:g}")
        old = self.platform.processor_names
        known = new.platform.processor_names[: len(old)]
        if known != old or new.estimates.cost.shape[1] != new.platform.n_processors:
            raise IllegalEventError("new estimates are for other processors")
        estimates = self.tries.known(new.estimates)
        if not alike(self.estimates.needs, estimates.needs):
            raise IllegalEventError("new estimates have other kinds of needs, or widths")
        leaves = np.concatenate([self.declared.leaves, new.platform.leaves[len(old) :]])
        self.declared = replace(new.platform, leaves=leaves)
        self.state.arrays.clock[0] = new.time
        self.state.grow(self.workflow, new.platform, estimates)
        self.platform = replace(new.platform, leaves=self.state.leaves())  # as announced
        self.estimates = estimates
        self._situation = self._stranded = None
        set_gates(self)

    def coming(self, processor: int, seconds: float) -> Prepare:
        """The next tasks in the processor's queue that have their inputs there and take no longer.

        A longer one is not worth beginning ahead: a new plan may move it, and its work be lost.
        """
        arrays, tasks, filled = self.state.arrays, list[int](), 0.0
        if arrays.most_cores:  # whether there is room for them is known when they start
            return Prepare(processor, (), self.now)
        ahead = arrays.queue[arrays.queue_at[processor] : arrays.queue_end[processor]]
        for task in ahead[:MOST_AHEAD].tolist():
            filled += float(self.estimates.cost[task, processor])
            if arrays.missing[task] > 0 or arrays.gated[task] or filled > seconds:
                break
            tasks.append(task)
        return Prepare(processor, tuple(tasks), self.now)

    def begin(self) -> list[Command]:
        """What is to be done first."""
        replan = self.set_out()
        commands = self.state.take_commands()
        return commands if replan is None else [*commands, replan]

    def set_out(self) -> Replan | None:
        """Ask for the plan to begin with; just in time, hand out what is ready."""
        if self.policy is None:
            self.make_room()
            self.call(fill_ready_queue)
            self.call(hand_out)
        else:
            self.asked = Replan(self.version, self.now, "start", forced=True)
        return self.asked

    def consider(self, late: int, change: Event | NewEstimates | None) -> Replan | None:
        """Ask for a plan if there is a reason to; else start what can start, late as it is."""
        urgent = self.asked is not None and self.asked.forced  # and yet to be answered
        occasion = self._take_note(late, change)
        if self.policy is None or self.asked is not None:  # an answer is still to come
            return None
        reason = first_reason(LIMITS, self, occasion)
        if reason is None and occasion.for_money and not urgent:  # none of the policy's business
            occasion = Occasion(self.resume())
        reason = reason or left_over(self, occasion)
        if reason is None and occasion.change is not None and not self._can_plan():
            return None
        while reason is None and (occasion.late >= 0 or occasion.change is not None):
            reason = first_reason(PLANNED, self, occasion)
            if reason is None:
                occasion = self._let_be(occasion)
        if reason is not None:
            self.asked = Replan(self.version, self.now, reason.words, reason.forced)
        return self.asked

    def _take_note(self, late: int, change: Event | NewEstimates | None) -> Occasion:
        """What is to be looked at; a plan that is being made knows nothing of what has changed."""
        for_money = self._take_for_money()
        if change is not None:
            self.version += 1
            self.asked = None
            self._note(change)
        elif self._deferred is not None and self.now >= self._rested:
            change, self._deferred = self._deferred, None
        return Occasion(late, change, for_money and change is not None)

    def _let_be(self, occasion: Occasion) -> Occasion:
        """Nothing is planned for it now, perhaps later; the next task that would start late."""
        if not self.is_rested(occasion.change) and isinstance(occasion.change, Event):
            self._deferred = occasion.change
        if occasion.late >= 0:
            self.state.arrays.counts[a.GRACE] = 1  # then let it start late
        return Occasion(self.resume())

    def _can_plan(self) -> bool:
        """Whether a new plan could move any task, and what must be moved has somewhere to go."""
        return self.anything_to_plan() and (not self.stranded() or self._usable())

    def _note(self, change: Event | NewEstimates | None) -> None:
        """What has changed may be that a processor leaves."""
        if change is not None and not np.array_equal(
            self.state.arrays.leaves, self.platform.leaves
        ):
            self.platform = replace(self.platform, leaves=self.state.leaves())
            self._situation = None

    def _take_for_money(self) -> bool:
        """Whether it was woken for the sake of the budget only."""
        woken = bool(self.state.arrays.counts[a.FOR_MONEY])
        self.state.arrays.counts[a.FOR_MONEY] = 0
        return woken

    def is_rested(self, change: Event | NewEstimates | None) -> bool:
        """Whether it is time to plan again; a change of the machines cannot wait."""
        urgent = change is not None
        if isinstance(change, CAN_WAIT):
            urgent = False
        return urgent or self.now >= self._rested

    def anything_to_plan(self) -> bool:
        """Whether a new plan could move any task."""
        moves_running = self.policy is not None and self.freedom == Freedom.RESTART
        running = len(self.state.open_attempts())
        over = self.n_done + self.state.count(TaskState.GIVEN_UP)
        over += self.state.count(TaskState.RESTING)
        return (moves_running and running > 0) or over + running < self.state.arrays.n_tasks

    def waiting(self) -> BoolArray:
        """The tasks that have not started, or must start again."""
        mask: BoolArray = self.state.arrays.status == a.WAITING
        return mask

    def _usable(self) -> bool:
        """Whether any processor is there to stay."""
        arrays = self.state.arrays
        return bool((arrays.present & (arrays.leaves > self.now)).any())

    def resume(self) -> int:
        """Start whatever can start; -1, or a task that would start late."""
        late = int(self.call(dispatch_all))
        return begin_payable(self) if late < 0 and self.tracker.cuts else late

    def set_over_budget(self, over_budget: str) -> None:
        """Do otherwise from now on when the budget is not enough."""
        self.tracker.set_over_budget(over_budget)
        set_gates(self)

    def usage(self) -> Usage:
        """The use of the machines by now."""
        return self.meter.usage(self.state, self.workflow, self.platform)

    def stranded(self) -> bool:
        """Whether a waiting task has no processor, or one that is gone."""
        if self._stranded is None:
            waiting = self.waiting()
            if self.estimates.needs is not None:
                waiting &= ~self.shut_out()
            on = self.state.arrays.on[waiting]
            self._stranded = bool(np.any((on < 0) | ~self.state.arrays.present[on]))
        return self._stranded

    def take(self, new: NewPlan) -> int:
        """Judge a plan that was asked for and follow it if it is taken; a late task, or -1."""
        asked = self.asked
        if asked is None or new.version != self.version or self.policy is None:
            return -1
        self.asked, self.left_over, self._deferred = None, False, None
        self._rested = self.now + self.rest * new.seconds
        self.state.arrays.reckoned[:] = self.state.arrays.availability
        self._judge(new, asked)
        self.state.arrays.counts[a.GRACE] = 1
        return self.resume()

    def _judge(self, new: NewPlan, asked: Replan) -> None:
        """Take the plan if it must be, or is worth it; note the evaluation."""
        plan, makespan = new.schedule, float("inf")
        verdict, before = replace(TAKEN, taken=False), int(self.state.arrays.counts[a.N_MIGRATED])
        if plan is not None:
            assert self.policy is not None
            makespan, verdict = plan.makespan, TAKEN
            if self.plan is not None and not asked.forced:
                if asked.reason != TOO_LATE:
                    verdict = self.policy.accept(plan, self.plan, self.situation())
                if not self.deadline.allows(plan, self.plan, self.situation()):
                    verdict = replace(verdict, taken=False)
            if not self.tracker.affords(plan, self.situation()):
                verdict = self._judge_over_budget(plan, asked, verdict)
        if plan is not None and self.policy is not None and verdict.taken:
            self.tracker.take(plan, self.situation(), self.state)
            self._install(plan, self._watch(self.policy, plan))
        elif self.policy is not None and verdict.going_on is not None:
            self._watch(self.policy, verdict.going_on)
        late = self.deadline.kept and self.plan is not None
        if late and self.deadline.look(cast(Schedule, self.plan), self.situation()):
            self.deadline.foresee(self.now)
        migrated = int(self.state.arrays.counts[a.N_MIGRATED]) - before
        self.evaluations.append(
            Evaluation(
                self.now, asked.reason, asked.forced, verdict.taken, makespan, verdict.projected,
                migrated, new.seconds,
            )
        )  # fmt: skip

    def _renew_budget(self, budget: float) -> None:
        """There is more money, or less; a run that waits for it may go on, if it is enough."""
        self.tracker.renew(budget)
        if self.tracker.holds:
            self.tracker.holds = False
            self.state.hold_back(False)

    def _judge_over_budget(self, plan: Schedule, asked: Replan, verdict: Verdict) -> Verdict:
        """What to do about a plan that is too dear: only one that must be taken can be."""
        if not asked.forced:
            return replace(verdict, taken=False)
        self.tracker.note_overrun(forecast(plan, self.situation()).projected, self.now)
        if self.tracker.stops:
            self.tracker.holds = True
            self.state.hold_back(True)
            return replace(verdict, taken=False)
        return verdict

    def _install(self, schedule: Schedule, watch: Watch) -> None:
        most = len(self.state.arrays.in_item) if self.n_done else 0  # every input sent anew
        arrays = self.state.make_room(most)
        moves = self.waiting()
        if arrays.most_cores:
            self._install_cores(schedule, moves)
        else:
            running = arrays.attempt_task[arrays.running[arrays.running >= 0]]
            moves[running] = schedule.processor[running] != arrays.on[running]
            pointers, queue = schedule.queues(moves)
            self.call(install_plan, schedule.processor, queue, pointers[:-1], pointers[1:])
        self.call(set_alarm, watch.period)
        self.plan = schedule
        self.version += 1
        # what was lost under a task that migrates is no part of the plan
        self.left_over = self.stranded() and self._usable()

    def _install_cores(self, schedule: Schedule, moves: BoolArray) -> None:
        """The same where tasks take several cores, or amounts; what no machine can run waits."""
        cores = schedule.cores or one_each(schedule.processor)
        moves &= ~self.shut_out()
        for attempt in self.state.open_attempts().tolist():
            task = int(self.state.arrays.attempt_task[attempt])
            moves[task] = tuple(cores.of(task).tolist()) != self.state.cores_of(attempt)
        pointers, queue = replace(schedule, cores=cores).queues(moves)
        line = np.empty(len(moves), dtype=np.int32)
        line[schedule.in_time] = np.arange(len(moves), dtype=np.int32)
        rows = cores.ptr, cores.processor, line
        self.call(install_plan_of_cores, *rows, queue, pointers[:-1], pointers[1:])

    def _without_shut_out(self, situation: Situation) -> Situation:
        """The situation in which no plan is made for what no machine can run as it is now."""
        shut_out = self.shut_out()
        if not shut_out.any():
            return situation
        given_up = situation.given_up
        return replace(situation, given_up=shut_out if given_up is None else shut_out | given_up)

    def shut_out(self) -> BoolArray:
        """The waiting tasks that no machine that is there can run, and all that needs them."""
        mask = np.zeros(self.workflow.n_tasks, dtype=np.bool_)
        if self.state.arrays.most_cores:
            mark_shut_out(self.state.arrays, mask)
        return mask

    def _watch(self, policy: Policy, plan: Schedule) -> Watch:
        """Wake the policy by this plan from now on."""
        watch = policy.watch(plan, self.situation())
        self.delays.watch(watch, plan, self.situation(), self.state)
        self.state.arrays.variance[0], self.state.arrays.early[0] = watch.variance, watch.early
        return watch

    def note(self, evaluation: Evaluation, plan: Schedule | None) -> None:
        """A plan was judged by the kernels, and taken if there is one."""
        self.evaluations.append(evaluation)
        self.asked, self.left_over, self._deferred = None, False, None
        if plan is not None:
            self.plan, self._stranded = plan, None
            self.version += 1

    def leave_over(self) -> None:
        """The plan that was taken has no place for some tasks."""
        self.left_over = True

    def make_room(self, plans: bool = False) -> RunArrays:
        """The arrays for an event to come, the logs long enough for whatever that can bring.

        If plans are to be taken meanwhile, there is room for what the next one may send.
        """
        self._situation = self._stranded = None
        return self.state.make_room(inputs_to_send(self.state.arrays) if plans else 0)

    def call(self, kernel: Any, *arguments: Any) -> Any:
        """Call a rule; what was read off the state is out of date then."""
        self._situation = None
        if kernel is not dispatch and kernel is not dispatch_all:  # what starts had its place
            self._stranded = None
        return kernel(self.state.arrays, *arguments)

    def in_words(self, notice: Notice) -> str:
        """Why a policy was woken."""
        return reason_of(notice, self.state, self.workflow, self.platform)

    def check_state(self) -> None:
        """Raise BrokenStateError if the run's state contradicts itself."""
        check_state(self.state, pending=self.asked is not None)
        known, self._stranded = self._stranded, None
        if self.stranded() != known and known is not None:
            raise BrokenStateError("whether a task has no processor is not what was known")
        self.meter.check(self.state, self.workflow, self.platform)
        self.delays.check(self.state)
