"""Random layered graphs: levels, degrees, and the shape that alpha asks for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.arrays import IntArray
from foreplan.generators import generate
from foreplan.model import Workflow


def levels(workflow: Workflow) -> IntArray:
    """The longest path to each task, in edges."""
    level = np.zeros(workflow.n_tasks, dtype=np.int32)
    _, producers, consumers = workflow.dependencies()
    for a, b in zip(producers.tolist(), consumers.tolist(), strict=True):  # sorted by producer
        level[b] = max(level[b], level[a] + 1)
    return level


shapes = st.fixed_dictionaries(
    {
        "tasks": st.integers(1, 80),
        "alpha": st.sampled_from([0.1, 0.5, 1.0, 2.0, 10.0]),
        "out_degree": st.integers(1, 90),
        "jump": st.integers(0, 3),
        "single_ends": st.booleans(),
        "seed": st.integers(0, 2**64),
    }
)


@settings(max_examples=200, deadline=None)
@given(shapes, st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_structure(shape: dict[str, int], share: float) -> None:
    workflow = generate("random_layered", out_share=share, **shape)
    n = workflow.n_tasks
    _, producers, consumers = workflow.dependencies()
    assert n == shape["tasks"]
    assert len({*zip(producers.tolist(), consumers.tolist(), strict=True)}) == workflow.n_edges
    level = levels(workflow)
    last = int(level.max())
    assert np.all(np.diff(level) >= 0)  # level by level, and every task just below a predecessor
    assert last >= min(n, 2) - 1
    reach = level[consumers] - level[producers]
    assert np.all(reach >= 1)
    if shape["jump"] > 0:
        assert np.all(reach <= shape["jump"])
    if shape["single_ends"]:
        assert np.count_nonzero(level == 0) == np.count_nonzero(level == last) == 1
    degree = np.bincount(producers, minlength=n).astype(np.int32)
    assert np.all((degree > 0) == (level < last))
    if share == 0:
        _check_degrees(degree, level, shape["out_degree"], shape["jump"])


def _check_degrees(degree: IntArray, level: IntArray, wanted: int, jump: int) -> None:
    """As asked, but never more than there are, and enough to reach the next level."""
    width = np.bincount(level)
    for task in np.flatnonzero(level < level.max()):
        at = int(level[task])
        below = width[at + 1 :] if jump == 0 else width[at + 1 : at + 1 + jump]
        needed = -(-int(width[at + 1]) // int(width[at]))
        asked = min(wanted, int(below.sum()))
        assert asked <= degree[task] <= max(asked, needed)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_alpha_gives_the_height(alpha: float) -> None:
    v = 400
    heights = [
        int(levels(generate("random_layered", seed=s, tasks=v, alpha=alpha)).max()) + 1
        for s in range(100)
    ]
    mean = np.sqrt(v) / alpha
    assert np.mean(heights) == pytest.approx(mean, rel=0.1)  # standard error 3%
    assert min(heights) >= mean / 2 - 1
    assert max(heights) <= mean * 3 / 2 + 1


@pytest.mark.parametrize("degree", [3, 60, 300])
def test_successors_are_drawn_evenly(degree: int) -> None:
    """Both ways of drawing (what to take, what to leave out) favour no part of the next level."""
    workflow = generate("random_layered", 1, tasks=400, alpha=20, out_degree=degree)
    _, producers, consumers = workflow.dependencies()
    first = int(consumers.min())  # two levels: all consumers stand after all producers
    width = workflow.n_tasks - first
    assert degree in (3, 60) or width / 2 < degree < width
    read = np.bincount(consumers - first, minlength=width)
    assert np.all(np.abs(read - read.mean()) < 6 * np.sqrt(read.mean()))
    place = (consumers - first + 0.5) / width
    assert abs(place.mean() - 0.5) < 5 / np.sqrt(12 * len(producers))


def test_a_hundred_thousand_tasks() -> None:
    workflow = generate("random_layered", tasks=100_000, out_degree=5)
    assert workflow.n_tasks == 100_000
    assert workflow.n_edges == pytest.approx(500_000, rel=0.05)
    assert np.array_equal(workflow.order, np.arange(100_000))
