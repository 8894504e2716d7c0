"""Processors that are slower now: every planner plans with what tasks take on them as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from foreplan import registry
from foreplan.arrays import FloatArray
from foreplan.checks.schedules import check_schedule
from foreplan.ends import STANDS_STILL
from foreplan.errors import PlanningError
from foreplan.model import (
    Attempts,
    Estimates,
    Platform,
    Processor,
    Schedule,
    Situation,
    Workflow,
)
from twins.situations import random_situation

pytestmark = pytest.mark.usefixtures("light_searches")
PLANNERS = registry.planner_names()


def slowed(seed: int, at_start: bool) -> Situation:
    """Halves and quarters, so that nothing is rounded, and one that stands still."""
    rng = np.random.default_rng(seed)
    situation = random_situation(rng, 15, 4, exact=True, changes=False, at_start=at_start)
    availability = rng.choice([0.25, 0.5, 1.0], 4)
    if rng.random() < 0.3:
        availability[int(rng.integers(1, 4))] = 0.0
    return replace(situation, availability=availability)


def as_estimated(situation: Situation) -> Situation:
    """The same with all fully available: costs are higher, and so is the work that was done."""
    a, availability = situation.attempts, situation.availability
    assert availability is not None
    assert a.worked is not None
    assert a.since is not None
    rate: FloatArray = np.maximum(availability, STANDS_STILL)
    return replace(
        situation,
        availability=None,
        estimates=Estimates(situation.estimates.cost / rate),
        attempts=Attempts(
            a.task, a.processor, a.start, a.finish, a.worked / rate[a.processor], a.since
        ),
    )


def planned(planner: str, situation: Situation) -> Schedule | None:
    try:
        return registry.planner(planner).plan(situation)
    except PlanningError:
        return None


# gtp ranks by what tasks take at full availability, whatever machines give now
@pytest.mark.parametrize("planner", sorted({*PLANNERS} - {"gtp"}))
@pytest.mark.parametrize("at_start", [True, False])
def test_as_if_estimated_so(planner: str, at_start: bool) -> None:
    slower = 0
    for seed in range(12):
        situation = slowed(seed, at_start)
        still = situation.availability is not None and bool((situation.availability == 0).any())
        if still and not at_start:
            continue  # what stands still has done its work at the speed of before
        plan, other = planned(planner, situation), planned(planner, as_estimated(situation))
        assert plan is not None
        assert other is not None
        check_schedule(plan, situation)
        np.testing.assert_array_equal(plan.processor, other.processor)
        np.testing.assert_allclose(plan.finish, other.finish, rtol=1e-12)
        full = planned(planner, replace(situation, availability=None))
        assert full is not None
        slower += plan.makespan > full.makespan
    assert slower > (4 if at_start else 1)


def test_gtp_ranks_at_full_availability_and_places_with_what_there_is() -> None:
    """The order stays as it is if one is slow; where tasks go does not."""
    workflow = Workflow.from_items("w", ["long", "short"], [9.0, 6.0], [])
    platform = Platform.build([Processor("p0"), Processor("p1", speed=0.5)])
    situation = Situation.at_start(workflow, platform)
    plan = registry.planner("gtp").plan(situation)
    assert plan.processor.tolist() == [0, 1]
    slow = replace(situation, availability=np.array([0.25, 1.0]))
    plan = registry.planner("gtp").plan(slow)
    check_schedule(plan, slow)
    assert plan.processor.tolist() == [1, 0]
    assert plan.finish.tolist() == [18.0, 24.0]


@pytest.mark.parametrize("planner", sorted({*PLANNERS} - {"fcp"}))  # which asks who is idle first
def test_a_processor_that_stands_still_is_avoided(planner: str) -> None:
    """Ten independent tasks, three machines, one of which stands still."""
    workflow = Workflow.from_items("w", [f"t{i}" for i in range(10)], [5.0] * 10, [])
    platform = Platform.build([Processor(f"p{i}") for i in range(3)])
    situation = replace(
        Situation.at_start(workflow, platform), availability=np.array([1.0, 0.0, 1.0])
    )
    plan = registry.planner(planner).plan(situation)
    assert 1 not in plan.processor
    assert plan.makespan == 25
    check_schedule(plan, situation)


@pytest.mark.parametrize("planner", PLANNERS)
def test_only_who_is_there(planner: str) -> None:
    """What the platform says of joins counts no more once it is known who is there."""
    for seed in range(6):
        situation = random_situation(np.random.default_rng(seed), 12, 4, changes=False)
        present = np.array([True, False, True, False])
        plan = planned(planner, replace(situation, present=present))
        assert plan is not None
        begun = set(situation.attempts.task.tolist())
        others = [t for t in range(12) if t not in begun]
        assert set(plan.processor[others].tolist()) <= {0, 2}
