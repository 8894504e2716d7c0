"""What-if about runs that are cut at any moment: it answers, and adding never worsens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from cli.journals import write_run
from weft.journal.lock import RunLock
from weft.journal.log import read
from weft.journal.places import RunHome
from weft.live.replay import replay
from weft.whatif import in_progress


def layers(seed: int) -> dict[str, Any]:
    """A few layers of tasks, each of which reads what some of the layer before made."""
    rng = np.random.default_rng(seed)
    tasks: dict[str, Any] = {}
    edges: list[list[Any]] = []
    before: list[str] = []
    for layer in range(4):
        here = [f"t{layer}-{k}" for k in range(int(rng.integers(1, 6)))]
        tasks |= {name: {"cost": float(rng.integers(1, 9))} for name in here}
        for name in here if before else ():
            readers = rng.choice(before, int(rng.integers(1, len(before) + 1)), replace=False)
            edges += [[str(one), name, 1] for one in readers]
        before = here
    return {"name": "layers", "tasks": tasks, "edges": edges}


def cut(home: RunHome, entries: int) -> RunHome:
    """The same run, but its journal ends after so many entries."""
    other = RunHome.create(home.data, "cut")
    lines = home.journal.read_bytes().splitlines(keepends=True)[: 1 + entries]
    other.journal.write_bytes(b"".join(lines))
    return other


@pytest.mark.parametrize("factor", [1.0, 1.7])
@pytest.mark.parametrize("strategy", ["static", "slack", "aheft[planner=dls]", "fifo", "min-min"])
def test_at_any_moment(strategy: str, factor: float, tmp_path: Path) -> None:
    whole = write_run(tmp_path, layers(3), strategy=strategy, factor=factor, processors=3)
    entries = len(whole.journal.read_bytes().splitlines()) - 1
    for many in range(0, entries - 2, 5):
        home = cut(whole, many)
        before = home.journal.read_bytes()
        stage = in_progress(home)
        stage.coordinator.check_state()
        for later in (0.0, 2.5):
            at = stage.now + later
            told = weft.what_if(run=home.id, dir=tmp_path, add="local-1:1..2", at=at)
            assert sum(told.tasks.values()) == stage.coordinator.workflow.n_tasks
            assert told.now == stage.now
            if strategy not in ("fifo", "min-min"):
                rows = [told.present.makespan, told.replanned.makespan]
                rows += [row.makespan for row in told.alternatives]
                assert rows == pytest.approx(sorted(rows, reverse=True))
            gone = weft.what_if(run=home.id, dir=tmp_path, remove="each", at=at)
            assert [row.remove for row in gone.alternatives] == [(f"local-{p}",) for p in range(3)]
            assert gone.present == told.present
        assert home.journal.read_bytes() == before


@pytest.mark.parametrize("strategy", ["static", "slack", "aheft", "fifo", "min-min"])
def test_what_was_to_come_comes(strategy: str, tmp_path: Path) -> None:
    """Where all goes as expected, the present is the end that the run really comes to."""
    whole = write_run(tmp_path, layers(5), strategy=strategy, processors=2)
    entries = len(whole.journal.read_bytes().splitlines()) - 1
    end = replay(read(whole.journal), tmp_path).run().makespan
    for many in range(0, entries - 2, 3):
        home = cut(whole, many)
        with RunLock(home):  # somebody drives it, and nothing has happened since
            os.utime(home.journal, (time.time() + 1000,) * 2)
            told = weft.what_if(run=home.id, dir=tmp_path, add="local-1:1", at=end - 1)
            assert told.present.makespan == pytest.approx(end)
            told = weft.what_if(run=home.id, dir=tmp_path, remove="local-1")
            assert told.present.makespan == pytest.approx(end)
            assert told.status == "running"
