"""Every registered planner gives what its slow, obvious twin gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from foreplan import registry
from foreplan.checks.schedules import check_schedule
from foreplan.model import Situation
from foreplan.scheduling.kernels.ranks import downward_rank
from foreplan.scheduling.planning import Planning
from repeated import FIRST, examples, repetitions
from twins import SEARCHES, TWINS
from twins.ranks import rank_d, rank_u
from twins.situations import random_situation, situations

SLOW = {"gain1", "gain2", "gain3"}  # twins that rebuild a schedule for every single change


def test_every_planner_has_a_twin() -> None:
    assert {*TWINS, *SEARCHES} == set(registry.planner_names())


@pytest.mark.parametrize("name", sorted(TWINS))
@pytest.mark.parametrize("exact", [True, False])
def test_same_as_twin(name: str, exact: bool) -> None:
    rng = np.random.default_rng([FIRST, len(name) + 1000 * exact])
    for _ in repetitions(8, 0.5) if name in SLOW else repetitions(80, 10):
        situation = random_situation(rng, exact=exact)
        _compare(name, situation, exact)


@given(situation=situations(exact=True))
@settings(max_examples=examples(40), deadline=None)
@pytest.mark.parametrize("name", sorted({*TWINS} - SLOW))
def test_same_as_twin_on_what_hypothesis_finds(name: str, situation: Situation) -> None:
    _compare(name, situation, exact=True)


def _compare(name: str, situation: Situation, exact: bool) -> None:
    twin = TWINS[name](situation)
    schedule = registry.planner(name).plan(situation)
    check_schedule(schedule, situation)
    tasks = range(situation.workflow.n_tasks)
    ours = {t: (int(schedule.processor[t]), schedule.start[t], schedule.finish[t]) for t in tasks}
    if exact:
        assert ours == twin
    else:
        assert [ours[t][0] for t in tasks] == [twin[t][0] for t in tasks]
        np.testing.assert_allclose(schedule.finish, [twin[t][2] for t in tasks], rtol=1e-9)


def test_ranks_same_as_twins() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        situation = random_situation(rng)
        planning = Planning(situation)
        up = planning.upward_rank
        down = downward_rank(planning.problem, planning.mean_cost, *planning.mean_link)
        for task, rank in rank_u(situation).items():
            assert up[task] == pytest.approx(rank, rel=1e-9)
        for task, rank in rank_d(situation).items():
            assert down[task] == pytest.approx(rank, rel=1e-9)
