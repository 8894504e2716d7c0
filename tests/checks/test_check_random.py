"""The validator against a slow, obvious one: schedules of planners, damaged at random."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import foreplan
from foreplan import registry
from foreplan.checks.schedules import TOLERANCE
from foreplan.errors import InvalidScheduleError
from foreplan.model import Schedule, Situation
from twins.situations import UNIT, situations

pytestmark = pytest.mark.usefixtures("light_searches")


def worst_violation(s: Schedule, situation: Situation) -> float:
    """By how many seconds the worst broken rule is broken; no more than 0 when none is."""
    wf, pf, now = s.workflow, s.platform, situation.now
    cost = situation.estimates.cost
    begun: dict[int, tuple[int, float, float]] = {}
    facts = situation.attempts
    for k, t in enumerate(facts.task.tolist()):
        p, start, finish = int(facts.processor[k]), float(facts.start[k]), float(facts.finish[k])
        if isnan(finish):
            finish = max(now, start + cost[t, p])
        begun[t] = (p, start, finish)
    wrong = [0.0]
    for t in range(wf.n_tasks):
        p, start, finish = int(s.processor[t]), float(s.start[t]), float(s.finish[t])
        if t in begun:
            was_on, was_start, was_finish = begun[t]
            wrong += [inf if p != was_on else 0.0, abs(start - was_start), abs(finish - was_finish)]
            continue
        wrong += [now - start, abs(finish - start - cost[t, p])]
        wrong += [pf.joins[p] - start, finish - pf.leaves[p]]
        wrong += [available(s, situation, t, item) - start for item in inputs(s, t)]
    for a in range(wf.n_tasks):
        for b in range(a):
            if s.processor[a] == s.processor[b]:
                wrong.append(min(s.finish[a] - s.start[b], s.finish[b] - s.start[a]))
    return float(max(wrong))


def inputs(s: Schedule, task: int) -> list[int]:
    """The items that the task reads and some task makes."""
    wf = s.workflow
    return [
        item
        for item in range(wf.n_items)
        if wf.item_producer[item] >= 0
        and task in wf.use_task[wf.use_ptr[item] : wf.use_ptr[item + 1]]
    ]


def available(s: Schedule, situation: Situation, task: int, item: int) -> float:
    """When the item is where the task needs it."""
    pf, producer = s.platform, s.workflow.item_producer[item]
    source, target = pf.host[s.processor[producer]], pf.host[s.processor[task]]
    copies, moving = situation.copies, situation.transfers
    if (item, target) in zip(copies.item, copies.host, strict=True):
        return situation.now
    for what, where, arrival in zip(moving.item, moving.host, moving.arrival, strict=True):
        if (what, where) == (item, target):
            return float(arrival)
    if source == target:
        return float(s.finish[producer])
    took = (
        pf.startup[source, target] + s.workflow.item_size[item] * pf.time_per_unit[source, target]
    )
    return float(max(situation.now, s.finish[producer]) + took)


def damaged(draw: st.DrawFn, s: Schedule, situation: Situation) -> Schedule:
    """The schedule with one task, or two, put elsewhere."""
    processor, start, finish = s.processor.copy(), s.start.copy(), s.finish.copy()
    cost = situation.estimates.cost
    task = draw(st.integers(0, s.workflow.n_tasks - 1), label="task")
    other = draw(st.integers(0, s.workflow.n_tasks - 1), label="other")
    by = draw(st.sampled_from([-4, -2, -1, -0.5, 0.5, 1, 4]), label="by") * UNIT
    kind = draw(st.sampled_from(["shift", "start", "finish", "move", "refit", "swap", "follow"]))
    event(kind)
    if kind in ("shift", "start"):
        start[task] += by
    if kind in ("shift", "finish"):
        finish[task] += by
    if kind in ("move", "refit"):
        processor[task] = draw(st.integers(0, s.platform.n_processors - 1), label="processor")
    if kind == "refit":
        finish[task] = start[task] + cost[task, processor[task]]
    if kind == "swap":
        for array in (processor, start, finish):
            array[[task, other]] = array[[other, task]]
    if kind == "follow":
        processor[task], start[task] = processor[other], finish[other]
        finish[task] = start[task] + cost[task, processor[task]]
    return replace(s, processor=processor, start=start, finish=finish)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Situation, Schedule, Schedule]:
    """A situation, a planner's schedule for it, and the same schedule damaged."""
    situation = draw(situations(max_tasks=12))
    planner = registry.planner(draw(st.sampled_from(registry.planner_names()), label="planner"))
    schedule = planner.plan(situation)
    return situation, schedule, damaged(draw, schedule, situation)


@settings(max_examples=400, deadline=None)
@given(cases())
def test_a_damaged_schedule_is_found_out_or_is_valid(
    case: tuple[Situation, Schedule, Schedule],
) -> None:
    situation, schedule, mutated = case
    slop = TOLERANCE * max(1.0, schedule.makespan)
    foreplan.check_schedule(schedule, situation)
    assert worst_violation(schedule, situation) <= slop

    slop = TOLERANCE * max(1.0, mutated.makespan)
    worst = worst_violation(mutated, situation)
    told = violations(mutated, situation)
    event("found out" if told else "still valid")
    if told:
        assert worst > slop / 2, told
        names = mutated.workflow.task_names
        assert all(any(repr(name) in line for name in names) for line in told)
    else:
        assert worst <= 2 * slop


def violations(schedule: Schedule, situation: Situation) -> list[str]:
    try:
        foreplan.check_schedule(schedule, situation)
    except InvalidScheduleError as error:
        return error.violations
    return []


def test_the_slow_one_finds_each_kind_of_damage() -> None:
    # so that the comparison above is not between two that see nothing
    workflow = foreplan.load(
        {"tasks": {"a": {"cost": 2}, "b": {"cost": 3}, "c": {"cost": 1}}, "edges": [["a", "b", 4]]}
    )
    platform = foreplan.load_platform({"processors": {"p": {"leaves": 50}, "q": {}}})
    situation = Situation.at_start(workflow, platform)
    schedule = foreplan.plan(workflow, platform)
    foreplan.check_schedule(schedule)
    assert worst_violation(schedule, situation) == 0
    assert schedule.processor.tolist() == [0, 0, 1]
    for name, task, value, broken in [
        ("processor", 1, 1, 4),  # b without a's 4 units
        ("processor", 2, 0, 1),  # c on top of a
        ("start", 1, 1, 1),  # b too long, and 1 into a
        ("finish", 2, 3, 2),  # c too long
        ("start", 2, -1, 1),  # c too early
        ("finish", 1, 60, 55),  # b beyond the end of p
    ]:
        array = getattr(schedule, name).copy()
        array[task] = value
        assert worst_violation(replace(schedule, **{name: array}), situation) == broken
