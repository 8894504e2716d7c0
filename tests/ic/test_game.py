"""The pebble game: profiles, areas, the heuristics of section 3.2, and batched plays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings

from foreplan.errors import InputError
from foreplan.ic import (
    DISCIPLINES,
    Dag,
    heuristic_order,
    heuristic_phases,
    order_phases,
    play,
    request_sizes,
)
from foreplan.ic.game import listed_order
from foreplan.ic.shapes import evolving_mesh
from ic.twin import Arcs, Twin, dag_of, dags, random_dag


def test_profile_and_areas_of_a_small_dag() -> None:
    dag = dag_of(4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    found = play(dag, [0, 2, 1, 3])
    assert found.profile.tolist() == [1, 2, 1, 1, 0]
    assert found.area == 5
    assert found.normalised_area == 5 / 4


def test_the_empty_dag() -> None:
    found = play(Dag.from_arcs(0, [], []), [])
    assert (found.profile.tolist(), found.area, found.normalised_area) == ([0], 0, 0.0)


@pytest.mark.parametrize(
    ("order", "message"),
    [([1, 0, 2], "step 1 executes vertex 1"), ([0, 1], "each of 0 .. 2"), ([0, 1, 1], "once")],
)
def test_an_order_that_breaks_the_rules(order: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        play(dag_of(3, [(0, 1), (1, 2)]), order)


def test_a_dag_must_be_one() -> None:
    with pytest.raises(InputError, match="cycle"):
        Dag.from_arcs(3, [0, 1, 2], [1, 2, 0])
    with pytest.raises(InputError, match=r"outside 0 \.\. 2"):
        Dag.from_arcs(3, [0], [3])
    assert Dag.from_arcs(2, [0, 0], [1, 1]).n_arcs == 1


def slow_play(
    n: int, arcs: Arcs, discipline: str, line: list[int], requests: Iterable[int]
) -> tuple[list[int], int]:
    """Section 3.2 word for word, given a line by nonincreasing outdegree with ties as they fell."""
    children = {v: [b for a, b in arcs if a == v] for v in range(n)}
    lacking = {v: {a for a, b in arcs if b == v} for v in range(n)}
    pool = sorted((v for v in range(n) if not lacking[v]), key=line.index)
    if discipline == "lifo":
        pool.reverse()
    order: list[int] = []
    polls = 0
    for clients in requests:
        if len(order) == n:
            break
        polls += 1
        given = [take(pool, discipline, children, line) for _ in range(min(clients, len(pool)))]
        order += given
        for v in given:
            for c in children[v]:
                lacking[c].discard(v)
            fresh = sorted((c for c in children[v] if not lacking[c]), key=line.index)
            pool += reversed(fresh) if discipline == "lifo" else fresh
    return order, polls


def take(pool: list[int], discipline: str, children: dict[int, list[int]], line: list[int]) -> int:
    if discipline == "lifo":
        return pool.pop()
    if discipline == "greedy":  # max takes the first among equals
        best = max(pool, key=lambda v: len(children[v]))
    elif discipline in ("listed", "hops"):
        best = min(pool, key=line.index)
    else:
        best = pool[0]
    pool.remove(best)
    return best


def longest_path(arcs: Arcs, v: int) -> int:
    """In arcs, from a vertex on."""
    return max((1 + longest_path(arcs, b) for a, b in arcs if a == v), default=0)


@pytest.mark.parametrize("discipline", [*DISCIPLINES, "listed"])
def test_plays_are_those_of_section_3_2(discipline: str) -> None:
    rng = np.random.default_rng(3)
    for seed in range(60):
        n, arcs = random_dag(rng, 1, 14)
        dag = dag_of(n, arcs)
        ties = np.random.default_rng(seed).permutation(n)
        line = sorted(range(n), key=lambda v: (-int(dag.outdegree[v]), int(ties[v])))
        if discipline == "hops":
            line.sort(key=lambda v: -longest_path(arcs, v))
        if discipline == "listed":
            line = rng.permutation(n).tolist()
        requests = rng.integers(0, 4, 4 * n + 8).tolist()
        one_by_one, _ = slow_play(n, arcs, discipline, line, [1] * n)
        _, polls = slow_play(n, arcs, discipline, line, requests)
        if discipline == "listed":
            assert listed_order(dag, line).tolist() == one_by_one
            assert order_phases(dag, line, requests) == polls
        else:
            rngs = [np.random.default_rng(seed) for _ in range(2)]
            assert heuristic_order(dag, discipline, rngs[0]).tolist() == one_by_one
            assert heuristic_phases(dag, discipline, rngs[1], requests) == polls


def test_many_children_at_once_enter_in_order() -> None:
    """More than are sorted by insertion."""
    n = 200
    arcs = [(0, v) for v in range(1, n)] + [(v, n + v % 7) for v in range(1, n, 3)]
    dag = dag_of(n + 7, arcs)
    line = np.random.default_rng(1).permutation(dag.n).tolist()
    expected, _ = slow_play(dag.n, arcs, "listed", line, [1] * dag.n)
    assert listed_order(dag, line).tolist() == expected


@given(dags())
@settings(deadline=None, max_examples=60)
def test_profiles_are_the_twin_s(drawn: tuple[int, Arcs]) -> None:
    n, arcs = drawn
    dag, twin = dag_of(n, arcs), Twin(n, arcs)
    for discipline in DISCIPLINES:
        order = heuristic_order(dag, discipline, np.random.default_rng(n))
        found = play(dag, order)
        assert found.profile.tolist() == twin.profile(order.tolist())
        assert found.area <= twin.most_area


def test_same_seed_same_play_and_other_seeds_other_plays() -> None:
    dag = evolving_mesh(12)
    for discipline in DISCIPLINES:
        orders = {
            heuristic_order(dag, discipline, np.random.default_rng(seed)).tobytes()
            for seed in (0, 0, 1)
        }
        assert len(orders) == 2


def test_fifo_and_greedy_are_ic_optimal_on_evolving_meshes() -> None:
    dag = evolving_mesh(25)
    rng = np.random.default_rng(0)
    profiles = {
        play(dag, heuristic_order(dag, d, rng)).profile.tobytes()
        for d in ("fifo", "greedy")
        for _ in range(10)
    }
    assert len(profiles) == 1


def test_phases() -> None:
    dag = dag_of(5, [(0, 2), (1, 2), (2, 3), (2, 4)])
    assert order_phases(dag, [0, 1, 2, 3, 4], [10] * 5) == 3  # as many as there are levels
    assert order_phases(dag, [0, 1, 2, 3, 4], [1] * 5) == 5
    assert order_phases(dag, [0, 1, 2, 3, 4], [0, 2, 0, 1, 5]) == 5  # empty polls count
    with pytest.raises(InputError, match="after 2 polls 3 of 5"):
        order_phases(dag, [0, 1, 2, 3, 4], [1, 1])
    with pytest.raises(InputError, match="give more requests"):
        order_phases(dag, [0, 1, 2, 3, 4], [])
    with pytest.raises(InputError, match="fifo"):
        heuristic_phases(dag, "fifos", np.random.default_rng(0), [1])


@pytest.mark.parametrize("mean", [1, 2, 16, 2**14])
def test_request_sizes_have_the_mean_asked_for(mean: int) -> None:
    sizes = request_sizes(np.random.default_rng(0), mean, 40_000)
    assert sizes.min() >= 1
    assert sizes.mean() == pytest.approx(mean, rel=0.03)
