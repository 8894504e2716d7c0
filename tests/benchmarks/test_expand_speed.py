"""`foreplan bench expand`: what it takes to load a short workflow of many tasks."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from foreplan.cli.main import app


def test_figures_of_an_expansion() -> None:
    command = ["bench", "expand", "--tasks", "80", "--tries", "1"]
    shown = CliRunner().invoke(app, [*command, "--json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.output)
    assert rows[0]["verdict"] == "reached"
    assert "80 tasks of four loops" in CliRunner().invoke(app, command).output
