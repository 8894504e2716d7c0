"""`foreplan why` of runs known to the last second: places, what is waited for, attempts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.commands import refuse, succeed
from cli.journals import forks, write_run
from foreplan.model import Link, Platform, Processor
from foreplan.quantities import duration
from foreplan.report.why import why_in_run
from foreplan.runs.home import RunHome
from foreplan.runs.journal import read
from foreplan.runs.lock import RunLock
from foreplan.runs.replay import replay
from foreplan.scheduling.projection import project
from runs.kept import JOURNALS


def why(home: RunHome, task: str) -> dict[str, Any]:
    content = json.loads(succeed("why", task, home.id, "--json", "--dir", home.data))
    assert isinstance(content, dict)
    return content


def words(home: RunHome, task: str) -> str:
    return " ".join(succeed("why", task, home.id, "--dir", home.data).split())


def rows(told: dict[str, Any]) -> dict[str, tuple[float | None, float | None]]:
    return {r["processor"]: (r["finish"], r["makespan"]) for r in told["place"]["alternatives"]}


def test_a_task_that_waits_for_others_and_where_it_would_end(tmp_path: Path) -> None:
    # split 0-1, then parts of 2 s on two processors: at 1 s nothing but split is done
    home = write_run(tmp_path, forks(4), strategy="static", stop_after=1, ended=None)
    with RunLock(home):
        told = why(home, "join")
        assert (told["state"], told["status"]) == ("waiting", "running")
        assert told["waits"].startswith("waits for part-")
        assert told["waits"].endswith("and 2 more")
        states = {need["task"]: need["state"] for need in told["needs"]}
        assert sorted(states) == ["part-0", "part-1", "part-2", "part-3"]
        assert sorted(states.values()) == ["running", "running", "waiting", "waiting"]
        # all parts end at 5 wherever join is, and it takes 1
        assert rows(told) == {"local-0": (6, 6), "local-1": (6, 6)}
        assert told["place"]["verdict"] == "nowhere would it end sooner"
        waiting = [name for name, state in states.items() if state == "waiting"]
        told = why(home, waiting[0])
        # it comes after what runs until 3; on the other one after two others
        chosen = told["place"]["processor"]
        (other,) = {"local-0", "local-1"} - {chosen}
        assert rows(told)[chosen] == (5, 6)
        assert rows(told)[other][1] == 8
        assert told["waits"].startswith(f"waits for {chosen}, which runs part-")


def test_the_place_of_a_task_that_has_begun_is_judged_by_its_start(tmp_path: Path) -> None:
    platform = Platform.build([Processor("fast", speed=2), Processor("slow")], Link(1.0, 0.5))
    content = {"name": "one", "tasks": {"a": {"cost": 4}, "b": {"cost": 4}}, "edges": [["a", "b"]]}
    home = write_run(tmp_path, content, strategy="static", platform=platform)
    told = why(home, "b")
    assert told["state"] == "done"
    assert told["place"]["begun"]
    assert told["place"]["at"] == 2
    # on the slow one: half a second for what a made, and four at its speed
    assert rows(told) == {"fast": (4, 4), "slow": (6.5, 6.5)}
    lacks = {r["processor"]: r["lacks"] for r in told["place"]["alternatives"]}
    assert lacks == {"fast": [], "slow": ["the result of a"]}
    assert "nowhere would it end sooner" in words(home, "b")
    assert "must fetch" in words(home, "b")


def test_a_cheaper_place_says_so(tmp_path: Path) -> None:
    platform = Platform.build([Processor("dear", speed=2, price=10), Processor("cheap", price=1)])
    content = {"name": "one", "tasks": {"a": {"cost": 4}}}
    strategy = "static[planner=gain1[budget=5]]"
    home = write_run(tmp_path, content, strategy=strategy, platform=platform)
    told = why(home, "a")
    assert told["place"]["processor"] == "cheap"
    assert told["place"]["verdict"].endswith("but all of it would cost 20 instead of 4")
    costs = {r["processor"]: r["cost"] for r in told["place"]["alternatives"]}
    assert costs == {"dear": 20, "cheap": 4}


@pytest.mark.parametrize("strategy", ["fifo", "min-min"])
def test_without_a_plan_it_is_told_who_chose(tmp_path: Path, strategy: str) -> None:
    home = write_run(tmp_path, forks(4), strategy=strategy)
    told = why(home, "part-1")
    assert f"`{strategy}`, without a plan" in told["place"]["by"]
    if strategy == "fifo":
        assert set(rows(told).values()) == {(None, None)}
        assert told["place"]["verdict"]
    else:
        assert rows(told)[told["place"]["processor"]][0] == 3


def test_attempts_that_failed_and_what_came_of_them(tmp_path: Path) -> None:
    fails = {1: "it exited with code 3", 3: "it exited with code 4"}
    home = write_run(tmp_path, forks(2), fails=fails, retries=1, ended="failed")
    told = why(home, "part-1")
    first, second = told["attempts"]
    assert (first["end"], first["reason"]) == ("failed", "it exited with code 3")
    assert first["then"].startswith("tried again at ")
    assert told["state"] == "failed"
    assert second["then"] == "given up: it failed 2 times, with 1 retry"
    blocked = why(home, "join")
    assert (blocked["state"], blocked["place"]) == ("blocked", None)
    assert blocked["waits"] == "it will not run: part-1 was given up"
    assert blocked["needs"] == [{"task": "part-1", "state": "failed"}]


def test_a_task_that_rests_after_a_failure(tmp_path: Path) -> None:
    content = forks(2)
    content["tasks"]["part-1"] |= {"retries": 1, "wait": 60}
    home = write_run(tmp_path, content, fails={1: "code 3"}, stop_after=2, ended=None)
    with RunLock(home):
        told = why(home, "part-1")
        assert told["waits"] == "rests after a failure: it is tried again at 1 min 1 s"
        assert told["attempts"][-1]["then"] == "to be tried again at 1 min 1 s"
        assert told["place"] is None
        assert why(home, "join")["waits"] == "waits for part-1"


def test_a_run_that_nobody_drives(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(2), stop_after=1, ended=None)
    told = why(home, "join")
    assert told["status"] == "interrupted"
    assert told["waits"].startswith(
        "nobody drives the run, which is interrupted: `foreplan resume`"
    )
    assert "cut short: the process that drove the run has died" in words(home, "part-0")


def test_moved_by_a_new_plan(tmp_path: Path) -> None:
    """The first part takes ten times as long: what was to come after it goes elsewhere."""
    factor = np.ones((10, 2))
    factor[1] = 10.0
    home = write_run(tmp_path, forks(8), strategy="slack", factor=factor)
    told = [why(home, f"part-{k}") for k in range(8)]
    moved = [t for t in told if t["moves"]]
    assert moved
    for t in moved:
        (move,) = t["moves"][-1:]
        assert move["target"] == t["attempts"][-1]["processor"] != move["source"]
        assert move["reason"].startswith("late start of ")
        assert t["place"]["by"].endswith(f"({move['reason']})")
        assert f"moved: at {duration(move['time'])} from " in words(home, t["task"])


@pytest.mark.parametrize("journal", sorted(JOURNALS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_kept_journals(tmp_path: Path, journal: Path) -> None:
    """Of real runs, here and on Dask, in which tasks failed and a worker was lost."""
    home = RunHome.create(tmp_path, "kept")
    shutil.copy(journal, home.journal)
    replayed = replay(read(home.journal), tmp_path)
    coordinator = replayed.driver.coordinator
    coordinator.pass_time(replayed.until)
    for index, task in enumerate(replayed.header.workflow.task_names):
        told = why_in_run(home, task)
        json.dumps(told.to_dict())
        assert told.state in ("done", "waiting", "failed", "blocked")
        assert bool(told.waits) == (told.state in ("waiting", "blocked"))
        assert (told.state != "done") or told.attempts
        if told.place is None or told.place.processor is None:
            continue
        (chosen,) = (row for row in told.place.alternatives if row.chosen)
        assert chosen.processor == told.place.processor
        if told.place.begun:
            assert chosen.processor == told.attempts[-1].processor
        elif told.attempts and told.attempts[-1].end == "cut short":
            continue  # it is to begin again
        elif coordinator.plan is not None and chosen.finish is not None:
            projection = project(coordinator.plan, coordinator.situation())
            if projection is not None:
                assert chosen.finish == pytest.approx(projection.finish[index])
                assert chosen.makespan == pytest.approx(projection.makespan)


def test_bad_input(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(2))
    assert "unknown task 'jion' (did you mean 'join'?)" in refuse("why", "jion", cwd=tmp_path)
    assert "unknown run 'x'" in refuse("why", "join", "x", cwd=tmp_path)
    with home.journal.open("ab") as file:
        file.write(b"rubbish\n")
    told = why(home, "join")
    assert "line " in told["damage"]
    assert told["state"] == "done"
    home.journal.write_bytes(b"rubbish\n")
    assert "journal" in refuse("why", "join", cwd=tmp_path)


def test_nothing_is_changed(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(2))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    why(home, "join")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
