"""The four methods of the Standard Task Graph set: who may precede whom, and how often one does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.arrays import IntArray
from foreplan.errors import InputError
from foreplan.generators import generate, measured_ccr
from foreplan.generators.random_graphs import _choose
from foreplan.model import Workflow

METHODS = ("sameprob", "samepred", "layrprob", "layrpred")
LAYERED = ("layrprob", "layrpred")


def edges(workflow: Workflow) -> tuple[IntArray, IntArray]:
    _, producers, consumers = workflow.dependencies()
    return producers, consumers


def matrix(workflow: Workflow) -> npt.NDArray[np.bool_]:
    """Whether task i precedes task j."""
    found = np.zeros((workflow.n_tasks, workflow.n_tasks), dtype=np.bool_)
    found[edges(workflow)] = True
    return found


def complete(family: str, **options: Any) -> Workflow:
    """All the edges that the method allows."""
    if family.endswith("prob"):
        return generate(family, probability=1.0, **options)
    return generate(family, predecessors=1e6, **options)


def layer_of(workflow: Workflow) -> IntArray:
    """The layers of a complete layered graph: tasks of one layer have the same predecessors."""
    _, consumers = edges(workflow)
    earlier = np.bincount(consumers, minlength=workflow.n_tasks)
    return np.unique(earlier, return_inverse=True)[1].astype(np.int32)


sizes = st.integers(1, 60)
seeds = st.integers(0, 2**32)


@settings(deadline=None)
@given(st.sampled_from(METHODS), sizes, st.floats(0, 1), seeds)
def test_every_edge_once_and_forwards(family: str, tasks: int, share: float, seed: int) -> None:
    option = {"probability": share} if family.endswith("prob") else {"predecessors": share * tasks}
    workflow = generate(family, seed, tasks=tasks, **option)
    producers, consumers = edges(workflow)
    assert workflow.n_tasks == tasks
    assert np.all(producers < consumers)
    assert matrix(workflow).sum() == workflow.n_edges
    if share == 0:
        assert workflow.n_edges == 0


@settings(deadline=None)
@given(st.sampled_from(["sameprob", "samepred"]), sizes, seeds)
def test_all_pairs_may_have_an_edge(family: str, tasks: int, seed: int) -> None:
    assert complete(family, tasks=tasks, seed=seed).n_edges == tasks * (tasks - 1) // 2


@settings(deadline=None)
@given(st.sampled_from(LAYERED), sizes, st.integers(1, 12), seeds)
def test_all_pairs_of_unlike_layers_may(family: str, tasks: int, layers: int, seed: int) -> None:
    workflow = complete(family, tasks=tasks, layers=layers, seed=seed)
    layer = layer_of(workflow)
    assert np.all(np.diff(layer) >= 0)
    assert layer[-1] < layers
    assert np.array_equal(matrix(workflow), layer[:, None] < layer[None, :])
    # what a sparser graph of the seed has lies within: its layers are drawn first
    sparse = generate("layrprob", seed, tasks=tasks, layers=layers, probability=0.3)
    assert not np.any(matrix(sparse) & ~matrix(workflow))


@pytest.mark.parametrize(("tasks", "layers"), [(50, 5), (100, 10), (304, 30), (12, 2)])
def test_ten_tasks_to_a_layer(tasks: int, layers: int) -> None:
    assert layer_of(complete("layrpred", tasks=tasks))[-1] + 1 == layers


def test_the_layers_are_picked_evenly() -> None:
    widths = np.zeros(10)
    spread = []
    for seed in range(200):
        layer = layer_of(complete("layrprob", tasks=100, layers=10, seed=seed))
        found = np.bincount(layer, minlength=10)
        widths += found / 200
        spread.append(found.std())
    assert np.all(abs(widths - 10) < 5 * 3 / math.sqrt(200))  # of a width, 3 is the deviation
    assert np.mean(spread) == pytest.approx(3, rel=0.1)


def test_the_probability_is_every_pair_s() -> None:
    n, p, runs = 20, 0.12, 500
    for family in ("sameprob", "samepred"):
        option = {"probability": p} if family == "sameprob" else {"predecessors": p * (n - 1) / 2}
        count = np.zeros((n, n), dtype=np.int64)
        for seed in range(runs):
            count += matrix(generate(family, seed, tasks=n, **option))
        pairs = count[np.triu_indices(n, 1)]
        deviation = math.sqrt(runs * p * (1 - p))
        assert np.all(abs(pairs - runs * p) < 5 * deviation)
        assert pairs.std() == pytest.approx(deviation, rel=0.2)
        assert pairs.sum() == count.sum()


@pytest.mark.parametrize("family", METHODS)
def test_the_mean_is_what_was_asked(family: str) -> None:
    pairs = complete(family, seed=7, tasks=2000).n_edges
    expected = 0.12 * pairs if family.endswith("prob") else 10 * 2000
    found = generate(family, 7, tasks=2000).n_edges  # by default
    assert abs(found - expected) < 5 * math.sqrt(expected)


@pytest.mark.parametrize("family", METHODS)
def test_late_tasks_have_more_predecessors(family: str) -> None:
    # as in the files of the set: 0.1 of the mean in the first tenth, 1.9 in the last
    counts = [np.bincount(edges(generate(family, s))[1], minlength=100) for s in range(50)]
    tenths = np.mean(counts, axis=0).reshape(10, 10).mean(axis=1)
    assert tenths / tenths.mean() == pytest.approx(np.arange(0.1, 2, 0.2), abs=0.2)


def test_few_tasks() -> None:
    for family in METHODS:
        assert generate(family, tasks=1).n_edges == 0
    assert generate("samepred", tasks=3).n_edges == 3
    assert generate("layrpred", tasks=40, layers=1).n_edges == 0
    assert generate("sameprob", tasks=1000, probability=1e-300).n_edges == 0


@pytest.mark.parametrize("family", METHODS)
def test_dummies_are_one_entry_and_one_exit_of_cost_0(family: str) -> None:
    plain = generate(family, 5, tasks=60)
    workflow = generate(family, 5, tasks=60, dummies=True, processors=2, ccr=0.5)
    assert workflow.task_names == ("entry", *plain.task_names, "exit")
    found = matrix(workflow)
    assert np.array_equal(found[1:-1, 1:-1], matrix(plain))
    assert np.flatnonzero(~found.any(axis=0)).tolist() == [0]
    assert np.flatnonzero(~found.any(axis=1)).tolist() == [61]
    assert np.array_equal(found[0, 1:-1], ~matrix(plain).any(axis=0))
    for cost in workflow.processor_cost.values():
        assert np.flatnonzero(cost == 0).tolist() == [0, 61]
    items, producers, consumers = workflow.dependencies()
    carries_nothing = (producers == 0) | (consumers == 61)
    assert np.array_equal(workflow.item_size[items] == 0, carries_nothing)
    assert measured_ccr(workflow) == pytest.approx(0.5)


def test_dummies_around_tasks_without_edges() -> None:
    workflow = generate("sameprob", tasks=4, probability=0.0, dummies=True)
    assert (workflow.n_tasks, workflow.n_edges) == (6, 8)
    assert not workflow.item_size.any()
    with pytest.raises(InputError, match=r"^dummies: "):
        generate("layrpred", dummies=1)


class Steps:
    """Numbers that make every gap as short as can be: many rounds until the end."""

    def geometric(self, probability: float, size: int) -> npt.NDArray[np.int64]:
        return np.ones(size, dtype=np.int64)


def test_the_draws_go_on_until_the_end() -> None:
    chosen = _choose(Steps(), 1000, 0.001)  # type: ignore[arg-type]
    assert np.array_equal(chosen, np.arange(1000))


@pytest.mark.parametrize(
    ("family", "option", "value"),
    [
        *[(family, "tasks", value) for family in METHODS for value in (0, -1, 2.5, 10**30)],
        *[("sameprob", "probability", value) for value in (-0.1, 1.1, math.nan, "1")],
        *[("layrprob", "probability", value) for value in (-0.1, 1.1, True)],
        *[("samepred", "predecessors", value) for value in (-1, math.inf)],
        *[("layrpred", "predecessors", value) for value in (-1, math.nan)],
        *[(family, "layers", value) for family in LAYERED for value in (-1, 1.5, True)],
    ],
)
def test_bad_options(family: str, option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{option}: "):
        generate(family, **{option: value})


def test_too_many_edges_are_refused_before_they_are_made() -> None:
    with pytest.raises(InputError, match=r"this would make .* edges; the most is"):
        generate("sameprob", tasks=1_000_000)
    with pytest.raises(InputError, match=r"this would make .* edges; the most is"):
        generate("layrpred", tasks=1_000_000, predecessors=1000)


def test_large_graphs_cost_by_their_edges() -> None:
    for family in ("samepred", "layrpred"):  # 50,000,000 pairs
        assert generate(family, 1, tasks=10_000).n_edges == pytest.approx(100_000, rel=0.02)


# of seed 3: edges, last volume, last cost
PINNED = {
    "sameprob": (567, 8.78611823019, 19.1746809223),
    "samepred": (988, 7.34075217193, 13.5721145623),
    "layrprob": (515, 17.7230084699, 6.9174190973),
    "layrpred": (992, 13.0540431652, 13.0769638808),
}


@pytest.mark.parametrize("family", METHODS)
def test_a_seed_gives_what_it_always_gave(family: str) -> None:
    w = generate(family, seed=3, processors=2)
    found = w.n_edges, w.item_size[-1], w.processor_cost["p1"][-1]
    assert found == pytest.approx(PINNED[family], rel=1e-10)
