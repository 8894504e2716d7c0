"""What tasks wait for that have not started, as far as the state of a run tells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from foreplan.arrays import BoolArray, IntArray
from foreplan.engine.hard_limit import worst_cost
from foreplan.engine.state import TaskState
from foreplan.errors import rounded_up
from foreplan.model import affordable
from foreplan.quantities import amount, duration

if TYPE_CHECKING:
    from foreplan.engine.coordinator import Coordinator

SHOWN = 2  # tasks that one waits for


class Waiting(NamedTuple):
    """A task, and what it waits for."""

    task: str
    reason: str


def lacking(coordinator: Coordinator) -> BoolArray:
    """By task, whether some task that it needs is not done."""
    workflow = coordinator.workflow
    _, producers, consumers = workflow.dependencies()
    mask: BoolArray = np.zeros(workflow.n_tasks, dtype=np.bool_)
    mask[consumers[~_done(coordinator)[producers]]] = True
    return mask


def _done(coordinator: Coordinator) -> BoolArray:
    mask: BoolArray = np.zeros(coordinator.workflow.n_tasks, dtype=np.bool_)
    mask[coordinator.state.tasks(TaskState.DONE)] = True
    return mask


def next_ones(coordinator: Coordinator, most: int) -> tuple[list[Waiting], int]:
    """The tasks that are expected to start next, and how many have all that they need."""
    state = coordinator.state
    waiting = state.tasks(TaskState.WAITING)
    lack = lacking(coordinator)[waiting]
    found: list[int] = []
    for group in (waiting[~lack], waiting[lack]):
        found += _in_order(coordinator, group, most - len(found))
    names = coordinator.workflow.task_names
    return [Waiting(names[task], reason(coordinator, task)) for task in found], int((~lack).sum())


def _in_order(coordinator: Coordinator, tasks: IntArray, most: int) -> list[int]:
    """The first few, by their planned starts or else by the graph."""
    plan = coordinator.plan
    key = coordinator.workflow.position[tasks] if plan is None else plan.start[tasks]
    order: list[int] = tasks[np.argsort(key, kind="stable")[: max(0, most)]].tolist()
    return order


def needed_by(coordinator: Coordinator, task: int) -> list[int]:
    """The tasks that a task needs and that are not done."""
    workflow, done = coordinator.workflow, _done(coordinator)
    read = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]]
    made_by = workflow.item_producer[read]
    return [t for t in dict.fromkeys(made_by[made_by >= 0].tolist()) if not done[t]]


def reason(coordinator: Coordinator, task: int) -> str:
    """What a task waits for: other tasks, money, a plan, data on their way, or its processor."""
    state, workflow = coordinator.state, coordinator.workflow
    if math.isfinite(until := state.rests_until(task)):
        return f"rests after a failure: it is tried again at {duration(until)}"
    if needed := needed_by(coordinator, task):
        return _others(coordinator, needed)
    if state.held_back:
        return _held_back(coordinator)
    if not state.present().any():
        return "waits for a processor: none is there"
    if coordinator.asked is not None:
        return "waits for a plan, which is being made"
    p, known = int(state.places()[task]), coordinator.platform.processor_names
    if not 0 <= p < len(known):  # one may just be joining
        return "waits for a processor"
    name = known[p]
    if not state.has_inputs(task):
        return f"waits for its data to be on {name}"
    for attempt in state.running():
        if attempt.processor == p:
            return f"waits for {name}, which runs {workflow.task_names[attempt.task]}"
    queue = state.queue(p)
    if len(queue) and queue[0] != task:
        return f"waits for {name}, where {workflow.task_names[queue[0]]} comes first"
    if coordinator.tracker.cuts:
        most = worst_cost(coordinator, task, p)
        if not affordable(most, coordinator.tracker.budget):
            budget = amount(coordinator.tracker.budget)
            return f"waits for money: with it, {rounded_up(most)} of {budget} may be spent"
    return f"is about to start on {name}"


def _held_back(coordinator: Coordinator) -> str:
    """Why nothing new is started."""
    tracker = coordinator.tracker
    if not tracker.holds:
        return "nothing new is started any more"
    needed = "" if math.isnan(tracker.needed) else f", {rounded_up(tracker.needed)} would be"
    return f"waits for money: the budget of {amount(tracker.budget)} is not enough{needed}"


def _others(coordinator: Coordinator, needed: list[int]) -> str:
    """Those that run are told first: they are what it takes."""
    names, running = coordinator.workflow.task_names, coordinator.state.running()
    under_way = {attempt.task for attempt in running}
    needed.sort(key=lambda task: task not in under_way)
    said = [names[t] + (" (running)" if t in under_way else "") for t in needed[:SHOWN]]
    more = f" and {len(needed) - SHOWN:,} more" if len(needed) > SHOWN else ""
    return f"waits for {', '.join(said)}{more}"
