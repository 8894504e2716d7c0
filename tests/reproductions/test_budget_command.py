"""`foreplan reproduce budget`: what it writes, how it goes on, and what it refuses."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan_reproductions.budget import units as budget
from foreplan_reproductions.budget.experiment import EXPERIMENT
from foreplan_reproductions.budget.units import units
from reproductions.budget_units import TINY, nearly_done, one_of_each
from reproductions.called import run_command


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that takes no time."""
    monkeypatch.setattr(EXPERIMENT, "sample", TINY)


def test_command_goes_on_and_writes_everything(tmp_path: Path) -> None:
    nearly_done(tmp_path / "units.log", one_of_each(TINY)[1:], TINY)
    code, output = run_command("budget", "--out", str(tmp_path), "--jobs", "1")
    assert code == 0
    of = len(units(TINY))
    assert f"going on: {of - 3} of {of} units are done already" in output
    assert "LOSS1 is generally ahead of GAIN1" in output
    assert "unrelated machines" in output
    names = {path.name for path in tmp_path.iterdir()}
    tables = ("figure3", "figure4", "figure5", "figure6", "unrelated", "ours", "sweep", "runs")
    assert names == {
        "units.log", "report.md", "careful.csv", *(f"{t}.csv" for t in tables),
        *(f"{t}.png" for t in tables),
    }  # fmt: skip
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
    figure3 = list(csv.DictReader(io.StringIO((tmp_path / "figure3.csv").read_text())))
    assert len(figure3) == 4 * 6 * 9
    assert all(row["dags"] == str(TINY.dags) for row in figure3)
    assert "**holds**" in (tmp_path / "report.md").read_text()


def test_command_refuses_bad_input(tmp_path: Path) -> None:
    for option in ("--stg", "--on"):
        with pytest.raises(InputError, match="only"):
            run_command("budget", option, "x", "--out", str(tmp_path / "other"))
    nearly_done(tmp_path / "units.log", [], TINY)
    with pytest.raises(InputError, match=r"seed 0, not 1.*--fresh"):
        run_command("budget", "--seed", "1", "--out", str(tmp_path))


def test_command_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(settings: budget.Settings, number: int) -> None:
        raise KeyboardInterrupt

    nearly_done(tmp_path / "units.log", one_of_each(TINY)[:1], TINY)
    monkeypatch.setattr(EXPERIMENT, "perform", interrupted)
    code, output = run_command("budget", "--out", str(tmp_path), "--jobs", "1")
    assert code == 130
    assert "units are done and kept" in output
    assert "the same command goes on" in output
    assert not (tmp_path / "report.md").exists()
