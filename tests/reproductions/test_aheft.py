"""The AHEFT experiment: its cases, its runs, and the paper's loop beside them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from foreplan.checks.runs import check_run
from foreplan.model import Estimates
from foreplan_reproductions.aheft import runs as aheft_runs
from foreplan_reproductions.aheft import units as aheft
from foreplan_reproductions.aheft.cases import (
    BLAST,
    BLAST_JOBS,
    BLOCK,
    KINDS,
    LEVELS,
    NEAR,
    NO_LEVELS,
    RANDOM,
    SHAPES,
    SIZES,
    WIEN2K,
    WIEN2K_JOBS,
    Dag,
    Instance,
    Model,
    machines,
    models,
    types,
    waves,
)
from foreplan_reproductions.aheft.runs import (
    AHEFT,
    FREE,
    FREE_TO_NEW,
    FREE_TO_OTHERS,
    HEFT,
    LETTER,
    MIN_MIN,
    ONE_PLAN,
    SENT,
    Reading,
    paper_sample,
    run_loop,
    simulate,
)

SMALL = (
    Dag(RANDOM, 20, 1.0, 1.0, 0.3, 0),
    Dag(RANDOM, 40, 10.0, 0.5, 0.1, 1),
    Dag(BLAST, 40, 1.0, 1.0, 0.0, 0),
    Dag(WIEN2K, 60, 0.5, 0.25, 0.0, 0),
)
FREQUENT = Model(10, 200.0, 0.25)  # joins that come often, so that small DAGs meet some


# the cases


def test_all_cases_of_the_paper() -> None:
    assert [len(set(types(kind))) for kind in KINDS] == [625, 125, 125, 125, 125]
    assert all(len(set(models(kind))) == 80 for kind in KINDS)
    main = [u for u in aheft.units(aheft.FULL) if u.part == "main"]
    assert sum(len(u.models) for u in main if u.dag.kind == RANDOM) == 500_000
    assert len({u.dag for u in main}) == len(main) == 6250 + 4 * 125


@pytest.mark.parametrize("part", ["main", "readings"])
@pytest.mark.parametrize("kind", KINDS)
def test_sample_meets_all_values_equally_often(part: str, kind: str) -> None:
    some = [u for u in aheft.units(aheft.SAMPLE) if (u.part, u.dag.kind) == (part, kind)]
    for name in ("size", "ccr", "beta", "out_degree"):
        counts = Counter(getattr(u.dag, name) for u in some)
        assert len(counts) == (1 if name == "out_degree" and kind != RANDOM else 5)
        assert len(set(counts.values())) == 1
    for name, values in (("pool", 5), ("interval", 4), ("share", 4)):
        counts = Counter(getattr(m, name) for u in some for m in u.models)
        assert len(counts) == values
        if part == "main" or name == "pool":
            assert len(set(counts.values())) == 1
        assert max(counts.values()) <= 1.5 * min(counts.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_random_dags_are_what_table_2_says(shape: str) -> None:
    dag = Dag(RANDOM, 100, 5.0, 0.5, 0.2, 3)
    first, again = Instance(dag, shape), Instance(dag, shape)
    wf = first.workflow
    producer, consumer = wf.item_producer, wf.use_task
    assert (producer < consumer).all()
    assert np.bincount(producer, minlength=100).max() <= 20
    if shape != LEVELS:
        assert (np.bincount(producer, minlength=100)[:-1] >= 1).all()
        assert len(set(zip(producer.tolist(), consumer.tolist(), strict=True))) == wf.n_items
    if shape == NEAR:
        assert (consumer - producer).max() <= 20
    elif shape == NO_LEVELS:
        assert (consumer - producer).max() > 50
    assert wf.item_size.mean() == pytest.approx(5.0 * wf.base_cost.mean())
    cost = first.estimates(30).cost / wf.base_cost[:, None]
    assert 0.75 <= cost.min() < 0.76 < 1.24 < cost.max() <= 1.25
    assert (again.estimates(30).cost == first.estimates(30).cost).all()


def test_more_processors_leave_the_first_ones_as_they_are() -> None:
    one, other = Instance(SMALL[0]), Instance(SMALL[0])
    few = one.estimates(10).cost
    many = other.estimates(3 * BLOCK + 1).cost
    assert many.shape == (20, 3 * BLOCK + 1)
    assert (many[:, :10] == few).all()
    assert (one.estimates(3 * BLOCK + 1).cost == many).all()


@pytest.mark.parametrize("kind", [BLAST_JOBS, WIEN2K_JOBS])
@pytest.mark.parametrize("v", SIZES[BLAST_JOBS])
def test_v_jobs_in_all(kind: str, v: int) -> None:
    assert v - 4 < Instance(Dag(kind, v, 1.0, 0.5, 0.0, 0)).workflow.n_tasks <= v


# the runs


@pytest.mark.parametrize("strategy", [HEFT, AHEFT, MIN_MIN])
@pytest.mark.parametrize("dag", SMALL, ids=lambda dag: f"{dag.kind}-{dag.size}")
def test_every_run_is_valid(dag: Dag, strategy: str) -> None:
    instance = Instance(dag)
    run = simulate(instance, FREQUENT, strategy, 0.0)
    check_run(run, instance.estimates(run.platform.n_processors))
    assert run.makespan > FREQUENT.interval


@pytest.mark.parametrize("strategy", [AHEFT, MIN_MIN])
@pytest.mark.parametrize("dag", SMALL, ids=lambda dag: f"{dag.kind}-{dag.size}")
def test_figures_do_not_depend_on_the_horizon(dag: Dag, strategy: str) -> None:
    short = simulate(Instance(dag), FREQUENT, strategy, 0.0)
    long = simulate(Instance(dag), FREQUENT, strategy, 3 * short.makespan)
    assert short.platform.n_processors < long.platform.n_processors
    assert short.makespan == long.makespan
    assert short.replans == long.replans
    assert (short.attempts.processor == long.attempts.processor).all()
    assert (short.attempts.start == long.attempts.start).all()


@pytest.mark.parametrize("pool", [10, 20])
def test_what_is_not_simulated_would_be_the_same(pool: int) -> None:
    some = tuple(
        Model(pool, interval, share)
        for interval in (300.0, 2000.0, 50_000.0)  # the last: no run lasts so long
        for share in (0.2, 0.25)  # of 10, they are the same
    )
    dag = SMALL[pool // 20]
    found = aheft_runs.compare(dag, some)
    for k, model in enumerate(some):
        heft, adaptive, minmin = (
            simulate(Instance(dag), model, strategy, 1000.0) for strategy in (HEFT, AHEFT, MIN_MIN)
        )
        assert found["heft"][k] == heft.makespan
        assert found["aheft"][k] == adaptive.makespan <= heft.makespan
        assert found["replans"][k] == adaptive.replans
        assert found["minmin"][k] == minmin.makespan


def test_applications_have_no_min_min() -> None:
    found = aheft_runs.compare(SMALL[2], (Model(20, 400.0, 0.1),))
    assert set(found) == {"heft", "aheft", "replans"}


def test_joins_until_the_end() -> None:
    assert [waves(400.0, t) for t in (0.0, 400.0, 401.0, 800.0, 801.0)] == [0, 0, 1, 1, 2]
    assert waves(400.0, 400.0 * 32.5) == 32
    assert waves(400.0, 400.0 * 40.5) == 40
    platform, events = machines(Model(10, 400.0, 0.2), 3)
    assert platform.n_processors == 16
    assert sorted({e.time for e in events}) == [400.0, 800.0, 1200.0]


# the paper's loop


@pytest.mark.parametrize(
    ("outputs", "makespan"),
    [(LETTER, 80), (SENT, 80), (FREE_TO_NEW, 76), (FREE_TO_OTHERS, 76), (FREE, 75)],
)
def test_the_printed_76_needs_a_transfer_that_costs_nothing(outputs: str, makespan: int) -> None:
    for insertion in (True, False):
        first, last, taken = run_loop(*paper_sample(), Reading(outputs, insertion))
        assert (first, last, taken) == (80, makespan, makespan < 80)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(4))
def test_loop_agrees_with_the_runs(number: int, shape: str) -> None:
    """Told when what was sent arrives, plans alone come to what is simulated event by event."""
    kind = (BLAST if number % 2 else WIEN2K) if shape == NEAR else RANDOM
    dag = Dag(kind, 50, (0.5, 1.0, 5.0, 10.0)[number], 1.0, 0.2 if kind == RANDOM else 0.0, number)
    instance = Instance(dag, shape if kind == RANDOM else NO_LEVELS)
    run = simulate(instance, FREQUENT, ONE_PLAN, 2000.0)
    estimates = instance.estimates(run.platform.n_processors)
    first, last, taken = run_loop(instance.workflow, run.platform, estimates, Reading(SENT))
    assert first == pytest.approx(simulate(instance, FREQUENT, HEFT, 0.0).makespan)
    assert last == pytest.approx(run.makespan)
    assert taken == run.replans


def test_without_newcomers_none_is_used() -> None:
    instance = Instance(SMALL[3])
    platform, _ = machines(FREQUENT, 8)
    estimates = instance.estimates(platform.n_processors)
    alone = estimates.cost.copy()
    alone[:, FREQUENT.pool :] = 1e6
    nobody = Reading(LETTER, newcomers=False)
    results = [
        run_loop(instance.workflow, platform, costs, nobody)
        for costs in (estimates, Estimates(alone))
    ]
    assert results[0] == results[1]
    assert run_loop(instance.workflow, platform, estimates, Reading(LETTER))[1] < results[0][1]


def test_readings_with_and_without_a_second_plan() -> None:
    """Both are never worse than HEFT; HEFT is one of the five."""
    dag = Dag(RANDOM, 60, 10.0, 0.5, 0.2, 1)
    found = aheft_runs.compare_readings(dag, (Model(10, 400.0, 0.25),))
    for shape in SHAPES:
        for name in ("aheft", "one plan", "best of five"):
            assert found[f"{shape}|{name}"] <= found[f"{shape}|heft"]
