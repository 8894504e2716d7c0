"""`foreplan bench survey`: what it takes to see that all is up to date."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from foreplan.cli.main import app


def test_figures_of_a_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # no Snakemake
    command = ["bench", "survey", "--tasks", "40", "--tries", "1"]
    shown = CliRunner().invoke(app, [*command, "--json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.output)
    assert [row["what"].partition(",")[0] for row in rows] == [
        "reading the workflow",
        "survey of an empty directory",
        "reading the store",
        "survey",
        "survey",
        "foreplan run",
    ]
    assert all(0 < row["cpu"] < 60 for row in rows)
    assert [row["verdict"] for row in rows if row["goal"]] == ["reached"] * 3
    table = CliRunner().invoke(app, command)
    assert "40 tasks with 80 files" in table.output
    assert "Snakemake is not here: `pip install snakemake`" in table.output
