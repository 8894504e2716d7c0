"""`foreplan report`: the figures of runs that are known to the last second, and the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.commands import refuse, succeed
from cli.journals import forks, write_run
from foreplan import load_platform
from foreplan.model import Link, Platform, Processor
from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock


def as_json(home: RunHome) -> dict[str, Any]:
    content = json.loads(succeed("report", home.id, "--json", "--dir", home.data))
    assert isinstance(content, dict)
    return content


def bytes_of(home: RunHome) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}


def test_figures(tmp_path: Path) -> None:
    # 1 + 2 * 2 + 1 planned on two processors, everything takes half as long again
    home = write_run(tmp_path, forks(4), strategy="static", factor=1.5)
    told = as_json(home)
    assert (told["id"], told["status"], told["damage"]) == (home.id, "finished", None)
    assert (told["strategy"], told["on"], told["sittings"]) == ("static", "local:2", 1)
    assert (told["tasks"], told["done"], told["given_up"], told["attempts"]) == (6, 6, 0, 6)
    assert told["planned"] == 6
    assert told["makespan"] == 9
    # used is what tasks ran by their machine, which has measured a tenth less than foreplan saw
    assert told["utilisation"] == pytest.approx(13.5 / 18)
    assert told["overhead"] == pytest.approx(1.5 / 18)
    used = {row["processor"]: row for row in told["processors"]}
    assert [row["busy"] for row in used.values()] == pytest.approx([8.1, 5.4])
    assert [row["overhead"] for row in used.values()] == pytest.approx([0.9, 0.6])
    assert {name: row["tasks"] for name, row in used.items()} == {"local-0": 4, "local-1": 2}
    assert used["local-1"]["share"] == pytest.approx(5.4 / 9)
    kinds = {row["category"]: row for row in told["categories"]}
    assert kinds["part"] == {
        "category": "part",
        "tasks": 4,
        "expected": 2.0,
        "seconds": pytest.approx(2.7),
        "total": pytest.approx(10.8),
    }
    assert kinds["join"]["tasks"] == 1  # it has no category: the row is its own
    assert [row["seconds"] for row in told["times"]] == pytest.approx([2.7] * 4 + [1.35] * 2)
    assert told["failures"] == []
    assert len(told["critical_path"]) == 4
    assert all(row["critical"] and row["slack"] == 0 for row in told["task_list"])


def test_the_same_in_words(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(4), factor=1.5)
    lines = [" ".join(x.split()) for x in succeed("report", "last", cwd=tmp_path).splitlines()]
    assert lines[0] == f"run {home.id}"
    assert "status: finished" in lines
    assert "tasks: 6 of 6 done" in lines
    assert "time: 9 s (planned 6 s, +50.0%)" in lines
    assert (
        "on: local:2, 2 processors: tasks ran 75% of the time, "
        "foreplan itself took 8% (starting them, moving files), idle 17%"
    ) in lines
    assert "part 4 2 s 2.7 s 1.35 10.8 s" in lines
    assert "local-0 here 4 0 8.1 s 90% 900 ms" in lines
    replans = lines[lines.index("New plans, and why") + 2 :]
    assert re.fullmatch(r"1\.5 s late start of part-\d yes 6\.5 s [0-9.]+ [mµ]?s", replans[0])
    assert not any(line == "Failures" for line in lines)
    assert any(line.startswith("critical: ") and "no slack: " in line for line in lines)
    assert lines[lines.index("Critical path") + 1] == "task waited for"


def test_cores_and_memory_held_and_wasted(tmp_path: Path) -> None:
    content = forks(2)
    asks = {"cores": 2, "memory": "8GB"}
    for name in ("part-0", "part-1"):
        content["tasks"][name] |= asks
    platform = load_platform({"hosts": {"here": {"cores": 4, "memory": "10GB"}}})
    home = write_run(tmp_path, content, platform=platform, used={"memory": 2e9, "cpu": 2.7})
    told = as_json(home)
    use = {row["category"]: row for row in told["usage"]}
    part, split = use["part"], use["split"]
    assert (part["asked"], part["held"], part["wasted"]) == (8e9, 8e9, pytest.approx(0.75))
    assert (split["asked"], split["held"], split["wasted"]) == (None, None, None)
    assert (part["cores_held"], split["cores_held"]) == (2, 1)
    tasks = {row["task"]: row for row in told["task_list"]}
    assert (tasks["part-1"]["cores"], tasks["part-1"]["memory"]) == (2, 8e9)
    assert (tasks["join"]["cores"], tasks["join"]["memory"]) == (1, 0.0)
    assert [row["tasks"] for row in told["processors"]] == [4, 2, 0, 0]
    text = " ".join(succeed("report", "last", cwd=tmp_path).split())
    assert "part-0 part here-1 (2 cores, 8 GB) 2 s" in text
    assert "8 GB 8 GB 75%" in text
    assert "part: asked 8 GB, used 2 GB at most in 2 runs" in text
    succeed("report", "last", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 GB of 8 GB" in page
    assert "here-1 (2 cores)" in page
    assert "memory 10 GB" in page


def priced() -> Platform:
    """Two machines: one is paid by the second, the other by units of 4 s; sending costs 0.5."""
    processors = [Processor("a", price=2), Processor("b", price=1, billing=4)]
    return Platform.build(processors, Link(0.25, 0.0, 0.5))


def work() -> dict[str, Any]:
    """Three tasks: the second reads of the first, the third is by itself."""
    tasks = {
        "one": {"cost": {"a": 2, "b": 20}},
        "two": {"cost": {"a": 2, "b": 20}},
        "three": {"cost": {"a": 20, "b": 5}},
    }
    return {"name": "work", "tasks": tasks, "edges": [["one", "two", 4], ["one", "three", 8]]}


def test_what_it_cost(tmp_path: Path) -> None:
    home = write_run(tmp_path, work(), strategy="static", platform=priced())
    told = as_json(home)
    # a works from 0 to 4, b from 4 to 9: two units of 4 s; 8 units of data are sent
    assert [row["cost"] for row in told["processors"]] == [8, 8]
    assert (told["cost"], told["transfers_cost"]) == (20, 4)
    assert (told["budget"], told["money"]) == (None, None)
    lines = [" ".join(x.split()) for x in succeed("report", "last", cwd=tmp_path).splitlines()]
    assert "cost: 20 (4 for transfers)" in lines
    assert "processor host tasks failed tasks ran share foreplan took cost" in lines
    assert "b b 1 0 4.5 s 50% 500 ms 8" in lines
    assert "transfers cost 4 more" in lines
    succeed("report", "last", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert "<b>20</b><span>cost</span>" in page
    assert '<th class="right">cost</th>' in page


def test_what_it_will_cost(tmp_path: Path) -> None:
    home = write_run(
        tmp_path, work(), strategy="static", platform=priced(), stop_after=2, ended=None
    )
    with RunLock(home):
        told = as_json(home)["money"]
        # at 4: a has done both; b begins, and with that a unit, and will need two
        assert told == {"spent": 16, "committed": 4, "planned": 0, "projected": 20}
        shown = succeed("report", "last", cwd=tmp_path)
        assert "16 spent (4 for transfers), 4 committed, 20 projected" in " ".join(shown.split())
    assert as_json(home)["money"] == told  # nobody drives it, and it is not finished


def test_nothing_is_said_of_money_where_all_is_free(tmp_path: Path) -> None:
    write_run(tmp_path, forks(2))
    shown = succeed("report", "last", "--html", "page.html", cwd=tmp_path)
    assert "cost" not in shown
    assert ">cost<" not in (tmp_path / "page.html").read_text()


def test_failures_and_retries(tmp_path: Path) -> None:
    reasons = {1: "it exited with code 3", 2: "it was killed"}
    home = write_run(tmp_path, forks(1), strategy="fifo", fails=reasons, retries=1, ended="failed")
    told = as_json(home)
    assert (told["planned"], told["status"]) == (None, "failed")
    assert (told["done"], told["given_up"], told["attempts"]) == (1, 2, 3)
    tries = [(row["task"], row["reason"], row["final"]) for row in told["failures"]]
    assert tries == [
        ("part-0", "it exited with code 3", False),
        ("part-0", "it was killed", True),
    ]
    shown = succeed("report", "last", cwd=tmp_path)
    assert "1 of 3 done, 2 given up" in shown
    assert "3 attempts, 2 failed" in shown
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "part-0 local-0 1 s it was killed given up logs/2" in rows
    assert "part-0 local-0 1 s it exited with code 3 logs/1" in rows
    assert rows[-3:] == ["last lines of part-0", "cannot open x", "no such file"]


def test_a_run_that_was_cut(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(4), stop_after=2, ended=None)
    told = as_json(home)
    assert (told["status"], told["done"], told["running"]) == ("interrupted", 2, 2)
    assert told["makespan"] == 3
    before = bytes_of(home)
    targets = ["a.svg", "a.html", "a.json"]
    options = [word for name in targets for word in ("--gantt", name)]
    shown = succeed("report", "last", *options, "--html", "page.html", cwd=tmp_path)
    assert "2 of 6 done, 2 cut short, 2 waiting" in shown
    assert shown.splitlines()[-4:] == [f"wrote {name}" for name in ("page.html", *targets)]
    assert bytes_of(home) == before
    trace = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    bars = [e for e in trace if e["ph"] == "X"]
    assert sorted(e["args"]["end"] for e in bars) == ["finished", "finished", "running", "running"]
    assert all(e["ts"] + e["dur"] <= 3e6 for e in bars)


def test_a_run_that_is_being_driven(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(4), stop_after=2, ended=None)
    home.journal.write_bytes(home.journal.read_bytes() + b"0123")  # a line is being written
    with RunLock(home):
        told = as_json(home)
        assert (told["status"], told["damage"]) == ("running", None)
        assert "2 of 6 done, 2 running" in succeed("report", "last", cwd=tmp_path)
    assert as_json(home)["damage"] is not None


def test_a_damaged_journal_is_told_of(tmp_path: Path) -> None:
    home = write_run(tmp_path, forks(4))
    lines = home.journal.read_bytes().splitlines(keepends=True)
    lines[-4] = lines[-4][:30] + b"#" + lines[-4][31:]
    home.journal.write_bytes(b"".join(lines))
    before = bytes_of(home)
    shown = succeed("report", "last", cwd=tmp_path)
    assert "damaged" in shown
    assert re.search(r"tasks: +\d of 6 done", shown)
    assert bytes_of(home) == before


@pytest.mark.parametrize("strategy", ["slack", "fifo"])
def test_the_page_needs_nothing_else(tmp_path: Path, strategy: str) -> None:
    rude = forks(4) | {"name": "a <b> & /*BODY*/"}
    home = write_run(tmp_path, rude, strategy=strategy, fails={2: "<script>alert(1)</script>"})
    succeed("report", "last", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)
    assert "default-src 'none'" in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "a &lt;b&gt; &amp; /*BODY*/" in page
    assert page.count("<h1>") == 1
    assert "<iframe" not in page
    assert '<section class="gantt"' in page
    for title in ("Failures", "Summary", "Processors", "Slowest tasks", "Predicted against actual"):
        assert f"<h2>{title}</h2>" in page
    assert home.id in page


BAD: list[tuple[list[str], list[str]]] = [
    (["nothing"], ["unknown run 'nothing'"]),
    (["last", "--html", "a.pdf"], ["a.pdf", ".html"]),
    (["last", "--gantt", "a.pdf"], ["a.pdf", ".svg"]),
    (["last", "--html", "none/a.html"], ["none/a.html"]),
]


@pytest.mark.parametrize(("arguments", "told"), BAD, ids=lambda x: " ".join(x)[:40])
def test_bad_input(tmp_path: Path, arguments: list[str], told: list[str]) -> None:
    write_run(tmp_path, forks(2))
    message = refuse("report", *arguments, cwd=tmp_path)
    assert all(word in message for word in told), message
