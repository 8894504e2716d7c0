"""Building blocks: recognised in any labelling, with an IC-optimal order of their sources."""

from __future__ import annotations

import numpy as np
import pytest

from foreplan.ic import play
from foreplan.ic.blocks import OTHER, parse
from foreplan.ic.dag import Dag
from foreplan.ic.search import block_order, dag_order, schedule_blocks
from foreplan.ic.shapes import m_block, n_block, q_block, w_block
from ic.twin import Arcs, Twin, dag_of, random_dag, shuffled

SIZES = [(a, d) for a in range(1, 5) for d in range(2, 5)]
NAMED = {
    **{f"W({a},{d})": w_block(a, d) for a, d in SIZES},
    **{f"M({a},{d})": m_block(a, d) for a, d in SIZES},
    **{f"N({s})": n_block(s) for s in range(1, 6)},
    **{f"Q({s})": q_block(s) for s in range(2, 5)},
}


def two_rows(sources: int, arcs: Arcs) -> Arcs:
    return [(u, sources + v) for u, v in arcs]


@pytest.mark.parametrize("name", NAMED)
def test_recognised_in_any_labelling(name: str) -> None:
    block = NAMED[name]
    rng = np.random.default_rng(len(name))
    n = block.sources + block.sinks
    for _ in range(5):
        arcs = shuffled(n, two_rows(block.sources, block.arcs), rng)
        scheduled = schedule_blocks(parse(dag_of(n, arcs)))
        assert scheduled.names == [name]
        sources = scheduled.sources.tolist()
        assert len(sources) == block.sources
        profile = play(dag_of(n, arcs), [*sources, *(set(range(n)) - set(sources))]).profile
        gains = np.diff(profile)[: block.sources]
        assert gains.tolist() == scheduled.profiles[0].gains.tolist()
        if n <= 10:
            assert profile.tolist() == Twin(n, arcs).best


def test_large_blocks_side_by_side() -> None:
    """Several of them in one dag, numbered at random: each is found, none is mixed up."""
    rng = np.random.default_rng(5)
    parts = {"W(3000,3)": w_block(3000, 3), "M(2000,4)": m_block(2000, 4), "N(5000)": n_block(5000),
             "Q(40)": q_block(40), "W(1,900)": w_block(1, 900)}  # fmt: skip
    arcs: Arcs = []
    n = 0
    for block in parts.values():
        arcs += [(n + u, n + v) for u, v in two_rows(block.sources, block.arcs)]
        n += block.sources + block.sinks
    dag = dag_of(n, shuffled(n, arcs, rng))
    scheduled = schedule_blocks(parse(dag))
    assert sorted(scheduled.names) == sorted(parts)
    assert play(dag, _in_block_order(dag, scheduled.sources.tolist())).profile[-1] == 0
    sizes = np.bincount(scheduled.type_of)
    assert sizes.tolist() == [1] * len(parts)


def _in_block_order(dag: Dag, sources: list[int]) -> list[int]:
    return [*sources, *np.flatnonzero(dag.outdegree == 0).tolist()]


def test_near_misses_are_not_taken_for_a_family() -> None:
    star = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 1), (2, 3)]  # three W(1,2) at one sink
    uneven = [(0, 0), (0, 1), (0, 2), (1, 2), (1, 3)]  # a W-dag of outdegrees 3 and 2
    fork = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 1), (3, 2)]  # three sinks at one source
    for sources, arcs in ((3, star), (2, uneven), (4, fork)):
        parsing = parse(dag_of(9, two_rows(sources, arcs)))
        assert parsing.family.tolist() == [OTHER]


def test_a_cycle_of_sources_and_sinks() -> None:
    s = 5
    arcs = [(i, s + i) for i in range(s)] + [(i, s + (i + 1) % s) for i in range(s)]
    arcs = shuffled(2 * s, arcs, np.random.default_rng(2))
    scheduled = schedule_blocks(parse(dag_of(2 * s, arcs)))
    assert scheduled.names == ["C(5)"]
    order = _in_block_order(dag_of(2 * s, arcs), scheduled.sources.tolist())
    assert play(dag_of(2 * s, arcs), order).profile.tolist() == Twin(2 * s, arcs).best


def test_other_blocks_by_search() -> None:
    rng = np.random.default_rng(11)
    found = {True: 0, False: 0}
    for _ in range(400):
        s, t = int(rng.integers(2, 6)), int(rng.integers(1, 6))
        arcs = [(u, v) for u in range(s) for v in range(t) if rng.random() < 0.5]
        arcs += [(u, t) for u in range(s) if not any(a == u for a, _ in arcs)]
        n = s + t + 1
        twin = Twin(n, two_rows(s, arcs))
        result = block_order([[v for a, v in arcs if a == u] for u in range(s)])
        assert result.exhausted
        assert (result.order is not None) == twin.exists
        if result.order is not None:
            rest = [v for v in range(n) if v not in result.order]
            assert twin.profile([*result.order, *rest]) == twin.best
        found[twin.exists] += 1
    assert min(found.values()) > 5


def test_like_sources_are_searched_as_one() -> None:
    """60 sources are too many to be searched one by one, but they come in three groups."""
    children = [[0, 1]] * 20 + [[1, 2, 3]] * 20 + [[3]] * 20
    result = block_order(children)
    assert result.order is not None
    assert [order // 20 for order in result.order] == [0] * 20 + [1] * 20 + [2] * 20
    assert not block_order([[i, (i * i) % 40] for i in range(40)]).exhausted


def test_the_search_of_small_dags() -> None:
    rng = np.random.default_rng(17)
    found = {True: 0, False: 0}
    for k in range(250):
        n, arcs = random_dag(rng, 6, 11, sorts=1 + 2 * (k % 2))
        twin, result = Twin(n, arcs), dag_order(dag_of(n, arcs))
        assert result.exhausted
        assert (result.order is not None) == twin.exists
        if result.order is not None:
            assert twin.profile(result.order) == twin.best
        found[twin.exists] += 1
    assert min(found.values()) > 2
    assert not dag_order(dag_of(40, [(i, 20 + i) for i in range(20)]), most_steps=100).exhausted
