"""Shortcut arcs are removed, and no others."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from foreplan.ic import Dag
from foreplan.ic.kernels.structure import HEADS_AT_ONCE
from foreplan.ic.shapes import butterfly
from foreplan.ic.structure import pruned
from ic.twin import Arcs, arcs_of, dag_of, dags, shuffled


def without_shortcuts(n: int, arcs: Arcs) -> set[tuple[int, int]]:
    """An arc stays if its head is not reached any more without it."""
    return {arc for arc in set(arcs) if arc[1] not in reached(arc[0], set(arcs) - {arc})}


def reached(start: int, arcs: set[tuple[int, int]]) -> set[int]:
    found, front = {start}, [start]
    while front:
        v = front.pop()
        fresh = [b for a, b in arcs if a == v and b not in found]
        found.update(fresh)
        front += fresh
    return found


@given(dags(most=10))
@settings(deadline=None, max_examples=150)
def test_small_dags(drawn: tuple[int, Arcs]) -> None:
    n, arcs = drawn
    assert arcs_of(pruned(dag_of(n, arcs))) == without_shortcuts(n, arcs)


def test_more_heads_than_fit_into_a_sweep() -> None:
    rng = np.random.default_rng(0)
    n = 2 * HEADS_AT_ONCE + 100
    chain = [(v, v + 1) for v in range(n - 1)]
    far = {(int(a), int(a + d)) for a, d in zip(rng.integers(0, n, n), rng.integers(2, 60, n),
                                                strict=True) if a + d < n}  # fmt: skip
    dag = dag_of(n, shuffled(n, [*chain, *sorted(far)], rng))
    assert dag.n_arcs == n - 1 + len(far)
    left = pruned(dag)
    assert left.n_arcs == n - 1  # the chain makes all others shortcuts
    assert len(left.order) == n


def test_middling_dags_in_many_sweeps() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5):
        n = 90
        arcs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.06]
        arcs = shuffled(n, arcs, rng)
        assert arcs_of(pruned(dag_of(n, arcs))) == without_shortcuts(n, arcs)


def test_nothing_to_remove() -> None:
    dag = butterfly(4)
    assert pruned(dag) is dag
    lone = Dag.from_arcs(3, [], [])
    assert pruned(lone) is lone
