"""What-if about runs that are cut at any moment: it answers, and adding never worsens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foreplan
from cli.journals import write_run
from foreplan.model import Estimates
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.lock import RunLock
from foreplan.runs.replay import replay
from foreplan.whatif import of_run
from foreplan.whatif.stage import _only


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
        stage = of_run(home)
        stage.coordinator.check_state()
        for later in (0.0, 2.5):
            at = stage.now + later
            told = foreplan.what_if(run=home.id, dir=tmp_path, add="local-1:1..2", at=at)
            assert sum(told.tasks.values()) == stage.coordinator.workflow.n_tasks
            assert told.now == stage.now
            if strategy not in ("fifo", "min-min"):
                rows = [told.present.makespan, told.replanned.makespan]
                rows += [row.makespan for row in told.alternatives]
                assert rows == pytest.approx(sorted(rows, reverse=True))
            gone = foreplan.what_if(run=home.id, dir=tmp_path, remove="each", at=at)
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
            told = foreplan.what_if(run=home.id, dir=tmp_path, add="local-1:1", at=end - 1)
            assert told.present.makespan == pytest.approx(end)
            told = foreplan.what_if(run=home.id, dir=tmp_path, remove="local-1")
            assert told.present.makespan == pytest.approx(end)
            assert told.status == "running"


@pytest.mark.parametrize("remembered", [True, False])
def test_the_next_run_like_one_that_has_finished(
    remembered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what that run has taught, whether the history has it or only its journal."""
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    tasks = {name: {"run": "sleep 0.05", "cost": 90.0} for name in "ab"}
    work = {"name": "naps", "tasks": tasks}
    done = foreplan.run(
        work, "local:1", dir=tmp_path, use_history=remembered, price=1.0, budget=500.0
    )
    assert done.ok
    told = foreplan.what_if(run=done.id, dir=tmp_path, add="local-1:1")
    assert (told.status, told.now, told.tasks["waiting"]) == ("finished", 0.0, 2)
    assert 0.1 <= told.present.makespan < 10
    assert 0.05 <= told.alternatives[0].saves < told.present.makespan  # the shorter of the two
    assert told.present.cost == pytest.approx(told.present.makespan)
    assert told.notes == ("estimates of 2 tasks: 2 measured here before (a, b: 1 run)",)
    if remembered:
        forgetful = foreplan.what_if(run=done.id, dir=tmp_path, add="local-1:1", use_history=False)
        assert forgetful.present.makespan == pytest.approx(told.present.makespan)


@pytest.mark.parametrize("strategy", ["fifo", "aheft[planner=dls]", "static"])
def test_the_next_run_has_the_strategy_of_the_last(strategy: str, tmp_path: Path) -> None:
    home = write_run(tmp_path, layers(3), strategy=strategy, processors=3, asked_for=True)
    told = foreplan.what_if(run=home.id, dir=tmp_path, remove="each", use_history=False)
    stage = of_run(home, use_history=False)
    assert told.by == {"fifo": "fifo", "static": "heft"}.get(strategy, "dls")
    wf, pf = stage.park.workflow, stage.park.platform
    alone = strategy if strategy == "fifo" else f"static[planner={told.by}]"
    known = stage.coordinator.estimates
    assert told.present.makespan == foreplan.simulate(wf, pf, alone, estimates=known).makespan
    assert [row.remove for row in told.alternatives] == [(f"local-{p}",) for p in range(3)]
    without = Estimates(known.cost[:, 1:])
    less = foreplan.simulate(wf, _only(pf, np.array([False, True, True])), alone, estimates=without)
    assert told.alternatives[0].makespan == pytest.approx(less.makespan)
    later = foreplan.what_if(run=home.id, dir=tmp_path, add="local-0:1", at=2.0, use_history=False)
    assert later.at == 2.0
