"""Help, version, lists, round trips of files, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import foreplan as library
from foreplan import registry
from foreplan.cli.main import BESIDE, app, main
from foreplan.scheduling.margins import plan_to_dict

from .commands import MAIN, foreplan, succeed


def everything() -> Any:
    """The whole command line, with what is loaded when it is called."""
    group: Any = typer.main.get_command(app)
    for name in BESIDE:
        group.resolve_command(None, [name])
    return group


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Every command that is not hidden as its words, and whether it is a group."""
    inner = getattr(group, "commands", {})
    yield path, bool(inner)
    for name, command in inner.items():
        if not command.hidden:
            yield from commands(command, (*path, name))


ALL = dict(commands(everything()))
LEAVES = [path for path, is_group in ALL.items() if not is_group]


def test_the_commands_of_the_issue_are_there() -> None:
    wanted = {("plan",), ("planners",), ("convert",), ("bench", "plan"), ("bench", "quality")}
    assert wanted <= set(LEAVES)
    assert {path[0] for path in LEAVES} >= {"generate"}
    (script,) = entry_points(group="console_scripts", name="foreplan")
    assert script.load() is main


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help(path: tuple[str, ...]) -> None:
    """It is there, and a command's has an example."""
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}, prog_name="foreplan")
    assert shown.exit_code == 0
    assert " ".join(["Usage: foreplan", *path]) in shown.output
    lines = [line for line in shown.output.splitlines() if "Usage:" not in line]
    own = "foreplan plan" if path == ("planners",) else " ".join(["foreplan", *path])
    assert path not in LEAVES or any(own in line for line in lines)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_short_help(path: tuple[str, ...]) -> None:
    """No command has another use for -h."""
    command = everything()
    context = command.context_class(command, **command.context_settings)
    for word in path:
        command = command.commands[word]
        context = command.context_class(command, parent=context, **command.context_settings)
    assert set(command.get_help_option_names(context)) == {"-h", "--help"}


@pytest.mark.parametrize("command", ["plan", "planners"])
def test_the_help_shows_a_spec_with_its_brackets(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert "heft[insertion=false]" in shown


def test_version() -> None:
    assert succeed("--version") == f"foreplan {library.__version__}\n"


def test_planners() -> None:
    rows = json.loads(succeed("planners", "--json"))
    assert [row["name"] for row in rows] == registry.planner_names()
    assert all(set(row) == {"name", "options", "about"} for row in rows)
    options = {"insertion": True, "efficiency": 0.5}
    assert next(row for row in rows if row["name"] == "heft")["options"] == options
    shown = succeed("planners")
    assert all(row["name"] in shown and row["about"] in shown for row in rows)
    assert "[insertion=true]" in shown


@pytest.mark.parametrize(("family", "suffix"), [("montage", ".yaml"), ("random_layered", ".json")])
def test_generate_and_convert_there_and_back(tmp_path: Path, family: str, suffix: str) -> None:
    first, second, third = (tmp_path / f"w{i}{s}" for i, s in enumerate([suffix, ".json", suffix]))
    assert succeed("generate", family, "--seed", "5", "-o", first) == ""
    assert succeed("convert", first, second, "--to", "wfformat").startswith(f"wrote {second}: ")
    succeed("convert", second, third)
    made, back = library.load(first), library.load(third)
    assert back.task_names == made.task_names
    assert np.allclose(back.base_cost, made.base_cost)
    assert back.n_edges == made.n_edges
    assert sorted(back.item_size.tolist()) == sorted(made.item_size.tolist())
    asking = tmp_path / "asking.yaml"
    asking.write_text("tasks: {a: {cost: 1, memory: 1GB}}")
    told = foreplan("convert", asking, tmp_path / "asking.stg")
    assert "what 1 task asked for (cores, memory and the like) is left out" in told.stderr
    # the same text again from the same format: nothing drifts
    again = tmp_path / f"again{suffix}"
    succeed("convert", first, again)
    assert again.read_bytes() == first.read_bytes()


def test_generated_files_can_be_planned(tmp_path: Path) -> None:
    succeed("generate", "fft", "--points", "4", "--processors", "3", "-o", tmp_path / "w.yaml")
    succeed("generate", "platform", "--processors", "3", "-o", tmp_path / "p.yaml")
    workflow = library.load(tmp_path / "w.yaml")
    platform = library.load_platform(tmp_path / "p.yaml")
    schedule = library.plan(workflow, platform)
    library.check_schedule(schedule)
    printed = succeed("plan", tmp_path / "w.yaml", "-p", tmp_path / "p.yaml", "--json")
    assert json.loads(printed) == plan_to_dict(schedule)


def test_bench_quality() -> None:
    content = json.loads(succeed("bench", "quality", "--instances", "3", "--json"))
    assert list(content) == ["planners", "stg"]
    rows = {row["planner"]: row for row in content["planners"]}
    assert set(rows) == set(registry.planner_names())
    assert rows["heft"]["mean"] == 1.0
    for row in rows.values():
        assert set(row) == {"planner", "mean", "by_ccr", "verdict"}
        assert list(row["by_ccr"]) == ["0.1", "1.0", "5.0"]
        assert row["mean"] == pytest.approx(sum(row["by_ccr"].values()) / 3)
    assert content["stg"] == []


def test_bench_quality_for_people() -> None:
    done = foreplan("bench", "quality", "--instances", "3", "--seed", "1")
    assert (done.returncode, done.stderr.strip()) == (0, "")
    lines = done.stdout.splitlines()
    assert "relative to HEFT over 3 random instances" in lines[0]
    assert {line.split()[0] for line in lines[3:]} >= set(registry.planner_names())


def test_bench_simulate_tells_goals() -> None:
    content = json.loads(succeed("bench", "simulate", "--goals", "--runs", "2", "--json"))
    assert {row["strategy"]: row["goal"]["bound"] for row in content["many"]} == {
        "static": 5_000,
        "slack": 1_500,
    }
    assert all(row["verdict"] in ("reached", "missed") for row in content["fixed"])


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_ctrl_c() -> None:
    # a terminal for standard error: its progress bar says when the work has begun
    terminal, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "bench", "plan", "--full"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        shown = os.read(terminal, 1 << 16)
        assert shown
        process.send_signal(signal.SIGINT)
        shown += rest(terminal)
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(terminal)
    assert process.returncode not in (0, None)
    assert b"Traceback" not in shown
    assert b"Error" not in shown
    assert printed == b""  # it ended before the end


def rest(terminal: int) -> bytes:
    """What is still to come until the other end is closed."""
    chunks = []
    try:
        while chunk := os.read(terminal, 1 << 16):
            chunks.append(chunk)
    except OSError:  # so Linux tells the end
        pass
    return b"".join(chunks)


def test_a_reader_who_has_left() -> None:
    command = [sys.executable, "-c", MAIN, "generate", "independent", "--tasks", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # long before anything is written
        told = process.stderr.read()
    assert (process.returncode, told) == (0, b"")


def test_no_arguments_show_the_help() -> None:
    assert "Usage: foreplan" in foreplan().stdout
