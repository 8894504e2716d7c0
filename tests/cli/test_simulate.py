"""`foreplan simulate` and `foreplan strategies`: what they print, draw and write."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import foreplan as library
from foreplan import registry
from foreplan.model import Estimates
from foreplan.model.events import Event
from foreplan.scheduling.nsl import nsl

from .commands import refuse, succeed, written

ARGUMENTS = ("simulate", "wf.yaml", "-p", "pf.yaml")
WORLD = """\
durations: {left: 1.5}
availability: {fast: [[0, 1], [3, 0.5]]}
bandwidth: [[fast, slow, [[1, 0.5]]]]
failures: {slow: [2, 6]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    written(tmp_path)
    (tmp_path / "world.yaml").write_text(WORLD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def by_library(**options: Any) -> dict[str, Any]:
    workflow, platform = library.load("wf.yaml"), library.load_platform("pf.yaml")
    run = library.simulate(workflow, platform, **options)
    length = nsl(run.makespan, workflow, Estimates.declared(workflow, platform).cost)
    return {**run.to_dict(), "nsl": length}


def test_what_each_processor_costs_and_the_transfers(folder: Path) -> None:
    paid = "{fast: {speed: 2, price: 3, billing: 10}, slow: {speed: 1.5, price: 1}}"
    network = "{time_per_unit: 0.01, price: 0.5}"
    (folder / "pf.yaml").write_text(f"processors: {paid}\nnetwork: {network}\n")
    lines = [" ".join(line.split()) for line in succeed(*ARGUMENTS).splitlines()]
    assert lines[1] == "strategy static: makespan 4.1 s (planned 4.1 s, +0.0%), cost 37"
    at = lines.index("processor host tasks lost attempts busy busy % cost")
    assert lines[at + 1 : at + 4] == [
        "fast fast 2 0 4 s 98% 30",  # one unit of 10 s
        "slow slow 1 0 2 s 49% 2",
        "transfers 5",
    ]


def test_as_planned(folder: Path) -> None:
    lines = [" ".join(line.split()) for line in succeed(*ARGUMENTS).splitlines()]
    took = lines[2].rpartition("; ")[2]
    assert lines[:2] == [
        "small: 3 tasks, 2 dependencies, 2 processors on 2 hosts",
        "strategy static: makespan 5.5 s (planned 5.5 s, +0.0%), cost 16.5",
    ]
    assert lines[2].startswith("new plans: 0 considered, 0 taken; ")
    assert took.startswith("planning took ")
    assert took.endswith((" ms", " µs"))
    assert lines[3:] == [
        "NSL 0.786: the makespan over the longest path of mean costs",
        "processor host tasks lost attempts busy busy % cost",
        "fast fast 3 0 5.5 s 100% 16.5",
        "slow slow 0 0 0 s 0% 0",
    ]


KEYS = ["strategy", "makespan", "cost", "replans", "considered", "migrations", "restarts"]
KEYS += ["rewound", "rewound_levels", "copies_used", "lost_seconds", "evaluations", "nsl", "tasks"]


def test_json(folder: Path) -> None:
    options = ["--strategy", "slack[planner=dls]", "--qoi", "0.3", "--seed", "7"]
    printed = json.loads(succeed(*ARGUMENTS, *options, "--json"))
    assert list(printed) == KEYS
    assert printed == by_library(strategy="slack[planner=dls]", qoi=0.3, seed=7)
    assert printed["strategy"] == "slack[planner=dls]"
    other = json.loads(succeed(*ARGUMENTS, *options, "--per-processor", "--json"))
    assert other == by_library(strategy="slack[planner=dls]", qoi=0.3, seed=7, per_processor=True)
    assert other != printed


def test_a_world(folder: Path) -> None:
    printed = json.loads(succeed(*ARGUMENTS, "--world", "world.yaml", "--json"))
    assert printed == by_library(world="world.yaml")
    left = printed["tasks"]["left"]
    assert (left["processor"], left["start"], left["finish"]) == ("fast", 2.0, 7.0)


def test_evaluations_are_shown(folder: Path) -> None:
    (folder / "world.yaml").write_text("failures: {fast: 3}")
    shown = succeed(*ARGUMENTS, "--world", "world.yaml")
    assert "1 considered, 1 taken" in shown
    assert "fast gone             yes, it had to be" in shown
    tasks = {f"task{i}": {"cost": 1 + i % 3} for i in range(40)}
    (folder / "wf.yaml").write_text(json.dumps({"tasks": tasks}))
    shown = succeed(*ARGUMENTS, "--strategy", "always", "--qoi", "0.5")
    assert "late start of task" in shown
    assert "... and 29 more" in shown


@pytest.mark.parametrize("strategy", registry.strategy_names())
def test_every_strategy(folder: Path, strategy: str) -> None:
    charts = ["a.svg", "a.png", "a.html", "a.json"] if strategy in ("slack", "fifo") else ["a.json"]
    options = [word for chart in charts for word in ("--gantt", chart)]
    options += ["--journal", "a.jsonl", "--strategy", strategy, "--world", "world.yaml"]
    shown = succeed(*ARGUMENTS, *options)
    assert f"strategy {strategy}: makespan" in shown
    assert shown.splitlines()[-len(charts) - 1 :] == [f"wrote {f}" for f in (*charts, "a.jsonl")]
    if "a.svg" in charts:
        assert ElementTree.parse(folder / "a.svg").getroot().tag.endswith("svg")
        assert (folder / "a.png").read_bytes().startswith(b"\x89PNG\r\n")
        assert (folder / "a.html").read_text().startswith("<!doctype html>")
    trace = json.loads((folder / "a.json").read_text())["traceEvents"]
    run = by_library(strategy=strategy, world="world.yaml")
    bars = {e["name"]: e for e in trace if e["ph"] == "X" and e["args"]["end"] == "finished"}
    for task, fact in run["tasks"].items():
        assert bars[task]["ts"] == pytest.approx(fact["start"] * 1e6)
        assert bars[task]["dur"] == pytest.approx((fact["finish"] - fact["start"]) * 1e6)
    begins = {e["id"]: e["ts"] for e in trace if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] for e in trace if e["ph"] == "e"}
    assert begins.keys() == ends.keys()
    assert all(begins[number] <= ends[number] for number in begins)


def test_the_journal(folder: Path) -> None:
    options = ["--strategy", "always", "--world", "world.yaml", "--journal", "j.jsonl", "--json"]
    printed = json.loads(succeed(*ARGUMENTS, *options))
    assert printed == by_library(strategy="always", world="world.yaml")
    lines = [json.loads(line) for line in (folder / "j.jsonl").read_text().splitlines()]
    header, plan = lines[:2]
    assert (header["type"], header["strategy"], plan["type"]) == ("run", "always", "plan")
    assert header["makespan"] == printed["makespan"]
    workflow, platform = library.load(header["workflow"]), library.load_platform(header["platform"])
    run = library.simulate(
        workflow, platform, strategy="always", world="world.yaml", by_events=True
    )
    assert run.to_dict() == {key: value for key, value in printed.items() if key != "nsl"}
    events = [{**line} for line in lines if line["type"] == "event"]
    for event in events:
        del event["type"]
    assert run.events is not None
    assert [Event.from_dict(event) for event in events] == list(run.events)
    evaluations = [line for line in lines if line["type"] == "evaluation"]
    assert [e["reason"] for e in evaluations] == [e.reason for e in run.evaluations]
    assert len([line for line in lines if line["type"] == "plan"]) == len(run.plans)
    times = [line["time"] for line in lines[1:]]
    assert times == sorted(times)


SCENARIO = ["--variability", "0.4", "--event-rate", "20", "--failures", "1"]
SCENARIO += ["--return-after", "2", "--seed", "5"]


def test_a_scenario(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []
    for hashes in ("0", "1"):
        monkeypatch.setenv("PYTHONHASHSEED", hashes)
        printed.append(json.loads(succeed(*ARGUMENTS, *SCENARIO, "--json")))
    options = {"variability": 0.4, "event_rate": 20.0, "failures": 1, "return_after": 2.0}
    ours = by_library(seed=5, **options)
    assert printed == [ours, ours]
    assert ours["makespan"] > 5.5
    journal = json.loads(succeed(*ARGUMENTS, *SCENARIO, "--json", "--journal", "j.jsonl"))
    assert journal == ours
    lines = [json.loads(line) for line in (folder / "j.jsonl").read_text().splitlines()]
    kinds = [line["kind"] for line in lines if line["type"] == "event"]
    assert kinds.count("gone") == 1
    changes = {"speed": kinds.count("availability"), "bandwidth": kinds.count("bandwidth") // 2}
    assert all(changes.values())
    lines = succeed(*ARGUMENTS, *SCENARIO, "--gantt", "a.png", "--gantt", "a.html").splitlines()
    told = ", ".join(f"changes of {what}: {count}" for what, count in changes.items())
    assert f"machines: {told}, failures: 1, returns: 1" in lines
    assert lines[-2:] == ["wrote a.png", "wrote a.html"]


def test_what_happened_to_the_machines(folder: Path) -> None:
    assert "machines:" not in succeed(*ARGUMENTS)
    told = "machines: changes of speed: 2, changes of bandwidth: 1, failures: 1, returns: 1"
    assert told in succeed(*ARGUMENTS, "--world", "world.yaml").splitlines()
    (folder / "world.yaml").write_text("leaving: {slow: [1, 3]}")
    platform = "processors: {fast: {speed: 2}, slow: {}, early: {leaves: 2}, late: {joins: 1}}"
    (folder / "pf.yaml").write_text(platform)
    (folder / "wf.yaml").write_text("tasks: {a: {cost: 9}, b: {cost: 9}}")
    shown = succeed(*ARGUMENTS, "--world", "world.yaml").splitlines()
    assert "machines: joins: 1, leaves: 2" in shown


BAD: list[tuple[list[str], list[str]]] = [
    (["--strategy", "slakc"], ["unknown strategy 'slakc'", "'slack'"]),
    (["--strategy", "slack[planner=x]"], ["unknown planner 'x'"]),
    (["--strategy", "slack[plan=x]"], ["unknown option of slack 'plan'"]),
    (["--qoi", "1"], ["QoI", "below 1"]),
    (["--qoi", "-0.5"], ["QoI"]),
    (["--qoi", "nan"], ["QoI"]),
    (["--world", "none.yaml"], ["none.yaml: ", "no such file"]),
    (["--world", "wf.yaml"], ["wf.yaml: this is a workflow, not a world"]),
    (["--world", "world.yaml", "--qoi", "0.1"], ["world.yaml: durations: ", "QoI"]),
    (["--world", "bad.yaml"], ["bad.yaml: failures.slwo: unknown processor", "'slow'"]),
    (["--world", "dead.yaml"], ["nothing can happen any more", "3 tasks are not done"]),
    (["--variability", "1"], ["variability must be from 0 to below 1, not 1"]),
    (["--variability", "0.1", "--event-rate", "-1"], ["event rate must be 0 or more"]),
    (["--variability", "0.1", "--event-rate", "1e9"], ["event rate", "200,000", "lower"]),
    (["--failures", "2"], ["2 of 2 processors cannot fail", "at most 1"]),
    (["--failure-rate", "nan"], ["failure rate"]),
    (["--failures", "1", "--return-after", "0"], ["return", "more than 0"]),
    (["--return-after", "3"], ["number of failures, or a failure rate"]),
    (["--world", "world.yaml", "--variability", "0.1"], ["world.yaml: availability: "]),
    (["--world", "world.yaml", "--failures", "1"], ["world.yaml: failures: ", "no failures"]),
    (["--gantt", "a.pdf"], ["a.pdf", ".svg"]),
    (["--gantt", "none/a.svg"], ["none"]),
    (["--journal", "none/a.jsonl"], ["none/a.jsonl"]),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=lambda x: " ".join(x)[:40])
def test_bad_input(folder: Path, options: list[str], told: list[str]) -> None:
    (folder / "bad.yaml").write_text("failures: {slwo: 3}")
    (folder / "dead.yaml").write_text("failures: {slow: 0, fast: 1}")
    message = refuse(*ARGUMENTS, *options)
    assert all(word in message for word in told), message


def test_a_task_without_a_cost_is_in_the_file_of_the_workflow(folder: Path) -> None:
    text = (folder / "wf.yaml").read_text().replace("fast: 2, slow: 6", "fast: 2")
    (folder / "wf.yaml").write_text(text)
    assert re.match(r"wf\.yaml: line \d+: tasks\.left\.cost: ", refuse(*ARGUMENTS))


def test_strategies() -> None:
    rows = json.loads(succeed("strategies", "--json"))
    assert [row["name"] for row in rows] == registry.strategy_names()
    assert all(row["about"] for row in rows)
    shown = succeed("strategies").splitlines()
    assert (
        "slack      Replans when a task starts later than planned by more than its slack." in shown
    )
    assert "             [planner=heft]" in shown
