"""`foreplan bench joins`: its figures, what it refuses, and what SIGTERM leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commands import MAIN, refuse, succeed
from foreplan_benchmarks.commands.real import show_joins
from foreplan_benchmarks.dask_cluster import WHILE_PARENT_LIVES
from foreplan_benchmarks.dask_joins import JoinedRun, Pair, ratios

pytest.importorskip("distributed")

QUICK = ("bench", "joins", "--quick", "--pairs", "1", "--unit", "0.4")
LIMIT = 60.0


def test_figures(capsys: pytest.CaptureFixture[str]) -> None:
    """One pair: both runs are on one cluster, and who joined for the first is gone."""
    content = json.loads(succeed(*QUICK, "--shapes", "fork_join", "--speed", "2", "--json"))
    assert list(content) == ["pairs", "ratios"]
    [pair], [row] = content["pairs"], content["ratios"]
    aheft, static = pair["aheft"], pair["static"]
    assert pair["ratio"] == aheft["makespan"] / static["makespan"]
    assert pair["least"] <= pair["simulated"] <= 1
    assert aheft["makespan"] >= pair["bound"]
    assert static["makespan"] >= 0.95 * pair["simulated_static"]
    assert static["on_joiners"] == static["considered"] == 0
    assert aheft["joined"] >= pair["at"]
    assert aheft["on_joiners"] >= 1
    assert aheft["first_start"] >= aheft["joined"]
    assert 1 <= aheft["taken"] <= aheft["considered"]
    assert (row["ratio"], row["worst"], row["pairs"]) == (pair["ratio"], pair["ratio"], 1)
    assert row["joined_to_first"] == aheft["first_start"] - aheft["joined"]

    fields = {k: v for k, v in pair.items() if k not in ("ratio", "simulated", "least")}
    told = Pair(**{**fields, "aheft": JoinedRun(**aheft), "static": JoinedRun(**static)})
    show_joins([told], ratios([told]))
    shown = capsys.readouterr().out
    assert "aheft over that of static" in shown
    assert shown.count(f"{pair['ratio']:.3f}") == 3  # of the pair, the median, the worst
    assert "…" not in shown  # no column is too narrow


def test_unknown_shape() -> None:
    assert "none of montage, fork_join" in refuse("bench", "joins", "--shapes", "star")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_sigterm_leaves_nothing_behind(tmp_path: Path) -> None:
    """It is taken for Ctrl-C."""
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *QUICK[:-1], "3"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        # after the run that warms up
        until(lambda: len(list(tmp_path.glob("*/.foreplan/runs/*/journal.jsonl"))) >= 2)
        children = children_of(process.pid)
        assert len(children) == 6  # a scheduler, three workers, and two that wait
        process.send_signal(signal.SIGTERM)
        printed, told = process.communicate(timeout=LIMIT)
    assert process.returncode not in (0, None)
    assert printed == b""
    assert b"Traceback" not in told
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
    assert not list(tmp_path.iterdir())


def test_what_a_benchmark_starts_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import time; print('here', flush=True); time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, "-c", WHILE_PARENT_LIVES, "waits"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        process.stdin.close()  # as when this process is killed
        assert process.wait(LIMIT) == 0


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def children_of(pid: int) -> list[int]:
    """The processes that any of its threads has started."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (thread / "children").read_text().split())
    return found
