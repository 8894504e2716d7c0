"""One run's decisions: a state machine over the transition rules, with no clock of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from weft.arrays import IntArray
from weft.contracts import TAKEN, Notice, Order, Policy, Verdict, Watch, is_order
from weft.coordinator.boards import (
    empty_board,
    grown,
    read_situation,
    room_for,
    waiting,
)
from weft.coordinator.check_board import BrokenStateError, check_board
from weft.coordinator.commands import taken_off
from weft.coordinator.deadline import TOO_LATE, Deadline
from weft.coordinator.delays import Delays
from weft.coordinator.experience import experience_of
from weft.coordinator.legality import IllegalEventError, check_event
from weft.coordinator.limit import (
    ceilings,
    end_of_money,
    gated,
    more_for_timeouts,
    worst_cost,
)
from weft.coordinator.meter import Meter
from weft.coordinator.patience import Patience
from weft.coordinator.purse import ENOUGH_AGAIN, OVER_BUDGET, Purse, money_of
from weft.coordinator.reasons import reason_of
from weft.kernels import board as b
from weft.kernels.attempts import cancel
from weft.kernels.board import Board
from weft.kernels.decisions import inputs_to_send
from weft.kernels.just_in_time import stand_in_line
from weft.kernels.plans import install_plan, set_alarm
from weft.kernels.rules import apply_event, dispatch, dispatch_all, hand_out, make_good
from weft.model import (
    Estimates,
    Evaluation,
    Freedom,
    Money,
    Platform,
    Reuse,
    Schedule,
    Situation,
    Tolerance,
    Usage,
    Workflow,
    affordable,
    forecast,
)
from weft.model.events import (
    CancelTask,
    Command,
    Event,
    EventKind,
    NewEstimates,
    NewPlan,
    NewStrategy,
    Prepare,
    Replan,
    WakeAt,
)
from weft.model.money import MONEY_GONE, ROUNDING

LEFT_OVER = "tasks that lost their inputs on the way"
# where there is a plan, no task that waits gets a place by these, or loses its own
CALM = (
    EventKind.TASK_FINISHED,
    EventKind.ITEM_ARRIVED,
    EventKind.AVAILABILITY,
    EventKind.BANDWIDTH,
)
CAN_WAIT = (EventKind.TASK_FINISHED, EventKind.AVAILABILITY, EventKind.WAKE)  # no machine changed
MOST_AHEAD = 256  # tasks that an executor is told of in advance, per processor


class Coordinator:
    """Events in, commands out. Planning itself is asked for by a Replan command."""

    def __init__(
        self,
        workflow: Workflow,
        platform: Platform,
        estimates: Estimates,
        strategy: Policy | Order,
        tolerance: Tolerance | None = None,
        rest: float = 0.0,
        purse: Purse | None = None,
        deadline: float = math.inf,
    ) -> None:
        self.workflow, self.platform, self.estimates = workflow, platform, estimates
        self.declared = platform  # without what was announced since
        self.patience = Patience(tolerance or Tolerance(), workflow)
        self.purse, self.deadline, self.delays = purse or Purse(), Deadline(deadline), Delays()
        self.meter = Meter()
        # real planning takes time: after a plan of s seconds, late starts are let be for rest x s
        self.rest, self._rested = rest, 0.0
        self.policy, line, min_min, reuse = None, None, False, Reuse.IN_PLACE
        if is_order(strategy):
            line, min_min = strategy.line(workflow), strategy.min_min
        else:
            self.policy, reuse = strategy, strategy.reuse
        self.board = empty_board(workflow, platform, estimates, line, min_min, reuse)
        self.plan: Schedule | None = None
        self.version = 0
        self.asked: Replan | None = None
        self.evaluations: list[Evaluation] = []
        self._situation: Situation | None = None
        self._stranded: bool | None = None  # as long as that is known
        self._left_over = False
        self._deferred: Event | None = None  # variance that has to wait for the end of the rest
        self._woken_at = math.inf  # when it was last asked to be woken for money's sake
        self._ceiling = np.zeros(workflow.n_tasks)  # the time-outs, where they must be payable
        self._set_gates()

    @property
    def n_done(self) -> int:
        """How many tasks are done."""
        return int(self.board.counts[b.N_DONE])

    @property
    def given_up(self) -> list[int]:
        """The tasks that will not be tried again."""
        return np.flatnonzero(self.board.status == b.GIVEN_UP).tolist()

    @property
    def done(self) -> bool:
        """Whether every task is done, or given up."""
        return self.n_done + int(self.board.counts[b.N_GIVEN_UP]) == self.workflow.n_tasks

    @property
    def halted(self) -> bool:
        """Whether the run is held back and nothing runs any more."""
        return bool(self.board.counts[b.HELD_BACK]) and not (self.board.running >= 0).any()

    @property
    def freedom(self) -> Freedom:
        """What a new plan may move: while the run is held back, what runs is to end."""
        if self.policy is None or self.board.counts[b.HELD_BACK]:
            return Freedom.NOT_STARTED
        return self.policy.freedom

    @property
    def now(self) -> float:
        """The time of the last event."""
        return float(self.board.clock[0])

    def situation(self) -> Situation:
        """Everything known now; read off the board once for each moment."""
        if self._situation is None:
            situation = read_situation(self.board, self.workflow, self.platform, self.estimates)
            if self.platform.price.any() or self.platform.link_price.any():
                situation = replace(situation, usage=self._usage())
                situation = self.purse.in_view_of(situation, self.prudence())
            self._situation = situation
        return self._situation

    def prudence(self) -> float:
        """How many times as long as expected what is left may take, where that is reckoned with."""
        if not (self.purse.kept and self.purse.learns):
            return 1.0
        return experience_of(self.board).prudent(float(np.count_nonzero(waiting(self.board))))

    def money(self) -> Money:
        """Spent by now, committed to what runs, and planned, as the plan is expected to go on.

        Without a plan nobody knows what is to come.
        """
        return money_of(self.plan, self.situation())

    def handle(self, event: Event | NewPlan | NewEstimates) -> list[Command]:
        """One event; what is to be done about it."""
        if isinstance(event, NewEstimates):
            # processors that are new say so themselves, when they join
            changed = event.platform.n_processors == self.platform.n_processors
            self.learn(event)
            late = -1
        elif isinstance(event, NewPlan):
            late, changed = self.take(event), False
        else:
            check_event(self.board, event)
            calm = event.kind in CALM and self.policy is not None
            stranded = self._stranded if calm else None
            self.make_room()
            value = self.patience.judged(event, self.board)
            self.delays.measure(event, self.board)
            late, changed = self._call(apply_event, int(event.kind), event.which, event.time, value)
            self._stranded = stranded
            if event.kind == EventKind.BUDGET:
                self._new_budget(event.value)
            if event.kind == EventKind.WAKE:
                self._woken_at = math.inf
        change = event if changed and not isinstance(event, NewPlan) else None
        cut = self.purse.cuts and self._cut_off()
        replan = self._ask_for_money(change) if cut else self._decide(late, change)
        commands = self._commands(cut)
        return commands if replan is None else [*commands, replan]

    def _decide(self, late: int, change: Event | NewEstimates | None) -> Replan | None:
        """Wake the policy; where the budget is a limit, begin what can be paid."""
        if not self.purse.cuts:
            return self.consider(late, change)
        late = self._begin_payable() if late < 0 and change is None else late
        replan = self.consider(late, change)
        if self.asked is None:
            self._wait_for_money()
        return replan

    def _ask_for_money(self, change: Event | NewEstimates | None) -> Replan:
        """What ran was cut off: only what costs nothing can still be done, if anything."""
        self._for_money()
        self._note(change)
        self.version += 1
        self.asked = Replan(self.version, self.now, MONEY_GONE, forced=True)
        return self.asked

    def _commands(self, cut: bool) -> list[Command]:
        """What is to be done; the alarm is set for whatever comes first."""
        commands = taken_off(self.board)
        if not (self.purse.cuts or self.deadline.kept):
            return commands
        commands = [c for c in commands if not isinstance(c, WakeAt)]
        if cut:
            ends = (replace(c, at_once=True) if isinstance(c, CancelTask) else c for c in commands)
            commands = list(ends)
        wakes = self.wakes_at
        if wakes < self._woken_at * (1 - ROUNDING):
            self._woken_at = wakes
            commands.append(WakeAt(wakes))
        return commands

    @property
    def wakes_at(self) -> float:
        """The next rescheduling point, or when money or time is looked at, if that is before."""
        wakes = float(self.board.wake[0])
        if self.deadline.kept and self.plan is not None:
            wakes = min(wakes, self.deadline.next_look(self.now))
        return min(wakes, self._end_of_money()[0]) if self.purse.cuts else wakes

    def forget_alarm(self) -> None:
        """Whoever was to wake it is gone, with the process that drove the run."""
        self._woken_at = math.inf

    def pass_time(self, now: float) -> None:
        """Let it be this time, with nothing heard before it."""
        if now > self.now:
            self.board.clock[0], self._situation = now, None

    def switch(self, policy: Policy, new: NewStrategy) -> list[Command]:
        """Follow plans from now on; the first one is asked for at once."""
        if self.policy is not None or not math.isfinite(new.time) or new.time < self.now:
            raise IllegalEventError(f"no change to {new.strategy} is possible at {new.time:g}")
        self.board.clock[0] = new.time
        reuse = int(policy.reuse)
        self.board = self.board._replace(just_in_time=False, min_min=False, reuse=reuse)
        self.policy, self._situation, self._stranded = policy, None, None
        self.version += 1
        self.asked = Replan(self.version, new.time, new.because, forced=True)
        return [*taken_off(self.board), self.asked]

    def learn(self, new: NewEstimates) -> None:
        """Reckon with other estimates, and with processors that were not known before."""
        if not math.isfinite(new.time) or new.time < self.now:
            raise IllegalEventError(f"new estimates at {new.time:g}, before {self.now:g}")
        old = self.platform.processor_names
        known = new.platform.processor_names[: len(old)]
        if known != old or new.estimates.cost.shape[1] != new.platform.n_processors:
            raise IllegalEventError("new estimates are for other processors")
        leaves = np.concatenate([self.declared.leaves, new.platform.leaves[len(old) :]])
        self.declared = replace(new.platform, leaves=leaves)
        self.board.clock[0] = new.time
        self.board = grown(self.board, new.platform, new.estimates)
        self.platform = replace(new.platform, leaves=self.board.leaves.copy())  # as announced
        self.estimates = new.estimates
        self._situation = self._stranded = None
        self._set_gates()

    def coming(self, processor: int, seconds: float) -> Prepare:
        """The next tasks in the processor's queue that have their inputs there and take no longer.

        A longer one is not worth beginning ahead: a new plan may move it, and its work be lost.
        """
        board, tasks, filled = self.board, list[int](), 0.0
        ahead = board.queue[board.queue_at[processor] : board.queue_end[processor]]
        for task in ahead[:MOST_AHEAD].tolist():
            filled += float(self.estimates.cost[task, processor])
            if board.missing[task] > 0 or board.gated[task] or filled > seconds:
                break
            tasks.append(task)
        return Prepare(processor, tuple(tasks), self.now)

    def begin(self) -> list[Command]:
        """What is to be done first."""
        replan = self.set_out()
        commands = taken_off(self.board)
        return commands if replan is None else [*commands, replan]

    def set_out(self) -> Replan | None:
        """Ask for the plan to begin with; just in time, hand out what is ready."""
        if self.policy is None:
            self.make_room()
            self._call(stand_in_line)
            self._call(hand_out)
        else:
            self.asked = Replan(self.version, self.now, "start", forced=True)
        return self.asked

    def consider(self, late: int, change: Event | NewEstimates | None) -> Replan | None:
        """Wake the policy if a task would start late, or something has changed."""
        for_money = self._for_money()
        if change is not None:  # a plan that is being made knows nothing of it
            self.version += 1
            self.asked = None
            self._note(change)
        elif self._deferred is not None and self.now >= self._rested:
            change, self._deferred = self._deferred, None
        if self.policy is None or self.asked is not None:  # an answer is still to come
            return None
        if change is not None and self._money_decides():
            return self.asked
        if self._will_be_late(change is not None):
            return self.asked
        if for_money and change is not None:  # which is none of the policy's business
            late, change = self.resume(), None
        if self._left_over and change is None:
            self.asked = Replan(self.version, self.now, LEFT_OVER, forced=True)
            return self.asked
        if change is not None and not self._anything_to_plan():
            return None
        while late >= 0 or change is not None:
            if change is not None and self.stranded():
                if self._usable():
                    reason = self._reason(Notice(event=change))
                    self.asked = Replan(self.version, self.now, reason, forced=True)
                return self.asked
            notice = Notice(late if late >= 0 else None, change)
            over = self._rest_is_over(change)
            if over and self._asks(notice):
                self.asked = Replan(self.version, self.now, self._reason(notice))
                return self.asked
            if not over and isinstance(change, Event):
                self._deferred = change
            if late >= 0:
                self.board.counts[b.GRACE] = 1  # then let it start late
            late, change = self.resume(), None
        return None

    def _asks(self, notice: Notice) -> bool:
        """Whether this is a reason for a new plan; to say so, all that is known is read."""
        assert self.policy is not None
        assert self.plan is not None
        if self._richer(notice.event):
            return True
        return self.policy.decide(notice, self.situation(), self.plan)

    def _note(self, change: Event | NewEstimates | None) -> None:
        """What has changed may be that a processor leaves."""
        if change is not None and not np.array_equal(self.board.leaves, self.platform.leaves):
            self.platform = replace(self.platform, leaves=self.board.leaves.copy())
            self._situation = None

    def _for_money(self) -> bool:
        """Whether it was woken for the sake of the budget only."""
        woken = bool(self.board.counts[b.FOR_MONEY])
        self.board.counts[b.FOR_MONEY] = 0
        return woken

    def _money_decides(self) -> bool:
        """Whether the plan has become too dear, or need not be cheap any more: ask for another.

        Speeds that were measured for a moment may have been to blame.
        """
        plan, purse = self.plan, self.purse
        if plan is None or not purse.kept or purse.holds or self.stranded():
            return False
        if not purse.exceeded(plan, self.situation(), self.board):
            if purse.relieved() and self._anything_to_plan():
                self.asked = Replan(self.version, self.now, ENOUGH_AGAIN)
            return self.asked is not None
        purse.tight = True
        if not self._anything_to_plan():
            purse.overrun(self.money().projected, self.now)
            return False
        self.asked = Replan(self.version, self.now, OVER_BUDGET, forced=True)
        return True

    def _will_be_late(self, changed: bool) -> bool:
        """Whether the plan has come to end after the deadline: another is asked for then."""
        deadline, plan = self.deadline, self.plan
        if not deadline.kept or plan is None or (not changed and self.now < deadline.looks_at):
            return False
        if self.done or self.board.counts[b.HELD_BACK] or self.stranded():
            return False
        if not deadline.look(plan, self.situation()):
            return False
        if not self._anything_to_plan():
            deadline.foresee(self.now)
        elif deadline.take_turn(self.now):
            self.asked = Replan(self.version, self.now, TOO_LATE)
        return self.asked is not None

    def _richer(self, change: Event | NewEstimates | None) -> bool:
        """Whether there is more money: a new plan may be worth it, whatever the policy."""
        return isinstance(change, Event) and change.kind == EventKind.BUDGET and self.purse.renewed

    def _rest_is_over(self, change: Event | NewEstimates | None) -> bool:
        """Whether it is time to plan again; a change of the machines cannot wait."""
        urgent = change is not None
        if isinstance(change, Event) and change.kind in CAN_WAIT:
            urgent = False
        return urgent or self.now >= self._rested

    def _anything_to_plan(self) -> bool:
        """Whether a new plan could move any task."""
        moves_running = self.policy is not None and self.freedom == Freedom.RESTART
        running = int(np.count_nonzero(self.board.running >= 0))
        over = self.n_done + int(self.board.counts[b.N_GIVEN_UP])
        return (moves_running and running > 0) or over + running < self.workflow.n_tasks

    def _usable(self) -> bool:
        """Whether any processor is there to stay."""
        return bool((self.board.present & (self.board.leaves > self.now)).any())

    def resume(self) -> int:
        """Start whatever can start; -1, or a task that would start late."""
        late = int(self._call(dispatch_all))
        return self._begin_payable() if late < 0 and self.purse.cuts else late

    def set_over_budget(self, over_budget: str) -> None:
        """Do otherwise from now on when the budget will not do."""
        self.purse.set_over_budget(over_budget)
        self._set_gates()

    def _set_gates(self) -> None:
        """Where the budget is a limit, some tasks are begun only if that can be paid."""
        self.board.gated[:] = False
        if self.purse.cuts:
            self._ceiling = ceilings(self.workflow, self.purse.timeout)
            self.board.gated[:] = gated(self._ceiling, self.platform)

    def _usage(self) -> Usage:
        return self.meter.usage(self.board, self.workflow, self.platform)

    def _end_of_money(self) -> tuple[float, IntArray]:
        return end_of_money(self.board, self._usage(), self.platform, self.purse.budget)

    def _cut_off(self) -> bool:
        """End what runs and cannot be paid any more; whether there was any."""
        at, where = self._end_of_money()
        if self.now < at * (1 - ROUNDING) or not len(where):
            return False
        for p in where.tolist():
            self._call(cancel, int(self.board.attempt_task[self.board.running[p]]))
        self._call(make_good)  # an input may have been lost while they ran
        return True

    def _gated(self) -> list[tuple[int, int]]:
        """The tasks that could begin but for money, and where."""
        board = self.board
        if board.counts[b.HELD_BACK] or self.asked is not None:
            return []
        idle = board.present & (board.running < 0) & (board.leaves > self.now)
        places = np.flatnonzero(idle & (board.queue_at < board.queue_end)).tolist()
        nexts = [(int(board.queue[board.queue_at[p]]), p) for p in places]
        return [(task, p) for task, p in nexts if board.gated[task] and board.missing[task] == 0]

    def _begin_payable(self) -> int:
        """Begin what had to wait for money, if it can be paid; -1, or a task that would be late."""
        late = -1
        for task, p in self._gated():
            cost = worst_cost(self.board, self._usage(), self.platform, self._ceiling, task, p)
            if late >= 0 or not affordable(cost, self.purse.budget):
                continue
            self.board.gated[task] = False
            late = int(self._call(dispatch, p))
            self.board.gated[task] = True
        return late

    def _wait_for_money(self) -> None:
        """If nothing runs any more, and what is next cannot be paid: the run is held back."""
        board, purse, dear = self.board, self.purse, self._gated()
        if not dear or (board.running >= 0).any():
            return
        if np.isnan(board.transfer_arrival[: board.counts[b.N_TRANSFERS]]).any():  # on the way
            return
        task, p = dear[0]
        cost = worst_cost(board, self._usage(), self.platform, self._ceiling, task, p)
        wait = waiting(board)
        more = more_for_timeouts(board, self.platform, self._ceiling, board.on, wait)
        purse.overrun(float(np.fmax(cost, self.money().projected + more)), self.now)
        purse.dear, purse.holds, board.counts[b.HELD_BACK] = task, True, 1

    def stranded(self) -> bool:
        """Whether a waiting task has no processor, or one that is gone."""
        if self._stranded is None:
            on = self.board.on[waiting(self.board)]
            self._stranded = bool(np.any((on < 0) | ~self.board.present[on]))
        return self._stranded

    def take(self, new: NewPlan) -> int:
        """Judge a plan that was asked for and follow it if it is taken; a late task, or -1."""
        asked = self.asked
        if asked is None or new.version != self.version or self.policy is None:
            return -1
        self.asked, self._left_over, self._deferred = None, False, None
        self._rested = self.now + self.rest * new.seconds
        self.board.reckoned[:] = self.board.availability
        self._judge(new, asked)
        self.board.counts[b.GRACE] = 1
        return self.resume()

    def _judge(self, new: NewPlan, asked: Replan) -> None:
        """Take the plan if it must be, or is worth it; note the evaluation."""
        plan, makespan = new.schedule, float("inf")
        verdict, before = replace(TAKEN, taken=False), int(self.board.counts[b.N_MIGRATED])
        if plan is not None:
            assert self.policy is not None
            makespan, verdict = plan.makespan, TAKEN
            if self.plan is not None and not asked.forced:
                if asked.reason != TOO_LATE:
                    verdict = self.policy.accept(plan, self.plan, self.situation())
                if not self.deadline.allows(plan, self.plan, self.situation()):
                    verdict = replace(verdict, taken=False)
            if not self.purse.affords(plan, self.situation()):
                verdict = self._over_budget(plan, asked, verdict)
        if plan is not None and self.policy is not None and verdict.taken:
            self.purse.take(plan, self.situation(), self.board)
            self._install(plan, self._watch(self.policy, plan))
        elif self.policy is not None and verdict.going_on is not None:
            self._watch(self.policy, verdict.going_on)
        late = self.deadline.kept and self.plan is not None
        if late and self.deadline.look(cast(Schedule, self.plan), self.situation()):
            self.deadline.foresee(self.now)
        migrated = int(self.board.counts[b.N_MIGRATED]) - before
        self.evaluations.append(
            Evaluation(
                self.now, asked.reason, asked.forced, verdict.taken, makespan, verdict.projected,
                migrated, new.seconds,
            )
        )  # fmt: skip

    def _new_budget(self, budget: float) -> None:
        """There is more money, or less; a run that waits for it may go on, if it will do."""
        self.purse.renew(budget)
        if self.purse.holds:
            self.board.counts[b.HELD_BACK], self.purse.holds = 0, False

    def _over_budget(self, plan: Schedule, asked: Replan, verdict: Verdict) -> Verdict:
        """What to do about a plan that is too dear: only one that must be taken can be."""
        if not asked.forced:
            return replace(verdict, taken=False)
        self.purse.overrun(forecast(plan, self.situation()).projected, self.now)
        if self.purse.stops:
            self.board.counts[b.HELD_BACK], self.purse.holds = 1, True
            return replace(verdict, taken=False)
        return verdict

    def _install(self, schedule: Schedule, watch: Watch) -> None:
        most = len(self.board.in_item) if self.n_done else 0  # every input sent anew
        board = self.board = room_for(self.board, most)
        moves = waiting(board)
        running = board.attempt_task[board.running[board.running >= 0]]
        moves[running] = schedule.processor[running] != board.on[running]
        pointers, queue = schedule.queues(moves)
        self._call(install_plan, schedule.processor, queue, pointers[:-1], pointers[1:])
        self._call(set_alarm, watch.period)
        self.plan = schedule
        self.version += 1
        # what was lost under a task that migrates is no part of the plan
        self._left_over = self.stranded() and self._usable()

    def _watch(self, policy: Policy, plan: Schedule) -> Watch:
        """Wake the policy by this plan from now on."""
        watch = policy.watch(plan, self.situation())
        self.delays.watch(watch, plan, self.situation(), self.board)
        self.board.variance[0], self.board.early[0] = watch.variance, watch.early
        return watch

    def note(self, evaluation: Evaluation, plan: Schedule | None) -> None:
        """A plan was judged by the kernels, and taken if there is one."""
        self.evaluations.append(evaluation)
        self.asked, self._left_over, self._deferred = None, False, None
        if plan is not None:
            self.plan, self._stranded = plan, None
            self.version += 1

    def leave_over(self) -> None:
        """The plan that was taken has no place for some tasks."""
        self._left_over = True

    def make_room(self, plans: bool = False) -> Board:
        """The board for an event to come, its logs long enough for whatever that can bring.

        If plans are to be taken meanwhile, there is room for what the next one may send.
        """
        self._situation = self._stranded = None
        self.board = room_for(self.board, inputs_to_send(self.board) if plans else 0)
        return self.board

    def _call(self, kernel: Any, *arguments: Any) -> Any:
        """Call a rule; what was read off the board is out of date then."""
        self._situation = None
        if kernel is not dispatch and kernel is not dispatch_all:  # what starts had its place
            self._stranded = None
        return kernel(self.board, *arguments)

    def _reason(self, notice: Notice) -> str:
        return reason_of(notice, self.board, self.workflow, self.platform)

    def check_state(self) -> None:
        """Raise BrokenStateError if the run's state contradicts itself."""
        check_board(self.board, pending=self.asked is not None)
        known, self._stranded = self._stranded, None
        if self.stranded() != known and known is not None:
            raise BrokenStateError("whether a task has no processor is not what was known")
        self.meter.check(self.board, self.workflow, self.platform)
        self.delays.check(self.board)
