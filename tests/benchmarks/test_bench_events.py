"""`foreplan bench events`: what planned runs cost beside runs without a plan."""

from __future__ import annotations

import json

import pytest

from cli.commands import refuse, succeed


def test_figures() -> None:
    """Two sizes, one turn of each strategy; nothing is missing, whatever the verdicts are."""
    rows = json.loads(succeed("bench", "events", "--tasks", "8, 16", "--turns", "1", "--json"))
    strategies = ["fifo", "slack", "adaptive"]
    assert [(r["tasks"], r["strategy"]) for r in rows] == [
        (tasks, strategy) for tasks in (8, 16) for strategy in strategies
    ]
    for row in rows:
        assert min(row["own"], row["commands"], row["report"]) > 0
        assert (row["verdict"] == "as it should be") == (row["ratio"] <= 1.1)
        if row["strategy"] == "fifo":
            assert (row["ratio"], row["ratio_in_all"], row["considered"]) == (1, 1, 0)


@pytest.mark.parametrize("tasks", ["0", "many", "10,,20", "-5"])
def test_what_is_no_number_of_tasks(tasks: str) -> None:
    assert "no number of tasks" in refuse("bench", "events", f"--tasks={tasks}")
