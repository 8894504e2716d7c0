"""Whole processes, measured from their start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from foreplan.cli.main import app
from foreplan.errors import InputError
from foreplan_benchmarks import start_speed


def test_figures_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [start_speed._ten_tasks, start_speed._first_plan]
    monkeypatch.setattr(start_speed, "PARTS", quick)
    shown = CliRunner().invoke(app, ["bench", "start", "--processes", "1", "--json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.output)
    assert [row["unit"] for row in rows] == ["times", "ms"]
    assert [row["processes"] for row in rows] == [3, 1]
    for row in rows:
        within = 0 < row["measured"] <= row["goal"]["bound"]
        assert row["verdict"] == ("reached" if within else "missed")


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"plan nowhere\.yaml failed: .*no such file"):
        start_speed._take([*start_speed.FOREPLAN, "plan", "nowhere.yaml"], tmp_path)
