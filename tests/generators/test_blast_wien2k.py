"""BLAST and WIEN2K: steps, categories whose jobs cost alike, and plans for them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreplan
from cli.commands import succeed
from foreplan import registry
from foreplan.formats import load, save
from foreplan.generators import generate, generate_platform, measured_ccr
from foreplan.model import Workflow
from foreplan.scheduling.margins import plan_to_dict

Steps = list[tuple[str, bool]]  # in order: the step, and whether its jobs stand side by side

BLAST: Steps = [
    ("split", False),
    *[("format", True), ("blast", True), ("parse", True), ("annotate", True)],
    ("merge", False),
]
WIEN2K: Steps = [
    *[("stage-in", False), ("LAPW0", False), ("LAPW1", True)],
    *[("LAPW2_FERMI", False), ("LAPW2", True)],
    *[("Sumpara", False), ("LCore", False), ("Mixer", False)],
    *[("Converged", False), ("stage-out", False)],
]
FAMILIES = {"blast": BLAST, "wien2k": WIEN2K}
both = pytest.mark.parametrize("family", FAMILIES)


def jobs(step: tuple[str, bool], n: int) -> list[str]:
    kind, wide = step
    return [f"{kind}_{i}" for i in range(n)] if wide else [kind]


def expected_edges(steps: Steps, n: int) -> set[tuple[str, str]]:
    """Job by job between two wide steps, else all with all."""
    edges = set()
    for above, below in pairwise(steps):
        for a, producer in enumerate(jobs(above, n)):
            for b, consumer in enumerate(jobs(below, n)):
                if a == b or not (above[1] and below[1]):
                    edges.add((producer, consumer))
    return edges


def edges(workflow: Workflow) -> list[tuple[str, str]]:
    _, producers, consumers = workflow.dependencies()
    names = workflow.task_names
    return [(names[a], names[b]) for a, b in zip(producers, consumers, strict=True)]


def by_category(workflow: Workflow) -> dict[str | None, list[int]]:
    tasks: dict[str | None, list[int]] = {}
    for task in range(workflow.n_tasks):
        tasks.setdefault(workflow.spec(task).category, []).append(task)
    return tasks


@both
@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_tasks_and_edges_one_by_one(family: str, n: int) -> None:
    steps = FAMILIES[family]
    workflow = generate(family, parallelism=n)
    assert list(workflow.task_names) == [job for step in steps for job in jobs(step, n)]
    assert set(edges(workflow)) == expected_edges(steps, n)
    assert workflow.n_edges == len(set(edges(workflow)))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 300))
def test_counts_and_degrees(n: int) -> None:
    blast, wien2k = (generate(family, parallelism=n) for family in FAMILIES)
    assert (blast.n_tasks, blast.n_edges) == (4 * n + 2, 5 * n)
    assert (wien2k.n_tasks, wien2k.n_edges) == (2 * n + 8, 4 * n + 5)
    for workflow, hubs in ((blast, {"split"}), (wien2k, {"LAPW0", "LAPW2_FERMI"})):
        _, producers, consumers = workflow.dependencies()
        out = np.bincount(producers, minlength=workflow.n_tasks)
        into = np.bincount(consumers, minlength=workflow.n_tasks)
        names = np.array(workflow.task_names)
        assert np.array_equal(out == n, np.isin(names, list(hubs))) or n == 1
        assert np.all((out == 1) | (out == n) | (names == names[-1]))  # a chain but for the fans
        assert out.sum() == into.sum() == workflow.n_edges
        assert int((out == 0).sum()) == int((into == 0).sum()) == 1  # one entry and one exit
        assert np.array_equal(workflow.order, np.arange(workflow.n_tasks))


@both
def test_the_default_is_200_way_and_every_edge_its_own_item(family: str) -> None:
    workflow = generate(family)
    assert workflow.n_tasks == {"blast": 802, "wien2k": 408}[family]
    assert workflow.item_names is None
    assert np.all(np.diff(workflow.use_ptr) == 1)


@both
def test_a_category_is_a_step(family: str) -> None:
    workflow = generate(family, parallelism=5)
    found = by_category(workflow)
    assert list(found) == [kind for kind, _ in FAMILIES[family]]
    for step in FAMILIES[family]:
        assert [workflow.task_names[task] for task in found[step[0]]] == jobs(step, 5)


@both
def test_jobs_of_one_category_cost_alike_and_categories_do_not(family: str) -> None:
    workflow = generate(family, 3, parallelism=500, mean_cost=40.0)
    means = []
    for tasks in by_category(workflow).values():
        cost = workflow.base_cost[tasks]
        middle = (cost.max() + cost.min()) / 2
        assert (cost.max() - cost.min()) / 2 <= 0.1 * middle * (1 + 1e-12)
        if len(tasks) > 1:
            assert (cost.max() - cost.min()) / 2 > 0.095 * middle  # but not equal
        means.append(cost.mean())
    assert max(means) > 2 * min(means)
    assert np.all(workflow.base_cost > 0)


@both
def test_edges_between_two_categories_have_similar_volumes(family: str) -> None:
    workflow = generate(family, 3, parallelism=500)
    volumes: dict[tuple[str | None, str | None], list[float]] = {}
    items, producers, consumers = workflow.dependencies()
    for item, a, b in zip(items, producers, consumers, strict=True):
        pair = workflow.spec(a).category, workflow.spec(b).category
        volumes.setdefault(pair, []).append(workflow.item_size[item])
    assert len(volumes) == len(FAMILIES[family]) - 1
    assert all(max(found) <= 1.1 / 0.9 * min(found) * (1 + 1e-12) for found in volumes.values())
    assert max(map(np.mean, volumes.values())) > 2 * min(map(np.mean, volumes.values()))


def test_category_means_are_uniform_between_nothing_and_twice_the_mean() -> None:
    """The step of one job, over many seeds: as a task's cost elsewhere, with the noise on top."""
    cost = np.array([generate("blast", seed, parallelism=1).base_cost[0] for seed in range(2000)])
    assert cost.min() > 0
    assert cost.max() <= 20 * 1.1
    assert cost.mean() == pytest.approx(10, rel=0.05)
    assert cost.std() == pytest.approx(20 / np.sqrt(12), rel=0.05)


@both
def test_without_spread_all_are_alike(family: str) -> None:
    workflow = generate(family, spread=0, volume_spread=0, mean_cost=4, ccr=0.5)
    assert workflow.base_cost == pytest.approx(4.0)
    assert workflow.item_size == pytest.approx(2.0)


@both
@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 40),
    ccr=st.floats(0.001, 100),
    beta=st.floats(0, 2),
    processors=st.integers(0, 4),
    seed=st.integers(0, 2**64),
)
def test_costs_as_asked(
    family: str, n: int, ccr: float, beta: float, processors: int, seed: int
) -> None:
    options = {"parallelism": n, "ccr": ccr, "beta": beta}
    workflow = generate(family, seed, processors=processors, **options)
    assert measured_ccr(workflow) == pytest.approx(ccr, rel=1e-12)
    plain = generate(family, seed, parallelism=n).base_cost  # the same tasks, whatever the rest
    for column in workflow.processor_cost.values():
        assert np.all(column > 0)
        assert np.all(np.abs(column / plain - 1) <= beta / 2 + 1e-9)
    one_more = generate(family, seed, processors=processors + 1, **options)
    for name, column in workflow.processor_cost.items():
        assert np.array_equal(column, one_more.processor_cost[name])
    again = generate(family, seed, processors=processors, **options)
    assert np.array_equal(again.item_size, workflow.item_size)


@both
@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_files_keep_the_categories(tmp_path: Path, family: str, suffix: str) -> None:
    made, target = generate(family, parallelism=4, processors=2), tmp_path / f"w{suffix}"
    save(made, target)
    loaded = load(target)
    assert dict(loaded.specs) == dict(made.specs)
    assert loaded.task_names == made.task_names
    assert edges(loaded) == edges(made)
    assert np.array_equal(loaded.processor_cost["p1"], made.processor_cost["p1"])


@both
@pytest.mark.parametrize("planner", registry.planner_names())
def test_every_planner_plans_it(family: str, planner: str) -> None:
    workflow = generate(family, 2, parallelism=12, processors=9, ccr=2.0)
    platform = generate_platform(5, join_every=20, join_share=0.4, join_until=40)
    schedule = foreplan.plan(workflow, platform, planner)
    foreplan.check_schedule(schedule)
    assert set(schedule.processor.tolist()) <= set(range(5))  # those of the start


def test_from_the_command_line_to_a_plan(tmp_path: Path) -> None:
    wf, pf = tmp_path / "blast.yaml", tmp_path / "pool.yaml"
    succeed("generate", "blast", "--parallelism", "8", "--processors", "4", "-o", wf)
    joins = ["--join-every", "30", "--join-share", "0.5", "--join-until", "60"]
    succeed("generate", "platform", "--processors", "2", *joins, "-o", pf)
    schedule = foreplan.plan(foreplan.load(wf), foreplan.load_platform(pf))
    foreplan.check_schedule(schedule)
    assert json.loads(succeed("plan", wf, "-p", pf, "--json")) == plan_to_dict(schedule)
