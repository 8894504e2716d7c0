"""Parameters on the command line, workflows from standard input, and `foreplan show --yaml`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import foreplan
from foreplan import formats

from .commands import foreplan as command_of
from .commands import refuse

SHORT = """\
name: short
params: {n: 2, who: world}
tasks:
  a-{i}:
    foreach: {i: 1..$n}
    run: echo {i} {who} > {output}
    outputs: ["{i}.txt"]
    cost: 1
  z:
    run: test -e go && cat {inputs} > {output}
    inputs: {all: "{i}.txt"}
    outputs: [z.txt]
    cost: 1
"""


def succeed(*arguments: str, code: int = 0) -> str:
    """What the command prints on standard output."""
    done = command_of(*arguments)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wf.yaml").write_text(SHORT)
    return tmp_path


def test_what_it_expands_to_is_the_same_workflow(folder: Path) -> None:
    text = succeed("show", "wf.yaml", "--yaml", "--set", "n=3", "--set", "who=you all")
    plain = yaml.safe_load(text)
    assert list(plain["tasks"]) == ["a-1", "a-2", "a-3", "z"]
    assert plain["tasks"]["a-3"]["run"] == "echo 3 'you all' > 3.txt"
    (folder / "plain.yaml").write_text(text)
    again = foreplan.load("plain.yaml")
    short = foreplan.load("wf.yaml", params={"n": 3, "who": "you all"})
    assert formats.workflow_to_dict(again) == formats.workflow_to_dict(short)


COMMANDS = [
    ("plan", "wf.yaml", "--on", "local:2"),
    ("simulate", "wf.yaml", "--on", "local:2"),
    ("compare", "wf.yaml", "--strategies", "static", "--runs", "1"),
    ("show", "wf.yaml"),
    ("convert", "wf.yaml", "-"),
    ("ic", "wf.yaml"),
    ("what-if", "wf.yaml", "--remove", "local-2", "--on", "local:2"),
    ("run", "wf.yaml", "-n"),
    ("why", "wf.yaml", "z"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_every_command_that_reads_a_workflow_takes_parameters(
    folder: Path, command: tuple[str, ...]
) -> None:
    (folder / "p.yaml").write_text("n: 5\n")
    succeed(*command, "--params", "p.yaml", "--set", "n=3")
    told = refuse(*command, "--set", "m=3")
    assert "wf.yaml: unknown parameter 'm'" in told


def test_a_run_keeps_its_parameters(folder: Path) -> None:
    failed = ["run", "wf.yaml", "--on", "local:1", "-q", "--set", "n=3", "--json"]
    told = json.loads(succeed(*failed, code=1))
    assert told["status"] == "failed"
    (folder / "go").touch()
    succeed("resume", "last", "-q")
    assert (folder / "z.txt").read_text() == "1 world\n2 world\n3 world\n"
    assert "nothing to do" in succeed("run", "wf.yaml", "--set", "n=3")
    # what is touched runs again
    dry = succeed("run", "wf.yaml", "-n", "--set", "n=2")
    assert "2 of 3 tasks up to date" in dry
    assert "up to date" in succeed("why", "a-3")
    assert "has its parameters" in refuse("why", "a-3", "--set", "n=3")
    (folder / "3.txt").write_text("by hand\n")
    assert "a-3" in succeed("adopt", "3.txt")


def test_a_workflow_is_adopted_from_by_its_file(folder: Path) -> None:
    for name in ("one", "two"):
        outputs = [f"{name}.json", f"{name}.txt"]
        tasks = [f"  {file[-1]}: {{run: echo 1 > {file}, outputs: [{file}]}}" for file in outputs]
        (folder / f"{name}.yaml").write_text("\n".join(["tasks:", *tasks]))
        succeed("run", f"{name}.yaml", "--on", "local:1", "-q")
        for file in outputs:
            (folder / file).write_text("by hand\n")
    # the last run makes the first of these: it is not the workflow's file
    assert succeed("adopt", "two.json", "two.txt") == "adopted 2 files as outputs of n, t\n"
    assert "unknown output 'one.txt'" in refuse("adopt", "one.txt")
    assert "name an output after it" in refuse("adopt", "one.yaml")
    assert "one.json: " in refuse("adopt", "one.json", "one.txt")
    assert succeed("adopt", "one.yaml", "one.json", "one.txt").startswith("adopted 2 files")
    assert "nothing to do" in succeed("run", "one.yaml")


def test_from_standard_input(folder: Path) -> None:
    main = [sys.executable, "-c", "from foreplan.cli.main import main; main()"]
    (folder / "go").touch()
    for text, code in ((SHORT, 0), (SHORT.replace("$n", "$m"), 2)):
        done = subprocess.run(
            [*main, "run", "-", "--quiet", "--on", "local:1"],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
    assert "standard input: line 5: tasks.a-{i}.foreach.i: unknown" in done.stderr
    assert (folder / "z.txt").read_text() == "1 world\n2 world\n"
    assert json.loads(succeed("runs", "--json"))[0]["status"] == "finished"


def test_the_library_takes_parameters(folder: Path) -> None:
    (folder / "go").touch()
    ended = foreplan.run("wf.yaml", on="local:1", params={"who": "all"})
    assert ended.ok
    assert (folder / "1.txt").read_text() == "1 all\n"
    with pytest.raises(foreplan.InputError, match="for a file"):
        foreplan.run(foreplan.load("wf.yaml"), params={"who": "all"})
