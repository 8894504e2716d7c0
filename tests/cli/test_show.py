"""`foreplan show`: a workflow in words, as a picture, and with the state of a run."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from .commands import foreplan, refuse, succeed, written
from .journals import forks, write_run

FILES = """\
name: files
tasks:
  get: {run: cp a.txt b.txt, inputs: [a.txt], outputs: [b.txt]}
  use: {run: cp b.txt c.txt, inputs: [b.txt], outputs: [c.txt]}
"""


def test_a_workflow_in_words(tmp_path: Path) -> None:
    written(tmp_path, yaml.safe_dump(forks(3)))
    lines = succeed("show", tmp_path / "wf.yaml").splitlines()
    assert lines[:5] == [
        "forks: 5 tasks",
        "depth:    3 tasks one after another",
        "width:    at most 3 tasks on one level",
        "work:     8 s at speed 1",
        "critical: 4 s: split -> part-0 -> join",
    ]
    assert [line.split() for line in lines[7:]] == [
        ["category", "tasks", "levels", "cost"],
        ["split", "1", "1", "1", "s"],
        ["part", "3", "2", "6", "s"],
        ["join", "1", "3", "1", "s"],
    ]


def test_what_tasks_ask_for(tmp_path: Path) -> None:
    content = forks(3)
    content["tasks"]["part-1"] |= {"cores": [1, 4], "parallel": 0.9, "memory": "8GB"}
    content["tasks"]["part-2"] |= {"pools": {"licence": 1}}
    written(tmp_path, yaml.safe_dump(content))
    lines = succeed("show", tmp_path / "wf.yaml").splitlines()
    assert "needs:    at most 4 cores, 8 GB memory, 1 of pool licence by one task" in lines
    part = next(line for line in lines if line.startswith(" part"))
    assert part.split() == ["part", "3", "2", "6", "s", "4", "8", "GB"]
    told = json.loads(succeed("show", tmp_path / "wf.yaml", "--json"))
    asked = {task["task"]: (task["cores"], task["amounts"]) for task in told["tasks"]}
    assert asked["part-1"] == (4, {"memory": 8e9})
    assert asked["part-2"] == (1, {"of pool licence": 1.0})
    assert asked["join"] == (1, {})


def test_files_of_a_workflow(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    text = succeed("show", tmp_path / "wf.yaml")
    for line in ("inputs:   a.txt", "products: c.txt", "between:  1 file"):
        assert line in text.splitlines()
    assert "critical" not in text  # nobody knows what they cost


def test_the_state_of_a_run(tmp_path: Path) -> None:
    write_run(tmp_path, forks(3), fails={1: "no"}, ended="failed")
    text = succeed("show", "--run", "last", "--graph", tmp_path / "g.svg", "--dir", tmp_path)
    assert ": 3 done, 1 failed, 1 blocked" in text
    drawn = (tmp_path / "g.svg").read_text()
    for state, count in {"done": 3, "failed": 1, "blocked": 1}.items():
        assert drawn.count(f'class="node {state}"') == count
    told = json.loads(succeed("show", "--run", "last", "--dir", tmp_path, "--json"))
    states = {task["task"]: task["state"] for task in told["tasks"]}
    assert sorted(states.values()) == ["blocked", "done", "done", "done", "failed"]
    assert states["join"] == "blocked"


def test_a_run_beside_a_file_that_has_more(tmp_path: Path) -> None:
    write_run(tmp_path, forks(2))
    written(tmp_path, yaml.safe_dump(forks(4)))
    text = succeed("show", tmp_path / "wf.yaml", "--run", "last", "--dir", tmp_path)
    assert ": 4 done, 2 waiting" in text


GROWS = """
tasks:
  grow: {run: "echo 'tasks: {g: {run: date > g.txt, outputs: [g.txt]}}'", expand: true}
"""


def test_a_run_that_has_grown_can_be_written_out_and_run(tmp_path: Path) -> None:
    written(tmp_path, GROWS)
    assert foreplan("run", "wf.yaml", "--on", "local:1", "-q", cwd=tmp_path).returncode == 0
    text = succeed("show", "--run", "last", "--yaml", cwd=tmp_path)
    assert [*yaml.safe_load(text)["tasks"]] == ["grow"]
    written(tmp_path, text)
    assert succeed("run", "wf.yaml", "-n", cwd=tmp_path) == "nothing to do: 2 tasks up to date\n"


def test_figures_for_machines(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    told = json.loads(succeed("show", tmp_path / "wf.yaml", "--json"))
    assert (told["n_tasks"], told["depth"], told["width"]) == (2, 2, 1)
    assert (told["inputs"], told["products"], told["files_between"]) == (["a.txt"], ["c.txt"], 1)
    assert told["critical_path"] is None
    assert told["tasks"][1] == {"task": "use", "category": None, "level": 2, "needs": ["get"]}


def test_by_tasks_or_categories(tmp_path: Path) -> None:
    written(tmp_path, yaml.safe_dump(forks(3)))
    for by, nodes in (("tasks", 5), ("categories", 3)):
        succeed("show", tmp_path / "wf.yaml", "--by", by, "--graph", tmp_path / "g.svg")
        assert (tmp_path / "g.svg").read_text().count('<g class="node') == nodes


def test_a_graph_that_is_drawn_otherwise_has_a_note(tmp_path: Path) -> None:
    written(tmp_path, yaml.safe_dump(forks(1001)))
    done = foreplan("show", "wf.yaml", "--by", "tasks", "--graph", "g.dot", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["n_tasks"]) == (0, 1003)
    assert done.stderr.startswith("note: 1,003 tasks are too many for a graph by tasks")
    assert (tmp_path / "g.dot").read_text().count("[label=") < 10


def test_bad_input(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    wf = tmp_path / "wf.yaml"
    assert "give a workflow's file, or a run" in refuse("show")
    assert "known: .svg, .html, .dot, .mmd" in refuse("show", wf, "--graph", tmp_path / "g.png")
    assert "no directory" in refuse("show", wf, "--graph", tmp_path / "no" / "g.svg")
    assert "unknown --by 'task' (did you mean 'tasks'?)" in refuse("show", wf, "--by", "task")
    assert "no run 'last'" in refuse("show", "--run", "last", "--dir", tmp_path)
    assert not list(tmp_path.glob("g.*"))
