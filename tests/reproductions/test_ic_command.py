"""`foreplan reproduce ic`: what it writes, how it goes on, and what it refuses."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from foreplan.errors import InputError
from foreplan_reproductions.ic.experiment import EXPERIMENT
from foreplan_reproductions.ic.units import AREA, Settings, units
from reproductions.called import run_command
from reproductions.ic_made_up import TINY, nearly_done, one_of_each

CHAIN = "tasks:\n  a: {cost: 3, outputs: [x]}\n  b: {cost: 5, inputs: [x]}\n"


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample that takes no time."""
    monkeypatch.setattr(EXPERIMENT, "sample", TINY)


def test_command_goes_on_and_writes_everything(tmp_path: Path) -> None:
    folder, out = tmp_path / "workflows", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    (folder / "chain.yaml").write_text(CHAIN)
    settings = replace(TINY, workflows=str(folder))
    left = one_of_each(settings)
    nearly_done(out / "units.log", left, settings)
    code, output = run_command("ic", "--out", str(out), "--jobs", "1", "--workflows", str(folder))
    assert code == 0
    of = len(units(settings))
    assert f"going on: {of - len(left)} of {of} units are done already" in output
    assert "FIFO and GREEDY are IC-optimal" in output
    names = {path.name for path in out.iterdir()}
    tables = ("areas", "fits", "phases", "readings", "others", "volunteers")
    pictures = ("figure4", "figure7", "figure8", "figure9", "volunteers")
    assert names == {
        "units.log", "report.md", *(f"{t}.csv" for t in tables), *(f"{p}.png" for p in pictures)
    }  # fmt: skip
    for path in out.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
    rows = list(csv.DictReader(io.StringIO((out / "areas.csv").read_text())))
    assert len(rows) == 3 * sum(unit.part == AREA for unit in units(settings))
    report = (out / "report.md").read_text()
    assert "**holds**" in report
    assert "| chain | 2 |" in report


def test_command_refuses_bad_input(tmp_path: Path) -> None:
    for option in ("--stg", "--on"):
        with pytest.raises(InputError, match="only"):
            run_command("ic", option, "x", "--out", str(tmp_path / "other"))
    with pytest.raises(InputError, match="`ic` only"):
        run_command("gtp", "--workflows", "x", "--out", str(tmp_path / "other"))
    with pytest.raises(InputError, match="no such folder"):
        run_command("ic", "--workflows", str(tmp_path / "none"), "--out", str(tmp_path / "other"))
    nearly_done(tmp_path / "units.log", [])
    with pytest.raises(InputError, match=r"seed 0, not 1.*--fresh"):
        run_command("ic", "--seed", "1", "--out", str(tmp_path))


def test_command_interrupted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(settings: Settings, number: int) -> None:
        raise KeyboardInterrupt

    nearly_done(tmp_path / "units.log", one_of_each()[:1])
    monkeypatch.setattr(EXPERIMENT, "perform", interrupted)
    code, output = run_command("ic", "--out", str(tmp_path), "--jobs", "1")
    assert code == 130
    assert "units are done and kept" in output
    assert not (tmp_path / "report.md").exists()
