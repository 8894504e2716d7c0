"""Every registered planner gives what its slow, obvious twin gives, plain and compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from twins import SEARCHES, TWINS
from twins.ranks import rank_d, rank_u
from twins.situations import random_situation, situations
from weft import registry
from weft.kernels import compiled
from weft.kernels.placement import twice_as_long
from weft.kernels.ranks import downward_rank, upward_rank
from weft.model import Situation, check_schedule
from weft.planning import Planning

SLOW = {"gain1", "gain2", "gain3"}  # twins that rebuild a schedule for every single change


@pytest.fixture
def speed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kernels as plain Python, or compiled."""
    wanted: str = request.param
    monkeypatch.setattr("weft.planning.pays", lambda work, kernel: wanted == "compiled")
    return wanted


def test_every_planner_has_a_twin() -> None:
    assert {*TWINS, *SEARCHES} == set(registry.planner_names())


@pytest.mark.parametrize("speed", ["plain", "compiled"], indirect=True)
@pytest.mark.parametrize("name", sorted(TWINS))
@pytest.mark.parametrize("exact", [True, False])
def test_same_as_twin(name: str, exact: bool, speed: str) -> None:
    rng = np.random.default_rng(len(name) + 1000 * exact)
    rounds = 60 if speed == "plain" else 200
    for _ in range(rounds // 12 if name in SLOW else rounds):
        situation = random_situation(rng, exact=exact)
        _compare(name, situation, exact)


@given(situation=situations(exact=True))
@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("speed", ["plain", "compiled"], indirect=True)
def test_ranks_same_as_twins(speed: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        situation = random_situation(rng)
        planning = Planning(situation)
        up = planning.upward_rank
        down = planning.run(downward_rank, planning.mean_cost, *planning.mean_link)
        for task, rank in rank_u(situation).items():
            assert up[task] == pytest.approx(rank, rel=1e-9)
        for task, rank in rank_d(situation).items():
            assert down[task] == pytest.approx(rank, rel=1e-9)


@pytest.mark.parametrize(("known", "calls"), [(True, 2), (False, 2 * compiled.ANEW)])
def test_small_work_runs_plain_until_compiling_would_have_paid(
    monkeypatch: pytest.MonkeyPatch, known: bool, calls: int
) -> None:
    monkeypatch.setattr(compiled, "_compiled", {})
    monkeypatch.setattr(compiled, "_plain_work", 0)
    monkeypatch.setattr(compiled, "_at_hand", {upward_rank: known})
    half = compiled.WORTH_COMPILING // 2
    paid = [compiled.pays(half, upward_rank) for _ in range(calls + 1)]
    assert paid == [False] * calls + [True]


def test_a_kernel_can_be_loaded_once_it_was_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Numba's own names for its files: if they change, all is compiled anew and this fails."""
    monkeypatch.setattr(compiled, "_compiled", {})
    monkeypatch.setattr(compiled, "_at_hand", {})
    monkeypatch.setattr(compiled, "_cache_directory", lambda: tmp_path)
    assert not compiled._can_be_loaded(twice_as_long)
    compiled.compiled(twice_as_long)(np.ones(3))
    monkeypatch.setattr(compiled, "_at_hand", {})
    assert compiled._can_be_loaded(twice_as_long)


def test_without_numba_s_private_option_kernels_compile_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiled, "_cache_directory", lambda: tmp_path)  # leave the other be
    monkeypatch.setattr(compiled, "_compiled", {})
    monkeypatch.setattr(compiled, "_called", {})
    monkeypatch.setattr(compiled, "_is_offered", lambda option: option in ("cache", "nogil"))
    monkeypatch.setattr("weft.planning.pays", lambda work, kernel: True)
    _compare("heft", random_situation(np.random.default_rng(1), exact=True), exact=True)
