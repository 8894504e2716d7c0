"""The projection: what the plan at hand gives from now on, at any moment of a run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from foreplan.checks.schedules import check_schedule
from foreplan.engine.coordinator import Coordinator
from foreplan.model import Link, Processor, Schedule, Situation
from foreplan.model.platform import Platform
from foreplan.scheduling.projection import project, projected_makespan
from foreplan.simulation.reality import Reality
from simulation.adapting import (
    AVAILABILITY,
    case_of,
    exact_instance,
    first_plan,
    made,
    moments_of,
    plain,
    watched,
)
from simulation.worlds import Case


def projections(case: Case, spec: str, since: float = 0.0) -> list[Schedule]:
    """At every event from a time on: checked against the situation that it is made for."""
    found = []

    def see(coordinator: Coordinator) -> None:
        plan, situation = coordinator.plan, coordinator.situation()
        assert plan is not None
        if situation.now < since:
            return
        projection = project(plan, situation)
        assert projection is not None
        check_schedule(projection, situation)
        begun = np.zeros(plan.workflow.n_tasks, dtype=np.bool_)
        begun[situation.attempts.task] = True
        assert (projection.start[~begun] >= situation.now).all()
        np.testing.assert_array_equal(projection.processor, plan.processor)
        assert projected_makespan(plan, situation) == projection.makespan
        found.append(projection)

    watched(case, spec, see)
    return found


@pytest.mark.parametrize("spec", ["static", "static[planner=dls]", "static[planner=min-min]"])
def test_as_estimated_it_is_what_the_run_gives(spec: str) -> None:
    looked_at = 0
    for seed in range(14):
        case = exact_instance(np.random.default_rng(seed))
        run = case.run(spec)
        last = run.final_attempts()
        for projection in projections(case, spec):
            assert projection.makespan == pytest.approx(run.makespan, rel=1e-9)
            np.testing.assert_allclose(projection.start, run.attempts.start[last], rtol=1e-9)
            looked_at += 1
    assert looked_at > 200


def test_it_reckons_with_the_speeds_of_now() -> None:
    """After the last change of speed nothing comes as a surprise."""
    slowed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        case = exact_instance(rng)
        times = sorted(set(moments_of(rng, first_plan(case), 4)))
        changes = [
            AVAILABILITY.of(int(rng.integers(0, case.platform.n_processors)), t, float(value))
            for t, value in zip(times, rng.uniform(0.2, 1, 4), strict=False)
        ]
        case = case_of(case.workflow, case.platform, changes)
        run = case.run("static")
        slowed += run.makespan > first_plan(case).makespan * 1.01
        for projection in projections(case, "static", since=max(times)):
            assert projection.makespan == pytest.approx(run.makespan, rel=1e-9)
    assert slowed > 10


def keep(seen: list[Situation], coordinator: Coordinator) -> None:
    seen.append(coordinator.situation())


def test_between_two_events() -> None:
    """Time alone changes nothing, as long as nothing is late."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        case = exact_instance(rng)
        run, seen = case.run("static"), list[Situation]()
        watched(case, "static", partial(keep, seen))
        for here, after in pairwise(seen):
            between = replace(here, now=(here.now + after.now) / 2)
            projection = project(run.plans[0], between)
            assert projection is not None
            assert projection.makespan == pytest.approx(run.makespan, rel=1e-9)


def half_way(at: float = 5.0) -> tuple[Schedule, Situation]:
    """t0 runs on p0 until 10; then t1 there until 20, and t2 on p1 from 13 until 23."""
    workflow = made({"p0": [10, 10, 99], "p1": [99, 99, 10]}, [(0, 1, 3), (0, 2, 3)])
    case, found = case_of(workflow, plain(1, 1)), list[Situation]()

    def see(coordinator: Coordinator) -> None:
        if not found:
            found.append(coordinator.situation())

    watched(case, "static", see)
    return case.run("static").plans[0], replace(found[0], now=at)


def leaves(situation: Situation, processor: int, time: float) -> Situation:
    left = situation.platform.leaves.copy()
    left[processor] = time
    return replace(situation, platform=replace(situation.platform, leaves=left))


def test_a_processor_that_is_gone() -> None:
    plan, situation = half_way()
    assert plan.finish.tolist() == [10, 20, 23]
    assert projected_makespan(plan, situation) == 23
    assert project(plan, replace(situation, present=np.array([True, False]))) is None
    nobody = replace(situation, present=np.array([False, False]))
    assert project(plan, nobody) is None
    assert projected_makespan(plan, nobody) == np.inf


@pytest.mark.parametrize(("processor", "time", "fits"), [
    (1, 22.9, False), (1, 23.0, True), (0, 19.0, False), (0, 20.0, True), (1, 5.0, False),
])  # fmt: skip
def test_a_processor_that_leaves(processor: int, time: float, fits: bool) -> None:
    plan, situation = half_way()
    projection = project(plan, leaves(situation, processor, time))
    assert (projection is not None) == fits
    if projection is not None:
        assert projection.makespan == 23


def test_an_overdue_task_is_expected_now() -> None:
    plan, situation = half_way(at=14.0)
    projection = project(plan, situation)
    assert projection is not None
    assert projection.finish.tolist() == [14, 24, 27]


def test_its_order_is_the_plans() -> None:
    """No task slips into a gap before one that the plan has first, however late that one is."""
    workflow = made({"p0": [2, 9, 99], "p1": [99, 99, 3]}, [(2, 0, 30)])
    platform = plain(1, 1)
    start = Situation.at_start(workflow, platform)
    plan = Schedule("by hand", workflow, platform, np.array([0, 0, 1]), np.array([33.0, 35, 0]),
                    np.array([35.0, 44, 3]))  # fmt: skip
    projection = project(plan, start)
    assert projection is not None
    assert projection.start.tolist() == [33, 35, 0]
    other = replace(plan, start=np.array([33.0, 0, 0]), finish=np.array([35.0, 9, 3]))
    projection = project(other, start)
    assert projection is not None
    assert projection.start.tolist() == [33, 0, 0]


def test_processors_that_came_later() -> None:
    """The plan knows two of the three."""
    plan, situation = half_way()
    processors = [Processor(f"p{i}") for i in range(3)]
    grown = Platform.build(processors, Link(1.0))
    cost = np.concatenate([situation.estimates.cost, np.ones((3, 1))], axis=1)
    more = replace(
        situation,
        platform=grown,
        estimates=replace(situation.estimates, cost=cost),
        present=np.ones(3, dtype=np.bool_),
        availability=np.ones(3),
    )
    projection = project(plan, more)
    assert projection is not None
    assert projection.makespan == 23
    assert projection.processor.tolist() == [0, 0, 1]


def test_it_changes_nothing() -> None:
    case = exact_instance(np.random.default_rng(8))
    work = case.reality.work * 1.3
    late = Case(case.workflow, case.platform, Reality(work, []))

    def see(coordinator: Coordinator) -> None:
        plan = coordinator.plan
        assert plan is not None
        before = [plan.start.tobytes(), plan.finish.tobytes(), plan.processor.tobytes()]
        twice = [project(plan, coordinator.situation()) for _ in range(2)]
        assert before == [plan.start.tobytes(), plan.finish.tobytes(), plan.processor.tobytes()]
        assert twice[0] is not None
        assert twice[1] is not None
        np.testing.assert_array_equal(twice[0].finish, twice[1].finish)

    watched(late, "static", see)
