"""Where fcntl, pwd, resource and their like are missing: planning works, real runs are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import foreplan
from foreplan.cli.main import COMMANDS
from foreplan.scheduling.margins import plan_to_dict

STAND_IN = Path(__file__).with_name("as_on_windows.py")
EXAMPLES = Path(__file__).parents[2] / "examples"
MONTAGE = (str(EXAMPLES / "montage.yaml"), "-p", str(EXAMPLES / "cluster.yaml"))
WORDS = str(EXAMPLES / "words" / "pipeline.yaml")
Outcome = tuple[int, str, str]


def on_windows(folder: Path, *commands: tuple[str, ...]) -> list[Outcome]:
    """What commands come to there, one after another in one process."""
    done = subprocess.run(
        [sys.executable, STAND_IN], input=json.dumps(commands), capture_output=True, text=True,
        check=False, cwd=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [(code, out, errors) for code, out, errors in json.loads(done.stdout)]


def test_it_plans_simulates_and_compares(tmp_path: Path) -> None:
    commands = (
        ("--help",),
        ("plan", *MONTAGE, "--json"),
        ("plan", WORDS, "--gantt", "plan.html"),
        ("simulate", *MONTAGE, "--strategy", "slack", "--qoi", "0.3", "--seed", "7", "--json"),
        ("compare", *MONTAGE, "--strategies", "static,fifo", "--runs", "2", "--qoi", "0.2"),
        ("what-if", *MONTAGE, "--add", "fast1:2"),
        ("generate", "fft", "-o", "made.yaml"),
        ("ic", WORDS, "--plays", "2"),
        ("runs",),
        ("history", "show"),
        ("doctor",),
    )
    outcomes = dict(zip(commands, on_windows(tmp_path, *commands), strict=True))
    assert {command: errors for command, (code, _, errors) in outcomes.items() if code} == {}
    workflow, platform = foreplan.load(MONTAGE[0]), foreplan.load_platform(MONTAGE[2])
    plan = json.loads(outcomes[commands[1]][1])
    assert plan == json.loads(json.dumps(plan_to_dict(foreplan.plan(workflow, platform))))
    run = json.loads(outcomes[commands[3]][1])
    same = foreplan.simulate(workflow, platform, strategy="slack", qoi=0.3, seed=7)
    assert run["makespan"] == same.makespan
    assert "real runs: not here" in outcomes[commands[-1]][1]
    assert (tmp_path / "plan.html").is_file()
    assert (tmp_path / "made.yaml").is_file()


def test_real_runs_are_refused_in_a_sentence(tmp_path: Path) -> None:
    kept = tmp_path / ".foreplan" / "runs" / "words-20260101-000000"
    kept.mkdir(parents=True)
    (kept / "journal.jsonl").touch()
    before = sorted(tmp_path.rglob("*"))
    commands = [("run", WORDS), ("run", WORDS, "--detach")]
    commands += [(name, "last") for name in ("resume", "report", "attach", "machines")]
    for code, out, errors in on_windows(tmp_path, *commands):
        assert (code, out) == (2, "")
        (line,) = errors.splitlines()
        assert line.startswith("foreplan: error: real runs need file locks")
        assert "WSL" in line
    assert sorted(tmp_path.rglob("*")) == before


def test_the_library_refuses_likewise(tmp_path: Path) -> None:
    text = """
import sys; sys.path.insert(0, sys.argv[1])
import as_on_windows; as_on_windows.hide()
import foreplan
for name in foreplan.__all__:
    getattr(foreplan, name)
try:
    foreplan.run(foreplan.load({"tasks": {"a": {"run": "true"}}}))
except foreplan.InputError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", text, STAND_IN.parent], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("real runs need file locks")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_asked_for_help(name: str, helped: dict[str, Outcome]) -> None:
    code, out, errors = helped[name]
    assert (code, errors) == (0, "")
    assert "Usage" in out


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    folder = tmp_path_factory.mktemp("help")
    outcomes = on_windows(folder, *((name, "--help") for name in COMMANDS))
    return dict(zip(COMMANDS, outcomes, strict=True))


def test_letters_that_a_pipe_lacks_are_told_by_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "wf.yaml").write_text("tasks: {δ: {cost: 3}}", encoding="utf-8")
    (tmp_path / "pf.yaml").write_text("processors: {λ: {}}", encoding="utf-8")
    text = "from foreplan.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", text, "plan", "wf.yaml", "-p", "pf.yaml"],
        capture_output=True, check=False, cwd=tmp_path, env={"PYTHONIOENCODING": "cp1252"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u03bb" in done.stdout
