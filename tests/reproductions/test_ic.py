"""The IC experiments: their dags, their plays, the curves and hulls through them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.ic import order_phases, play
from foreplan_reproductions.ic import units as ic
from foreplan_reproductions.ic.cases import (
    COMPOSED,
    EVOLVING,
    FAMILIAR,
    FFT,
    RANDOM,
    WORKFLOW,
    Case,
    digest,
    instance_of,
)
from foreplan_reproductions.ic.plays import (
    HEURISTICS,
    ICO,
    KNOWN,
    MEANS,
    SINKS_LAST,
    areas,
    every_size,
    phases,
    readings,
)
from foreplan_reproductions.ic.tables import fitted, lower_hull, ratio_of
from foreplan_reproductions.ic.units import (
    AREA,
    EVERY,
    FEWEST,
    FULL,
    MOST,
    OTHERS,
    PHASES,
    READINGS,
    SAMPLE,
    VOLUNTEERS,
    Settings,
    units,
)
from foreplan_reproductions.reports import mean_of
from reproductions.ic_made_up import TINY, one_of_each

CHAIN = "tasks:\n  a: {cost: 1, outputs: [x]}\n  b: {cost: 1, inputs: [x]}\n"


# the dags


@pytest.mark.parametrize("chosen", [SAMPLE, FULL, TINY])
def test_every_part_and_family(chosen: Settings) -> None:
    found = units(chosen)
    assert {u.part for u in found} == {AREA, PHASES, EVERY, OTHERS, READINGS, VOLUNTEERS}
    assert [u.number for u in found] == list(range(len(found)))
    played = {u.case.family for u in found if u.part == AREA}
    assert played == {*FAMILIAR, *COMPOSED}
    sizes = [u.case.size for u in found if u.part == AREA and u.case.family == FFT]
    assert sizes == list(range(2, 10))
    drawn = [u.case.size for u in found if u.part == AREA and u.case.family in COMPOSED]
    assert FEWEST <= min(drawn) <= max(drawn) <= MOST


def test_full_has_all_meshes_and_trees_of_many_sizes() -> None:
    every = [case for u in units(FULL) if u.part == EVERY for case in u.cases]
    trees = {case.size for case in every if case.family == "growing tree"}
    assert trees == set(range(1, 10_001, 50))
    meshes = {case.size for case in every if case.family == EVOLVING}
    assert meshes == set(range(1, 141))  # 141 levels have 10,011 vertices
    assert max(case.size for case in every if case.family == FFT) == 9
    assert tuple(2**k for k in range(1, 15)) == MEANS


@pytest.mark.parametrize("family", [*FAMILIAR, *COMPOSED])
def test_ico_solves_what_was_made_for_it(family: str) -> None:
    case = Case(family, 4 if family == FFT else 9)
    instance = instance_of(case)
    assert instance.optimal
    found = areas(case, instance, 5)
    assert found[ICO] == [float(play(instance.dag, instance.order).area)]
    assert found["n"] == [float(instance.dag.n)]
    for name in HEURISTICS:
        assert len(found[name]) == 5
        assert max(found[name]) <= found[ICO][0]


@pytest.mark.parametrize("family", RANDOM)
def test_random_dags_have_a_valid_order(family: str) -> None:
    instance = instance_of(Case(family, 40, 1))
    assert play(instance.dag, instance.order).area > 0
    assert instance.dag.n == 40


def test_workflows_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(CHAIN)
    (tmp_path / "a.yaml").write_text(CHAIN)
    (tmp_path / "notes.txt").write_text("no workflow")
    instance = instance_of(Case(WORKFLOW, 0, 1), str(tmp_path))
    assert (instance.name, instance.dag.n, instance.optimal) == ("b", 2, True)
    chosen = replace(TINY, workflows=str(tmp_path))
    assert sum(u.part == OTHERS and u.case.family == WORKFLOW for u in units(chosen)) == 2
    before = digest(str(tmp_path))
    assert chosen.described()["workflows"] == before
    (tmp_path / "a.yaml").write_text(CHAIN + "\n")
    assert digest(str(tmp_path)) != before


def test_workflows_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        digest(str(tmp_path / "none"))
    with pytest.raises(InputError, match="no workflow"):
        digest(str(tmp_path))


# the plays


def test_plays_differ_and_repeat() -> None:
    case = Case("m", 80)
    one, two = (areas(case, instance_of(case), 6) for _ in range(2))
    assert one == two
    assert len(set(one["lifo"])) > 1


def test_phases_between_the_extremes() -> None:
    case = Case("wnm", 40, 2)
    instance = instance_of(case)
    found = phases(case, instance, 3, (1, 4, 2**14))
    levels = int(instance.dag.level.max()) + 1
    for name in (ICO, *HEURISTICS):
        assert found[f"{name}|1"] == [float(instance.dag.n)] * 3  # one client at a time
        assert min(found[f"{name}|16384"]) >= levels
        assert all(levels <= polls <= instance.dag.n for polls in found[f"{name}|4"])
    crowd = np.full(instance.dag.n, 10**6)
    assert order_phases(instance.dag, instance.order, crowd) == levels


def test_every_size_says_what_is_ahead() -> None:
    cases = tuple(Case(EVOLVING, levels) for levels in (1, 2, 6))
    found = every_size(cases, 3)
    assert found == {"n": [1.0, 3.0, 21.0], "optimal": [1.0] * 3, "ahead": [0.0] * 3}


def test_every_part_is_measured_alike_on_any_hash_seed() -> None:
    script = (
        "import json\n"
        "from reproductions.ic_made_up import TINY, one_of_each\n"
        "from foreplan_reproductions.ic import units as ic\n"
        "from foreplan_reproductions.ic.units import units\n"
        "us = units(TINY)\n"
        "print(json.dumps([ic.measured(TINY, us[n]) for n in one_of_each(TINY)]))\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    told = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    here = [ic.measured(TINY, units(TINY)[number]) for number in one_of_each(TINY)]
    assert json.loads(told.stdout) == here


def test_workflows_are_played_by_hops_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CHAIN)
    chosen = replace(TINY, workflows=str(tmp_path))
    unit = next(u for u in units(chosen) if u.part == OTHERS)
    found = ic.measured(chosen, unit)
    assert all(found[name] == found[ICO] * TINY.plays for name in KNOWN)
    assert {f"hops|{mean}" for mean in MEANS} <= set(found)


def test_merging_all_leaves_a_chain_of_cliques() -> None:
    found = readings(Case("q2", 40), 3)
    assert found["sources|1.0"] == [2.0]
    assert [found[f"{name}|1.0"] for name in HEURISTICS] == [[0.0]] * 3
    assert found["sources|0.0"] > [2.0]
    # all that have children have two of them: without its sinks, FIFO is GREEDY
    assert found[f"{SINKS_LAST}|0.0"][0] == pytest.approx(found["greedy|0.0"][0], abs=15)
    assert found[f"{SINKS_LAST}|0.0"][0] < found["fifo|0.0"][0]


# curves and hulls


@given(st.floats(0.3, 3.5), st.floats(1e-4, 1e3), st.integers(3, 12))
@settings(max_examples=40, deadline=None)
def test_exact_powers_are_found(b: float, a: float, count: int) -> None:
    v = np.linspace(100, 5000, count)
    fit = fitted(v, a * v**b)
    assert fit is not None
    assert fit.b == pytest.approx(b, abs=1e-4)
    assert fit.a == pytest.approx(a, rel=1e-2)
    assert fit.margin < 1e-2


def test_fit_is_of_the_values_not_of_their_logarithms() -> None:
    v = np.array([10.0, 20.0, 40.0, 80.0, 160.0])
    y = v**2 + np.array([300.0, -300.0, 0.0, 0.0, 0.0])
    fit = fitted(v, y)
    assert fit is not None
    near = [sum((y - fit.a * v**b) ** 2) for b in (fit.b - 0.01, fit.b, fit.b + 0.01)]
    assert near[1] == min(near)
    assert fit.b == pytest.approx(2.0, abs=0.05)  # logarithms would give less than 1.5
    assert 0 < fit.margin < 0.5


def test_nothing_to_fit() -> None:
    assert fitted(np.array([10.0, 20.0]), np.zeros(2)) is None
    assert fitted(np.array([10.0, 10.0]), np.ones(2)) is None
    two = fitted(np.array([10.0, 20.0]), np.array([1.0, 8.0]))
    assert two is not None
    assert two.b == pytest.approx(3.0)
    assert np.isnan(two.margin)


points = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 50)), min_size=1, max_size=25)


@given(points)
def test_hull_is_the_convex_lower_envelope(drawn: list[tuple[int, int]]) -> None:
    v, y = (np.array(column, dtype=np.float64) for column in zip(*drawn, strict=True))
    hull = lower_hull(v, y)
    assert v[hull[0]] == v.min()
    assert v[hull[-1]] == v.max()
    assert (np.diff(v[hull]) > 0).all()
    assert (y >= np.interp(v, v[hull], y[hull]) - 1e-9).all()
    slopes = np.diff(y[hull]) / np.diff(v[hull])
    assert (np.diff(slopes) > 0).all()


def test_means_and_ratios() -> None:
    figure = mean_of(np.array([1.0, 2.0, 3.0]))
    assert figure.value == 2.0
    assert figure.margin == pytest.approx(4.3027 / np.sqrt(3), rel=1e-4)
    ico = np.array([10.0, 20.0, 40.0])
    exact = ratio_of(1.5 * ico, ico)
    assert exact.value == pytest.approx(1.5)
    assert exact.margin == pytest.approx(0.0, abs=1e-9)
    noisy = ratio_of(1.5 * ico + np.array([1.0, -1.0, 0.0]), ico)
    assert noisy.margin > 0
    assert np.isnan(mean_of(np.array([1.0])).margin)
