"""Families with an IC-optimal schedule: their counts, and that there is one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.errors import InputError
from foreplan.generators import generate
from foreplan.ic import Dag, ico, play
from foreplan.model import Workflow


def optimal(workflow: Workflow) -> bool:
    """Whether ICO proves that there is an IC-optimal schedule."""
    found = ico(Dag.from_workflow(workflow))
    return found.order is not None and len(play(Dag.from_workflow(workflow), found.order).order) > 0


@settings(deadline=None)
@given(st.integers(1, 6))
def test_butterfly(rows: int) -> None:
    workflow = generate("butterfly", rows=rows)
    assert workflow.n_tasks == (rows + 1) * 2**rows
    assert workflow.n_edges == 2 * rows * 2**rows
    assert optimal(workflow)


@settings(deadline=None)
@given(st.integers(1, 20))
def test_meshes(levels: int) -> None:
    for family in ("evolving_mesh", "reduction_mesh"):
        workflow = generate(family, levels=levels)
        assert workflow.n_tasks == levels * (levels + 1) // 2
        assert workflow.n_edges == levels * (levels - 1)
        assert optimal(workflow)


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["w", "m", "wnm", "q2"]), st.integers(1, 400), st.integers(0, 1000))
def test_compositions(blocks: str, tasks: int, seed: int) -> None:
    workflow = generate("composition", seed, blocks=blocks, tasks=tasks)
    assert tasks / 2 <= workflow.n_tasks <= 2 * tasks + 60
    assert optimal(workflow)


def test_compositions_differ_by_seed() -> None:
    edges = {generate("composition", seed).n_edges for seed in range(5)}
    assert len(edges) > 1


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("composition", {"blocks": "nw"}, "^blocks: unknown composition 'nw'"),
        ("composition", {"blocks": 3}, "^blocks: unknown composition '3'"),
        ("composition", {"tasks": 0}, "^tasks: must be at least 1"),
        ("composition", {"tasks": 10**9}, "^tasks: must be at most"),
        ("butterfly", {"rows": 40}, "^rows: must be at most"),
        ("evolving_mesh", {"levels": 0}, "^levels: must be at least 1"),
        ("reduction_mesh", {"levels": 2.5}, "^levels: must be a whole number"),
    ],
)
def test_wrong_options(family: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate(family, **options)
