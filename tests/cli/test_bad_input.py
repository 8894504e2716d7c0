"""Bad input: one line that names file and place, exit code 2, and nothing written."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import foreplan as library
from foreplan import registry
from foreplan.model import Schedule

from .commands import PLATFORM, WORKFLOW, foreplan, refuse, written

# name -> (what to replace in wf.yaml, by what, what the message must hold)
BAD_WORKFLOWS: dict[str, tuple[str, str, list[str]]] = {
    "unknown field": ("right: {cost", "right: {costs", ["tasks.right", "'costs'", "'cost'"]),
    "unknown section": ("edges:", "edgse:", ["'edgse'", "'edges'"]),
    "missing field": ("tasks:", "x-tasks:", ["tasks"]),
    "wrong type": ("right: {cost: 3}", "right: {cost: three}", ["tasks.right.cost", "'three'"]),
    "wrong shape": ("right: {cost: 3}", "right: [3]", ["tasks.right", "fields of a task"]),
    "short edge": ("[prepare, left, 1]", "[prepare]", ["edges[0]"]),
    "cycle": ("- [prepare, left, 1]", "- [left, prepare, 1]\n- [right, left, 1]", ["right"]),
    "unknown task": ("[prepare, right, 10]", "[prepare, rihgt]", ["edges[1]", "rihgt", "'right'"]),
    "duplicate id": ("right: {cost: 3}", "left: {cost: 3}", ["left"]),
    "nan cost": ("slow: 6", "slow: .nan", ["tasks.left.cost.slow", "nan"]),
    "infinite cost": ("cost: 4", "cost: .inf", ["tasks.prepare.cost", "inf"]),
    "negative cost": ("cost: 4", "cost: -4", ["tasks.prepare.cost", "-4"]),
    "nan size": ("left, 1]", "left, .nan]", ["edges[0]", "nan"]),
    "infinite size": ("right, 10]", "right, .inf]", ["edges[1]", "inf"]),
    "negative size": ("right, 10]", "right, -1]", ["edges[1]", "-1"]),
    "negative file size": ("edges:", "files: {x: -5}\nedges:", ["files.x", "-5"]),
    "no cost": ("fast: 2, slow: 6", "fast: 2", ["tasks.left.cost", "'left'", "'slow'"]),
    "no tasks": (WORKFLOW, "tasks: {}", ["tasks", "no tasks"]),
    "truncated": ("6}}\n  right: {cost: 3}\nedges:\n- [prepare, left, 1]", "", ["line"]),
    "empty": (WORKFLOW, "", ["empty"]),
}
BAD_PLATFORMS: dict[str, tuple[str, str, list[str]]] = {
    "no processors": (PLATFORM, "processors: {}", ["processors", "no processors"]),
    "missing section": (PLATFORM, "network: {}", ["'processors'"]),
    "unknown field": ("price: 3", "prize: 3", ["processors.fast", "'prize'", "'price'"]),
    "zero speed": ("speed: 2", "speed: 0", ["processors.fast.speed"]),
    "wrong type": ("speed: 2", "speed: fast", ["processors.fast.speed", "'fast'"]),
    "duplicate id": ("slow: {}", "fast: {}", ["fast"]),
    "leaves before it joins": ("slow: {}", "slow: {joins: 5, leaves: 4}", ["processors.slow"]),
    "zero bandwidth": ("slow: {}", "slow: {}\nnetwork: {bandwidth: 0}", ["network.bandwidth"]),
    "zero bandwidth of a link": (
        "slow: {}",
        "slow: {}\nlinks: [[fast, slow, {bandwidth: 0}]]",
        ["links[0]", "'fast'", "'slow'"],
    ),
    "link to nowhere": ("slow: {}", "slow: {}\nlinks: [[fast, x, {}]]", ["links[0]", "'x'"]),
    "nan price": ("price: 3", "price: .nan", ["processors.fast.price", "nan"]),
    "truncated": ("slow: {}", "slow: {", ["line"]),
}
CHART = "old.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path)
    (tmp_path / CHART).write_text("old")
    (tmp_path / "old.yaml").write_text("old")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(folder: Path, *arguments: str) -> str:
    """The message; what lies in the folder is as before."""
    before = contents(folder)
    told = refuse(*arguments, cwd=folder)
    assert contents(folder) == before
    return told


def plan(folder: Path, *more: str) -> str:
    return refused(folder, "plan", "wf.yaml", "-p", "pf.yaml", "--gantt", CHART, *more)


def damage(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize("case", BAD_WORKFLOWS)
def test_bad_workflow(folder: Path, case: str) -> None:
    old, new, holds = BAD_WORKFLOWS[case]
    damage(folder / "wf.yaml", old, new)
    told = plan(folder)
    assert told.startswith("wf.yaml: ")
    assert all(part in told for part in holds), told


@pytest.mark.parametrize("case", BAD_PLATFORMS)
def test_bad_platform(folder: Path, case: str) -> None:
    old, new, holds = BAD_PLATFORMS[case]
    damage(folder / "pf.yaml", old, new)
    told = plan(folder)
    assert told.startswith("pf.yaml: ")
    assert all(part in told for part in holds), told


def test_the_cycle_is_named(folder: Path) -> None:
    damage(folder / "wf.yaml", "- [prepare, left, 1]", "- [left, prepare, 1]\n- [right, left, 1]")
    cycle = "prepare -> right -> left -> prepare"
    assert plan(folder) == f"wf.yaml: line 3: tasks.prepare: the tasks form a cycle: {cycle}"
    assert refused(folder, "convert", "wf.yaml", "old.yaml").endswith(cycle)


def test_a_bad_workflow_is_not_converted(folder: Path) -> None:
    damage(folder / "wf.yaml", "cost: 4", "cost: -4")
    told = refused(folder, "convert", "wf.yaml", "old.yaml")
    assert told.startswith("wf.yaml: line 3: tasks.prepare.cost: ")


@pytest.mark.parametrize("file", ["wf.yaml", "pf.yaml"])
def test_broken_encoding(folder: Path, file: str) -> None:
    (folder / file).write_bytes((folder / file).read_bytes() + b"# \xff\n")
    assert plan(folder).startswith(f"{file}: byte ")


@pytest.mark.parametrize("file", ["wf.yaml", "pf.yaml"])
def test_a_huge_file(folder: Path, file: str) -> None:
    with (folder / file).open("wb") as stream:
        stream.truncate((1 << 30) + 1)  # takes no room on the disk
    told = refuse("plan", "wf.yaml", "-p", "pf.yaml", "--gantt", CHART, cwd=folder)
    assert told.startswith(f"{file}: the file is too large")
    assert (folder / CHART).read_text() == "old"


def test_deep_nesting(folder: Path) -> None:
    (folder / "wf.yaml").write_text("tasks: " + "[" * 100_000)
    assert plan(folder).startswith("wf.yaml: ")


def test_truncated_json(folder: Path) -> None:
    (folder / "wf.json").write_text('{"tasks": {"a": {"cost": 1}, "b"')
    told = refused(folder, "plan", "wf.json", "-p", "pf.yaml", "--gantt", CHART)
    assert told.startswith("wf.json: ")
    assert "line 1" in told


@pytest.mark.parametrize("file", ["wf.yaml", "pf.yaml"])
def test_a_file_that_is_not_there(folder: Path, file: str) -> None:
    (folder / file).unlink()
    assert plan(folder) == f"{file}: cannot read it: there is no such file or directory"


@pytest.mark.parametrize("file", ["wf.yaml", "pf.yaml"])
def test_a_directory(folder: Path, file: str) -> None:
    (folder / file).unlink()
    (folder / file).mkdir()
    told = refuse("plan", "wf.yaml", "-p", "pf.yaml", "--gantt", CHART, cwd=folder)
    assert told == f"{file}: cannot read it: it is a directory"
    assert (folder / CHART).read_text() == "old"


def test_an_unknown_planner(folder: Path) -> None:
    told = plan(folder, "--planner", "hetf")
    known = ", ".join(registry.planner_names())
    assert told.endswith(f"unknown planner 'hetf' (did you mean 'heft'?); known: {known}")


@pytest.mark.parametrize(
    ("spec", "holds"),
    [
        ("heft[insertoin=no]", "did you mean 'insertion'?"),
        ("heft[insertion=maybe]", "'maybe' is not true or false"),
        ("heft[insertion", "closing bracket"),
        ("", "names nothing"),
    ],
)
def test_a_bad_spec(folder: Path, spec: str, holds: str) -> None:
    assert holds in plan(folder, "--planner", spec)


def test_a_bad_planner_is_not_the_file_s_fault(folder: Path) -> None:
    assert "wf.yaml" not in plan(folder, "--planner", "hetf")


def test_no_plan_exists(folder: Path) -> None:
    (folder / "pf.yaml").write_text("processors: {fast: {leaves: 3}, slow: {leaves: 5}}")
    told = plan(folder)
    assert any(f"'{task}'" in told for task in ("left", "right"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "wf.yaml", "-p"],
        ["plan", "wf.yaml", "-p", "pf.yaml", "--jsno"],
        ["plna"],
        ["generate", "chain", "--tasks", "many"],
        ["generate", "chian"],
        ["convert", "wf.yaml"],
        ["bench", "quality", "--instances", "1"],
        ["bench", "quality", "--seed", "x"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line(folder: Path, arguments: list[str]) -> None:
    before = contents(folder)
    done = foreplan(*arguments, cwd=folder)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.stdout, contents(folder)) == ("", before)


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html", ".json"])
def test_a_chart_that_cannot_be_written(folder: Path, suffix: str) -> None:
    for target in (f"nowhere/x{suffix}", f"wf.yaml/x{suffix}", f"d{suffix}"):
        if target.startswith("d"):
            (folder / target).mkdir()
        told = refuse("plan", "wf.yaml", "-p", "pf.yaml", "--gantt", target, cwd=folder)
        assert told.startswith(f"{target}: ")
    assert sorted(p.name for p in folder.iterdir()) == sorted(
        ["wf.yaml", "pf.yaml", CHART, "old.yaml", f"d{suffix}"]
    )


@pytest.mark.parametrize("target", ["nowhere/x.yaml", "wf.yaml/x.yaml"])
def test_a_workflow_that_cannot_be_written(folder: Path, target: str) -> None:
    assert refused(folder, "convert", "wf.yaml", target).startswith(f"{target}: cannot write it: ")
    told = refused(folder, "generate", "chain", "-o", target)
    assert told.startswith(f"{target}: cannot write it: ")
    told = refused(folder, "generate", "platform", "-o", target)
    assert told.startswith(f"{target}: cannot write it: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory(folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir(mode=0o500)
    told = refuse("convert", "wf.yaml", "locked/x.json", cwd=folder)
    assert told == "locked/x.json: cannot write it: permission denied"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk(folder: Path) -> None:
    told = refused(folder, "convert", "wf.yaml", "/dev/full", "--to", "json")
    assert told.startswith("/dev/full: cannot write it: ")


def test_unwritable_formats(folder: Path) -> None:
    assert refused(folder, "convert", "wf.yaml", "x.dot").startswith(
        "x.dot: foreplan reads .dot files"
    )
    assert "unknown suffix '.ymal'" in refused(folder, "convert", "wf.yaml", "x.ymal")
    assert "unknown format 'jsno'" in refused(folder, "convert", "wf.yaml", "x.y", "--to", "jsno")


def test_a_bad_number_of_a_generator(folder: Path) -> None:
    assert "tasks" in refused(folder, "generate", "chain", "--tasks", "0", "-o", "old.yaml")
    assert "ccr" in refused(folder, "generate", "chain", "--ccr", "nan", "-o", "old.yaml")


def test_bench_quality_needs_its_folder(folder: Path) -> None:
    told = refused(folder, "bench", "quality", "--instances", "3", "--stg", "nowhere", "--json")
    assert "nowhere" in told


def test_the_message_survives_hostile_names(folder: Path) -> None:
    content = {"tasks": {"a\nb\x1b[31m": {"cost": -1}}}
    (folder / "wf.json").write_text(json.dumps(content))
    told = refused(folder, "plan", "wf.json", "-p", "pf.yaml", "--gantt", CHART)
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("workflow", "platform"),
    [
        ("{a: {cost: 1.0e+308}, b: {cost: 1.0e+308}}\nedges: [[a, b]]", "{p: }"),
        ("{a: {cost: 1.0e+308}}", "{p: {speed: 1.0e-10}}"),
        ("{a: {cost: 1}, b: {cost: 1}}\nedges: [[a, b, 1.0e+308]]", "{p: , q: }"),
        ("{a: {cost: 10}}", "{p: {price: 1.0e+308}}"),
    ],
    ids=["costs", "cost and speed", "size and link", "cost and price"],
)
def test_numbers_that_are_too_large_together(folder: Path, workflow: str, platform: str) -> None:
    written(
        folder, f"tasks: {workflow}", f"processors: {platform}\nnetwork: {{time_per_unit: 1.0e+9}}"
    )
    done = foreplan("plan", "wf.yaml", "-p", "pf.yaml", "--json", cwd=folder)
    assert len(done.stderr.splitlines()) == (0 if done.returncode == 0 else 1)
    assert "Warning" not in done.stderr
    assert done.returncode in (0, 2)
    if done.returncode == 0:
        assert not {"Infinity", "NaN"} & set(re.findall(r"\w+", done.stdout))
        tasks = json.loads(done.stdout)["tasks"]
        chart = Schedule(
            "heft",
            wf := library.load(folder / "wf.yaml"),
            pf := library.load_platform(folder / "pf.yaml"),
            np.array([pf.processor_names.index(tasks[t]["processor"]) for t in wf.task_names]),
            np.array([tasks[t]["start"] for t in wf.task_names]),
            np.array([tasks[t]["finish"] for t in wf.task_names]),
        )
        library.check_schedule(chart)


FITS_NOWHERE = "tasks.left: the task 'left' fits on no host: it needs 2 cores; the largest host,"


@pytest.mark.parametrize(
    "command",
    [
        ["plan"],
        ["plan", "--pareto", "new.png"],
        ["simulate"],
        ["compare", "--strategies", "heft"],
        ["what-if", "--add", "fast:1"],
    ],
)
def test_a_task_that_fits_nowhere_is_named_before_anything_begins(
    folder: Path, command: list[str]
) -> None:
    damage(folder / "wf.yaml", "left: {cost: {fast: 2, slow: 6}}", "left: {cost: 2, cores: 2}")
    told = refused(folder, command[0], "wf.yaml", "-p", "pf.yaml", *command[1:])
    assert re.match(rf"wf\.yaml: line \d+: {FITS_NOWHERE}", told)


@pytest.mark.parametrize("dry", [[], ["-n"]])
@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ("cores: 3", "the task 'a' fits on no host: it needs 3 cores"),
        ("pools: {x: 1}", "tasks.a.pools: no one declares the pool 'x'"),
        ("gpus: 1", "it needs 1 core and 1 gpus"),
    ],
)
def test_a_run_begins_nothing_if_a_task_fits_nowhere(
    tmp_path: Path, fields: str, holds: str, dry: list[str]
) -> None:
    (tmp_path / "wf.yaml").write_text(f"tasks: {{a: {{run: touch made, {fields}}}}}")
    told = refuse("run", "wf.yaml", "--on", "local:2", "--no-history", *dry, cwd=tmp_path)
    assert "wf.yaml: line 1: tasks.a" in told
    assert holds in told
    assert not (tmp_path / "made").exists()
    assert not list(tmp_path.glob(".foreplan/runs/*"))
