"""Commands that are started with closed or broken streams, few open files, or an old locale."""

import json
import os
import re
from pathlib import Path

import pytest

from .commands import MAIN, foreplan, refuse, succeed, written
from .forked import run_forked
from .live_runs import Gate, started, write_workflow

RUN = {"tasks": {"a": {"run": "echo a > a.txt", "outputs": ["a.txt"]}}}
FAILING = {"tasks": {"a": {"run": "exit 3"}}}
# the command, started as the first argument says
STARTED = """
import os, resource, sys
state = sys.argv.pop(1)
if state == "closed":
    os.closerange(0, 3)
    sys.stdin = sys.stdout = sys.stderr = None
elif state == "few files":
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
elif state == "left":
    reader, writer = os.pipe()
    os.dup2(writer, 1)
    os.dup2(writer, 2)
    os.close(reader)
    os.close(writer)
else:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    sys.stdout.reconfigure(line_buffering=True)
"""


def run_with(state: str, *arguments: str, cwd: Path) -> int:
    return run_forked(STARTED + MAIN, [state, *arguments], cwd).returncode


def test_a_locale_that_cannot_encode_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONUTF8", "PYTHONCOERCECLOCALE"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("LC_ALL", "POSIX")
    write_workflow(folder, {"a": {"run": "true", "outputs": ["\xfc.txt"]}})
    problem = r"the file '\xfc.txt': this locale (ascii) cannot encode '\xfc': use one with UTF-8, "
    place = r"wf.yaml: line \d: tasks.a.outputs: "
    assert re.fullmatch(
        place + re.escape(problem + "such as LC_ALL=C.UTF-8"),
        refuse("run", "wf.yaml", cwd=folder),
    )
    assert r"\xfc.txt" in succeed("show", "wf.yaml", cwd=folder)
    (folder / "inc.yaml").write_text("include: [\xfc.yaml]\n")
    assert "cannot encode" in refuse("run", "inc.yaml", cwd=folder)


def test_a_directory_whose_name_is_not_text(folder: Path) -> None:
    data = Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))
    data.mkdir()
    write_workflow(data, {"a": {"run": "echo 1 > a.txt", "outputs": ["a.txt"]}})
    for _ in range(2):
        assert foreplan("run", "wf.yaml", "--force", "-q", cwd=data).returncode == 0


def test_tasks_wait_for_open_files(folder: Path) -> None:
    write_workflow(folder, {f"t{k}": {"run": "sleep 0.05"} for k in range(20)})
    assert run_with("few files", "run", "wf.yaml", "--on", "local:20", "-q", cwd=folder) == 0


@pytest.mark.parametrize("state", ["closed", "left"])
def test_a_closed_stream_is_not_a_failure_of_the_work(state: str, folder: Path) -> None:
    for name, workflow in (("ok", RUN), ("fails", FAILING)):
        (folder / f"{name}.json").write_text(json.dumps(workflow))
    assert run_with(state, "run", "ok.json", cwd=folder) == 0
    assert (folder / "a.txt").read_text() == "a\n"
    assert run_with(state, "run", "fails.json", cwd=folder) == 1
    assert run_with(state, "run", "missing.json", cwd=folder) == 2
    assert foreplan("report", "last", cwd=folder).returncode == 0  # nothing is in its journal


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (["plan", "--gantt", "a.svg"], ["a.svg"]),
        (["plan", "--pareto", "a.svg"], ["a.svg"]),
        (["simulate", "--gantt", "a.json", "--journal", "b.jsonl"], ["a.json", "b.jsonl"]),
        (["compare", "--strategies", "static", "--runs", "1", "--plot", "a.svg"], ["a.svg"]),
        (["what-if", "--add", "slow", "--plot", "a.svg"], ["a.svg"]),
    ],
)
def test_files_are_written_before_tables(
    command: list[str], files: list[str], tmp_path: Path
) -> None:
    written(tmp_path)
    name, *options = command
    assert run_with("full", name, "wf.yaml", "-p", "pf.yaml", *options, cwd=tmp_path) != 0
    assert all((tmp_path / file).stat().st_size for file in files)


def test_the_curves_are_drawn_before_the_table(tmp_path: Path) -> None:
    written(tmp_path)
    assert run_with("full", "ic", "wf.yaml", "--plot", "a.svg", cwd=tmp_path) != 0
    assert (tmp_path / "a.svg").stat().st_size


def test_who_looks_at_a_run_ends_with_the_reader(folder: Path) -> None:
    gate = Gate(folder)
    write_workflow(folder, {"a": {"run": f"echo begun; {gate.command}"}})
    with started("run", "wf.yaml", "--on", "local:1", cwd=folder) as run:
        gate.wait()
        assert run_with("left", "logs", "a", "last", "-f", cwd=folder) == 0
        assert run_with("left", "attach", cwd=folder) == 130
        gate.open()
        assert run.end()[0] == 0
    gate.close()
