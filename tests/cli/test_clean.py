"""`foreplan clean` lists first, removes what is chosen, and never what runs or is published."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from foreplan.executors import workspace
from foreplan.report.data import report_of
from foreplan.runs.cleaning import Choice, clean, look
from foreplan.runs.home import RunHome, runs
from foreplan.runs.lock import RunLock

from .commands import MAIN, foreplan, refuse, succeed
from .journals import forks, write_run
from .live_runs import Gate, chain, failed, started, write_workflow

QUIET = ("run", "wf.yaml", "--on", "local:1", "-q")
ALL_RUNS = ("--runs", "--but-last", "0")


def ran(folder: Path, times: int = 1) -> None:
    """So many finished runs; each makes another content."""
    for k in range(times):
        tasks = chain(folder)
        tasks["a"]["run"] = tasks["a"]["run"].replace("echo 1", f"echo {k + 1}")
        write_workflow(folder, tasks)
        assert foreplan(*QUIET, cwd=folder).returncode == 0


def as_json(*arguments: str, cwd: Path) -> dict[str, Any]:
    content = json.loads(succeed("clean", *arguments, "--json", cwd=cwd))
    assert isinstance(content, dict)
    return content


def outputs(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


def test_in_a_pipe_it_only_tells(folder: Path) -> None:
    ran(folder, 2)
    before, made = len(runs(folder)), outputs(folder)
    text = succeed("clean", *ALL_RUNS, cwd=folder)
    assert text.splitlines()[-1] == "nothing was removed: `--yes` does it"
    assert text.count("finished") == 2
    assert "in all; no output is touched" in text
    told = as_json(*ALL_RUNS, cwd=folder)
    assert (told["removed"], told["freed"], len(told["things"])) == (False, 0, 2)
    assert "nothing was removed" not in succeed("clean", *ALL_RUNS, "-n", "--yes", cwd=folder)
    assert len(runs(folder)) == before
    assert outputs(folder) == made


def test_runs_go_and_what_they_made_stays_known(folder: Path) -> None:
    ran(folder, 3)
    last, made = runs(folder)[0], outputs(folder)
    told = as_json("--runs", "--but-last", "1", "--yes", cwd=folder)
    assert told["removed"]
    assert told["freed"] == told["bytes"] > 0
    assert [home.id for home in runs(folder)] == [last.id]
    assert os.listdir(folder / ".foreplan" / "trash") == []
    succeed("clean", *ALL_RUNS, "-y", cwd=folder)
    assert runs(folder) == []
    assert outputs(folder) == made
    assert succeed(*QUIET, cwd=folder) == "nothing to do: 3 tasks up to date\n"
    assert succeed("clean", *ALL_RUNS, "-y", cwd=folder) == "nothing to clean\n"


def test_by_age_and_by_how_it_ended(folder: Path) -> None:
    ran(folder)
    tasks = chain(folder)
    tasks["c"]["run"] = "exit 3"
    write_workflow(folder, tasks)
    failed(*QUIET, cwd=folder)
    assert succeed("clean", "--runs", cwd=folder) == "nothing to clean\n"
    newest, oldest = runs(folder)
    for home in (newest, oldest):
        os.utime(home.journal, (0, time.time() - 8 * 86400))
    assert [t["name"] for t in as_json("--runs", cwd=folder)["things"]] == [oldest.id]
    assert as_json("--runs", "--older", "9d", cwd=folder)["things"] == []
    every = as_json("--runs", "--unfinished", cwd=folder)["things"]
    assert [t["about"] for t in every] == ["failed", "finished"]


def test_scratch_of_failed_attempts(folder: Path) -> None:
    tasks = chain(folder)
    tasks["b"]["run"] = "echo half > b.txt; exit 3"
    write_workflow(folder, tasks)
    failed(*QUIET, cwd=folder)
    (home,) = runs(folder)
    (thing,) = as_json("--scratch", "--yes", cwd=folder)["things"]
    assert thing["name"] == f"{home.id}/1-b.failed"
    assert not Path(thing["path"]).exists()
    assert not [path for path in home.attempts.iterdir() if path.is_dir()]
    assert "its directory was kept" not in succeed("show", "--run", "last", cwd=folder)
    # what is left can be done as before
    tasks["b"]["run"] = chain(folder)["b"]["run"]
    write_workflow(folder, tasks)
    assert foreplan(*QUIET, cwd=folder).returncode == 0


def test_a_directory_that_a_shell_is_open_in_stays(folder: Path, gate: Gate) -> None:
    tasks = chain(folder)
    tasks["b"]["run"] = "exit 3"
    write_workflow(folder, tasks)
    failed(*QUIET, cwd=folder)
    with started("shell", "b", "-c", gate.command, cwd=folder) as shell:
        gate.wait()
        told = as_json("--yes", cwd=folder)
        assert told["things"] == []
        assert told["notes"] == ["1-b.failed stays: a `foreplan shell` is open in it"]
        gate.open()
        assert shell.end()[0] == 0
    assert len(as_json("--scratch", cwd=folder)["things"]) == 1


def test_a_run_under_way_is_not_touched(folder: Path, gate: Gate) -> None:
    ran(folder)
    tasks = chain(folder, gate)
    tasks["a"]["run"] += "; true"
    tasks["b"]["run"] += "; true"
    write_workflow(folder, tasks)
    with started(*QUIET, cwd=folder) as run:
        gate.wait()
        live = runs(folder)[0]
        told = as_json(*ALL_RUNS, "--unfinished", "--scratch", "--store", "--all", "-y", cwd=folder)
        assert [t["name"] for t in told["things"]] != []
        assert live.id not in [t["name"] for t in told["things"]]
        assert [home.id for home in runs(folder)] == [live.id]
        gate.open()
        assert run.end()[0] == 0
    # what it has told the store since is there
    assert "b.txt" in (folder / "wf.yaml").read_text()
    assert foreplan("why", "b", cwd=folder).returncode == 0
    (row,) = json.loads(succeed("runs", "--json", cwd=folder))
    assert row["status"] == "finished"


def test_one_that_is_begun_between_look_and_removal_stays(folder: Path) -> None:
    ran(folder)
    (home,) = runs(folder)
    found = look(folder, Choice(but_last=0))
    with RunLock(home):
        freed, trouble = clean(found)
    assert (freed, home.journal.exists()) == (0, True)
    assert f"{home.id} stays: run {home.id} is being driven" in trouble[0]


class KilledError(BaseException):
    """As if by a kill."""


@pytest.mark.parametrize("at", ["before the rename", "after it", "in the middle of it"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_killed_anywhere_a_run_is_there_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch, at: str, which: int
) -> None:
    for _ in range(3):
        write_run(folder, forks(2))
    homes, left = runs(folder), iter(range(which, -1, -1))
    rename, delete = os.rename, workspace.remove

    def kill() -> None:
        if next(left) == 0:
            raise KilledError

    def renamed(source: Path, target: Path) -> None:
        if at == "before the rename":
            kill()
        rename(source, target)

    def removed(path: str) -> None:
        if at == "after it":
            kill()
        if at == "in the middle of it":
            (Path(path) / "journal.jsonl").unlink()
            kill()
        delete(path)

    found = look(folder, Choice(but_last=0))
    with monkeypatch.context() as patched:
        patched.setattr("foreplan.runs.cleaning.os.rename", renamed)
        patched.setattr("foreplan.runs.cleaning.remove", removed)
        with pytest.raises(KilledError):
            clean(found)
    gone = which + (at != "before the rename")
    assert runs(folder) == homes[gone:]
    assert all(report_of(home).status == "finished" for home in runs(folder))
    assert clean(look(folder, Choice(but_last=0)))[1] == []
    assert runs(folder) == []
    assert os.listdir(folder / ".foreplan" / "trash") == []


def test_the_store_is_folded_and_nothing_is_forgotten_that_counts(folder: Path) -> None:
    ran(folder, 4)
    (folder / "b.txt").unlink()  # an intermediate that nobody needs
    before = as_json("--store", cwd=folder)["store"]
    assert before["dropped"] > 0
    assert before["after"] < before["before"]
    told = as_json("--store", "--yes", cwd=folder)
    assert told["freed"] == told["bytes"]
    parts = list((folder / ".foreplan" / "store").glob("*.jsonl"))
    assert len(parts) == 1
    assert parts[0].stat().st_size == before["after"]
    assert succeed(*QUIET, cwd=folder) == "nothing to do: 3 tasks up to date\n"
    assert succeed("clean", "--store", cwd=folder) == "nothing to clean\n"


def test_the_whole_store(folder: Path) -> None:
    ran(folder)
    text = succeed("clean", "--store", "--all", "-n", cwd=folder)
    assert "all of it: everything is made again" in text
    succeed("clean", "--store", "--all", "--yes", cwd=folder)
    assert list((folder / ".foreplan" / "store").glob("*.jsonl")) == []
    text = succeed("run", "wf.yaml", "-n", cwd=folder)
    assert "to run: 3 tasks" in text
    assert (folder / "c.txt").exists()


def test_asked_on_a_terminal(folder: Path) -> None:
    ran(folder)
    for answer, left in ((b"n\n", 1), (b"y\n", 0)):
        main, other = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, "clean", *ALL_RUNS],
            stdin=other, stdout=other, stderr=other, cwd=folder,
        )  # fmt: skip
        os.close(other)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(main, 4096)
        os.write(main, answer)
        assert process.wait(60) == 0
        os.close(main)
        assert len(runs(folder)) == left


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--all",), "--all is for the whole store"),
        (("--older", "soon"), "'soon' is no time"),
        (("--scratch", "--older", "1d"), "choose among runs: add --runs"),
        (("--dir", "nowhere"), "there is no such directory"),
    ],
)
def test_bad_input(folder: Path, words: tuple[str, ...], said: str) -> None:
    assert said in refuse("clean", *words, cwd=folder)


def test_outputs_that_no_task_makes_any_more(folder: Path) -> None:
    ran(folder)
    tasks = chain(folder)
    del tasks["c"]
    write_workflow(folder, tasks)
    note = "no task makes 1 earlier output any more: `foreplan clean --outputs` lists it"
    assert succeed("run", "wf.yaml", cwd=folder).splitlines()[1] == note
    assert json.loads(succeed("run", "wf.yaml", "--json", cwd=folder))["warnings"] == [note]
    text = succeed("clean", "--outputs", cwd=folder)
    assert "c.txt" in text.splitlines()[1]
    assert "no output is touched" not in text
    assert "c.txt" not in succeed("clean", cwd=folder)  # only if it is asked for
    (folder / "c.txt").write_text("by hand\n")
    told = as_json("--outputs", "--yes", cwd=folder)
    assert (told["things"], told["removed"]) == ([], False)
    assert told["kept"] == [{"name": "c.txt", "reason": "somebody has changed it"}]
    assert "kept: c.txt: somebody has changed it" in succeed("clean", "--outputs", cwd=folder)


def test_where_nothing_was_run(folder: Path) -> None:
    assert succeed("clean", cwd=folder) == "nothing to clean\n"
    assert not (folder / ".foreplan").exists()


def test_left_by_runs_that_did_not_begin_and_by_shells(folder: Path) -> None:
    ran(folder)
    old = time.time() - 2 * 86400
    top = folder / ".foreplan"
    for path in (top / "runs" / "x-20250101-000000", top / "shells" / "b-00", top / "trash" / "y"):
        path.mkdir(parents=True, mode=0o700)
        os.utime(path, (old, old))
    young = RunHome.create(folder, "young")
    told = as_json("--scratch", "--yes", cwd=folder)
    assert [t["kind"] for t in told["things"]] == ["left"] * 3
    assert young.path.exists()
    assert sorted(p.name for p in (top / "shells").iterdir()) == []
