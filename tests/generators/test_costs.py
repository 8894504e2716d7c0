"""The workflow's own CCR and beta come out as asked; the draws do not disturb each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreplan.generators import FAMILIES, Costs, generate, measured_beta, measured_ccr
from foreplan.generators.costs import to_workflow
from foreplan.generators.graph import Graph
from foreplan.model import Item, Workflow


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(
    ccr=st.floats(0.001, 100),
    beta=st.floats(0, 2),
    processors=st.integers(0, 5),
    mean_cost=st.floats(0.01, 1e4),
    seed=st.integers(0, 1000),
)
def test_ccr_as_asked(
    family: str, ccr: float, beta: float, processors: int, mean_cost: float, seed: int
) -> None:
    workflow = generate(
        family, seed, ccr=ccr, beta=beta, processors=processors, mean_cost=mean_cost
    )
    expected = ccr if workflow.n_edges else 0.0
    assert measured_ccr(workflow) == pytest.approx(expected, rel=1e-12)
    assert list(workflow.processor_cost) == [f"p{p}" for p in range(processors)]
    assert np.isnan(workflow.base_cost).all() == (processors > 0)


@pytest.mark.parametrize("processors", [2, 3, 8])
@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("family", ["independent", "random_layered"])
def test_beta_as_asked(family: str, beta: float, processors: int) -> None:
    workflow = generate(family, 3, tasks=20_000, beta=beta, processors=processors)
    assert measured_beta(workflow) == pytest.approx(beta, rel=0.03)


def test_beta_is_unbiased_for_two_processors() -> None:
    """The mean over many small workflows, where a biased estimate would show."""
    measured = [
        measured_beta(generate("independent", seed, tasks=50, beta=1.0, processors=2, spread=0.0))
        for seed in range(400)
    ]
    error = np.std(measured) / np.sqrt(len(measured))
    assert abs(float(np.mean(measured)) - 1.0) < 0.01 + 3 * error


def test_costs_stay_within_the_range_around_the_task_mean() -> None:
    homogeneous = generate("chain", 5, tasks=500)
    costs = generate("chain", 5, tasks=500, processors=6, beta=0.8).processor_cost
    for column in costs.values():
        ratio = column / homogeneous.base_cost
        assert ratio.min() >= 0.6 - 1e-12
        assert ratio.max() <= 1.4 + 1e-12


def test_task_means_are_uniform_between_nothing_and_twice_the_mean() -> None:
    cost = generate("independent", tasks=100_000, mean_cost=40.0).base_cost
    assert cost.min() > 0
    assert cost.max() <= 80
    assert cost.mean() == pytest.approx(40, rel=0.01)
    assert cost.std() == pytest.approx(80 / np.sqrt(12), rel=0.01)


def test_equal_tasks_with_costs_from_50_to_100() -> None:
    workflow = generate("chain", tasks=1000, mean_cost=75, spread=0, beta=2 / 3, processors=4)
    cost = np.stack(list(workflow.processor_cost.values()))
    assert 50 <= cost.min() < 51
    assert 99 < cost.max() <= 100


def test_volume_spread_zero_makes_all_edges_alike() -> None:
    workflow = generate("fft", volume_spread=0, spread=0, ccr=0.5, mean_cost=4)
    assert workflow.item_size == pytest.approx(2.0)
    assert workflow.base_cost == pytest.approx(4.0)


def test_homogeneous_and_without_data() -> None:
    workflow = generate("laplace", beta=0, processors=3, ccr=0)
    assert measured_beta(workflow) == pytest.approx(0, abs=1e-12)
    assert measured_ccr(workflow) == 0
    assert np.isnan(measured_beta(generate("laplace")))
    assert np.isnan(measured_beta(generate("laplace", processors=1)))


def test_other_costs_leave_the_graph_and_the_task_means_alone() -> None:
    one = generate("random_layered", 9, ccr=0.1, beta=0.1, processors=2)
    two = generate("random_layered", 9, ccr=10.0, beta=0.1, processors=4)
    assert np.array_equal(one.item_producer, two.item_producer)
    assert np.array_equal(one.use_task, two.use_task)
    assert np.array_equal(one.processor_cost["p1"], two.processor_cost["p1"])


def test_volumes_by_pair_of_categories() -> None:
    """What a category sends to two others differs, and so does what one gets from two."""
    kinds = ["a", "b"] * 20 + ["c", "d"] * 20
    senders, readers = np.divmod(np.arange(40 * 40, dtype=np.int32), 40)
    names = [f"{kind}{i}" for i, kind in enumerate(kinds)]
    graph = Graph(names, senders, (readers + 40).astype(np.int32), categories=kinds)
    workflow = to_workflow("pairs", graph, Costs(ccr=3.0), np.random.default_rng(3))
    assert measured_ccr(workflow) == pytest.approx(3.0)
    items, producers, consumers = workflow.dependencies()
    means = []
    for pair in ("ac", "ad", "bc", "bd"):
        sent = [kinds[a] + kinds[b] == pair for a, b in zip(producers, consumers, strict=True)]
        volume = workflow.item_size[items[sent]]
        assert volume.max() <= 1.1 / 0.9 * volume.min() * (1 + 1e-12)
        means.append(volume.mean())
    assert np.diff(np.sort(means)).min() > 0.05 * max(means)


def test_measures_of_a_workflow_from_elsewhere() -> None:
    """A file with two readers counts twice; a cost per processor goes before the one at speed 1."""
    nan = float("nan")
    workflow = Workflow.from_items(
        "mixed",
        ["a", "b", "c"],
        [nan, 6.0, 3.0],
        [
            Item(4.0, 0, [1, 2], "shared"),
            Item(100.0, None, [0], "external"),
            Item(1.0, 1, [2]),
        ],
        processor_cost={
            "p0": np.array([2.0, nan, nan]),
            "p1": np.array([4.0, nan, nan]),
        },
    )
    assert measured_ccr(workflow) == pytest.approx((4 + 4 + 1) / 3 / ((3 + 6 + 3) / 3))
    assert measured_beta(workflow) == pytest.approx(np.sqrt(12 * 2.0 / 8.0))
