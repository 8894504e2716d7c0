"""The order for every dag: ICO's where that applies, and never below simple ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from foreplan.generators import generate
from foreplan.ic import (
    DISCIPLINES,
    Dag,
    analyse_dag,
    best_order,
    heuristic_order,
    heuristic_phases,
    ico,
    order_phases,
    play,
    request_sizes,
)
from foreplan.ic.heuristic import candidates, heuristic_order_of
from foreplan.ic.shapes import butterfly, compose
from ic.twin import Arcs, Twin, dag_of, dags, random_dag


def layered(rng: np.random.Generator, n: int, layers: int, parents: int) -> Dag:
    layer = np.sort(rng.integers(0, layers, n))
    start = np.searchsorted(layer, np.arange(layers + 1))
    arcs = [
        (int(rng.integers(start[layer[v] - 1], start[layer[v]])), v)
        for v in range(n)
        if layer[v] > 0 and start[layer[v]] > start[layer[v] - 1]
        for _ in range(rng.integers(1, parents + 1))
    ]
    return dag_of(n, arcs)


@given(dags(most=9))
@settings(deadline=None, max_examples=100)
def test_legal_and_ic_optimal_where_ico_applies(drawn: tuple[int, Arcs]) -> None:
    n, arcs = drawn
    dag = dag_of(n, arcs)
    order = best_order(dag)
    found = play(dag, order)  # raises if it breaks a rule
    if not ico(dag).failures:
        assert found.profile.tolist() == Twin(n, arcs).best


# ICO fails on it, but a search of what failed finds an IC-optimal schedule
SEARCHED = [
    (1, 7),
    (1, 4),
    (1, 10),
    (1, 3),
    (1, 0),
    (9, 7),
    (9, 10),
    (7, 11),
    (7, 10),
    (7, 6),
    (7, 2),
    (11, 5),
    (11, 2),
    (11, 3),
    (8, 4),
    (8, 10),
    (5, 0),
    (4, 10),
    (4, 6),
    (10, 2),
    (6, 2),
    (6, 0),
]


def test_the_order_is_what_the_analysis_shows() -> None:
    dag = dag_of(12, SEARCHED)
    found = analyse_dag(dag)
    assert found.ic_optimal
    assert ico(dag).failures
    assert best_order(dag).tolist() == found.play.order.tolist()
    assert play(dag, best_order(dag)).profile.tolist() == Twin(12, SEARCHED).best


def test_the_area_is_close_to_the_largest_on_small_dags() -> None:
    rng = np.random.default_rng(31)
    ratios: list[float] = []
    while len(ratios) < 120:
        n, arcs = random_dag(rng, 6, 11)
        dag = dag_of(n, arcs)
        found = ico(dag)
        if found.failures:
            ratios.append(play(dag, heuristic_order_of(dag, found)).area / Twin(n, arcs).most_area)
    assert min(ratios) > 0.95
    assert np.mean(ratios) > 0.998
    assert np.mean(np.array(ratios) == 1.0) > 0.95


@pytest.mark.parametrize(("layers", "parents"), [(3, 4), (12, 2), (30, 3)])
def test_never_below_the_heuristics_on_average(layers: int, parents: int) -> None:
    rng = np.random.default_rng(layers)
    for _ in range(6):
        dag = layered(rng, 300, layers, parents)
        area = play(dag, best_order(dag)).area
        for discipline in ("fifo", "lifo", "greedy"):
            plays = [play(dag, heuristic_order(dag, discipline, rng)).area for _ in range(8)]
            assert area >= np.mean(plays)


@pytest.mark.parametrize("sort", ["random_layered", "layrprob", "samepred"])
def test_the_order_wins_its_own_play(sort: str) -> None:
    """Whoever asks, no known order needs fewer polls, over plays that it has not seen."""
    for seed in range(3):
        dag = Dag.from_workflow(generate(sort, seed, tasks=120))
        order, rng = best_order(dag), np.random.default_rng(77)
        polls = dict.fromkeys(["ico", *DISCIPLINES], 0)
        for mean in (2, 5, 20, 60):
            for _ in range(25):
                requests = request_sizes(rng, mean, dag.n)
                polls["ico"] += order_phases(dag, order, requests)
                for name in DISCIPLINES:
                    polls[name] += heuristic_phases(dag, name, rng, requests)
        assert polls["ico"] <= 1.004 * min(polls.values())


def test_the_longest_path_breaks_ties() -> None:
    """Two blocks alike, of which one leads further."""
    dag = dag_of(7, [(0, 2), (1, 3), (3, 4), (4, 5), (5, 6)])
    assert dag.hops.tolist() == [1, 4, 0, 3, 2, 1, 0]
    assert best_order(dag).tolist()[0] == 1


def test_sections_take_the_best_of_all_ideas() -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        dag = layered(rng, 120, 6, 3)
        found = ico(dag)
        area = play(dag, heuristic_order_of(dag, found)).area
        if found.failures:
            ideas = [play(dag, o).area for o in candidates(dag, found.structure).values()]
            assert area >= max(ideas)
            if found.structure.n_sections == 1:
                assert area == max(ideas)


def test_a_good_section_keeps_its_schedule_beside_a_bad_one() -> None:
    """An FFT, then one vertex that waits for all of it, then a dag that ICO does not parse."""
    fft = butterfly(3)
    hub = fft.n
    arcs = list(zip(fft.tails.tolist(), fft.child.tolist(), strict=True))
    arcs += [(int(v), hub) for v in np.flatnonzero(fft.outdegree == 0)]
    bad = [(0, 2), (0, 4), (1, 3), (1, 4), (2, 3)]
    arcs += [(hub + 1 + a, hub + 1 + b) for a, b in bad] + [(hub, hub + 1), (hub, hub + 2)]
    dag = dag_of(hub + 6, arcs)
    found = ico(dag)
    assert found.failures
    assert found.structure.n_sections > 1
    alone = ico(fft).order
    assert alone is not None
    profile = play(dag, heuristic_order_of(dag, found)).profile
    nonsinks = int(np.count_nonzero(fft.outdegree))
    assert np.array_equal(profile[: nonsinks + 1], play(fft, alone).profile[: nonsinks + 1])


def test_repeats_exactly() -> None:
    dag = layered(np.random.default_rng(8), 400, 9, 3)
    assert best_order(dag).tobytes() == best_order(dag).tobytes()
    made = compose("w", np.random.default_rng(8), 100).dag
    assert best_order(made).tobytes() == best_order(made).tobytes()


def test_a_vertex_with_very_many_parents() -> None:
    """Anything quadratic in the parents of one vertex would not come back."""
    n = 60_000
    joins = np.repeat([n, n + 1], n // 2)
    tails = np.concatenate([np.arange(n), [0, n, n, n + 1]])
    heads = np.concatenate([joins, [n + 1, n + 1, n + 2, n + 3]])
    dag = Dag.from_arcs(n + 4, tails, heads)
    assert ico(dag).failures
    assert play(dag, best_order(dag)).profile[-1] == 0
