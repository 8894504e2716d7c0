"""The tables, verdicts and files of the GTP experiment, and its command."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from foreplan.errors import InputError
from foreplan_reproductions.experiment import Circumstances
from foreplan_reproductions.gtp import claims as gtp_claims
from foreplan_reproductions.gtp import report as gtp_report
from foreplan_reproductions.gtp import units as gtp
from foreplan_reproductions.gtp.experiment import EXPERIMENT
from foreplan_reproductions.gtp.runs import DLS, DLS_PEAK, GTP, GTPC, GTPCR, GTPR, HEFT
from foreplan_reproductions.gtp.tables import NSL, OVERHEAD, PUBLISHED, Key, Tables, tables
from foreplan_reproductions.gtp.units import BY_PLANNER, CALM, FAILURE, SAMPLE, units
from reproductions.called import run_command
from reproductions.gtp_units import all_made_up, nearly_done, small


@pytest.fixture(scope="module")
def measured() -> Tables:
    return tables(SAMPLE, all_made_up())


def with_nsl(measured: Tables, nsl: Callable[[Key, str], float], spread: float = 0.01) -> Tables:
    """The same, with NSLs by key and strategy, and a little noise."""
    rng = np.random.default_rng(1)
    samples = {}
    for key, sample in measured.samples.items():
        changed = dict(sample)
        for name in measured.strategies(key):
            n = len(sample[f"{name}|{NSL}"])
            changed[f"{name}|{NSL}"] = nsl(key, name) + spread * rng.standard_normal(n)
        samples[key] = changed
    return replace(measured, samples=samples)


def with_metric(measured: Tables, metric: str, values: dict[str, float]) -> Tables:
    """The same, with a metric of some strategies made up."""
    samples = {
        key: {
            name: np.full(len(column), values.get(name.removesuffix(f"|{metric}"), 1.0))
            if name.endswith(f"|{metric}")
            else column
            for name, column in sample.items()
        }
        for key, sample in measured.samples.items()
    }
    return replace(measured, samples=samples)


# the tables


def test_every_cell_has_its_graphs(measured: Tables) -> None:
    assert len(measured.keys(CALM, 300, 0.5)) == len(measured.keys(FAILURE, 300, 0.5)) == 10
    assert measured.mean(measured.main(CALM, 0.4), GTPC).graphs == SAMPLE.main
    assert measured.mean(Key(CALM, 50, 1.5, 0.4), GTPC).graphs == SAMPLE.grid
    assert measured.mean(measured.main("rate", 20.0), GTPC).graphs == SAMPLE.sweeps
    assert [key.value for key in measured.sweep("ccr")] == [0.1, 0.5, 1.5, 5.0]


def test_means_are_those_of_the_units(measured: Tables) -> None:
    done = all_made_up()
    main = [u for u in units(SAMPLE) if (u.part, u.graph.size, u.graph.ccr) == (CALM, 300, 0.5)]
    column = [done[u.number]["GTP/c|makespan"][4] / 80 for u in main]
    figure = measured.mean(measured.main(CALM, 0.4), GTPC)
    assert figure.value == pytest.approx(np.mean(column))
    half = 2.0687 * np.std(column, ddof=1) / np.sqrt(24)  # Student's t for 23 degrees
    assert figure.margin == pytest.approx(half, rel=1e-4)
    lost, resent, needed = (
        np.array([done[u.number][f"GTP/c|{m}"][4] for u in main])
        for m in ("lost", "resent", "needed")
    )
    wanted = (100 * (lost + resent) / (1000 + needed)).mean()
    assert measured.mean(measured.main(CALM, 0.4), GTPC, OVERHEAD).value == pytest.approx(wanted)


def test_gain_is_that_of_the_averages_and_paired(measured: Tables) -> None:
    key = measured.main(CALM, 0.4)
    base = np.linspace(1, 3, 24)
    sample = {**measured.samples[key], "HEFT|nsl": base, "GTP/c|nsl": 0.9 * base}
    found = replace(measured, samples={**measured.samples, key: sample})
    gain = found.gain(key, GTPC, HEFT)
    assert gain.value == pytest.approx(10)
    assert gain.margin == pytest.approx(0, abs=1e-9)  # though the graphs differ by a factor of 3
    assert gain.above
    assert not gain.below


def test_best_of_ten_is_the_mean_over_all_draws(measured: Tables) -> None:
    key = measured.main(CALM, 0.4)
    rng = np.random.default_rng(2)
    gains = rng.uniform(-5, 15, 12)
    sample = {**measured.samples[key], "HEFT|nsl": np.ones(12), "GTP/c|nsl": 1 - gains / 100}
    found = replace(measured, samples={**measured.samples, key: sample})
    draws = [max(some) for some in combinations(gains.tolist(), 10)]
    best = found.best(key, GTPC, HEFT)
    assert best.of_ten == pytest.approx(np.mean(draws))
    assert best.of_all == pytest.approx(gains.max())


def test_slope_of_the_gain(measured: Tables) -> None:
    steady = with_nsl(measured, lambda key, name: 2 - 0.4 * key.value * (name == GTPC), 0.0)
    slope = steady.slope(CALM, GTPC, HEFT)
    assert slope.value == pytest.approx(2.0)  # 2% of the other per 10%
    assert steady.slope(CALM, HEFT, DLS).value == pytest.approx(0)


def test_rows_and_gains_are_all_there(measured: Tables) -> None:
    gains = list(measured.gains())
    published = {
        (g.part, g.value, g.strategy, g.over): g.published
        for g in gains
        if np.isfinite(g.published)
    }
    assert published == PUBLISHED
    assert {g.over for g in gains if g.part == "rate"} == {HEFT, DLS, GTP}
    assert {g.over for g in gains if g.part == "rate, failure"} == {GTPR}
    assert not any(g for g in gains if g.part == "planner")
    rows = list(measured.rows())
    assert len(rows) == sum(len(measured.strategies(key)) for key in measured.samples)


# the verdicts


def test_who_beats_whom(measured: Tables) -> None:
    better = with_nsl(measured, lambda key, name: 1.86 if name == GTPC else 2.0, spread=0.001)
    beats, published = gtp_claims.beaten(better, CALM, 0.4, GTPC, HEFT)
    assert beats.holds
    assert not published.holds  # 7%, not 14%
    assert "best of ten 7." in published.figures
    assert gtp_claims.beaten(better, CALM, 0.4, GTPC, DLS)[1].holds
    assert gtp_claims.beaten(better, BY_PLANNER, 0.4, GTPC, DLS_PEAK)[1].holds
    equal = with_nsl(measured, lambda key, name: 2.0, spread=0.0)
    assert not gtp_claims.beaten(equal, CALM, 0.4, GTPC, GTP)[0].holds
    assert not gtp_claims.unvaried(equal, GTP).holds
    assert gtp_claims.unvaried(better, GTPC).holds


def test_growth(measured: Tables) -> None:
    growing = with_nsl(measured, lambda key, name: 2 - 0.5 * key.value * (name in (GTPC, GTPCR)))
    for part, mine, over in ((CALM, GTPC, HEFT), (FAILURE, GTPCR, GTPR)):
        assert gtp_claims.grows(growing, part, mine, over).holds
        assert not gtp_claims.grows(growing, part, over, mine).holds


def test_exceptions(measured: Tables) -> None:
    def few_or_low(key: Key, name: str) -> float:
        return 2.0 - (name == GTPC) * (-0.5 if key.size <= 100 or key.value <= 0.2 else 0.1)

    assert gtp_claims.exceptions(with_nsl(measured, few_or_low), HEFT).holds
    always = with_nsl(measured, lambda key, name: 2.0 + 0.5 * (name == GTPC))
    verdict = gtp_claims.exceptions(always, DLS)
    assert not verdict.holds
    assert "better on average in 0 of 15 cells" in verdict.figures
    alike = with_nsl(measured, lambda key, name: 2.0)
    assert not gtp_claims.exceptions(alike, GTP).holds  # half of them are behind by chance


def test_many_tasks_and_most_cases(measured: Tables) -> None:
    many = with_nsl(measured, lambda key, name: 2.0 - (name == GTPC) * key.size / 10_000)
    assert gtp_claims.larger(many, HEFT).holds
    few = with_nsl(measured, lambda key, name: 2.0 - (name == GTPC) * 10 / key.size)
    assert not gtp_claims.larger(few, DLS).holds
    noise = with_nsl(measured, lambda key, name: 2.0, spread=0.2)
    assert not gtp_claims.larger(noise, GTP).holds
    one = {key: sample for key, sample in many.samples.items() if key.size > 100}
    assert not gtp_claims.larger(replace(many, samples=one), HEFT).holds
    better = with_nsl(measured, lambda key, name: 2.0 - 0.5 * (name == GTPCR) * (key.ccr < 1))
    assert gtp_claims.most_cases(better).holds
    assert not gtp_claims.most_cases(with_nsl(measured, lambda k, n: 2.0 + (n == GTPCR))).holds


def test_fewer_and_more(measured: Tables) -> None:
    for metric in ("migrated", OVERHEAD):
        assert gtp_claims.fewer(with_metric(measured, metric, {GTP: 4.0, GTPC: 3.0}), metric).holds
        assert not gtp_claims.fewer(with_metric(measured, metric, {GTPC: 3.0}), metric).holds
    more = gtp_claims.rewinds_more(with_metric(measured, "rewound", {GTPR: 9.0}), "rewound")
    assert more.holds
    assert "800.0%" in more.figures
    assert "2.7% of all tasks" in more.figures
    none = with_metric(measured, "levels", {GTPR: 0.0, GTPCR: 0.0})
    assert not gtp_claims.rewinds_more(none, "levels").holds


def test_every_claim_has_figures(measured: Tables) -> None:
    found = gtp_claims.verdicts(measured)
    assert len(found) == 3 + 3 * 3 + 2 + 3 + 3 + 3 + 2 + 2 + 3
    assert len({v.claim for v in found}) == len(found)
    assert all(any(c.isdigit() for c in v.figures) for v in found)
    assert "nan" not in " ".join(v.figures for v in found)


# the command


def test_command_goes_on_and_writes_everything(tmp_path: Path) -> None:
    nearly_done(tmp_path / "units.log", small())
    code, output = run_command("gtp", "--out", str(tmp_path), "--jobs", "1")
    assert code == 0
    of = len(units(SAMPLE))
    assert f"going on: {of - 2} of {of} units are done already" in output
    assert "at 40% GTP/c beats HEFT" in output
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "units.log", "figure4.csv", "figure5.csv", "gains.csv", "sweeps.csv", "figure4.png",
        "figure5.png", "gains.png", "sweeps.png", "report.md",
    }  # fmt: skip
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
    report = (tmp_path / "report.md").read_text()
    assert "| GTP/c over HEFT | 40% | up to 14% |" in report
    assert "nan" not in report.replace("Hernandez", "")
    assert "{" not in report
    figure4 = list(csv.DictReader(io.StringIO((tmp_path / "figure4.csv").read_text())))
    assert len(figure4) == 10 * 6
    assert all(row["size"] == "300" for row in figure4)


def test_command_refuses_bad_input(tmp_path: Path) -> None:
    for options in (["selective", "--stg", "x"], ["aheft", "--stg", "x"], ["gtp", "--on", "x"]):
        with pytest.raises(InputError, match="only"):
            run_command(*options, "--out", str(tmp_path / "other"))
    with pytest.raises(InputError, match="no such folder"):
        run_command("gtp", "--stg", str(tmp_path / "none"), "--out", str(tmp_path))
    nearly_done(tmp_path / "units.log", [])
    with pytest.raises(InputError, match=r"seed 0, not 1.*--fresh"):
        run_command("gtp", "--seed", "1", "--out", str(tmp_path))


def test_command_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(settings: gtp.Settings, number: int) -> None:
        raise KeyboardInterrupt

    nearly_done(tmp_path / "units.log", small())
    monkeypatch.setattr(EXPERIMENT, "perform", interrupted)
    code, output = run_command("gtp", "--out", str(tmp_path), "--jobs", "1")
    assert code == 130
    assert "units are done and kept" in output
    assert "the same command goes on" in output
    assert not (tmp_path / "report.md").exists()


def test_shapes_from_files_have_no_density(tmp_path: Path) -> None:
    for k in range(2):
        (tmp_path / f"{k}.stg").write_text("3\n0 3 0\n1 4 1 0\n2 6 1 0\n")
    settings = replace(SAMPLE, stg=str(tmp_path), main=2, grid=2, sweeps=2)
    found = tables(settings, all_made_up(settings))
    how = Circumstances("foreplan", settings, "2 processes", 30.0, 59.0, 3)
    report = gtp_report.report(found, how)
    assert "in 3 sessions" in report
    assert "Shapes from" in report
    assert "**predecessors per task**" not in report
    assert "{" not in report
