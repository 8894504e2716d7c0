"""`foreplan what-if`: the answers as people and programs read them, for files and for runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock

from .commands import refuse, succeed, written
from .journals import forks, write_run
from .live_runs import Gate, chain, started, write_workflow

WORKFLOW = """\
name: four
tasks: {a: {cost: 6}, b: {cost: 6}, c: {cost: 6}, d: {cost: 6}}
"""
PLATFORM = """\
processors:
  p: {price: 2}
  slow: {speed: 0.1}
"""
FILES = ("what-if", "wf.yaml", "-p", "pf.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "foreplan-home"))
    written(tmp_path, WORKFLOW, PLATFORM)
    return tmp_path


def everything(folder: Path) -> dict[Path, tuple[bytes, int]]:
    """Every file below, and when it was changed."""
    return {
        path: (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.is_fifo()
    }


def asked(home: RunHome, *words: str) -> dict[str, Any]:
    """The answer about a run, which is as it was afterwards."""
    before = everything(home.data)
    content = json.loads(succeed("what-if", home.id, "--dir", home.data, *words, "--json"))
    assert everything(home.data) == before
    assert isinstance(content, dict)
    return content


def test_json(folder: Path) -> None:
    words = ("--add", "p:1..2", "--remove", "slow", "--json")
    assert json.loads(succeed(*FILES, *words, cwd=folder)) == {
        "name": "four",
        "status": None,
        "by": "heft",
        "now": 0.0,
        "at": 0.0,
        "tasks": {"done": 0, "running": 0, "waiting": 4, "given_up": 0},
        "present": {"makespan": 24.0, "cost": 48.0},
        "replanned": {"makespan": 24.0, "cost": 48.0, "taken": False},
        "alternatives": [
            {
                "change": f"add {k} p, remove slow",
                "add": {"p": k},
                "remove": ["slow"],
                "makespan": 12.0,
                "cost": 48.0,
                "saves": 12.0,
                "taken": True,
            }
            for k in (1, 2)
        ],
        "knee": None,
        "notes": [],
    }


def test_in_words(folder: Path) -> None:
    lines = succeed(*FILES, "--add", "p:1..4", "--at", "3", cwd=folder).splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "four: 4 tasks, before the start",
        "as it is: makespan 24 s, cost 48 (planner heft)",
        "change, at 3 s makespan saves saves % cost more cost plan",
        "add 1 p 15 s +9 s +37.5% 48 +0 new <- knee",
        "add 2 p 12 s +12 s +50.0% 48 +0 new",
        "add 3 p 9 s +15 s +62.5% 48 +0 new",
        "add 4 p 9 s +15 s +62.5% 48 +0 new",
        "knee: after 1 the curve flattens; more of them help less",
    ]


def test_pictures(folder: Path) -> None:
    succeed(*FILES, "--add", "p:1..4", "--plot", "k.svg", cwd=folder)
    drawn = ElementTree.parse(folder / "k.svg").getroot()
    texts = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"knee: 1", "p added", "makespan (s)", "cost"} <= texts
    words = ("--remove", "each", "--json", "--plot", "each.svg")
    succeed(*FILES, *words, cwd=folder)
    drawn = ElementTree.parse(folder / "each.svg").getroot()
    texts = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"remove p", "remove slow", "makespan (s); dashed: as it is"} <= texts


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (FILES, "nothing is to be changed"),
        ((*FILES, "--add", "p:1", "--on", "local"), "in the file of -p: leave out --on"),
        ((*FILES[:2], "--add", "p:1", "--on", "loco"), "'loco' is no place to run"),
        (("what-if", "last", "--on", "local", "--add", "p:1"), "a run has its own machines"),
        ((*FILES, "--add", "q:1"), "unknown processor 'q'; known: p, slow; to describe a new"),
        ((*FILES, "--add", "p:1", "--at", "-2"), "at 0 s or later"),
        ((*FILES, "--add", "p:1", "--planner", "hft"), "unknown planner 'hft'"),
        ((*FILES, "--add", "p:1", "--plot", "x.gif"), "cannot draw a plot of this kind"),
        (
            ("what-if", "nope.yaml", "--add", "p:1"),
            "no file 'nope.yaml', and as a run: there is no",
        ),
        (("what-if", "nope.yaml", "-p", "pf.yaml", "--add", "a:1"), "no file 'nope.yaml'"),
    ],
)
def test_refusals(folder: Path, words: tuple[str, ...], problem: str) -> None:
    assert problem in refuse(*words, cwd=folder)


def test_a_run_that_died(folder: Path) -> None:
    # split is done at 1, two of four parts of 2 s run on two processors, and join takes 1
    home = write_run(folder, forks(4), strategy="static", stop_after=1, ended=None)
    told = asked(home, "--add", "local-0:1..2", "--remove", "local-1")
    assert (told["status"], told["now"], told["by"]) == ("interrupted", 1.0, "heft")
    assert told["tasks"] == {"done": 1, "running": 0, "waiting": 5, "given_up": 0}
    assert told["notes"] == ["attempts that were cut short and begin anew: 2"]
    assert told["present"]["makespan"] == 6
    # on this machine, more are on its host: nothing moves
    assert [row["makespan"] for row in told["alternatives"]] == [6, 6]
    assert asked(home, "--add", "local-0:2")["alternatives"][0]["makespan"] == 4
    # until 2, two parts run; two that are new then take the others until 4
    assert asked(home, "--add", "local-0:2", "--at", "2")["alternatives"][0]["makespan"] == 5
    assert asked(home, "--remove", "local-1")["alternatives"][0]["makespan"] == 10
    assert asked(home, "--remove", "local-1", "--at", "2.5")["alternatives"][0]["makespan"] == 10
    assert asked(home, "--add", "local-0:2", "--at", "6")["alternatives"][0]["makespan"] == 6
    text = succeed("what-if", "last", "--add", "local-0:2", cwd=folder)
    assert f"run {home.id} (interrupted) at 1 s: 1 done, 0 running, 5 waiting" in text


def test_a_run_under_way(folder: Path) -> None:
    home = write_run(folder, forks(4, cost=5000), strategy="slack", stop_after=1, ended=None)
    os.utime(home.journal, (home.journal.stat().st_mtime - 1000,) * 2)
    with RunLock(home):
        told = asked(home, "--add", "local-0:2")
        later = asked(home, "--remove", "local-1", "--at", "4001")
        early = refuse("what-if", "last", "--add", "local-0:1", "--at", "9", cwd=folder)
    assert "the change must be at 1" in early
    assert told["status"] == "running"
    assert 1001 <= told["now"] == told["at"] < 4000  # the journal is silent for that long
    assert told["tasks"]["running"] == 2
    assert told["notes"] == []
    assert told["present"]["makespan"] == pytest.approx(10002)
    # what runs goes on until 5001; the two others begin now
    assert told["alternatives"][0]["makespan"] == pytest.approx(told["now"] + 5001)
    # at 4001 the second part is lost; then three more on one processor, and join
    assert later["alternatives"][0]["makespan"] == pytest.approx(5001 + 3 * 5000 + 1)


def test_a_run_without_a_plan(folder: Path) -> None:
    home = write_run(folder, forks(4), strategy="fifo", stop_after=1, ended=None)
    told = asked(home, "--add", "local-0:1..2")
    assert told["by"] == "fifo"
    assert told["present"]["makespan"] == 6
    assert [row["makespan"] for row in told["alternatives"]] == [6, 4]
    assert [row["taken"] for row in told["alternatives"]] == [None, None]
    later = asked(home, "--add", "local-0:2", "--at", "2")
    assert later["alternatives"][0]["makespan"] == 5
    planned = asked(home, "--add", "local-0:2", "--planner", "dls")
    assert (planned["by"], planned["alternatives"][0]["makespan"]) == ("dls", 4)
    said = succeed("what-if", "last", "--remove", "each", cwd=folder)
    assert "fifo has no plan: it is simulated to the end" in said


def test_a_run_that_failed_is_tried_again(folder: Path) -> None:
    home = write_run(folder, forks(2), strategy="slack", fails={1: "it broke"}, ended="failed")
    told = asked(home, "--remove", "local-1")
    assert (told["status"], told["tasks"]["given_up"]) == ("failed", 0)
    # the other part was done at 3; then part and join
    assert told["present"]["makespan"] == told["now"] + 3
    assert told["alternatives"][0]["makespan"] == told["now"] + 3


def test_a_run_that_is_over(folder: Path) -> None:
    home = write_run(folder, forks(4), factor=3.0)
    told = asked(home, "--add", "local-0:2", "--no-history")
    assert (told["status"], told["now"], told["tasks"]["waiting"]) == ("finished", 0, 6)
    # by what it took, not by what was declared: split, two rounds of parts, or one, and join
    assert told["present"]["makespan"] == pytest.approx(2.7 + 2 * 5.4 + 2.7)
    assert told["alternatives"][0]["makespan"] == pytest.approx(2.7 + 5.4 + 2.7)
    known = "estimates of 6 tasks: 6 measured here before (join, part, split: 1 run)"
    assert told["notes"] == [known]
    said = succeed("what-if", "last", "--remove", "local-1", cwd=folder).splitlines()
    assert said[0] == (
        f"run {home.id} has finished: this is about the next one like it, on the machines that it "
        "had in the end: 6 tasks, before the start"
    )
    assert said[2].startswith(" change, from the start")
    assert "unknown processor 'x'" in refuse("what-if", "last", "--add", "x:1", cwd=folder)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_real_run(folder: Path, how: str) -> None:
    gate = Gate(folder)
    try:
        write_workflow(folder, chain(folder, gate))
        with started("run", "wf.yaml", "--on", "local:2", cwd=folder) as command:
            gate.wait()
            if how == "killed":
                command.process.kill()
            else:
                command.interrupt()
                command.wait_for("stopping")
                command.interrupt()
            command.end()
        before = everything(folder)
        words = ("--add", "local-1:1..3", "--remove", "each", "--json")
        told = json.loads(succeed("what-if", "last", *words, cwd=folder))
        assert everything(folder) == before
    finally:
        gate.close()
    assert told["status"] == {"killed": "interrupted", "stopped": "stopped"}[how]
    assert told["tasks"] == {"done": 1, "running": 0, "waiting": 2, "given_up": 0}
    assert len(told["alternatives"]) == 6
    # a chain of two is left: one processor does as well as five
    assert {row["makespan"] for row in told["alternatives"]} == {told["present"]["makespan"]}
