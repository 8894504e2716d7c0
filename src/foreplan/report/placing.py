"""Why a task is where it is, and not elsewhere: what each processor would have given."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from foreplan import registry
from foreplan.contracts import Dispatch, is_order
from foreplan.display.waiting import needed_by
from foreplan.model import forecast
from foreplan.model.resources import Cores
from foreplan.model.situation import Attempts
from foreplan.quantities import amount, duration
from foreplan.runs.money import costs_money
from foreplan.scheduling.planning import planning_of
from foreplan.scheduling.projection import project

if TYPE_CHECKING:
    from foreplan.engine.coordinator import Coordinator
    from foreplan.model import Schedule, Situation
    from foreplan.runs.replay import Replayed

MOST = 24  # processors that are reckoned with: the chosen one, and the fastest for the task
ROUNDING = 1e-6  # what differs by less is the same


@dataclass(frozen=True)
class OtherPlace:
    """A processor; the times are the run's own. What is None cannot be told, or cannot be."""

    processor: str
    host: str
    chosen: bool
    doing: str  # what it does at that moment
    finish: float | None = None  # of the task, if it were there
    makespan: float | None = None  # of the whole run then
    cost: float | None = None  # the same, where anything has a price
    lacks: tuple[str, ...] = ()  # inputs that its host does not have


@dataclass(frozen=True)
class Placing:
    """Where a task is, who has put it there, and what the others would have given."""

    processor: str | None  # None: it has none yet
    by: str
    at: float  # the moment that the others are judged by
    begun: bool  # it has started there
    verdict: str
    alternatives: tuple[OtherPlace, ...]
    left_out: int = 0  # processors that were not reckoned with


def place_of(replayed: Replayed, task: int, *, begun: bool, driven: bool = True) -> Placing:
    """Where a task is by the state of a run; that of the moment of its start, if it has begun.

    What nobody drives does nothing.
    """
    coordinator = replayed.driver.coordinator
    p, names = _processor(coordinator, task), coordinator.platform.processor_names
    situation = _without(coordinator.situation(), task)
    shown = _reckoned(situation, task, p)
    doing = _doing(coordinator, task) if driven else {}
    rows = _rows(replayed, situation, doing, task, p, shown)
    return Placing(
        names[p] if 0 <= p < len(names) else None,
        _chosen_by(replayed, p),
        coordinator.now,
        begun,
        _verdict(rows, coordinator, begun),
        rows,
        len(names) - len(shown),
    )


def _processor(coordinator: Coordinator, task: int) -> int:
    """Where a task is, or is to be by the plan; -1 if it has no place."""
    p, plan = int(coordinator.state.places()[task]), coordinator.plan
    if p < 0 and plan is not None:  # by former rules nobody has told the state yet
        planned = int(plan.processor[task])
        return planned if coordinator.state.present()[planned] else -1
    return p


def _without(situation: Situation, task: int) -> Situation:
    """The situation as if a task had not begun."""
    a = situation.attempts
    keep = a.task != task
    worked, since = a.worked, a.since
    assert worked is not None
    assert since is not None
    left = Attempts(
        a.task[keep], a.processor[keep], a.start[keep], a.finish[keep], worked[keep], since[keep]
    )
    return replace(situation, attempts=left)


def _reckoned(situation: Situation, task: int, chosen: int) -> list[int]:
    """The processors to reckon with, in their order."""
    order = np.argsort(situation.cost[task], kind="stable").tolist()
    first = [p for p in order if p == chosen] + [p for p in order if p != chosen]
    return sorted(first[:MOST])


def _rows(
    replayed: Replayed,
    situation: Situation,
    doing: dict[int, str],
    task: int,
    chosen: int,
    shown: list[int],
) -> tuple[OtherPlace, ...]:
    coordinator = replayed.driver.coordinator
    platform, plan = coordinator.platform, coordinator.plan
    priced, usable = costs_money(platform), situation.usable()
    lacks = _lacks(coordinator, task)
    reckons = _reckons(replayed)
    rows = []
    for p in shown:
        row = OtherPlace(
            platform.processor_names[p],
            platform.host_names[platform.host[p]],
            p == chosen,
            doing.get(p, "idle" if usable[p] else "gone"),
            lacks=lacks.get(int(platform.host[p]), ()),
        )
        if usable[p] and plan is not None:
            there = _elsewhere(plan, situation, task, p)
            if there is not None:
                cost = forecast(there, situation).projected if priced else None
                row = replace(
                    row, finish=float(there.finish[task]), makespan=there.makespan, cost=cost
                )
        elif usable[p] and reckons and not needed_by(coordinator, task):
            row = replace(row, finish=_alone(situation, task, p))
        rows.append(row)
    return tuple(rows)


def _reckons(replayed: Replayed) -> bool:
    """Whether the strategy, without a plan, goes by estimates."""
    chosen, _ = registry.strategy(replayed.header.strategy)
    return is_order(chosen) and chosen.dispatch == Dispatch.MIN_MIN


def _elsewhere(plan: Schedule, situation: Situation, task: int, p: int) -> Schedule | None:
    """The plan from now on, but for one task that is on another processor."""
    processor = plan.processor.copy()
    processor[task] = p
    if plan.cores is None:
        return project(replace(plan, processor=processor), situation)
    cores = _cores_with(plan, situation, task, p)
    if cores is None:
        return None
    return project(replace(plan, processor=processor, cores=cores), situation)


def _cores_with(plan: Schedule, situation: Situation, task: int, p: int) -> Cores | None:
    """The cores of all tasks if one has this processor and those that come next on its host."""
    assert plan.cores is not None
    host, ptr, width = situation.platform.host, plan.cores.ptr, int(plan.cores.width[task])
    demand = situation.demand
    there = np.flatnonzero((host == host[p]) & situation.usable())
    there = np.concatenate([[p], there[there > p], there[there < p]])[:width]
    if len(there) < width or (demand is not None and not demand.allowed[task, host[p]]):
        return None
    processor = plan.cores.processor.copy()
    processor[ptr[task] : ptr[task + 1]] = there
    return Cores(ptr, processor)


def _alone(situation: Situation, task: int, p: int) -> float | None:
    """When a ready task would end on a processor that does it next."""
    planning = planning_of(situation)
    pins = np.full(situation.workflow.n_tasks, -1, dtype=np.int32)
    pins[task] = planning.number[p]
    placement = planning.place(np.array([task], dtype=np.int32), pinned=pins)
    end = float(placement.finish[task])
    return end if math.isfinite(end) else None


def _doing(coordinator: Coordinator, task: int) -> dict[int, str]:
    names = coordinator.workflow.task_names
    running = coordinator.state.running()
    return {k.processor: f"runs {names[k.task]}" for k in running if k.task != task}


def _lacks(coordinator: Coordinator, task: int) -> dict[int, tuple[str, ...]]:
    """By host, what a task reads that is made, but not there; nothing if all is on one host."""
    workflow, platform, state = coordinator.workflow, coordinator.platform, coordinator.state
    if platform.n_hosts < 2:
        return {}
    read = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]].tolist()
    held, names = set(state.items_held()), workflow.item_names
    producer = workflow.item_producer
    made = [i for i in read if producer[i] >= 0 and any(item == i for item, _ in held)]

    def called(item: int) -> str:
        name = None if names is None else names[item]
        return name or f"the result of {workflow.task_names[producer[item]]}"

    hosts = range(platform.n_hosts)
    return {h: tuple(called(i) for i in made if (i, h) not in held) for h in hosts}


def _chosen_by(replayed: Replayed, p: int) -> str:
    """Who has decided on the place."""
    driver, header = replayed.driver, replayed.header
    coordinator = driver.coordinator
    if coordinator.plan is None:
        name = header.strategy
        if coordinator.policy is not None:
            return f"`{name}`, which has no plan yet"
        if _reckons(replayed):
            return f"`{name}`, without a plan: a ready task goes where it is done soonest"
        first = f"`{name}`, without a plan: a processor that is free gets the first ready task"
        return first if p >= 0 else f"{first}; it has none yet"
    made = driver.plan_times[-1] if driver.plan_times else 0.0
    text = f"the plan of {duration(made)} by {coordinator.plan.planner}"
    if len(driver.plans) > 1:
        taken = [e for e in coordinator.evaluations if e.taken]
        text += f" ({taken[-1].reason})" if taken else ""
    return text


def _verdict(rows: tuple[OtherPlace, ...], coordinator: Coordinator, begun: bool) -> str:
    """Why the place is the best, or what speaks for another."""
    chosen = next((row for row in rows if row.chosen), None)
    if chosen is None:
        return ""
    others = [row for row in rows if not row.chosen and row.doing != "gone"]
    if not others:
        return "no other processor is there"
    if chosen.finish is None:
        return _by_turn(chosen, others) if coordinator.plan is None else ""
    sooner = [r for r in others if _less(r.finish, chosen.finish)]
    if not sooner:
        return "nowhere would it end sooner"
    best = min(sooner, key=lambda row: (row.finish or 0.0, row.processor))
    said = f"on {best.processor} it would end sooner ({duration(best.finish or 0.0)})"
    if best.cost is not None and _less(chosen.cost, best.cost):
        costs = f"{amount(best.cost)} instead of {amount(chosen.cost or 0.0)}"
        return f"{said}, but all of it would cost {costs}"
    if chosen.makespan is None:
        return said
    if not any(_less(row.makespan, chosen.makespan) for row in others):
        return f"{said}, but the run would not"
    known = "was known at its start" if begun else "is known now"
    return f"{said}, by what {known}: the plan is older"


def _by_turn(chosen: OtherPlace, others: list[OtherPlace]) -> str:
    busy = [row for row in others if row.doing != "idle"]
    if len(busy) == len(others):
        return "no other processor was free"
    return "it was free, and its turn came first"


def _less(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one < other * (1 - ROUNDING) - 1e-9
