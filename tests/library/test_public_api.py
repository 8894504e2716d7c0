"""The library's front door: its names, what it takes, and what it does not import."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
import rlcompleter
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.model import Platform, Schedule, Workflow
from foreplan.scheduling.margins import plan_to_dict

WORKFLOW: dict[str, Any] = {
    "name": "w",
    "tasks": {"a": {"cost": 3}, "b": {"cost": {"p1": 2, "p2": 1}}, "c": {"cost": 1}},
    "edges": [["a", "b", 1], ["a", "c", 2]],
}
PLATFORM: dict[str, Any] = {"processors": {"p1": {"price": 1}, "p2": {"speed": 2, "price": 4}}}
HEAVY = ("numpy", "matplotlib", "yaml", "rich", "typer")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "wf.json").write_text(json.dumps(WORKFLOW))
    (tmp_path / "pf.json").write_text(json.dumps(PLATFORM))
    return tmp_path / "wf.json", tmp_path / "pf.json"


def imported_by(code: str, *arguments: str | Path) -> set[str]:
    """The modules that are there after the code has run in a fresh process."""
    program = f"""
import atexit, sys
atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))
{code}
"""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_every_public_name() -> None:
    wanted = {"load", "load_platform", "plan", "check_schedule", "Workflow", "Platform", "Schedule"}
    assert wanted <= set(foreplan.__all__)
    assert len(set(foreplan.__all__)) == len(foreplan.__all__)
    for name in foreplan.__all__:
        assert getattr(foreplan, name).__name__ == name
        assert (getattr(foreplan, name).__doc__ or "").strip()
    namespace: dict[str, object] = {}
    exec("from foreplan import *", namespace)
    assert set(foreplan.__all__) == {name for name in namespace if not name.startswith("__")}


def test_only_public_names_are_completed() -> None:
    """Neither rooms that happen to be imported, nor what the package itself imports."""
    importlib.import_module("foreplan.api")
    assert {name for name in dir(foreplan) if not name.startswith("__")} == set(foreplan.__all__)
    assert {"__version__", "__doc__", "__all__"} <= set(dir(foreplan))
    completer = rlcompleter.Completer({"foreplan": foreplan})
    found: list[str] = []
    while (word := completer.complete("foreplan.", len(found))) is not None:
        found.append(word.removeprefix("foreplan.").rstrip("()"))
    assert set(found) == set(foreplan.__all__)


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """A module that is imported becomes an attribute of foreplan, whatever stood there."""
    modules = {module.name for module in pkgutil.iter_modules(foreplan.__path__)}
    assert not modules & set(foreplan.__all__)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="'foreplan' has no attribute 'plna'"):
        _ = foreplan.plna
    with pytest.raises(ImportError):
        exec("from foreplan import plna")


def test_errors_have_one_base() -> None:
    for error in (foreplan.InputError, foreplan.PlanningError, foreplan.InvalidScheduleError):
        assert issubclass(error, foreplan.ForeplanError)


def test_the_docstring_is_true() -> None:
    tried = doctest.testmod(foreplan)
    assert tried.attempted >= 4
    assert tried.failed == 0


def test_importing_foreplan_imports_nothing_heavy() -> None:
    modules = imported_by("import foreplan")
    assert "foreplan" in modules
    assert not modules & set(HEAVY)


def test_importing_the_commands_imports_no_numpy() -> None:
    modules = imported_by("from foreplan.cli.main import app")
    assert "foreplan.cli.plan" in modules
    assert not modules & {"numpy", "matplotlib", "foreplan_reproductions", "foreplan_benchmarks"}


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_small_plan_imports_what_it_needs(files: tuple[Path, Path], options: list[str]) -> None:
    code = "from foreplan.cli import main; main()"
    modules = imported_by(code, "plan", files[0], "-p", files[1], *options)
    assert {"numpy", "foreplan.scheduling.planners.heft"} <= modules
    assert not modules & {"matplotlib", "rich", "numpy.ma", "sqlite3", "foreplan.model.events"}


def test_load_takes_a_dict_and_a_path(files: tuple[Path, Path]) -> None:
    wf_path, pf_path = files
    workflows = [foreplan.load(WORKFLOW), foreplan.load(wf_path), foreplan.load(str(wf_path))]
    platforms = [foreplan.load_platform(s) for s in (PLATFORM, pf_path, str(pf_path))]
    assert all(isinstance(w, Workflow) for w in workflows)
    assert all(isinstance(p, Platform) for p in platforms)
    plans = [planned(w, p).to_dict() for w, p in zip(workflows, platforms, strict=True)]
    assert plans[0] == plans[1] == plans[2]


def planned(workflow: Workflow, platform: Platform, planner: str = "heft") -> Schedule:
    schedule = foreplan.plan(workflow, platform, planner=planner)
    foreplan.check_schedule(schedule)
    return schedule


def test_a_dict_is_left_as_it_was() -> None:
    before = json.dumps([WORKFLOW, PLATFORM])
    planned(foreplan.load(WORKFLOW), foreplan.load_platform(PLATFORM))
    assert json.dumps([WORKFLOW, PLATFORM]) == before


def test_errors_say_where(files: tuple[Path, Path]) -> None:
    bad = {**WORKFLOW, "edges": [["a", "x", 1]]}
    with pytest.raises(InputError) as caught:
        foreplan.load(bad)
    assert (caught.value.source, caught.value.place) == ("", "edges[0]")
    files[0].write_text(json.dumps(bad))
    with pytest.raises(InputError) as caught:
        foreplan.load(files[0])
    assert (caught.value.source, caught.value.place) == (str(files[0]), "line 1: edges[0]")


def test_the_default_planner_is_heft() -> None:
    workflow, platform = foreplan.load(WORKFLOW), foreplan.load_platform(PLATFORM)
    default = foreplan.plan(workflow, platform)
    foreplan.check_schedule(default)
    assert default.to_dict() == planned(workflow, platform, "heft").to_dict()
    with pytest.raises(InputError, match="unknown planner 'hetf'"):
        foreplan.plan(workflow, platform, planner="hetf")


@pytest.mark.parametrize("planner", ["heft", "dls", "heft[insertion=false]"])
def test_the_library_gives_what_the_command_prints(files: tuple[Path, Path], planner: str) -> None:
    code = "from foreplan.cli import main; main()"
    words = ["plan", str(files[0]), "-p", str(files[1]), "--json", "--planner", planner]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    ours = plan_to_dict(planned(foreplan.load(WORKFLOW), foreplan.load_platform(PLATFORM), planner))
    assert json.loads(done.stdout) == ours
    assert done.stdout == json.dumps(ours, indent=1) + "\n"


def test_workflows_and_platforms_however_they_are_given(tmp_path: Path) -> None:
    text = "tasks: {a: {cost: 2}, b: {cost: 3}}\nedges: [[a, b, 1]]\n"
    (tmp_path / "w.yaml").write_text(text)
    flow = foreplan.Flow("two")
    flow.task(abs, flow.task(abs, -1, cost=2), cost=3)
    machines = {"processors": {"x": {}, "y": {"speed": 2}}}
    for work in (tmp_path / "w.yaml", str(tmp_path / "w.yaml"), flow):
        assert foreplan.plan(work, machines).makespan == 2.5
        assert foreplan.simulate(work, machines).makespan == 2.5
        (row,) = foreplan.what_if(work, machines, remove="y").alternatives
        assert row.makespan == 5
    bad: tuple[tuple[Any, Any], ...] = ((5, machines), (flow, None), ([flow], machines))
    for other, pf in bad:
        with pytest.raises(foreplan.InputError, match="expected a "):
            foreplan.plan(other, pf)
    for options in ({"retries": -1}, {"timeout": 0}):
        with pytest.raises(foreplan.InputError, match=r"from 0 on|more than 0"):
            foreplan.run(flow, "local:1", dir=tmp_path, **options)  # type: ignore[arg-type]
