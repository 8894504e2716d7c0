"""What holds for every registered planner, without a list of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreplan
from foreplan import registry
from foreplan.errors import PlanningError
from foreplan.model import Attempts, Platform, Schedule, Situation, Workflow
from twins.situations import random_instance, random_situation, situations

pytestmark = pytest.mark.usefixtures("light_searches")

every_planner = pytest.mark.parametrize("name", registry.planner_names())
few = settings(max_examples=25, deadline=None)


def planned(name: str, situation: Situation) -> Schedule:
    schedule = registry.planner(name).plan(situation)
    foreplan.check_schedule(schedule, situation)
    return schedule


def situation_of(workflow: dict[str, Any], platform: dict[str, Any]) -> Situation:
    return Situation.at_start(foreplan.load(workflow), foreplan.load_platform(platform))


def tasks(*costs: float) -> dict[str, Any]:
    return {f"t{i}": {"cost": cost} for i, cost in enumerate(costs)}


def machines(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"processors": {f"p{i}": given for i, given in enumerate(fields)}}


def rows(schedule: Schedule) -> list[list[float]]:
    return [schedule.processor.tolist(), schedule.start.tolist(), schedule.finish.tolist()]


@every_planner
@few
@given(situation=situations(max_tasks=12))
def test_the_same_plan_twice(name: str, situation: Situation) -> None:
    first, second = planned(name, situation), planned(name, situation)
    assert rows(first) == rows(second)
    assert first.planner == second.planner == name


@every_planner
@few
@given(situation=situations(max_tasks=12), random=st.randoms(use_true_random=False))
def test_names_do_not_matter(name: str, situation: Situation, random: Any) -> None:
    names = [f"{random.random()}" for _ in range(situation.workflow.n_tasks)]
    renamed = replace(situation.workflow, task_names=tuple(names))
    platform = situation.platform
    others = tuple(f"{random.random()}" for _ in platform.host_names)
    moved = replace(platform, host_names=others)
    other = replace(situation, workflow=renamed, platform=moved)
    assert rows(planned(name, situation)) == rows(planned(name, other))


@every_planner
def test_one_task_goes_to_its_fastest_processor(name: str) -> None:
    situation = situation_of({"tasks": tasks(6)}, machines({}, {"speed": 3}, {"speed": 2}))
    schedule = planned(name, situation)
    assert rows(schedule) == [[1], [0.0], [2.0]]


@every_planner
def test_no_edges_and_equal_processors(name: str) -> None:
    situation = situation_of({"tasks": tasks(4, 4, 4, 4, 4, 4)}, machines({}, {}, {}))
    schedule = planned(name, situation)
    assert schedule.makespan == 8.0
    assert schedule.busy.tolist() == [8.0, 8.0, 8.0]


@every_planner
def test_a_chain_with_costly_transfers_stays_on_one_processor(name: str) -> None:
    edges = [["t0", "t1", 100], ["t1", "t2", 100], ["t2", "t3", 100]]
    situation = situation_of({"tasks": tasks(1, 2, 3, 4), "edges": edges}, machines({}, {}))
    schedule = planned(name, situation)
    assert len(set(schedule.processor.tolist())) == 1
    assert schedule.start.tolist() == [0.0, 1.0, 3.0, 6.0]
    assert schedule.makespan == 10.0


@every_planner
@few
@given(n=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_one_processor_works_without_a_pause(name: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    situation = Situation.at_start(*random_instance(rng, n, 1, exact=True, changes=False))
    schedule = planned(name, situation)
    assert schedule.makespan == situation.estimates.cost.sum() == schedule.busy[0]


@every_planner
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_when_all_has_finished_the_plan_is_the_facts(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = random_situation(rng, at_start=True, changes=False)
    n, past = start.workflow.n_tasks, planned("heft", start)
    early = past.start + (past.finish - past.start) * rng.uniform(0, 1, n)
    order = rng.permutation(n).astype(np.int32)
    attempts = Attempts(order, past.processor[order], past.start[order], early[order])
    over = replace(start, attempts=attempts, now=past.makespan + 2)
    facts = planned(name, over)
    assert np.array_equal(facts.processor, past.processor)
    assert np.array_equal(facts.start, past.start)
    assert np.array_equal(facts.finish, early)


@every_planner
def test_a_running_task_keeps_its_processor_and_its_successor_waits(name: str) -> None:
    situation = situation_of({"tasks": tasks(5, 2), "edges": [["t0", "t1", 1]]}, machines({}, {}))
    t0, p1 = np.array([0], dtype=np.int32), np.array([1], dtype=np.int32)
    running = Attempts(t0, p1, np.array([1.0]), np.array([np.nan]))
    schedule = planned(name, replace(situation, attempts=running, now=3.0))
    assert [column[0] for column in rows(schedule)] == [1, 1.0, 6.0]
    after = {1: 6.0, 0: 7.0}  # on the same processor, or after a transfer
    assert schedule.start[1] == after[int(schedule.processor[1])]


@every_planner
def test_processors_that_leave_too_early(name: str) -> None:
    edges = [["t0", "t1", 1]]
    content = {"tasks": tasks(1, 5), "edges": edges}
    situation = situation_of(content, machines({"leaves": 3}, {"leaves": 4}))
    with pytest.raises(PlanningError, match="'t1'"):
        registry.planner(name).plan(situation)
    assert planned(name, situation_of(content, machines({"leaves": 6}, {"leaves": 4})))


@every_planner
def test_the_task_that_does_not_fit_is_named(name: str) -> None:
    edges = [["t1", "t2", 0], ["t2", "t0", 0]]
    situation = situation_of({"tasks": tasks(1, 1, 5), "edges": edges}, machines({"leaves": 3}))
    with pytest.raises(PlanningError, match="'t2'"):
        registry.planner(name).plan(situation)


@every_planner
def test_a_task_that_fits_on_one_processor_only(name: str) -> None:
    fields: list[dict[str, Any]] = [{"leaves": 3}, {"leaves": 3}, {"leaves": 3}, {"speed": 0.5}]
    schedule = planned(name, situation_of({"tasks": tasks(5, 1)}, machines(*fields)))
    assert schedule.processor[0] == 3


@every_planner
def test_no_processor_is_there_yet(name: str) -> None:
    situation = situation_of({"tasks": tasks(1)}, machines({"joins": 1}, {"joins": 2}))
    with pytest.raises(PlanningError, match="no processor"):
        registry.planner(name).plan(situation)
    assert planned(name, replace(situation, now=1.0)).start.tolist() == [1.0]


@every_planner
def test_no_processor_is_there_any_more(name: str) -> None:
    situation = situation_of({"tasks": tasks(1)}, machines({"leaves": 5}))
    with pytest.raises(PlanningError, match="no processor"):
        registry.planner(name).plan(replace(situation, now=5.0))


@every_planner
def test_a_task_that_costs_nothing(name: str) -> None:
    edges = [["t0", "t1", 0], ["t1", "t2", 0]]
    situation = situation_of({"tasks": tasks(2, 0, 3), "edges": edges}, machines({}, {}))
    schedule = planned(name, situation)
    assert schedule.makespan == 5.0
    assert schedule.start[1] == schedule.finish[1] == 2.0


@every_planner
def test_nothing_costs_anything(name: str) -> None:
    situation = situation_of({"tasks": tasks(0, 0, 0), "edges": [["t2", "t0"]]}, machines({}, {}))
    assert planned(name, situation).makespan == 0.0


@every_planner
@few
@given(situation=situations(max_tasks=15, at_start=True))
def test_no_plan_beats_the_critical_path_of_least_costs(name: str, situation: Situation) -> None:
    least = situation.estimates.cost.min(axis=1).tolist()
    _, producers, consumers = (c.tolist() for c in situation.workflow.dependencies())
    ends = [0.0] * situation.workflow.n_tasks
    for task in situation.workflow.order.tolist():
        before = [ends[p] for p, c in zip(producers, consumers, strict=True) if c == task]
        ends[task] = least[task] + max(before, default=0.0)
    schedule = planned(name, situation)
    assert schedule.makespan >= max(ends) * (1 - 1e-12)
    assert schedule.makespan >= sum(least) / situation.platform.n_processors * (1 - 1e-12)


@every_planner
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_twice_the_work_and_the_data_take_twice_as_long(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    workflow, platform = random_instance(rng, exact=False, changes=False)
    once = planned(name, Situation.at_start(workflow, platform))
    twice = planned(name, Situation.at_start(*doubled(workflow, platform)))
    assert np.array_equal(twice.processor, once.processor)
    assert np.array_equal(twice.start, once.start * 2)
    assert np.array_equal(twice.finish, once.finish * 2)


def doubled(workflow: Workflow, platform: Platform) -> tuple[Workflow, Platform]:
    """Costs, sizes and startups times two, which is exact in floating point."""
    costs = {name: column * 2 for name, column in workflow.processor_cost.items()}
    work = replace(
        workflow,
        base_cost=workflow.base_cost * 2,
        processor_cost=costs,
        item_size=workflow.item_size * 2,
    )
    return work, replace(platform, startup=platform.startup * 2)
