"""Outputs that no task makes any more: reported by runs, listed and deleted by `clean`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import foreplan
from foreplan.runs import Outcome
from foreplan.runs.cleaning import OUTPUT, Choice, Cleaning, clean, look
from foreplan.runs.home import RunHome
from foreplan.runs.lock import RunLock

ONLY = Choice(runs=False, scratch=False, store=False, outputs=True)
LEFT = "any more: `foreplan clean --outputs`"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "home"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")


def makes(*outputs: Any, **more: Any) -> dict[str, Any]:
    """A task that makes these outputs, each with its name as content."""
    names = [o["path"] if isinstance(o, dict) else o for o in outputs]
    files = [
        file
        for name in names
        for file in ([f"{name}1", f"{name}2"] if name[-1] == "/" else [name.replace("*", "1")])
    ]
    run = "; ".join(f"mkdir -p {os.path.dirname(f) or '.'}; echo {f} > {f}" for f in files)
    return {"run": run, "outputs": [*outputs], **more}


def run(file: str, tasks: dict[str, Any] | None = None, **more: Any) -> Outcome:
    """Run a workflow file, written with these tasks if they are given."""
    if tasks is not None:
        content = {"name": Path(file).stem, **more.pop("top", {}), "tasks": tasks}
        Path(file).write_text(yaml.safe_dump(content))
    outcome = foreplan.run(file, on="local:1", progress=False, **more)
    assert outcome.status == "finished"
    return outcome


def listed(found: Cleaning | None = None) -> set[str]:
    return {t.name for t in (found or look(Path(), ONLY)).things}


def kept() -> dict[str, str]:
    return {file.name: file.reason for file in look(Path(), ONLY).kept}


def left(outcome: Outcome) -> int:
    """How many a run reports."""
    return sum(int(w.split()[3]) for w in outcome.warnings if LEFT in w)


def test_what_was_removed_or_renamed_is_deleted_as_it_was_made() -> None:
    shielded = {"path": "p.txt", "protected": True}
    first = run(
        "wf.yaml",
        {
            "a": makes("a.txt"),
            "b": makes("b/c/b.txt"),
            "edited": makes("edited.txt"),
            "tree": makes("tree/"),
            "grown": makes("grown/"),
            "parts": makes("parts/*.txt"),
            "p": makes(shielded),
        },
    )
    assert left(first) == 0
    assert listed() == set()
    Path("edited.txt").write_text("by hand\n")
    Path("grown/mine").write_text("by hand\n")
    Path("parts/mine.txt").write_text("by hand\n")
    made = {"a": makes("a.txt"), "b": makes("b/d.txt")}
    assert left(run("wf.yaml", made)) == 3
    assert listed() == {"b/c/b.txt", "tree/", "parts/1.txt"}
    changed = "somebody has changed it"
    assert kept() == {"edited.txt": changed, "grown/": changed, "p.txt": "it is protected"}
    assert clean(look(Path(), ONLY))[1] == []
    assert not Path("tree").exists()
    assert not Path("b/c").exists()  # nothing was in it any more
    assert Path("b/d.txt").exists()
    assert os.listdir("parts") == ["mine.txt"]
    assert sorted(os.listdir("grown")) == ["1", "2", "mine"]
    again = run("wf.yaml")
    assert (again.id, left(again)) == ("", 0)  # those that are kept do not count
    assert listed() == set()


def test_directories_of_temporary_outputs() -> None:
    temporary = {"path": "tmp/x/t.txt", "temp": True}
    reads = {"run": "cat tmp/x/t.txt > r.txt", "inputs": ["tmp/x/t.txt"], "outputs": ["r.txt"]}
    empty = {"run": "mkdir -p empty", "outputs": ["empty/"]}
    run("wf.yaml", {"t": makes(temporary), "r": reads, "empty": empty})
    Path("mine").mkdir()
    found = look(Path(), ONLY)
    assert [(t.kind, t.name) for t in found.things] == [("empty", "tmp/")]
    clean(found)
    assert sorted(p.name for p in Path().iterdir() if p.is_dir()) == [".foreplan", "empty", "mine"]
    assert run("wf.yaml").id == ""
    run("wf.yaml", force=True)
    assert Path("r.txt").exists()


def test_other_workflows_and_parameters_count() -> None:
    run("one.yaml", {"a": makes("a.txt"), "b": makes("b.txt"), "c": makes("c.txt")})
    reads = {"run": "cat b.txt > z.txt", "inputs": ["b.txt"], "outputs": ["z.txt"]}
    run("two.yaml", {"z": reads})
    named = {"n": {"run": "echo {v} > {output}", "outputs": ["{v}.txt"]}}
    for value in ("one", "two"):
        run("named.yaml", named, params={"v": value}, top={"params": {"v": "none"}})
    assert listed() == set()
    assert left(run("one.yaml", {"a": makes("a.txt")})) == 1  # the other is read
    assert listed() == {"c.txt"}
    Path("two.yaml").rename("three.yaml")
    assert listed() == {"c.txt"}
    assert "1 output of two.yaml may be left over: " in look(Path(), ONLY).notes[0]
    assert run("three.yaml").id == ""
    assert look(Path(), ONLY).notes == []
    Path("one.yaml").write_text("tasks: [")
    assert listed() == set()


def test_kept_as_an_input_or_by_a_command() -> None:
    tasks = {"a": makes("a.txt"), "b": makes("in/b.txt"), "c": makes("c.txt"), "d": makes("out/d")}
    run("wf.yaml", tasks)
    all_of = "cat out/* > all.txt"
    run(
        "wf.yaml",
        {
            "declared": {"run": "cat a.txt > 1.txt", "inputs": ["a.txt"], "outputs": ["1.txt"]},
            "by-pattern": {"run": "cat in/*.txt > 2.txt", "outputs": ["2.txt"]},
            "named": {"run": "cat c.txt > 3.txt", "outputs": ["3.txt"]},
            "e": makes("out/e"),
            "all": {"run": all_of, "inputs": ["out/e"], "outputs": ["all.txt"]},
        },
    )
    # the pattern means outputs of tasks: what is left over of another is no reason to keep it
    assert listed() == {"out/d"}
    clean(look(Path(), ONLY))
    run("wf.yaml")
    assert Path("all.txt").read_text() == "out/e\n"


def test_a_graph_that_grows_is_judged_when_all_tasks_are_known() -> None:
    printing = 'while read w; do echo "  $w: {run: echo > $w.txt, outputs: [$w.txt]}"; done'
    command = f"echo tasks:; {printing} < words"
    split = {"expand": True, "run": command, "inputs": ["words"]}
    Path("words").write_text("x\ny\n")
    run("wf.yaml", {"split": split})
    Path("words").write_text("x\n")
    assert listed() == set()
    assert "which tasks split adds is not known" in look(Path(), ONLY).notes[0]
    assert left(run("wf.yaml")) == 1
    assert listed() == {"y.txt"}
    reading = command.replace("$w", "z$w").replace("{run:", "{inputs: [y.txt], run:")
    run("other.yaml", {"split": split | {"run": reading}})
    Path("other.yaml").write_text(
        Path("other.yaml").read_text().replace("echo tasks", "echo  tasks")
    )
    assert listed() == set()  # what it will add may read it, as it did before


def link_to_the_file(elsewhere: Path) -> None:
    Path("d/x.txt").rename(elsewhere / "x.txt")
    Path("d/x.txt").symlink_to(elsewhere / "x.txt")


def link_to_the_folder(elsewhere: Path) -> None:
    Path("d").rename(elsewhere / "d")
    Path("d").symlink_to(elsewhere / "d")


@pytest.mark.parametrize("put", [link_to_the_file, link_to_the_folder])
def test_never_behind_a_link(tmp_path: Path, put: Callable[[Path], None]) -> None:
    run("wf.yaml", {"x": makes("d/x.txt"), "y": makes("y.txt")})
    put(tmp_path)
    run("wf.yaml", {"y": makes("y.txt")})
    assert "link" in kept()["d/x.txt"]
    clean(look(Path(), ONLY))
    assert Path("d/x.txt").read_text() == "d/x.txt\n"


def test_changed_or_under_way_between_the_list_and_the_removal() -> None:
    tasks = {"a": makes("a.txt"), "b": makes("b.txt"), "c": makes("c.txt")}
    first = run("wf.yaml", tasks)
    run("wf.yaml", {"a": makes("a.txt")})
    found = look(Path(), ONLY)
    assert [t.kind for t in found.things] == [OUTPUT, OUTPUT]
    with RunLock(RunHome(first.home)):
        assert clean(found) == (0, [f"outputs stay: run {first.id} is under way"])
        assert look(Path(), ONLY).notes == [f"outputs stay: run {first.id} is under way"]
    Path("b.txt").write_text("by hand\n")
    assert clean(found)[1] == ["b.txt stays: it was changed meanwhile"]
    assert (Path("b.txt").exists(), Path("c.txt").exists()) == (True, False)


def test_known_without_the_journals_and_in_another_place(tmp_path: Path) -> None:
    run("wf.yaml", {"a": makes("a.txt"), "b": makes("b.txt")})
    Path("wf.yaml").write_text(yaml.safe_dump({"tasks": {"a": makes("a.txt")}}))
    clean(look(Path(), Choice(but_last=0)))
    moved = tmp_path / "moved"
    Path().absolute().rename(moved)
    assert listed(look(moved, ONLY)) == {"b.txt"}


def test_of_flows_and_dicts_nothing_is_listed() -> None:
    tasks = {"a": makes("a.txt"), "b": makes("b.txt")}
    foreplan.run({"name": "w", "tasks": tasks}, on="local:1", progress=False)
    foreplan.run({"name": "w", "tasks": {"a": tasks["a"]}}, on="local:1", progress=False)
    assert listed() == set()
