"""The default strategy beside others: the same worlds for all, and figures that can be repeated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import foreplan
from foreplan.cli.main import app
from foreplan.comparison import Mean
from foreplan.errors import InputError
from foreplan.model import Workflow
from foreplan_benchmarks.default_strategy import CELLS, QUICK, Cell, Load, Result, compare

SOME = (
    Cell(4, "mixed", 0.5, "quiet"),
    Cell(4, "equal", 0.5, "joins"),
    Cell(4, "mixed", 0.1, "losses"),
)


@pytest.fixture(scope="module")
def workflows() -> list[Workflow]:
    return [foreplan.load(_tasks(n)) for n in (12, 20)]


def _tasks(n: int) -> dict[str, object]:
    """Some that fork from one, and join."""
    middle = {f"m{i}": {"cost": 5 + i % 4, "inputs": ["x"], "outputs": [f"y{i}"]} for i in range(n)}
    last = {"cost": 3, "inputs": [f"y{i}" for i in range(n)]}
    return {
        "name": f"w{n}",
        "tasks": {"first": {"cost": 2, "outputs": ["x"]}, **middle, "last": last},
    }


def test_the_worlds_are_the_same_for_all(workflows: list[Workflow]) -> None:
    """A strategy beside itself is neither ahead nor behind, whatever happens."""
    for result in compare(workflows, 3, SOME, "slack", jobs=1):
        assert result.ratio["slack"] == Mean(1.0, 1.0, 1.0)
        assert result.load["slack"].considered == result.load["slack"].taken > 0


def test_figures_can_be_repeated(workflows: list[Workflow]) -> None:
    once = compare(workflows, 3, SOME, jobs=1)
    assert compare(workflows, 3, SOME, jobs=2) == once
    assert compare(workflows, 3, SOME, seed=100, jobs=1) != once
    *cells, overall = once
    assert [result.cell for result in cells] == list(SOME)
    assert overall.cell is None
    joins = cells[1].ratio["slack"]
    assert joins.high is not None
    assert joins.high < 1  # slack does not look at who joins
    means = [result.load["adaptive"].considered for result in cells]
    assert overall.load["adaptive"].considered == pytest.approx(sum(means) / 3)


@pytest.mark.parametrize(
    ("cell", "mean", "low", "verdict"),
    [
        (SOME[0], 1.009, 1.008, "as it should be"),
        (SOME[0], 1.02, 1.005, "missed, within the interval"),
        (SOME[0], 1.02, 1.011, "missed"),
        (None, 0.999, 0.99, "as it should be"),
        (None, 1.001, 1.0005, "missed"),
    ],
)
def test_verdicts(cell: Cell | None, mean: float, low: float, verdict: str) -> None:
    ratio = {"slack": Mean(0.9, 0.89, 0.91), "aheft": Mean(mean, low, 2 * mean - low)}
    assert Result(cell, ratio, {"adaptive": Load(1, 1, 1)}).verdict == verdict


def test_cells() -> None:
    assert len(CELLS) == 72
    assert set(QUICK) < set(CELLS)


def test_wrong_input(workflows: list[Workflow], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no workflow"):
        compare([], 1)
    with pytest.raises(InputError, match="adaptve"):
        compare(workflows, 1, SOME, "adaptve")


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(_tasks(4)))
    told_by = ["bench", "strategy", "--workflows", str(tmp_path), "--quick", "--worlds", "1"]
    told = CliRunner().invoke(app, [*told_by, "--jobs", "1", "--json"])
    assert told.exit_code == 0, told.output
    results = json.loads(told.stdout)["results"]
    assert len(results) == len(QUICK) + 1
    assert results[0]["cell"] == QUICK[0]._asdict()
    assert {"ratio", "load", "verdict"} <= set(results[-1])
    plain = [*told_by, "--strategy", "slack"]  # which stands beside itself
    told = CliRunner().invoke(app, plain)
    assert told.exit_code == 0, told.output
    assert len(told.stdout.splitlines()) == len(QUICK) + 5
