"""The structure of each family: counts by formula, ends, and the order of the file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.generators import FAMILIES, generate
from foreplan.model import Workflow


def ends(workflow: Workflow) -> tuple[int, int]:
    """The numbers of entry and exit tasks."""
    _, producers, consumers = workflow.dependencies()
    n = workflow.n_tasks
    return (
        int((np.bincount(consumers, minlength=n) == 0).sum()),
        int((np.bincount(producers, minlength=n) == 0).sum()),
    )


def edges(workflow: Workflow) -> set[tuple[str, str]]:
    _, producers, consumers = workflow.dependencies()
    names = workflow.task_names
    return {(names[a], names[b]) for a, b in zip(producers, consumers, strict=True)}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_defaults_and_stands_in_topological_order(family: str) -> None:
    workflow = generate(family)
    _, producers, consumers = workflow.dependencies()
    assert np.all(producers < consumers)
    assert len(edges(workflow)) == workflow.n_edges  # no edge twice
    assert len(set(workflow.task_names)) == workflow.n_tasks
    assert np.all(workflow.base_cost > 0)
    assert np.all(workflow.item_size > 0)
    assert FAMILIES[family].summary


@settings(deadline=None)
@given(st.integers(1, 7))
def test_fft_counts(rows: int) -> None:
    m = 2**rows
    workflow = generate("fft", points=m)
    assert workflow.n_tasks == 2 * m - 1 + m * rows
    assert workflow.n_edges == 2 * m - 2 + 2 * m * rows
    assert ends(workflow) == (1, m)


def test_fft_of_four_points() -> None:
    assert edges(generate("fft", points=4)) == {
        *[("r0", "r1"), ("r0", "r2"), ("r1", "r3"), ("r1", "r4"), ("r2", "r5"), ("r2", "r6")],
        *[("r3", "b1_0"), ("r4", "b1_0"), ("r3", "b1_1"), ("r4", "b1_1")],
        *[("r5", "b1_2"), ("r6", "b1_2"), ("r5", "b1_3"), ("r6", "b1_3")],
        *[("b1_0", "b2_0"), ("b1_2", "b2_0"), ("b1_1", "b2_1"), ("b1_3", "b2_1")],
        *[("b1_0", "b2_2"), ("b1_2", "b2_2"), ("b1_1", "b2_3"), ("b1_3", "b2_3")],
    }


@settings(deadline=None)
@given(st.integers(1, 30))
def test_laplace_counts(m: int) -> None:
    workflow = generate("laplace", size=m)
    assert (workflow.n_tasks, workflow.n_edges) == (m * m, 2 * m * (m - 1))
    assert ends(workflow) == (1, 1)


@settings(deadline=None)
@given(st.integers(2, 30))
def test_gaussian_counts(m: int) -> None:
    workflow = generate("gaussian", size=m)
    assert (workflow.n_tasks, workflow.n_edges) == ((m * m + m - 2) // 2, m * m - m - 1)
    assert ends(workflow) == (1, 1)


def test_gaussian_of_three_columns() -> None:
    assert edges(generate("gaussian", size=3)) == {
        ("t1_1", "t1_2"),
        ("t1_1", "t1_3"),
        ("t1_2", "t2_2"),
        ("t1_3", "t2_3"),
        ("t2_2", "t2_3"),
    }


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(1, 20))
def test_fork_join_counts(stages: int, width: int) -> None:
    workflow = generate("fork_join", stages=stages, width=width)
    assert workflow.n_tasks == 1 + stages * (width + 1)
    assert workflow.n_edges == 2 * stages * width
    assert ends(workflow) == (1, 1)


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 4))
def test_full_trees(depth: int, arity: int) -> None:
    count = sum(arity**level for level in range(depth))
    leaves = arity ** (depth - 1)
    out_tree = generate("out_tree", depth=depth, arity=arity)
    in_tree = generate("in_tree", depth=depth, arity=arity)
    assert (out_tree.n_tasks, out_tree.n_edges) == (count, count - 1)
    assert (in_tree.n_tasks, in_tree.n_edges) == (count, count - 1)
    assert ends(out_tree) == (1, leaves)
    assert ends(in_tree) == (leaves, 1)


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(1, 5))
def test_trees_of_so_many_tasks(n: int, arity: int) -> None:
    for family, one_end in (("out_tree", 0), ("in_tree", 1)):
        workflow = generate(family, tasks=n, arity=arity)
        assert (workflow.n_tasks, workflow.n_edges) == (n, n - 1)
        assert ends(workflow)[one_end] == 1
    _, producers, _ = generate("out_tree", tasks=n, arity=arity).dependencies()
    assert np.bincount(producers, minlength=1).max() <= arity


@settings(deadline=None)
@given(st.integers(1, 50))
def test_chain_and_independent(n: int) -> None:
    chain, independent = generate("chain", tasks=n), generate("independent", tasks=n)
    assert (chain.n_tasks, chain.n_edges, ends(chain)) == (n, n - 1, (1, 1))
    assert (independent.n_tasks, independent.n_edges, ends(independent)) == (n, 0, (n, n))


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 60))
def test_montage_counts(n: int) -> None:
    workflow = generate("montage", images=n)
    kinds = [workflow.spec(task).category for task in range(workflow.n_tasks)]
    overlaps = _neighbours(n)
    assert kinds.count("mDiffFit") == overlaps
    assert kinds.count("mProject") == kinds.count("mBackground") == n
    assert workflow.n_tasks == 2 * n + overlaps + 6
    assert workflow.n_edges == 3 * overlaps + 4 * n + 4
    assert ends(workflow) == (n, 1)


def _neighbours(n: int) -> int:
    """Pairs of grid cells at most one row and one column apart, counted one by one."""
    side = int(np.ceil(np.sqrt(n)))
    cells = [divmod(i, side) for i in range(n)]
    return sum(
        abs(a[0] - b[0]) <= 1 and abs(a[1] - b[1]) <= 1
        for i, a in enumerate(cells)
        for b in cells[:i]
    )


def test_montage_shares_files_and_has_its_own_costs() -> None:
    workflow = generate("montage", images=9)
    assert workflow.item_names is not None
    assert workflow.n_items == workflow.n_tasks - 1  # one file each; the picture has no reader
    background = workflow.item_names.index("mBgModel.tbl")
    assert np.diff(workflow.use_ptr)[background] == 9
    seconds: dict[str | None, list[float]] = {}
    for task, cost in enumerate(workflow.base_cost):
        seconds.setdefault(workflow.spec(task).category, []).append(cost)
    assert all(12 <= cost <= 18 for cost in seconds["mProject"])
    assert max(seconds["mDiffFit"]) < 1
    scaled = generate("montage", images=9, mean_cost=3.0)
    assert scaled.base_cost.mean() == pytest.approx(3.0)
