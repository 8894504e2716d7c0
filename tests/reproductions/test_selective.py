"""The selective rescheduling experiment at tiny sizes: tables, verdicts, files, determinism."""

from __future__ import annotations

import csv
import io
import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foreplan import registry
from foreplan.errors import InputError
from foreplan.model import Estimates, Platform, Processor, Situation, Workflow
from foreplan_reproductions.experiment import Checkpoint, Circumstances
from foreplan_reproductions.reports import Verdict, to_csv
from foreplan_reproductions.selective import report as selective_report
from foreplan_reproductions.selective import runs as selective
from foreplan_reproductions.selective.claims import (
    always_grows_faster,
    as_published,
    cheap,
    error_widens_gap,
    few_replans,
    near_always,
    not_better,
    planner_matters_most,
    short_of_ideal,
    slack_faster,
    slack_replans_less,
    verdicts,
)
from foreplan_reproductions.selective.experiment import EXPERIMENT
from foreplan_reproductions.selective.runs import (
    EVENTS,
    FIGURE4_TASKS,
    FIT,
    FITTED,
    PLANNERS,
    QOIS,
    RESCHEDULING,
    SEQUENTIAL,
    SHAPES,
    STRATEGIES,
    Dags,
    Instance,
    Job,
    simulate_in_order,
)
from foreplan_reproductions.selective.tables import DRAWN, PUBLISHED, TIMED, WAYS, Tables, tables
from foreplan_reproductions.selective.units import Settings
from reproductions.called import run_command

TINY = Settings(table1=2, figure3=2, figure4=1, readings=1, seed=7)
TIMES = ("milliseconds", "time_of_always", "added_time_of_always")
FULL_SIZE = selective._instance


@pytest.fixture(scope="module")
def small_dags() -> Iterator[None]:
    """The same experiment on DAGs of no more than 12 tasks."""

    def small(rng: np.random.Generator, tasks: int, machines: int, dags: Dags) -> Instance:
        return FULL_SIZE(rng, min(tasks, 12), machines, dags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selective, "_instance", small)
        yield


def measure(processes: int) -> Tables:
    done = Checkpoint(Path())
    EXPERIMENT.complete(TINY, done, processes)
    return tables(TINY, done.done)


@pytest.fixture(scope="module")
def measured(small_dags: None) -> Tables:
    return measure(processes=1)


def test_tables_have_a_row_for_everything_compared(measured: Tables) -> None:
    assert [(r.way, r.planner, r.strategy) for r in measured.table1] == [
        (w, p, s) for w in WAYS for p in PLANNERS for s in RESCHEDULING
    ]
    assert [(r.way, r.planner, r.qoi, r.strategy) for r in measured.figure3] == [
        (w, p, q, s) for w in DRAWN for p in PLANNERS for q in QOIS for s in STRATEGIES
    ]
    assert [(r.way, r.planner, r.tasks, r.strategy) for r in measured.figure4] == [
        (w, p, n, s) for w in TIMED for p in PLANNERS for n in FIGURE4_TASKS for s in RESCHEDULING
    ]
    # slack and spare in all shapes, informed, in order; static and always without error, thrice
    assert len(measured.readings) == len(PLANNERS) * (2 * (len(SHAPES) + 2) + 2 * 3)
    assert {r.dags for r in measured.table1} == {TINY.table1}
    assert {r.dags for r in measured.figure3} == {TINY.figure3}


def test_always_makes_a_plan_before_every_start_but_the_first(measured: Tables) -> None:
    always = [r for r in measured.table1 if r.strategy == "always"]
    assert all(r.replans == 11 for r in always)
    assert all(r.time_of_always == 1 for r in always if r.way in TIMED)


def test_same_seed_same_figures_whatever_the_number_of_processes(measured: Tables) -> None:
    other = measure(processes=2)
    for name in ("table1", "figure3", "figure4", "readings"):
        ours, theirs = getattr(measured, name), getattr(other, name)
        assert to_csv(ours, without=TIMES) == to_csv(theirs, without=TIMES)


def test_csv_can_be_read_back(measured: Tables) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(measured.table1))))
    assert rows[1]["planner"] == "fcp"
    assert float(rows[1]["published_replans"]) == PUBLISHED["fcp", "slack"][1]


def test_both_simulators_agree_where_nothing_is_replanned(measured: Tables) -> None:
    rows = [r for r in measured.figure3 if r.strategy in ("static", "ideal")]
    events, loop = ([r.makespan for r in rows if r.way == w] for w in (EVENTS, SEQUENTIAL))
    assert events == pytest.approx(loop)
    assert all(r.replans == 0 for r in rows)


@pytest.mark.parametrize("planner", PLANNERS)
def test_without_error_the_loop_follows_the_plan(planner: str) -> None:
    instance = selective.table_instance(Job("table1", 3, planner, 0, tasks=20))
    wf, pf = instance.workflow, instance.platform
    plan = registry.planner(planner).plan(Situation.at_start(wf, pf))
    for strategy in ("static", "slack", "spare"):
        makespan, replans = simulate_in_order(
            wf, pf, strategy, planner, instance.durations(qoi=0.0)
        )
        assert makespan == pytest.approx(plan.makespan)
        assert replans == 0


def test_the_loop_by_hand() -> None:
    """A chain on one machine has no slack: every delay asks for a plan, and earliness for none."""
    chain = Workflow.from_edges(
        "chain", ["a", "b", "c"], np.array([0, 1]), np.array([1, 2]), np.array([5.0, 5.0]),
        base_cost=np.array([10.0, 10.0, 10.0]),
    )  # fmt: skip
    one = Platform.build([Processor("p")])
    late = np.array([[12.0], [11.0], [9.0]])
    early = np.array([[8.0], [9.0], [9.0]])
    for strategy in ("slack", "spare"):
        # b is late; the new plan starts c at 22, but b takes until 23
        assert simulate_in_order(chain, one, strategy, "heft", late) == (32.0, 2)
        assert simulate_in_order(chain, one, strategy, "heft", early) == (26.0, 0)
    assert simulate_in_order(chain, one, "static", "heft", late) == (32.0, 0)
    assert simulate_in_order(chain, one, "always", "heft", early) == (26.0, 2)


def test_instances_are_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selective, "_instance", FULL_SIZE)
    for number in range(20):
        for instance in (
            selective.figure3_instance(Job("figure3", number, "heft", 0)),
            selective.table_instance(Job("table1", number, "heft", 0)),
            selective.table_instance(Job("table1", number, "heft", 0), FIT),
        ):
            wf, pf = instance.workflow, instance.platform
            cost = Estimates.declared(wf, pf).cost
            assert 50 <= wf.n_tasks <= 100
            assert 3 <= pf.n_processors <= 8
            assert 50 <= cost.min() < 60
            assert 90 < cost.max() <= 100
            producers, consumers = wf.dependencies()[1:]
            assert len(set(range(wf.n_tasks)) - set(consumers.tolist())) == 1
            assert len(set(range(wf.n_tasks)) - set(producers.tolist())) == 1
            factor = instance.durations(0.5) / cost
            assert np.ptp(factor, axis=1).max() < 1e-12  # one factor per task
            assert 0.5 <= factor.min() < 0.7
            smaller = instance.durations(0.1) / cost
            assert (factor - 1) / 5 == pytest.approx(smaller - 1)


def test_fitted_dags_are_long_and_narrow_with_links_that_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selective, "_instance", FULL_SIZE)
    job = Job("table1", 3, "heft", 0)
    square, fit = selective.table_instance(job), selective.table_instance(job, FIT)
    levels = [int(i.workflow.level.max()) for i in (square, fit)]
    assert levels[1] > 2 * levels[0]
    links = fit.platform.time_per_unit[~np.eye(5, dtype=bool)]
    assert 0.5 <= links.min() < links.max() <= 1.5
    assert square.platform.links_alike
    assert not fit.platform.links_alike
    assert square.world == fit.world


def test_an_interrupt_ends_the_workers(small_dags: None) -> None:
    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EXPERIMENT.complete(TINY, Checkpoint(Path()), 2, interrupt)
    assert multiprocessing.active_children() == []


# verdicts on tables made up for the purpose


def with_ratio(measured: Tables, strategy: str, ratio: float) -> Tables:
    """All of Figure 3 as good as always, but this strategy."""
    rows = [
        replace(
            r,
            of_always=ratio if (r.way, r.planner, r.strategy) == (EVENTS, "dls", strategy) else 1.0,
        )
        for r in measured.figure3
    ]
    return replace(measured, figure3=rows)


@pytest.mark.parametrize(
    ("ratio", "near", "not_shorter"), [(1.02, True, True), (1.04, False, True), (0.9, True, False)]
)
def test_near_always(measured: Tables, ratio: float, near: bool, not_shorter: bool) -> None:
    rows = with_ratio(measured, "slack", ratio).figure3
    assert near_always(rows, EVENTS, "slack").holds is near
    assert not_better(rows, EVENTS, "slack").holds is not_shorter
    for simulator, strategy in ((EVENTS, "spare"), (SEQUENTIAL, "slack")):
        assert near_always(rows, simulator, strategy).holds
        assert not_better(rows, simulator, strategy).holds
    assert ("DLS" in near_always(rows, EVENTS, "slack").figures.partition(";")[2]) is not near


def test_published_counts_and_times_hold(measured: Tables) -> None:
    rows = [
        replace(r, replans=r.published_replans, time_of_always=r.published_time_of_always)
        for r in measured.table1
    ]
    for strategy in ("slack", "spare"):
        assert few_replans(rows, EVENTS, strategy).holds
        assert as_published(rows, EVENTS, strategy).holds
        assert cheap(rows, FITTED, strategy).holds
    assert slack_replans_less(rows, SEQUENTIAL).holds
    assert slack_faster(rows, FITTED).holds
    more = [
        replace(r, replans=r.replans * 2, time_of_always=0.3) if r.way == EVENTS else r
        for r in rows
    ]
    assert not few_replans(more, EVENTS, "slack").holds
    assert not as_published(more, EVENTS, "slack").holds
    assert as_published(more, SEQUENTIAL, "slack").holds
    assert few_replans(more, SEQUENTIAL, "slack").holds
    assert not cheap(more, EVENTS, "slack").holds
    assert not slack_faster(more, EVENTS).holds
    swapped = [replace(r, replans=9.0 if r.strategy == "slack" else r.replans) for r in rows]
    assert not slack_replans_less(swapped, EVENTS).holds


def test_gap_and_ideal(measured: Tables) -> None:
    def made_up(strategy: str, qoi: float) -> float:
        return {"ideal": 100.0, "static": 110 + 100 * qoi}.get(strategy, 105.0)

    rows = [replace(r, makespan=made_up(r.strategy, r.qoi)) for r in measured.figure3]
    assert error_widens_gap(rows, FITTED).holds
    assert short_of_ideal(rows, EVENTS).holds
    flat = [replace(r, makespan=120.0) if r.strategy == "static" else r for r in rows]
    assert not error_widens_gap(flat, EVENTS).holds
    better = [replace(r, makespan=99.0) if r.strategy == "slack" else r for r in rows]
    assert not short_of_ideal(better, EVENTS).holds
    assert not planner_matters_most(rows, EVENTS).holds
    apart = [replace(r, makespan=2 * r.makespan) if r.planner == "fcp" else r for r in rows]
    assert planner_matters_most(apart, EVENTS).holds


def test_growth(measured: Tables) -> None:
    rows = [
        replace(r, milliseconds=r.tasks * (5.0 if r.strategy == "always" else 1.0))
        for r in measured.figure4
    ]
    assert always_grows_faster(rows, EVENTS).holds
    assert not always_grows_faster([replace(r, milliseconds=1.0) for r in rows], EVENTS).holds


def test_every_claim_has_a_verdict_in_words(measured: Tables) -> None:
    found = verdicts(measured)
    assert len(found) == 3 * 7 + 4 * 5 + 2 * 4
    assert all(v.published.startswith(("Table 1:", "Figure 3:", "Figure 4:")) for v in found)
    assert {v.word for v in found} <= {"holds", "differs"}
    assert all(any(c.isdigit() for c in v.figures) for v in found)
    assert Verdict("", EVENTS, False, "").word == "differs"


# the command


def test_command_writes_tables_plots_and_report(
    small_dags: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(EXPERIMENT, "sample", Settings(2, 1, 1, 1))
    out = tmp_path / "deep" / "results"
    code, output = run_command("selective", "--out", str(out), "--jobs", "1")
    assert code == 0
    assert "slack makes fewer new plans than spare" in output
    assert {path.name for path in out.iterdir()} == {
        "table1.csv", "figure3.csv", "figure4.csv", "readings.csv", "report.md",
        "figure3.png", "figure3-paper-loop.png", "figure3-fitted.png", "figure4.png",
        "figure4-fitted.png",
    }  # fmt: skip
    for path in out.glob("*.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) < 150_000
    report = (out / "report.md").read_text()
    assert "| FCP | slack | 6.82 |" in report
    assert " nan" not in report


def test_command_refuses_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paper"):
        run_command("selectiv")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make this folder"):
        run_command("selective", "--out", str(tmp_path / "file" / "results"))
    assert run_command("selective", "--jobs", "0")[0] == 2


def test_command_interrupted(
    small_dags: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(settings: Settings, number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EXPERIMENT, "perform", interrupted)
    code, output = run_command("selective", "--out", str(tmp_path), "--jobs", "1")
    assert (code, "nothing was written" in output) == (130, True)
    assert list(tmp_path.iterdir()) == []


def test_report_when_a_new_plan_is_harmless(measured: Tables) -> None:
    same = replace(measured, readings=[replace(r, makespan=1.0) for r in measured.readings])
    how = Circumstances("foreplan", TINY, "1 process", 1.0, 1.0, 1)
    assert "| HEFT | +0.0 | +0.0 | +0.0 |" in selective_report.report(same, how)
