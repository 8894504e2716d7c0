"""Why a new plan is asked for: ordered triggers, each a function to a reason or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from foreplan.contracts import Notice
from foreplan.engine.budget import ENOUGH_AGAIN, OVER_BUDGET
from foreplan.engine.deadline import TOO_LATE
from foreplan.engine.state import RunState
from foreplan.model import Platform, Workflow
from foreplan.model.events import (
    BudgetChanged,
    Event,
    NewEstimates,
    ProcessorGone,
    ProcessorJoined,
    ProcessorLeaving,
    RetryDue,
    SpeedChanged,
    TaskFailed,
    TaskFinished,
    Woken,
)

if TYPE_CHECKING:
    from foreplan.engine.coordinator import Coordinator

LEFT_OVER = "tasks that lost their inputs on the way"


class Occasion(NamedTuple):
    """What is looked at: a task that would start late (or -1), and what has changed, if anything.

    If `for_money`, it has changed nothing but what the plan may cost.
    """

    late: int = -1
    change: Event | NewEstimates | None = None
    for_money: bool = False

    @property
    def notice(self) -> Notice:
        """The same, as policies are told."""
        return Notice(self.late if self.late >= 0 else None, self.change)


class Reason(NamedTuple):
    """Why a new plan is asked for; one that is forced must be taken."""

    words: str
    forced: bool = False


Trigger = Callable[["Coordinator", Occasion], Reason | None]


def look_at_money(coordinator: Coordinator, occasion: Occasion) -> Reason | None:
    """The plan has become too dear, or need not be cheap any more.

    Speeds that were measured for a moment may have been to blame.
    """
    plan, tracker = coordinator.plan, coordinator.tracker
    if occasion.change is None or plan is None or not tracker.kept or tracker.holds:
        return None
    if coordinator.stranded():
        return None
    if tracker.look(plan, coordinator.situation(), coordinator.state):
        relief = tracker.take_relief() and coordinator.anything_to_plan()
        return Reason(ENOUGH_AGAIN) if relief else None
    tracker.tight = True
    if not coordinator.anything_to_plan():
        tracker.note_overrun(coordinator.money().projected, coordinator.now)
        return None
    return Reason(OVER_BUDGET, forced=True)


def look_at_deadline(coordinator: Coordinator, occasion: Occasion) -> Reason | None:
    """The plan has come to end after the deadline."""
    limit, plan, now = coordinator.deadline, coordinator.plan, coordinator.now
    if not limit.kept or plan is None or (occasion.change is None and now < limit.looks_at):
        return None
    if coordinator.done or coordinator.state.held_back or coordinator.stranded():
        return None
    if not limit.look(plan, coordinator.situation()):
        return None
    if not coordinator.anything_to_plan():
        limit.foresee(now)
        return None
    return Reason(TOO_LATE) if limit.take_turn(now) else None


def left_over(coordinator: Coordinator, occasion: Occasion) -> Reason | None:
    """The plan that was taken last has no place for some tasks."""
    left = coordinator.left_over and occasion.change is None
    return Reason(LEFT_OVER, forced=True) if left else None


def stranded(coordinator: Coordinator, occasion: Occasion) -> Reason | None:
    """Something has changed, and a task that waits has no processor any more."""
    if occasion.change is None or not coordinator.stranded():
        return None
    return Reason(coordinator.in_words(Notice(event=occasion.change)), forced=True)


def policy(coordinator: Coordinator, occasion: Occasion) -> Reason | None:
    """The policy wants one, or there is more money; to say so, all that is known is read."""
    if coordinator.plan is None or not coordinator.is_rested(occasion.change):
        return None  # without a plan nothing of what waits can be run by who is there
    assert coordinator.policy is not None
    notice, situation = occasion.notice, coordinator.situation
    richer = isinstance(occasion.change, BudgetChanged) and coordinator.tracker.renewed
    if richer or coordinator.policy.decide(notice, situation(), coordinator.plan):
        return Reason(coordinator.in_words(notice))
    return None


LIMITS: tuple[Trigger, ...] = (look_at_money, look_at_deadline)  # whatever the policy
PLANNED: tuple[Trigger, ...] = (stranded, policy)


def first_reason(
    triggers: tuple[Trigger, ...], coordinator: Coordinator, occasion: Occasion
) -> Reason | None:
    """The reason of the first trigger that has one."""
    for trigger in triggers:
        reason = trigger(coordinator, occasion)
        if reason is not None:
            return reason
    return None


def reason_of(notice: Notice, state: RunState, workflow: Workflow, platform: Platform) -> str:
    """What the policy was woken by."""
    if notice.late_task is not None:
        return f"late start of {workflow.task_names[notice.late_task]}"
    event = notice.event
    if isinstance(event, NewEstimates):
        return f"{event.because}; new estimates" if event.because else "new estimates"
    assert event is not None
    match event:
        case BudgetChanged():
            return "more money"
        case Woken():
            return "rescheduling point"
        case RetryDue():
            return "tasks are tried again"
        case TaskFinished():
            task = state.attempt(event.attempt).task
            return f"{workflow.task_names[task]} was off its estimate"
        case TaskFailed():
            return f"{workflow.task_names[state.attempt(event.attempt).task]} failed"
        case SpeedChanged():
            return f"{platform.processor_names[event.processor]} changed its speed"
        case ProcessorJoined() | ProcessorGone() | ProcessorLeaving():
            return f"{platform.processor_names[event.processor]} {event.name}"
    return event.name.replace("_", " ")
