"""A run was killed; before it is resumed, an early input is edited or an intermediate deleted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import foreplan
from foreplan.runs.home import runs
from foreplan.runs.journal import read


def task(run: str, inputs: list[str], output: str, cost: float) -> dict[str, object]:
    return {"run": run, "inputs": inputs, "outputs": [output], "cost": cost}


TASKS = {
    "a": task("tr a-z A-Z < in.txt > mid.txt", ["in.txt"], "mid.txt", 1),
    "c": task("cat mid.txt > c.txt", ["mid.txt"], "c.txt", 50),
    "b": task("cat mid.txt mid.txt > b.txt", ["mid.txt"], "b.txt", 5),
    "d": task("cat b.txt c.txt > d.txt", ["b.txt", "c.txt"], "d.txt", 5),
}


@pytest.mark.parametrize("strategy", ["adaptive", "ico"])
@pytest.mark.parametrize("on", ["local:1", "local:2"])
def test_nothing_reads_what_is_outdated_or_gone(tmp_path: Path, strategy: str, on: str) -> None:
    whole, work = tmp_path / "whole", {"name": "late", "tasks": TASKS}
    whole.mkdir()
    (whole / "in.txt").write_text("one\n")
    assert foreplan.run(work, on, dir=whole, strategy=strategy, use_history=False).ok
    entries = read(runs(whole)[0].journal).entries
    for kept in range(1, len(entries) - 1):
        for text in ("one", "two"):
            place = tmp_path / f"{kept}-{text}"
            shutil.copytree(whole, place, symlinks=True)
            (home,) = runs(place)
            lines = home.journal.read_bytes().splitlines(keepends=True)
            home.journal.write_bytes(b"".join(lines[: 1 + kept]))
            (place / "c.txt").unlink()  # as if it had not come so far
            (place / "d.txt").unlink()
            if text == "one":
                (place / "mid.txt").unlink()
            (place / "in.txt").write_text(f"{text}\n")
            outcome = foreplan.run(work, on, dir=place, resume=home.id)
            assert outcome.ok, (kept, outcome.failures)
            assert (place / "d.txt").read_text() == f"{text.upper()}\n" * 3, kept
