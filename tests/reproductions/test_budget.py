"""The budget experiment: its cases, its plans, and its runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foreplan import api, registry
from foreplan.checks.runs import check_run
from foreplan.checks.schedules import check_schedule
from foreplan.generators import measured_ccr
from foreplan.model import Estimates, affordable
from foreplan_reproductions.budget import runs as budget_plans
from foreplan_reproductions.budget import runs as budget_runs
from foreplan_reproductions.budget.cases import (
    FAMILIES,
    KS,
    MAIN,
    PRICES,
    SPEED_ONLY,
    UNIFORM,
    UNRELATED,
    Dag,
    Ends,
    Instance,
)
from foreplan_reproductions.budget.experiment import EXPERIMENT
from foreplan_reproductions.budget.runs import (
    BEST,
    CHEAPEST,
    FAITHFUL,
    FIRST,
    GAINS,
    LOSSES,
    NOWHERE,
    PLANS,
    RUN,
    VARIANTS,
    WAYS,
    Columns,
    Way,
    careful,
)
from foreplan_reproductions.budget.units import (
    BESIDE,
    FIGURES,
    FULL,
    RUNS,
    SAMPLE,
    SWEEP,
    SWEEP_KS,
    units,
)
from foreplan_reproductions.experiment import Checkpoint
from reproductions.budget_units import TINY, nearly_done, one_of_each


def without_times(columns: Columns) -> Columns:
    """All but what a clock says."""
    return {name: values for name, values in columns.items() if not name.endswith("|seconds")}


# the cases


def test_all_cases_of_the_paper() -> None:
    counts = Counter((u.part, u.dag.family) for u in units(FULL) if u.part != SWEEP)
    assert all(counts[FIGURES, family] == 100 for family in FAMILIES)
    assert all(counts[BESIDE, family] == 100 for family in FAMILIES)
    assert [counts[RUNS, family] for family in FAMILIES] == [50] * 4
    assert pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) == KS


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hundred_tasks_on_three_machines(family: str) -> None:
    instance = Instance(Dag(family, 3))
    assert 95 <= instance.workflow.n_tasks <= 100
    assert instance.platform.n_processors == 3
    assert 0.09 < measured_ccr(instance.workflow) < 1.1
    assert ((instance.platform.price >= 1) & (instance.platform.price <= 10)).all()
    assert instance.ends("heft") == Instance(Dag(family, 3)).ends("heft")
    assert instance.ends("heft") != Instance(Dag(family, 3, seed=1)).ends("heft")


def test_the_same_draws_whatever_is_varied() -> None:
    one = Instance(Dag("fft", 2))
    other = Instance(Dag("fft", 2, reading=replace(MAIN, ccr=5.0)))
    assert (one.platform.price == other.platform.price).all()
    assert (one.workflow.processor_cost["p1"] == other.workflow.processor_cost["p1"]).all()
    assert measured_ccr(other.workflow) == pytest.approx(5.0, rel=0.05)


def test_related_machines_have_speeds_and_unrelated_ones_none() -> None:
    seen = []
    for number in range(20):
        related, unrelated = (
            Instance(Dag("laplace", number)),
            Instance(Dag("laplace", number, reading=UNRELATED)),
        )
        assert (related.platform.price == unrelated.platform.price).all()
        for instance in (related, unrelated):
            costs = instance.workflow.cost_matrix
            seen.append(costs.mean(axis=0).max() / costs.mean(axis=0).min())
        costs = related.workflow.cost_matrix / related.workflow.cost_matrix.mean(axis=0)
        assert 0.6 < costs.min() < costs.max() < 1.4
    assert 1.5 < max(seen[::2]) < 3.5
    assert max(seen[1::2]) < 1.3


@pytest.mark.parametrize("kind", PRICES)
def test_prices(kind: str) -> None:
    instance = Instance(Dag("laplace", 1, reading=replace(MAIN, prices=kind)))
    price = instance.platform.price
    assert (price > 0).all()
    if kind == SPEED_ONLY:
        costs = [instance.workflow.processor_cost[f"p{p}"].mean() * price[p] for p in range(3)]
        assert costs == pytest.approx([costs[0]] * 3)
    if kind == UNIFORM:
        assert len(set(price.tolist())) == 3


def test_the_cheapest_assignment_is_that_of_the_planners() -> None:
    instance = Instance(Dag("random_layered", 1))
    cheapest = instance.cheapest
    check_schedule(cheapest)
    cost = np.array([instance.workflow.processor_cost[f"p{p}"] for p in range(3)]).T
    assert cheapest.cost == pytest.approx((cost * instance.platform.price).min(axis=1).sum())
    same = registry.planner(f"gain1[budget={cheapest.cost!r},faithful=true]")
    found = same.plan(instance.situation())
    assert found.makespan == cheapest.makespan
    assert found.cost == pytest.approx(cheapest.cost)


def test_equations_5_and_6() -> None:
    ends = Ends(cheapest=(200.0, 60.0), start=(100.0, 160.0))
    assert ends.budget(0.3) == pytest.approx(90)
    assert ends.normalised(np.array([200.0, 150.0, 90.0])) == pytest.approx([0, 0.5, 1.1])
    assert not ends.degenerate
    assert replace(ends, start=(200.0, 160.0)).degenerate
    assert replace(ends, start=(100.0, 60.0)).degenerate


# the plans


def test_variants_are_those_that_they_say() -> None:
    assert len(VARIANTS) == 2 * 9 + 1
    for name, variant in VARIANTS.items():
        planner = registry.planner(variant.of(40.0))
        if name != BEST:
            assert getattr(planner, "faithful") == (not name.endswith("careful"))  # noqa: B009
            assert getattr(planner, "start").name == variant.start  # noqa: B009
        assert planner.name == name.split()[0].lower()
        assert getattr(planner, "budget") == 40.0  # noqa: B009


def test_figures_of_a_dag() -> None:
    names = (*LOSSES, careful("GAIN1"), "LOSS1 from HBMCT")
    columns = budget_plans.measured_plans(Dag("fork_join", 1), names)
    instance = Instance(Dag("fork_join", 1))
    assert columns["over"] == [0.0]
    for name in names:
        variant = VARIANTS[name]
        ends = budget_plans.ends_of(columns, variant.start)
        assert ends == instance.ends(variant.start)
        found = registry.planner(variant.of(ends.budget(0.5))).plan(instance.situation())
        assert columns[f"{name}|makespan"][4] == found.makespan
        assert affordable(found.cost, ends.budget(0.5))
        assert len(columns[f"{name}|makespan"]) == len(KS)
        assert min(columns[f"{name}|seconds"]) > 0
    moved = columns["LOSS3|moved"]
    assert moved[0] > moved[-1] > 0


def test_nothing_is_planned_where_nothing_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Ends(cheapest=(100.0, 50.0), start=(100.0, 50.0))
    monkeypatch.setattr(Instance, "ends", lambda self, start: same)
    columns = budget_plans.measured_plans(Dag("fft"), ("LOSS1",))
    assert set(columns) == {"over", "cheapest", "heft", "hbmct"}
    assert budget_runs.measured_runs(Dag("fft")) == {"degenerate": [1.0]}


# the runs


def test_every_way_to_run_is_valid() -> None:
    instance = Instance(Dag("laplace", 2))
    truth, within = budget_runs.world(instance), instance.ends("heft").budget(0.5)
    estimates = Estimates.declared(instance.workflow, instance.platform)
    for way in (way for way in WAYS if way.reserve in (0.0, budget_runs.RESERVES[-1])):
        run = budget_runs.simulate(instance, way, within, truth)
        check_run(run, estimates)
        if way.kept in (FIRST, PLANS, RUN):
            assert affordable(run.plans[0].cost, within)
    assert len({way.name for way in WAYS}) == len(WAYS)


def test_the_world_is_that_of_simulate() -> None:
    instance = Instance(Dag("fft", 1))
    plain = api.simulate(
        instance.workflow, instance.platform, "static", qoi=0.3, seed=instance.world,
        variability=0.3, failures=1,
    )  # fmt: skip
    way = Way("static", NOWHERE)
    found = budget_runs.simulate(instance, way, 1.0, budget_runs.world(instance))
    assert (found.cost, found.makespan) == (plain.cost, plain.makespan)


def test_where_the_budget_is_kept() -> None:
    """New plans cost money where only the first plan knew of the budget."""
    spent = dict.fromkeys((FIRST, PLANS, RUN, CHEAPEST), 0.0)
    for number in range(3):
        instance = Instance(Dag("random_layered", number))
        truth, within = budget_runs.world(instance), instance.ends("heft").budget(0.5)
        for kept in spent:
            way = Way("static" if kept == CHEAPEST else "slack", kept)
            spent[kept] += budget_runs.simulate(instance, way, within, truth).cost / within
    assert spent[CHEAPEST] < spent[FIRST]
    assert spent[PLANS] < spent[FIRST]
    assert spent[RUN] < spent[FIRST]


# the units


@pytest.fixture(scope="module")
def expected() -> dict[int, Columns]:
    """What some units come to, in this process."""
    return {
        number: without_times(EXPERIMENT.perform(TINY, number)[0]) for number in one_of_each(TINY)
    }


def test_by_how_many_processes_is_all_one(tmp_path: Path, expected: dict[int, Columns]) -> None:
    path = tmp_path / "units.log"
    nearly_done(path, list(expected), TINY)
    checkpoint = Checkpoint.open(path, TINY.described())
    try:
        EXPERIMENT.complete(TINY, checkpoint, 2)
    finally:
        checkpoint.close()
    assert {number: without_times(checkpoint.done[number]) for number in expected} == expected
    assert len(checkpoint.done) == len(units(TINY))


def test_same_figures_on_any_hash_seed(expected: dict[int, Columns]) -> None:
    number = one_of_each(TINY)[2]
    code = (
        "import json; from foreplan_reproductions.budget import units as budget\n"
        f"tiny = budget.{TINY!r}\n"
        f"print(json.dumps(budget.measured(tiny, budget.units(tiny)[{number}])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        check=True,
        timeout=120,
    )
    assert without_times(json.loads(done.stdout)) == expected[number]


def test_every_part_has_its_columns(expected: dict[int, Columns]) -> None:
    figures, beside, sweep, runs = expected.values()
    assert all(f"{name}|makespan" in figures for name in VARIANTS)
    assert all(f"{name}|makespan" in beside for name in FAITHFUL)
    assert all(f"{name}|makespan" in sweep for name in (*LOSSES, *GAINS))
    assert not any(f"{careful(name)}|makespan" in sweep for name in FAITHFUL)
    assert len(sweep["LOSS1|makespan"]) == len(SWEEP_KS)
    assert runs["budget"][0] > runs["cheapest"][1]
    assert len(units(SAMPLE)) == len({u.number for u in units(SAMPLE)})
