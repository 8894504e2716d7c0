"""`foreplan bench memory`: rules that give tasks of traces memory, on one that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.commands import refuse, succeed
from foreplan_benchmarks.memory_needs import figures


def trace(path: Path, memory: list[int | None]) -> Path:
    names = [f"align_{k}" for k in range(len(memory))]
    specified = [{"id": name, "name": name, "inputFiles": ["f"]} for name in names]
    executed = [{"id": n, "memoryInBytes": m} for n, m in zip(names, memory, strict=True)]
    files = [{"id": "f", "sizeInBytes": 10}]
    content = {"specification": {"tasks": specified, "files": files},
               "execution": {"tasks": executed}}  # fmt: skip
    path.write_text(json.dumps({"workflow": content}))
    return path


def test_shares_and_ratios(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.json", [100, 100, 200, None, 0])
    by_all = {row.rule: row for row in figures(path, leave_out=True)}
    most = by_all["the most seen"]  # 200 for the first two, and 100 for the one that had 200
    assert most.tasks == 3
    assert most.under == pytest.approx(1 / 3)
    assert most.mean_ratio == pytest.approx((2 + 2 + 0.5) / 3)
    assert most.total_ratio == pytest.approx(500 / 400)
    before = {row.rule: row for row in figures(path, leave_out=False)}
    assert before["the most seen"].tasks == 2  # of the first nothing was known


def test_the_command(tmp_path: Path) -> None:
    path = trace(tmp_path / "t.json", [100, 100, 200])
    assert "learnt" in succeed("bench", "memory", path)
    told = json.loads(succeed("bench", "memory", path, "--json"))
    assert {row["trace"] for row in told["by all others"]} == {"t", "all"}
    (tmp_path / "x.json").write_text("{}")
    assert "no trace in WfFormat" in refuse("bench", "memory", tmp_path / "x.json")
    empty = trace(tmp_path / "e.json", [None])
    assert "none of these traces" in refuse("bench", "memory", empty)
