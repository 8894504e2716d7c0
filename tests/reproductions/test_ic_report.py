"""The tables, verdicts and report of the IC experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from foreplan_reproductions.experiment import Circumstances
from foreplan_reproductions.ic import claims as ic_batch_claims
from foreplan_reproductions.ic import claims as ic_claims
from foreplan_reproductions.ic import claims as ic_other_claims
from foreplan_reproductions.ic import report as ic_report
from foreplan_reproductions.ic.cases import COMPOSED, EVOLVING, FFT, Q2, REDUCTION, W
from foreplan_reproductions.ic.claims import volunteer_verdicts
from foreplan_reproductions.ic.plays import HEURISTICS, ICO, MEANS
from foreplan_reproductions.ic.report import points
from foreplan_reproductions.ic.tables import (
    FITTED,
    HULL,
    PER_LEVEL,
    AreaRow,
    RunRow,
    Tables,
    against,
    levels,
    phase_rows,
    tables,
)
from foreplan_reproductions.ic.units import AREA, units
from foreplan_reproductions.ic.volunteers import STATIC, STRATEGIES, UNKNOWN
from reproductions.ic_made_up import TINY, all_made_up

BEHIND = {"fifo": 0.3, "lifo": 0.4, "greedy": 0.1}


@pytest.fixture(scope="module")
def measured() -> Tables:
    return tables(TINY, all_made_up())


def areas(family: str, difference: Callable[[str, float], float], plays: int = 4) -> list[AreaRow]:
    """Dags of several sizes on which ICO is ahead by so much."""
    rows = []
    for n in (100.0, 400.0, 900.0, 2000.0):
        for name in HEURISTICS:
            gap = difference(name, n)
            rows.append(AreaRow(family, int(n), name, n**2, gap, 0.0, gap / n, gap, True, plays))
    return rows


# the tables


def test_areas_are_those_of_the_units(measured: Tables) -> None:
    done = all_made_up()
    unit = next(u for u in units(TINY) if u.part == AREA and u.case.family == W)
    [row] = [
        r for r in measured.areas
        if r.heuristic == "lifo" and r.vertices == done[unit.number]["n"][0]
    ]  # fmt: skip
    ahead = done[unit.number][ICO][0] - np.array(done[unit.number]["lifo"])
    assert row.difference == pytest.approx(ahead.mean())
    assert row.margin == pytest.approx(3.1824 * ahead.std(ddof=1) / 2, rel=1e-4)
    assert row.normalised == pytest.approx(row.difference / row.vertices)
    assert row.least == pytest.approx(ahead.min())


def test_fits_of_areas_and_of_normalised_areas() -> None:
    found = Tables(areas=[*areas(FFT, lambda name, n: 0.02 * n**1.7), *areas(W, _hulled)])
    fit = found.fit(FFT, "fifo")
    assert fit is not None
    assert fit.b == pytest.approx(1.7)
    assert fit.b_normalised == pytest.approx(0.7)
    assert fit.a == pytest.approx(0.02, rel=1e-3)
    assert levels(np.array([12.0, 80.0, 5120.0])).tolist() == [3, 5, 10]
    per_level = found.fit(FFT, "fifo", PER_LEVEL)
    assert per_level is not None
    assert per_level.b < fit.b
    assert found.fit(FFT, "fifo", HULL) is None  # the paper filters compositions alone
    hull = found.fit(W, "fifo", HULL)
    assert hull is not None
    assert hull.points == 3  # the dag of 400 vertices is above the line
    assert found.fit(W, "fifo", FITTED) is not None


def _hulled(name: str, n: float) -> float:
    return n**2 * (3.0 if n == 400 else 1.0) / 10


def test_gaps_are_in_percent_of_icos_area() -> None:
    found = Tables(areas=areas(W, lambda name, n: BEHIND[name] * n**2))
    gap = found.gap(W, "greedy", "fifo")
    assert gap.value == pytest.approx(20.0)
    assert gap.margin == pytest.approx(0.0, abs=1e-9)
    assert gap.graphs == 4


def test_phase_ratios() -> None:
    columns = {"n": [50.0]}
    for mean in MEANS:
        columns |= {f"{name}|{mean}": [12.0, 18.0] for name in HEURISTICS}
        columns[f"{ICO}|{mean}"] = [10.0, 15.0]
    rows = list(phase_rows(W, 7, columns))
    assert len(rows) == len(MEANS) * len(HEURISTICS)
    assert all(row.ratio == pytest.approx(1.2) and row.dag == 7 for row in rows)
    assert rows[0].margin == pytest.approx(0.0, abs=1e-9)


def test_other_dags_are_averaged(measured: Tables) -> None:
    [row] = [row for row in measured.others if row.dag == "sparse, 30"]
    assert row.dags == TINY.random_dags
    assert row.optimal == 2
    assert row.schedulers[ICO][0] > row.schedulers["fifo"][0]
    assert row.schedulers[ICO][1] < row.schedulers["fifo"][1]


# the verdicts


def test_growth_and_the_ffts_exponent() -> None:
    good = Tables(areas=areas(FFT, lambda name, n: 0.02 * n**1.7))
    assert ic_claims.grows(good, FFT).holds
    assert ic_claims.fft_exponent(good).holds
    flat = Tables(areas=areas(FFT, lambda name, n: 3 * n**0.8))
    assert not ic_claims.grows(flat, FFT).holds
    assert not ic_claims.fft_exponent(flat).holds
    some = Tables(areas=areas(EVOLVING, lambda name, n: n**1.5 * (name == "lifo")))
    assert ic_claims.grows(some, EVOLVING).holds
    assert "no difference at all: fifo, greedy" in ic_claims.grows(some, EVOLVING).figures
    assert ic_claims.evolving(some).holds
    worse = Tables(areas=areas(EVOLVING, lambda name, n: n**1.5 * (name != "fifo")))
    assert not ic_claims.evolving(worse).holds


def test_fft_and_meshes() -> None:
    alike = Tables(areas=areas(FFT, lambda name, n: n**2 * (0.3 if name == "lifo" else 0.1)))
    assert ic_claims.fft_order(alike).holds
    assert ic_claims.fft_coefficients(alike).holds is False  # 3 times
    five = Tables(areas=areas(FFT, lambda name, n: n**2 * (0.5 if name == "lifo" else 0.1)))
    assert ic_claims.fft_coefficients(five).holds
    assert not ic_claims.fft_order(
        Tables(areas=areas(FFT, lambda name, n: n**2 * BEHIND[name]))
    ).holds
    near = {"fifo": 0.02, "greedy": 0.05, "lifo": 0.8}
    assert ic_claims.reduction(
        Tables(areas=areas(REDUCTION, lambda name, n: n**2 * near[name]))
    ).holds
    assert not ic_claims.reduction(
        Tables(areas=areas(REDUCTION, lambda name, n: n**2 * BEHIND[name]))
    ).holds


def test_compositions() -> None:
    steep = Tables(areas=areas(W, lambda name, n: BEHIND[name] * n**2.2 / 10))
    assert ic_claims.hull_exponents(steep, W).holds
    less = Tables(areas=areas(W, lambda name, n: BEHIND[name] * n**1.8))
    assert not ic_claims.hull_exponents(less, W).holds
    shares = Tables(
        areas=areas(W, lambda name, n: (BEHIND[name] + 0.2 * (name != "greedy")) * n**2)
    )
    assert ic_claims.greedy_best(shares, W).holds
    assert ic_claims.greedy_on_w(shares).holds
    assert not ic_claims.fifo_on_w(shares).holds  # LIFO is
    close = Tables(areas=areas(Q2, lambda name, n: (0.5 + 0.1 * BEHIND[name]) * n**2))
    assert ic_claims.cliques(close).holds
    assert not ic_claims.cliques(Tables(areas=areas(Q2, lambda name, n: BEHIND[name] * n**2))).holds


def test_phases(measured: Tables) -> None:
    row = measured.phases[0]
    rows = [
        replace(
            row, family=W, heuristic=name, mean=mean, ratio=1.0 + 0.2 * (mean == 64), margin=0.0
        )
        for name in HEURISTICS
        for mean in MEANS
    ]
    assert ic_batch_claims.fewer_phases(rows, W, "x").holds  # 1 - 1 / 1.2 = 17%
    assert ic_batch_claims.hump(rows, "x").holds
    assert ic_batch_claims.rarely_worse(rows, "x").holds
    slight = [replace(r, ratio=1.0 + (r.ratio - 1) / 4) for r in rows]
    assert not ic_batch_claims.fewer_phases(slight, W, "x").holds
    found = Tables(areas=areas(W, lambda name, n: BEHIND[name] * n**2), phases=rows)
    assert ic_batch_claims.same_order(found, W, "x").holds  # no order of the phases
    found.phases = [replace(r, ratio=1.3) if r.heuristic == "greedy" else r for r in rows]
    verdict = ic_batch_claims.same_order(found, W, "x")
    assert not verdict.holds
    assert "lifo before greedy" in verdict.figures
    level = [replace(r, ratio=1.2) for r in rows]
    assert not ic_batch_claims.hump(level, "x").holds
    worse = [replace(r, ratio=0.97) if r.mean == 8 else r for r in rows]
    verdict = ic_batch_claims.rarely_worse(worse, "x")
    assert not verdict.holds
    assert f"in 3 of {len(rows)} cells, by more than 2% in 3" in verdict.figures


def test_every_size_and_other_dags(measured: Tables) -> None:
    sizes = {"n": [3.0, 6.0], "optimal": [1.0, 1.0], "ahead": [0.0, 4.0]}
    assert ic_other_claims.every_size(FFT, sizes, "x").holds
    assert not ic_other_claims.every_size(FFT, {**sizes, "ahead": [0.0, -1.0]}, "x").holds
    assert not ic_other_claims.every_size(FFT, {**sizes, "optimal": [1.0, 0.0]}, "x").holds
    row = measured.others[0]
    for what, better in (("area", (11.0, 9.0)), ("phases", (9.0, 5.0))):
        known = dict.fromkeys((ICO, "fifo", "lifo", "greedy", "hops"), (10.0, 6.0))
        rows = [replace(row, schedulers={**known, ICO: better}), replace(row, schedulers=known)]
        assert ic_other_claims.behind_none(rows, "x", what).holds
        rows[1] = replace(row, schedulers={**known, "hops": better})
        verdict = ic_other_claims.behind_none(rows, "x", what)
        assert not verdict.holds  # though not on average
        assert f"behind hops on {row.dag} by" in verdict.figures


def run(strategy: str, makespan: float, **changes: object) -> RunRow:
    usual = RunRow("w", 60, 0, "", 20, 0.2, 10.0, False, strategy, makespan, 0)
    return replace(usual, **changes)  # type: ignore[arg-type]


def test_volunteers_are_compared_in_the_same_worlds() -> None:
    runs = [run("ico", 2.0), run("fifo", 3.0), run("ico", 1.0, world=1), run("fifo", 1.6, world=1)]
    runs += [run(STATIC, 1.8)]  # in one world alone
    assert against(runs, "fifo").value == pytest.approx(100 * (4.6 / 3 - 1))
    turned = [
        run("ico", 2.0),
        run("fifo", 1.0),
        run("ico", 1.0, world=1),
        run("fifo", 2.0, world=1),
    ]
    assert against(turned, "fifo").value == 0
    assert against(runs, STATIC).value == pytest.approx(-10.0)
    more = [run("ico", 1.0, workflow="m"), run("fifo", 0.9, workflow="m")]
    assert against([*runs, *more], "fifo").value == pytest.approx((160 / 3 - 10) / 2)  # each alike
    found = {v.claim: v for v in volunteer_verdicts(runs, "x")}
    assert len(found) == 2
    assert not found["among volunteers `ico` ends before `static`"].holds
    sweep = [run(STATIC, 2.4, sweep="error", error=UNKNOWN)]
    [usual, unknown] = points([*runs, *sweep], "error").items()
    assert (usual[0], unknown[0]) == ("10", "unknown")
    assert {r.world for r in usual[1]} == {0, 1}
    assert against(unknown[1], STATIC, runs).value == pytest.approx(20.0)
    assert volunteer_verdicts([run("fifo", 1.0)], "x") == []


def test_every_claim_has_figures(measured: Tables) -> None:
    found = ic_claims.verdicts(measured)
    assert len({v.claim for v in found}) == len(found)
    assert all(any(c.isdigit() for c in v.figures) for v in found)
    assert {v.simulator for v in found} <= set(ic_claims.SIMULATORS)
    assert "nan" not in " ".join(v.figures for v in found)
    for family in COMPOSED:
        assert any("lower hulls" in v.claim for v in found), family


def test_report_is_whole(measured: Tables) -> None:
    how = Circumstances("foreplan reproduce ic", TINY, "2 processes", 30.0, 59.0, 3)
    report = ic_report.report(measured, how)
    assert "in 3 sessions" in report
    assert "{" not in report
    assert "nan" not in report
    assert "| evolving mesh |" in report
    known = {r.strategy for r in measured.runs}
    assert known <= set(STRATEGIES)
    assert "| volunteers | 20 |" in report
    assert "| unknown |" in report
    assert "| volunteers' speeds are known | yes |" in report
