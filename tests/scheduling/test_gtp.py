"""GTP's planner: as its twin in any trouble, and what it may and may not move."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.errors import InvalidScheduleError, PlanningError
from foreplan.model import (
    Attempts,
    Copies,
    Estimates,
    Freedom,
    Item,
    Link,
    Platform,
    Processor,
    Reuse,
    Schedule,
    Situation,
    Workflow,
)
from twins import gtp as twin
from twins.troubles import troubled_situation

GTP = registry.planner("gtp")


def compare(situation: Situation, freedom: Freedom, exact: bool) -> Schedule:
    """The plan, which is valid and the twin's."""
    plan, other = GTP.plan(situation, freedom), twin(situation, freedom)
    check_schedule(plan, situation, freedom)
    tasks = range(situation.workflow.n_tasks)
    ours = {t: (int(plan.processor[t]), plan.start[t], plan.finish[t]) for t in tasks}
    if exact:
        assert ours == other
    else:
        assert [ours[t][0] for t in tasks] == [other[t][0] for t in tasks]
        np.testing.assert_allclose(plan.finish, [other[t][2] for t in tasks], rtol=1e-9)
    return plan


@pytest.mark.parametrize("freedom", Freedom)
@pytest.mark.parametrize("exact", [True, False])
def test_same_as_twin(exact: bool, freedom: Freedom) -> None:
    seen: Counter[str] = Counter()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        situation = troubled_situation(rng, exact, at_start=seed % 8 == 0)
        plan, a = compare(situation, freedom, exact), situation.attempts
        seen["moved"] += bool((plan.processor[a.task] != a.processor).any())
        seen["astray"] += situation.astray is not None
        seen["slow link"] += not situation.full_speed
        seen[situation.reuse.name] += len(situation.copies.item) > 0
    assert min(seen[name] for name in ("astray", "slow link", *Reuse.__members__)) > 10
    assert (seen["moved"] > 5) == (freedom == Freedom.RESTART)


@given(seed=st.integers(0, 2**32 - 1), freedom=st.sampled_from(Freedom))
@settings(max_examples=100, deadline=None)
def test_same_as_twin_on_what_hypothesis_finds(seed: int, freedom: Freedom) -> None:
    compare(troubled_situation(np.random.default_rng(seed), exact=True), freedom, exact=True)


def test_copies_do_matter() -> None:
    """Else nothing above would show that the cheapest one is used."""
    better = 0
    for seed in range(300):
        situation = troubled_situation(np.random.default_rng(seed))
        plans = [GTP.plan(replace(situation, reuse=reuse)) for reuse in Reuse]
        ends = [plan.finish.tolist() for plan in plans]
        assert ends[Reuse.NEVER] == ends[Reuse.IN_PLACE]  # which copies are left says the situation
        better += ends[Reuse.ANYWHERE] != ends[Reuse.IN_PLACE]
    assert better > 5


def machines(cost: list[list[float]], *items: Item) -> tuple[Workflow, Platform]:
    """Tasks a, b, c, ... by their costs on processors p0, p1, ..."""
    columns = {f"p{k}": np.array(column) for k, column in enumerate(zip(*cost, strict=True))}
    names = "abcdefgh"[: len(cost)]
    workflow = Workflow.from_items("w", list(names), [np.nan] * len(cost), list(items), columns)
    return workflow, Platform.build([Processor(p) for p in columns], Link(1.0))


def running(
    workflow: Workflow, platform: Platform, now: float, worked: dict[tuple[int, int], float]
) -> Situation:
    """Tasks run, each on a processor, and have done so much of their work by now."""
    pairs = list(worked)
    attempts = Attempts(
        np.array([t for t, _ in pairs]),
        np.array([p for _, p in pairs]),
        np.zeros(len(pairs)),
        np.full(len(pairs), np.nan),
        np.array(list(worked.values())),
        np.full(len(pairs), now),
    )
    estimates = Estimates.declared(workflow, platform)
    return Situation(workflow, platform, estimates, now=now, attempts=attempts)


@pytest.mark.parametrize(("worked", "where"), [(5.0, 1), (6.0, 0), (7.0, 0)])
def test_a_running_task_moves_only_if_that_is_sooner(worked: float, where: int) -> None:
    """Its work counts where it runs, and nowhere else; of equals it stays."""
    situation = running(*machines([[10.0, 4.0]]), 8.0, {(0, 0): worked})
    plan = compare(situation, Freedom.RESTART, exact=True)
    assert plan.processor.tolist() == [where]
    kept = compare(situation, Freedom.NOT_STARTED, exact=True)
    assert kept.processor.tolist() == [0]


def test_a_processor_is_free_once_what_runs_there_moves_away() -> None:
    situation = running(*machines([[100.0, 10.0], [3.0, 50.0]]), 5.0, {(0, 0): 0.0})
    plan = compare(situation, Freedom.RESTART, exact=True)
    assert plan.processor.tolist() == [1, 0]
    assert plan.start.tolist() == [5.0, 5.0]


def test_but_not_if_somebody_counts_on_its_end() -> None:
    """b comes first in rank and is placed after a, which then moves away all the same."""
    situation = running(*machines([[100.0, 90.0], [50.0, 900.0]]), 5.0, {(0, 0): 0.0})
    plan = compare(situation, Freedom.RESTART, exact=True)
    assert plan.processor.tolist() == [1, 0]
    assert plan.start.tolist() == [5.0, 105.0]


def test_somebody_may_count_on_it_and_take_no_time() -> None:
    """b takes no time, after a; then a moves away, and c must not begin before b and end after."""
    costs = [[200.0, 100.0], [0.0, 900.0], [149.0, 150.0]]
    situation = running(*machines(costs), 5.0, {(0, 0): 60.0})
    plan = compare(situation, Freedom.RESTART, exact=True)
    assert plan.processor[0] == 1
    assert plan.start[1] == 145.0


def test_what_ran_last_on_a_processor_that_leaves_is_not_sent_to_a_dead_one() -> None:
    """Nothing can be used any more, so that what runs had better stay."""
    situation = running(*machines([[100.0, 1.0]]), 10.0, {(0, 0): 10.0})
    leaving = replace(situation.platform, leaves=np.array([10.0, np.inf]))
    situation = replace(situation, platform=leaving, present=np.array([True, False]))
    plan = GTP.plan(situation, Freedom.RESTART)
    assert plan.processor.tolist() == [0]


def test_what_cannot_end_before_its_processor_leaves_moves() -> None:
    """It would end first where it is, but is lost there at 50."""
    situation = running(*machines([[100.0, 100.0]]), 10.0, {(0, 0): 10.0})
    leaving = replace(situation.platform, leaves=np.array([50.0, np.inf]))
    situation = replace(situation, platform=leaving)
    assert GTP.plan(situation, Freedom.RESTART).processor.tolist() == [1]


def test_what_can_end_nowhere_in_time_stays() -> None:
    situation = running(*machines([[100.0, 100.0]]), 10.0, {(0, 0): 10.0})
    leaving = replace(situation.platform, leaves=np.array([50.0, 60.0]))
    situation = replace(situation, platform=leaving)
    assert GTP.plan(situation, Freedom.RESTART).processor.tolist() == [0]


def test_an_item_astray_comes_from_its_copy() -> None:
    """a was done on p0, which has lost its result; p2 has a copy."""
    workflow, platform = machines([[1.0, 1.0, 1.0], [9.0, 5.0, 9.0]], Item(3.0, 0, [1]))
    done = Attempts(np.array([0]), np.array([0]), np.zeros(1), np.ones(1))
    situation = Situation(
        workflow,
        platform,
        Estimates.declared(workflow, platform),
        now=10.0,
        attempts=done,
        copies=Copies(np.array([0]), np.array([2])),
        astray=np.array([True]),
    )
    plan = compare(situation, Freedom.RESTART, exact=True)
    assert (plan.processor[1], plan.start[1]) == (1, 13.0)
    slow = np.ones((3, 3))
    slow[2, 1] = 0.25
    plan = compare(replace(situation, bandwidth=slow), Freedom.RESTART, exact=True)
    assert (plan.processor[1], plan.start[1]) == (2, 10.0)
    nowhere = replace(situation, copies=Copies())
    with pytest.raises((PlanningError, InvalidScheduleError)):
        check_schedule(GTP.plan(nowhere), nowhere)
