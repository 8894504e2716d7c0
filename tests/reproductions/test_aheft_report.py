"""The tables, verdicts and files of the AHEFT experiment, and its command."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan_reproductions.aheft import claims as aheft_claims
from foreplan_reproductions.aheft import report as aheft_report
from foreplan_reproductions.aheft import units as aheft
from foreplan_reproductions.aheft.cases import BLAST, KINDS, RANDOM, WIEN2K
from foreplan_reproductions.aheft.experiment import EXPERIMENT
from foreplan_reproductions.aheft.tables import ALL, EVENTS, LETTER, PUBLISHED, Row, Tables, tables
from foreplan_reproductions.aheft.units import SAMPLE, units
from foreplan_reproductions.experiment import Circumstances
from foreplan_reproductions.output import time_left
from reproductions.aheft_units import made_up, nearly_done, small
from reproductions.called import run_command


@pytest.fixture(scope="module")
def measured() -> Tables:
    return tables(SAMPLE, {u.number: made_up(u) for u in units(SAMPLE)})


# the tables


def test_averages_and_improvement() -> None:
    done = {u.number: made_up(u) for u in units(SAMPLE)}
    for u in units(SAMPLE):
        if u.part == "main" and u.dag.kind == RANDOM:
            heft = [100.0 if u.dag.ccr < 10 else 300.0] * len(u.models)
            aheft_ = [90.0 if u.dag.ccr < 10 else 150.0] * len(u.models)
            done[u.number] |= {"heft": heft, "aheft": aheft_, "minmin": [400.0] * len(u.models)}
    row = tables(SAMPLE, done).main_row(RANDOM)
    assert (row.heft, row.aheft, row.minmin) == pytest.approx((140, 102, 400))
    assert row.improvement == pytest.approx(100 * 38 / 140)
    assert row.mean_rate == pytest.approx(0.8 * 10 + 0.2 * 50)
    assert (row.dags, row.cases, row.worse) == (375, 7500, 0)
    assert row.published == pytest.approx(4.02, abs=0.01)
    rows = tables(SAMPLE, done).rows(RANDOM, "ccr")
    assert [r.improvement for r in rows] == pytest.approx([10, 10, 10, 10, 50])
    assert [r.margin for r in rows] == pytest.approx([0] * 5, abs=1e-9)


def test_readings_are_compared_with_their_own_heft(measured: Tables) -> None:
    done = {u.number: made_up(u) for u in units(SAMPLE)}
    for u in units(SAMPLE):
        if u.part == "readings":
            same = [100.0] * len(u.models)
            done[u.number]["no levels|heft append"] = [200.0] * len(u.models)
            done[u.number]["no levels|append"] = same
            done[u.number]["no levels|heft"] = same
            done[u.number]["no levels|letter"] = same
    found = tables(SAMPLE, done)
    assert found.rows(BLAST, ALL, LETTER)[0].improvement == pytest.approx(50)
    assert found.rows(BLAST, ALL, "no levels|letter")[0].improvement == 0


def test_every_published_figure_has_ours_beside_it(measured: Tables) -> None:
    for (kind, parameter), figures in PUBLISHED.items():
        rows = measured.rows(kind, parameter)
        assert {r.value: r.published for r in rows} == pytest.approx(figures)
    assert sum(len(f) for f in PUBLISHED.values()) == 5 + 10 * 5


# the verdicts


def with_rates(measured: Tables, rate: Callable[[Row], float]) -> Tables:
    """The same, with improvements made up from the rows."""

    def changed(rows: list[Row]) -> list[Row]:
        return [replace(r, improvement=rate(r), margin=0.1) for r in rows]

    return Tables(changed(measured.main), changed(measured.readings))


def test_growth_and_fall(measured: Tables) -> None:
    growing = with_rates(measured, lambda row: row.value)
    shrinking = with_rates(measured, lambda row: 10_000 - row.value)
    for reading in (EVENTS, LETTER):
        assert aheft_claims.grows(growing, "", RANDOM, "ccr", reading).holds
        assert not aheft_claims.grows(shrinking, "", BLAST, "size", reading).holds
    for parameter in ("pool", "interval"):
        assert aheft_claims.falls(shrinking, "", WIEN2K, parameter).holds
        assert not aheft_claims.falls(growing, "", WIEN2K, parameter).holds


def test_levels(measured: Tables) -> None:
    assert aheft_claims.never_worse(measured).holds
    worse = with_rates(measured, lambda row: -0.1 if row.parameter == "beta" else 1.0)
    assert not aheft_claims.never_worse(worse).holds
    assert aheft_claims.far_behind(measured).holds
    near = [replace(r, minmin=1.5 * r.heft) for r in measured.main]
    assert not aheft_claims.far_behind(replace(measured, main=near)).holds
    three = with_rates(measured, lambda row: 30.0 if row.kind == BLAST else 10.0)
    assert aheft_claims.far_more(three, BLAST, WIEN2K, EVENTS).holds
    five = with_rates(measured, lambda row: 5.0)
    assert not aheft_claims.far_more(five, BLAST, WIEN2K, LETTER).holds


def test_which_rises_faster(measured: Tables) -> None:
    def rate(row: Row) -> float:
        return row.value if row.kind == WIEN2K else 1.0

    steep = with_rates(measured, rate)
    assert aheft_claims.rises_faster(steep, BLAST, WIEN2K, EVENTS).holds
    assert not aheft_claims.rises_faster(steep, WIEN2K, BLAST, EVENTS).holds


def test_a_jump_and_then_little(measured: Tables) -> None:
    jumps = with_rates(measured, lambda row: 1.0 if row.value == 20 else 4.0 + row.value / 100)
    assert aheft_claims.levels_off(jumps, "", RANDOM, "size", EVENTS).holds
    steady = with_rates(measured, lambda row: row.value)
    assert not aheft_claims.levels_off(steady, "", RANDOM, "size", EVENTS).holds


def test_sensitivity_and_agreement(measured: Tables) -> None:
    flat = with_rates(measured, lambda row: 20 + (row.value if row.parameter == "share" else 0))
    assert aheft_claims.insensitive(flat, "", BLAST, "share").holds
    steep = with_rates(measured, lambda row: 30 + 100 * row.value)
    assert not aheft_claims.insensitive(steep, "", BLAST, "share").holds
    published = with_rates(measured, lambda row: row.published + 0.9)
    for kind in KINDS:
        assert aheft_claims.as_published(published, "", kind, EVENTS).holds
        assert not aheft_claims.as_published(steep, "", kind, EVENTS).holds


def test_every_claim_has_figures(measured: Tables) -> None:
    found = aheft_claims.verdicts(measured)
    assert len(found) == 2 + 8 + 2 * (6 + 6 + 4) + 4 * 4
    assert all(any(c.isdigit() for c in v.figures) for v in found)
    assert "nan" not in " ".join(v.figures for v in found)


# the command


def test_command_goes_on_and_writes_everything(tmp_path: Path) -> None:
    nearly_done(tmp_path / "units.log", small())
    code, output = run_command("aheft", "--out", str(tmp_path), "--jobs", "1")
    assert code == 0
    assert "going on: 946 of 950 units are done already" in output
    assert "Section 4: AHEFT is never worse than HEFT on average" in output
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "units.log", "averages.csv", "table3.csv", "table4.csv", "table6.csv", "table7.csv",
        "table8.csv", "figure8.csv", "random.csv", "readings.csv", "figure8.png",
        "figure8-jobs.png", "improvements.png", "report.md",
    }  # fmt: skip
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
    report = (tmp_path / "report.md").read_text()
    assert "| random DAGs | 4075 |" in report
    assert "| WIEN2K, v-way | published | 2.2% | 4.3% | 6.0% | 7.8% | 9.4% |" in report
    assert " nan" not in report
    assert "{" not in report
    table3 = list(csv.DictReader(io.StringIO((tmp_path / "table3.csv").read_text())))
    assert [float(row["published"]) for row in table3] == [0.4, 0.5, 0.7, 3.2, 7.7]


def test_command_refuses_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="paper"):
        run_command("ahef")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make this folder"):
        run_command("aheft", "--out", str(tmp_path / "file" / "results"))
    with pytest.raises(InputError, match="all papers but"):
        run_command("selective", "--fresh", "--out", str(tmp_path / "other"))
    assert run_command("aheft", "--jobs", "0")[0] == 2
    nearly_done(tmp_path / "units.log", [])
    with pytest.raises(InputError, match=r"seed 0, not 1.*--fresh"):
        run_command("aheft", "--seed", "1", "--out", str(tmp_path))
    with pytest.raises(InputError, match="--on"):
        run_command("aheft", "--fresh", "--on", "dask://", "--out", str(tmp_path))
    assert len((tmp_path / "units.log").read_bytes()) > 100_000  # nothing was thrown away for it


def test_command_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(settings: aheft.Settings, number: int) -> None:
        raise KeyboardInterrupt

    nearly_done(tmp_path / "units.log", small())
    monkeypatch.setattr(EXPERIMENT, "perform", interrupted)
    code, output = run_command("aheft", "--out", str(tmp_path), "--jobs", "1")
    assert code == 130
    assert "946 of 950 units are done and kept" in output
    assert "the same command goes on" in output
    assert not (tmp_path / "report.md").exists()


def test_full_and_sessions_in_the_report(measured: Tables) -> None:
    how = Circumstances("foreplan", aheft.FULL, "2 processes", 3000.0, 5900.0, 3)
    report = aheft_report.report(measured, how)
    assert "in 3 sessions" in report
    assert "10 at random, 1 of each application" in report
    assert "500,000 cases" in report


def test_time_left() -> None:
    assert time_left(10, 0) == ""
    assert time_left(10, 0.5) == "about 10 s left"
    assert time_left(600, 0.25) == "about 30 min left"
