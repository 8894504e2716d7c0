"""ICO against exhaustive search, and on the families for which the theory made it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from foreplan.errors import InputError
from foreplan.ic import DISCIPLINES, Dag, heuristic_order, ico, play
from foreplan.ic.shapes import (
    COMPOSITIONS,
    Sizes,
    butterfly,
    compose,
    evolving_mesh,
    expansive_tree,
    reduction_mesh,
    reductive_tree,
)
from ic.twin import Arcs, Twin, all_dags, dag_of, dags, random_dag, shuffled


def check(n: int, arcs: Arcs) -> str:
    """What ICO claims is true; the step at which it fails, if it does."""
    found = ico(dag_of(n, arcs))
    if found.order is not None:
        assert play(dag_of(n, arcs), found.order).profile.tolist() == Twin(n, arcs).best
        return ""
    if any(failure.none_exists for failure in found.failures):
        assert not Twin(n, arcs).exists
    return found.failures[0].step


@pytest.mark.parametrize("n", range(6))
def test_all_dags(n: int) -> None:
    steps = Counter(check(n, arcs) for arcs in all_dags(n))
    if n < 5:
        assert set(steps) == {""}
    else:
        assert steps == {"": 996, "parse": 16, "priorities": 12}


def test_random_dags() -> None:
    rng = np.random.default_rng(23)
    steps = Counter(check(*random_dag(rng, 6, 11, sorts=1 + 2 * (k % 2))) for k in range(500))
    assert steps[""] > 300
    assert set(steps) >= {"", "parse", "priorities", "linear order"}


@given(dags(most=8))
@settings(deadline=None, max_examples=100)
def test_what_hypothesis_finds(drawn: tuple[int, Arcs]) -> None:
    check(*drawn)


FAMILIES = {
    "butterfly": [butterfly(rows) for rows in range(8)],
    "evolving mesh": [evolving_mesh(levels) for levels in (1, 2, 3, 10, 41, 100)],
    "reduction mesh": [reduction_mesh(levels) for levels in (1, 2, 3, 10, 41, 100)],
    "expansive tree": [expansive_tree(n, a) for n in (1, 2, 7, 100, 2000) for a in (1, 2, 3, 7)],
    "reductive tree": [reductive_tree(n, a) for n in (1, 2, 7, 100, 2000) for a in (1, 2, 3, 7)],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_never_beaten(family: str) -> None:
    rng = np.random.default_rng(0)
    for dag in FAMILIES[family]:
        order = ico(dag).order
        assert order is not None
        best = play(dag, order).profile
        for discipline in DISCIPLINES:
            for _ in range(3):
                assert np.all(best >= play(dag, heuristic_order(dag, discipline, rng)).profile)


@pytest.mark.parametrize("kind", COMPOSITIONS)
def test_compositions_give_the_schedule_they_were_made_with(kind: str) -> None:
    rng = np.random.default_rng(1)
    for size in (1, 5, 40, 300, 3000):
        for most in (Sizes(), Sizes(a=9, d=3, s=12)):
            made = compose(kind, rng, size, most)
            found = ico(made.dag)
            assert found.order is not None
            by_theorem = play(made.dag, made.order).profile
            assert np.array_equal(play(made.dag, found.order).profile, by_theorem)


@pytest.mark.parametrize("kind", COMPOSITIONS)
def test_small_compositions_are_ic_optimal(kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(25):
        made = compose(kind, rng, 4, Sizes(a=2, d=3, s=2))
        if made.dag.n <= 12:
            arcs = list(zip(made.dag.tails.tolist(), made.dag.child.tolist(), strict=True))
            assert play(made.dag, made.order).profile.tolist() == Twin(made.dag.n, arcs).best


def test_compositions_are_connected_and_about_as_large_as_asked() -> None:
    for kind in COMPOSITIONS:
        sizes = [compose(kind, np.random.default_rng(s), 2000).dag for s in range(5)]
        assert all(1400 < dag.n < 2800 for dag in sizes), kind
        for dag in sizes:
            assert np.all(dag.tails < dag.child)  # numbered in a topological order
            assert len(component(dag)) == dag.n
    with pytest.raises(InputError, match="q2"):
        compose("q3", np.random.default_rng(0), 10)
    with pytest.raises(InputError, match="at least 1"):
        compose("w", np.random.default_rng(0), 0)


def component(dag: Dag) -> set[int]:
    near: list[set[int]] = [set() for _ in range(dag.n)]
    for a, b in zip(dag.tails.tolist(), dag.child.tolist(), strict=True):
        near[a].add(b)
        near[b].add(a)
    found, front = {0}, [0]
    while front:
        fresh = near[front.pop()] - found
        found |= fresh
        front += fresh
    return found


def test_the_same_seed_composes_the_same_dag() -> None:
    one, same, other = (compose("wnm", np.random.default_rng(seed), 200) for seed in (4, 4, 5))
    assert one.dag.child.tobytes() == same.dag.child.tobytes()
    assert one.dag.child.tobytes() != other.dag.child.tobytes()


def test_labels_do_not_matter() -> None:
    rng = np.random.default_rng(9)
    for kind in COMPOSITIONS:
        made = compose(kind, rng, 400)
        arcs = list(zip(made.dag.tails.tolist(), made.dag.child.tolist(), strict=True))
        dag = dag_of(made.dag.n, shuffled(made.dag.n, arcs, rng))
        order = ico(dag).order
        assert order is not None
        expected = play(made.dag, made.order).profile
        assert np.array_equal(play(dag, order).profile, expected)


def test_sections_one_after_the_other() -> None:
    """Fork, join, fork, join: no priority-linear order as a whole, but one in each section."""
    width, stages = 5, 4
    arcs: Arcs = []
    for stage in range(stages):
        hub = stage * (width + 1)
        arcs += [(hub, hub + 1 + i) for i in range(width)]
        arcs += [(hub + 1 + i, hub + 1 + width) for i in range(width)]
    n = stages * (width + 1) + 1
    found = ico(dag_of(n, arcs))
    assert found.structure.n_sections == 2 * stages
    assert found.order is not None
    side_outputs = [(0, n), (3, n + 1), (7, n + 2)]
    more = ico(dag_of(n + 3, arcs + side_outputs))
    assert more.structure.n_sections == 2 * stages


def test_a_hundred_thousand_vertices() -> None:
    """Sizes at which anything quadratic would not come back."""
    for dag in (butterfly(13), reduction_mesh(450), expansive_tree(100_000, 3)):
        order = ico(dag).order
        assert order is not None
        assert play(dag, order).profile[-1] == 0
