"""`foreplan plan` and `what-if` of a half-done directory: what is up to date takes no time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import foreplan as library
from foreplan.errors import InputError

from .commands import foreplan, refuse, succeed
from .live_runs import write_workflow

PLATFORM = "processors: {p: {}}\n"
PLAN = ("plan", "wf.yaml", "-p", "pf.yaml")
ASK = ("what-if", "wf.yaml", "-p", "pf.yaml", "--add", "p:1")


@pytest.fixture
def half(folder: Path) -> Path:
    """Three commands, one behind the other, of which two were run."""
    write_workflow(
        folder,
        {
            "a": {"run": "echo 1 > a.txt", "outputs": ["a.txt"], "cost": 4},
            "b": {"run": "cat a.txt > b.txt", "inputs": ["a.txt"], "outputs": ["b.txt"], "cost": 2},
            "c": {"run": "cat b.txt > c.txt", "inputs": ["b.txt"], "outputs": ["c.txt"], "cost": 1},
        },
    )
    (folder / "pf.yaml").write_text(PLATFORM)
    assert "makespan 7 s" in succeed(*PLAN, cwd=folder)  # there is no store yet
    assert foreplan("run", "wf.yaml", "b", "--quiet", cwd=folder).returncode == 0
    return folder


def test_the_rest_is_planned_and_that_is_said(half: Path) -> None:
    first, *others = succeed(*PLAN, cwd=half).splitlines()
    assert first == "2 of 3 tasks up to date; planning the other 1; --all plans everything"
    assert "makespan 1 s" in "".join(others)
    told = json.loads(succeed(*PLAN, "--json", cwd=half))
    assert (told["makespan"], told["up_to_date"], [*told["tasks"]]) == (1, ["a", "b"], ["c"])
    whole = succeed(*PLAN, "--all", cwd=half)
    assert "makespan 7 s" in whole
    assert "up to date" not in whole
    assert "up_to_date" not in json.loads(succeed(*PLAN, "--all", "--json", cwd=half))
    here = foreplan(
        "plan", "wf.yaml", "--on", "local:1", "--json", cwd=half
    )  # as a run here expects
    assert [*json.loads(here.stdout)["tasks"]] == ["c"]


def test_a_directory_elsewhere(half: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    for name in ("wf.yaml", "pf.yaml"):
        (other / name).write_text((half / name).read_text())
    assert "makespan 7 s" in succeed(*PLAN, cwd=other)
    assert "makespan 1 s" in succeed(*PLAN, "--dir", half, cwd=other)


def test_nothing_is_left(half: Path) -> None:
    assert foreplan("run", "wf.yaml", "--quiet", cwd=half).returncode == 0
    told = "nothing to do: 3 tasks up to date; --all plans everything"
    assert succeed(*PLAN, cwd=half).splitlines() == [told]
    empty = json.loads(succeed(*PLAN, "--json", cwd=half))
    assert (empty["makespan"], empty["tasks"], len(empty["up_to_date"])) == (0, {}, 3)
    assert refuse(*ASK, cwd=half) == told


def test_what_if_is_about_the_rest(half: Path) -> None:
    first = succeed(*ASK, cwd=half).splitlines()[0]
    assert first.startswith("small: 2 of 3 tasks up to date; this is about the other 1, ")
    told = json.loads(succeed(*ASK, "--json", cwd=half))
    assert (told["present"]["makespan"], told["up_to_date"]) == (1, ["a", "b"])
    whole = json.loads(succeed(*ASK, "--json", "--all", cwd=half))
    assert whole["present"]["makespan"] == 7
    assert "up_to_date" not in whole


def test_what_was_edited_stops_a_plan_too(half: Path) -> None:
    (half / "a.txt").write_text("by hand\n")
    for command in (PLAN, ASK):
        assert refuse(*command, cwd=half).endswith("makes it again; `--all` plans everything")
    assert "makespan 7 s" in succeed(*PLAN, "--all", cwd=half)


def test_the_library_looks_only_where_it_is_asked_to(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(half)
    workflow, platform = library.load("wf.yaml"), library.load_platform("pf.yaml")
    known = library.estimate(workflow, platform).estimates
    assert library.plan(workflow, platform).makespan == 7
    assert library.plan(workflow, platform, dir=half, estimates=known).makespan == 1
    assert library.what_if(workflow, platform, add="p:1").present.makespan == 7
    asked = library.what_if(workflow, platform, add="p:1", dir=half)
    assert (asked.present.makespan, asked.up_to_date) == (1, ("a", "b"))
    library.run("wf.yaml", dir=half)
    with pytest.raises(InputError, match="nothing to plan"):
        library.plan(workflow, platform, dir=half)
