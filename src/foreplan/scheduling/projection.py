"""Projection: what a plan is expected to give from now, with what is known now."""

from __future__ import annotations

from dataclasses import replace

from foreplan.contracts import Planner
from foreplan.errors import PlanningError
from foreplan.model import Schedule, Situation
from foreplan.model.situation import Copies, Transfers
from foreplan.scheduling.planning import planning_of

ROUNDING = 1e-9  # of the makespan: what differs by less is the same


def ends_earlier(makespan: float, than: float) -> bool:
    """Whether a plan is better than another, by more than rounding."""
    return makespan < than * (1 - ROUNDING)


def project(plan: Schedule, situation: Situation) -> Schedule | None:
    """The plan from now on: each task where and in the order in which it stands there.

    What has begun is as it is. None if the plan cannot be followed: a processor is gone, or leaves
    before what is planned on it can be done.
    """
    try:
        planning = planning_of(situation)
    except PlanningError:  # nobody is there
        return None
    pins, movable = planning.number[plan.processor], planning.problem.movable
    if bool((pins[movable] < 0).any()):
        return None
    order = plan.in_time[movable[plan.in_time]]
    if planning.fitting is not None:
        followed = planning.fitting.follow(plan, order)
        return None if followed is None else planning.schedule(plan.planner, followed)
    placement = planning.place(order, pinned=pins, insertion=False)
    if bool((placement[0][movable] != pins[movable]).any()):
        return None
    return planning.schedule(plan.planner, placement)


def second_opinion(planner: Planner, situation: Situation, first: Schedule) -> Schedule:
    """The better of a plan and a second one, which forgets what was sent before (Yu, Shi, (1)).

    To the letter of case 2, outputs of finished jobs leave for other machines now: clock + c. The
    plan that follows is another try; what it gives is told by its projection, where all that was
    sent arrives when it does.
    """
    if situation.astray is not None and bool(situation.astray.any()):
        return first  # a copy elsewhere may be all that is left
    if not len(situation.copies.item) and not len(situation.transfers.item):
        return first  # nothing to forget
    try:
        forgetful = replace(situation, copies=Copies(), transfers=Transfers())
        other = project(planner.plan(forgetful), situation)
    except PlanningError:
        return first
    return first if other is None or not ends_earlier(other.makespan, first.makespan) else other


def projected_makespan(plan: Schedule, situation: Situation) -> float:
    """When the plan is expected to end; infinite if it cannot be followed."""
    projection = project(plan, situation)
    return float("inf") if projection is None else projection.makespan
