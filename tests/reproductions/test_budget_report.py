"""The tables, verdicts and report of the budget experiment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from foreplan_reproductions.budget import claims as budget_claims
from foreplan_reproductions.budget import report as budget_report
from foreplan_reproductions.budget.cases import KS
from foreplan_reproductions.budget.claims import (
    CHEAPEST_WAY,
    RELATED,
    TIMES,
    UNRELATED,
    held,
    run_rows,
    run_verdicts,
)
from foreplan_reproductions.budget.runs import (
    BEST,
    FIRST,
    PLANS,
    RUN,
    VARIANTS,
    WAYS,
    Columns,
    Way,
    careful,
)
from foreplan_reproductions.budget.tables import EVERY, Tables, tables
from foreplan_reproductions.budget.units import FIGURES, units
from foreplan_reproductions.experiment import Circumstances
from foreplan_reproductions.reports import mean_of
from reproductions.budget_units import TINY, all_made_up


@pytest.fixture(scope="module")
def measured() -> Tables:
    return tables(TINY, all_made_up(TINY))


def with_and(value: Callable[[str, float], float], spread: float = 1e-4) -> Tables:
    """Figures with these values of the metric by variant and k, and a little noise by DAG."""
    done = all_made_up(TINY)
    for unit in units(TINY):
        if unit.part == FIGURES:
            columns, rng = done[unit.number], np.random.default_rng(unit.number)
            for name, variant in VARIANTS.items():
                slow, fast = columns["cheapest"][0], columns[variant.start][0]
                wanted = [value(name, k) + spread * rng.standard_normal() for k in KS]
                columns[f"{name}|makespan"] = [slow + v * (fast - slow) for v in wanted]
    return tables(TINY, done)


def with_times(seconds: Callable[[str, float], float]) -> Tables:
    """Figures with these times by variant and k."""
    done = all_made_up(TINY)
    for unit in units(TINY):
        if unit.part == FIGURES:
            for name in VARIANTS:
                done[unit.number][f"{name}|seconds"] = [seconds(name, k) for k in KS]
    return tables(TINY, done)


def run_of(cost: dict[str, float]) -> Columns:
    """A run under a budget of 100 that cost so much where that is given, else 90."""
    found: Columns = {"budget": [100.0], "cheapest": [200.0, 60.0]}
    for way in WAYS:
        found[f"{way.name}|cost"] = [cost.get(way.name, 90.0)]
        found[f"{way.name}|makespan"] = [100.0]
        found[f"{way.name}|replans"] = [2.0]
    return found


# the tables


def test_means_are_those_of_the_units(measured: Tables) -> None:
    done = all_made_up(TINY)
    fft = [u.number for u in units(TINY) if u.part == FIGURES and u.dag.family == "fft"]
    column = np.array([(200 - done[n]["LOSS2|makespan"][2]) / 100 for n in fft])
    figure = measured.figures.mean("LOSS2", ("fft",), (KS[2],))
    assert figure.value == pytest.approx(column.mean())
    half = 4.3027 * column.std(ddof=1) / np.sqrt(3)  # Student's t for 2 degrees
    assert figure.margin == pytest.approx(half, rel=1e-4)
    from_hbmct = np.array([(200 - done[n]["LOSS1 from HBMCT|makespan"][0]) / 110 for n in fft])
    found = measured.figures.mean("LOSS1 from HBMCT", ("fft",), (KS[0],))
    assert found.value == pytest.approx(from_hbmct.mean())
    seconds = [done[n]["GAIN3|seconds"][8] for n in fft]
    assert measured.figures.seconds("GAIN3", KS[8]) == pytest.approx(np.median(seconds))


def test_differences_are_paired(measured: Tables) -> None:
    found = with_and(lambda name, k: k + 0.1 * (name == "LOSS3"), spread=0.0)
    ahead = found.figures.ahead("LOSS3", "GAIN3")
    assert ahead.value == pytest.approx(0.1)
    assert ahead.margin == pytest.approx(0.0, abs=1e-9)
    assert ahead.graphs == 3 * len(EVERY)
    assert measured.figures.values("LOSS1").shape == (12, 9)


def test_degenerate_dags_are_counted_and_left_out() -> None:
    done = all_made_up(TINY)
    first = next(u.number for u in units(TINY) if u.part == FIGURES)
    columns = done[first]
    columns["heft"] = columns["cheapest"]
    for name, variant in VARIANTS.items():
        if variant.start == "heft":
            del columns[f"{name}|makespan"]
    part = tables(TINY, done).figures
    assert (part.degenerate["fft", "heft"], part.degenerate["fft", "hbmct"]) == (1, 0)
    assert len(part.values("LOSS1", ("fft",))) == 2
    assert len(part.values("LOSS1 from HBMCT", ("fft",))) == 3


def test_careful_against_faithful_cell_by_cell() -> None:
    found = with_and(lambda name, k: k + 0.2 * (name == careful("GAIN2")) * (k > 0.5))
    rows = {(r.variant, r.dag, r.k): r for r in found.careful()}
    assert len(rows) == 9 * 4 * 9
    row = rows["GAIN2", "FFT", 0.9]
    assert (row.verdict, row.better, row.worse) == ("better", 3, 0)
    assert row.difference == pytest.approx(0.2, abs=1e-3)
    assert rows["GAIN2", "FFT", 0.1].verdict == "alike"


def test_mean_of_few() -> None:
    assert mean_of(np.array([])).graphs == 0
    assert np.isnan(mean_of(np.array([2.0])).margin)


# the verdicts


def test_loss_and_gain() -> None:
    good = with_and(lambda name, k: k if "LOSS" in name else 0.5 * k)
    parts = budget_claims.by_machines(good)
    assert budget_claims.loss_ahead(parts, RELATED, "LOSS1", "GAIN1").holds
    assert budget_claims.near_start(parts, RELATED, "LOSS2").holds
    assert not budget_claims.near_start(parts, RELATED, "GAIN2").holds
    assert not budget_claims.gain_ahead(parts, RELATED, "LOSS1").holds
    assert budget_claims.loss_ahead(parts, UNRELATED, "LOSS1", "GAIN1").figures != (
        budget_claims.loss_ahead(parts, RELATED, "LOSS1", "GAIN1").figures
    )
    cheap = budget_claims.by_machines(with_and(lambda name, k: 0.3 if name == "GAIN1" else k))
    assert budget_claims.gain_ahead(cheap, RELATED, "LOSS1").holds
    assert "k = 0.1, 0.2" in budget_claims.gain_ahead(cheap, RELATED, "LOSS2").figures
    falls = budget_claims.by_machines(with_and(lambda name, k: 1.8 - k))
    assert not budget_claims.near_start(falls, RELATED, "LOSS1").holds


def test_running_times() -> None:
    found = with_times(lambda name, k: 1 + k if "GAIN" in name else 2 - k + ("LOSS3" in name))
    claims = budget_claims
    assert claims.longer_when(found, "LOSS1", 0.1, 0.9).holds
    assert not claims.longer_when(found, "LOSS1", 0.9, 0.1).holds
    assert claims.longer_when(found, "GAIN1", 0.9, 0.1).holds
    assert claims.recomputing(found, "LOSS1").holds
    assert not claims.gain_longer(found, "LOSS3", "GAIN3").holds
    assert not claims.gain_longer(found, "LOSS1", "GAIN1").holds  # alike over all budgets
    assert claims.types_alike(found).holds
    found.figures.lists["LOSS2", "laplace", "seconds"] = [[9.0] * len(KS)]
    assert not claims.types_alike(found).holds


def test_what_is_asked_of_ours(measured: Tables) -> None:
    def value(name: str, k: float) -> float:
        behind = 0.1 * (name == careful("LOSS2") and k == 0.3)
        return k + 0.2 * (name == BEST) - behind + 0.05 * (name == careful("LOSS1"))

    found = with_and(value, spread=0.0)
    rows = list(found.careful())
    assert budget_claims.at_least_as_good("LOSS1", rows).holds
    assert budget_claims.at_least_as_good("LOSS3", rows).holds
    behind = budget_claims.at_least_as_good("LOSS2", rows)
    assert not behind.holds
    assert "k = 0.3" in behind.figures
    assert budget_claims.best(found).holds
    assert not budget_claims.best(with_and(lambda name, k: k - 0.1 * (name == BEST))).holds
    assert budget_claims.within_budget(measured).holds
    measured.figures.over += 1
    assert not budget_claims.within_budget(measured).holds
    measured.figures.over -= 1


def test_runs_over_budget() -> None:
    without, within = Way("slack", FIRST).name, Way("slack", RUN).name
    hopeless = dict.fromkeys((without, within, CHEAPEST_WAY.name), 130.0)
    runs = [run_of({without: 120.0, within: 110.0}), run_of(hopeless), run_of({without: 150.0})]
    rows = {(r.strategy, r.kept): r for r in run_rows(runs)}
    first, at_run_time = rows["slack", FIRST], rows["slack", RUN]
    assert (first.over, first.avoidable) == (3, 2)
    assert first.worst == pytest.approx(50)
    assert (at_run_time.over, at_run_time.avoidable) == (2, 1)
    assert at_run_time.mean == pytest.approx(20)
    assert at_run_time.median == pytest.approx(20)
    assert rows["static", RUN].over == 0
    assert rows["static", RUN].worst == 0.0
    found = {v.claim: v for v in run_verdicts([*runs, {"degenerate": [1.0]}], "runs")}
    [slack] = [v for claim, v in found.items() if claim.startswith("slack") and FIRST in claim]
    assert slack.holds
    assert "over 2 against 3 of 3 (the cheapest way all along: 1)" in slack.figures
    [plans] = [v for claim, v in found.items() if claim.startswith("slack") and PLANS in claim]
    assert not plans.holds
    assert len(held([*runs, {"degenerate": [1.0]}])) == 3


def test_every_claim_has_figures(measured: Tables) -> None:
    found = budget_claims.verdicts(measured)
    assert len({(v.claim, v.simulator) for v in found}) == len(found)
    assert all(v.published for v in found if v.simulator in (RELATED, UNRELATED, TIMES))
    assert all(any(c.isdigit() for c in v.figures) for v in found)
    assert {v.simulator for v in found} == set(budget_claims.SIMULATORS)
    assert "nan" not in " ".join(v.figures for v in found)


def test_report_is_whole(measured: Tables) -> None:
    how = Circumstances("foreplan reproduce budget", TINY, "2 processes", 30.0, 59.0, 3)
    report = budget_report.report(measured, how)
    assert "in 3 sessions" in report
    assert "{" not in report
    assert " nan" not in report
    assert "Related and unrelated machines" in report
