"""`foreplan plan`: what it prints and what it draws."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import foreplan as library
from foreplan.cli import main
from foreplan.model import Schedule
from foreplan.scheduling.margins import plan_to_dict

from .commands import refuse, succeed, written

ARGUMENTS = ("plan", "wf.yaml", "-p", "pf.yaml")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def by_library(planner: str = "heft") -> Schedule:
    workflow, platform = library.load("wf.yaml"), library.load_platform("pf.yaml")
    schedule = library.plan(workflow, platform, planner=planner)
    library.check_schedule(schedule)
    return schedule


def told(planner: str = "heft") -> dict[str, Any]:
    """What `--json` says: the schedule, and how late its tasks may be."""
    return plan_to_dict(by_library(planner))


def in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[object, str, str]:
    """Exit code, output and errors of main() in this process."""
    monkeypatch.setattr(sys, "argv", ["foreplan", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code, *capsys.readouterr()


PAID = """\
processors:
  fast: {speed: 2, price: 3, billing: 10}
  slow: {speed: 1.5, price: 1}
network: {time_per_unit: 0.01, price: 0.5}
"""


def test_what_each_processor_costs_and_the_transfers(folder: Path) -> None:
    (folder / "pf.yaml").write_text(PAID)
    lines = [" ".join(line.split()) for line in succeed(*ARGUMENTS).splitlines()]
    assert lines[1] == "planner heft: makespan 4.1 s, cost 37, mean utilisation 73%"
    assert lines[2] == "critical: prepare -> right; no slack: 2 of 3 tasks"
    assert lines[3:7] == [
        "processor host tasks busy busy % cost",
        "fast fast 2 4 s 98% 30",  # one unit of 10 s
        "slow slow 1 2 s 49% 2",
        "transfers 5",
    ]


WIDE = "tasks: {a: {cores: 4, memory: 6GB, cost: 2}, b: {cost: 1}}"


def test_cores_and_memory(folder: Path) -> None:
    (folder / "wf.yaml").write_text(WIDE)
    (folder / "pf.yaml").write_text("hosts: {h: {cores: 5, memory: 8GB}}")
    lines = [" ".join(line.split()) for line in succeed(*ARGUMENTS).splitlines()]
    assert lines[2:9] == [
        "critical: a; no slack: 1 of 2 tasks",
        "processor host tasks busy busy % cost",
        *(f"h-{core} h 1 2 s 100% 0" for core in range(1, 5)),
        "h-5 h 1 1 s 50% 0",
    ]
    assert lines[9:] == [
        "memory held at most: 6 GB of 8 GB on h",
        "task processor cores memory start finish slack spare",
        "a h-1 4 6 GB 0 s 2 s - -",
        "b h-5 1 - 0 s 1 s 1 s 1 s",
    ]


def test_many_processors_are_told_by_host(folder: Path) -> None:
    (folder / "wf.yaml").write_text(WIDE)
    (folder / "pf.yaml").write_text(
        "hosts: {h: {cores: 16, memory: 8GB, price: 1}, i: {cores: 1}}\nnetwork: {price: 1}"
    )
    lines = [" ".join(line.split()) for line in succeed(*ARGUMENTS).splitlines()]
    assert lines[3:7] == [
        "host cores tasks busy % memory at most cost",
        "h 16 2 28% 6 GB of 8 GB 9",
        "i 1 0 0% - 0",
        "transfers 0",
    ]


def test_the_summary(folder: Path) -> None:
    lines = [" ".join(line.split()) for line in succeed(*ARGUMENTS).splitlines()]
    assert lines == [
        "small: 3 tasks, 2 dependencies, 2 processors on 2 hosts",
        "planner heft: makespan 5.5 s, cost 16.5, mean utilisation 50%",
        "critical: prepare -> left -> right; no slack: 3 of 3 tasks",
        "processor host tasks busy busy % cost",
        "fast fast 3 5.5 s 100% 16.5",
        "slow slow 0 0 s 0% 0",
        "task processor start finish slack spare",
        "prepare fast 0 s 2 s - -",
        "left fast 2 s 4 s - -",
        "right fast 4 s 5.5 s - -",
    ]


def test_json(folder: Path) -> None:
    printed = json.loads(succeed(*ARGUMENTS, "--json"))
    assert list(printed) == ["planner", "makespan", "cost", "critical_path", "tasks"]
    assert printed == told()
    beside = {"host": "fast", "cores": 1, "memory": 0.0}
    assert printed["tasks"]["left"] == {
        **{"processor": "fast", **beside, "start": 2.0, "finish": 4.0},
        **{"slack": 0.0, "spare": 0.0, "critical": True},
    }
    assert printed["critical_path"] == ["prepare", "left", "right"]
    assert (printed["makespan"], printed["cost"]) == (5.5, 16.5)


def test_a_planner_with_options(folder: Path) -> None:
    printed = json.loads(succeed(*ARGUMENTS, "--planner", "heft[insertion=no]", "--json"))
    assert printed == told("heft[insertion=false]")
    assert printed["planner"] == "heft[insertion=false]"


def test_main_in_this_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = in_process(monkeypatch, capsys, *ARGUMENTS, "--json")
    assert (code, json.loads(out), err) == (0, told(), "")
    code, out, err = in_process(monkeypatch, capsys, "plan", "none.yaml", "-p", "pf.yaml")
    assert (code, out) == (2, "")
    assert err.startswith("foreplan: error: none.yaml: ")


def test_every_chart(folder: Path) -> None:
    charts = ["a.svg", "a.png", "a.html", "a.json"]
    options = [word for chart in charts for word in ("--gantt", chart)]
    assert succeed(*ARGUMENTS, *options).splitlines()[-4:] == [f"wrote {name}" for name in charts]
    assert ElementTree.parse(folder / "a.svg").getroot().tag.endswith("svg")
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
    page = (folder / "a.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert all(task in page for task in ("prepare", "left", "right"))
    trace = json.loads((folder / "a.json").read_text())
    names = {event.get("name") for event in trace["traceEvents"]}
    assert {"prepare", "left", "right"} <= names
    assert sorted(p.name for p in folder.iterdir()) == sorted([*charts, "pf.yaml", "wf.yaml"])


def test_json_and_a_chart_print_json_only(folder: Path) -> None:
    assert json.loads(succeed(*ARGUMENTS, "--json", "--gantt", "A.HTML")) == told()
    assert (folder / "A.HTML").stat().st_size > 0


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.svgz"])
def test_a_wrong_suffix_is_told_before_the_work(folder: Path, name: str) -> None:
    # the workflow is not there: had the work begun, that would be the complaint
    told = refuse("plan", "none.yaml", "-p", "pf.yaml", "--gantt", "b.svg", "--gantt", name)
    assert told.startswith(f"{name}: ")
    assert all(suffix in told for suffix in (".svg", ".png", ".html", ".json"))
    assert not (folder / "b.svg").exists()


def test_many_tasks_are_not_listed(folder: Path) -> None:
    content = {"tasks": {f"task{i}": {"cost": 1} for i in range(31)}}
    (folder / "wf.yaml").write_text(json.dumps(content))
    assert "31 tasks" in (shown := succeed(*ARGUMENTS))
    assert " start " not in shown
    del content["tasks"]["task30"]
    (folder / "wf.yaml").write_text(json.dumps(content))
    assert " start " in succeed(*ARGUMENTS)


def test_names_are_shown_as_they_are(folder: Path) -> None:
    names = ["[bold]x[/bold]", "[/]", "naïve ☃", ":smile:"]
    tasks = {name: {"cost": 1} for name in names}
    processors = {"processors": {"[red]p": {"host": "[/red]"}}}
    (folder / "wf.yaml").write_text(json.dumps({"name": "[i]w", "tasks": tasks}))
    (folder / "pf.yaml").write_text(json.dumps(processors))
    shown = succeed(*ARGUMENTS)
    assert all(name in shown for name in [*names, "[i]w", "[red]p", "[/red]"])


def test_costs_for_processors_that_are_not_there_are_ignored(folder: Path) -> None:
    before = succeed(*ARGUMENTS, "--json")
    text = (folder / "wf.yaml").read_text().replace("slow: 6", "slow: 6, gone: 1")
    (folder / "wf.yaml").write_text(text)
    assert succeed(*ARGUMENTS, "--json") == before
