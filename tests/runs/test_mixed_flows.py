"""Flows of commands beside functions: files tie them together, and everything counts by content."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import ForeplanError, InputError
from foreplan.runs.home import RunHome
from runs.mixing import join, load, mixed, picky
from runs.noted import GO


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    (tmp_path / "ran").write_text("")
    Path("raw data.txt").write_text("c\nb\na\n")
    return tmp_path / "ran"


def take(ran: Path) -> list[str]:
    found = sorted(ran.read_text().split())
    ran.write_text("")
    return found


ALL = ["count", "end", "joined", "raw", "sort", "words"]


def run(flow: foreplan.Flow, on: Any = "local:2", **options: Any) -> Any:
    outcome = foreplan.run(flow, on, **options)
    assert outcome.ok, outcome.failures
    check_run(outcome.run)
    return outcome


def of(flow: foreplan.Flow, name: str) -> Any:
    return next(task for task in flow.tasks if task.name == name)


def test_commands_and_functions_are_run_and_are_up_to_date_together(ran: Path) -> None:
    flow = mixed()
    first = run(flow)
    assert take(ran) == ALL
    here = Path.cwd()
    assert first.result(of(flow, "sort")) == (here / "sorted.txt",)
    assert first.result(of(flow, "sort").output) == here / "sorted.txt"
    assert first.result(of(flow, "words")) == ["a", "b", "c"]
    assert first.result(of(flow, "words")[1]) == "b"
    assert first.result(of(flow, "joined")) == "a-['b', 'a']-{'k': 'c'}"
    assert Path("n.txt").read_text().strip() == "3"
    assert first.result(of(flow, "end")) == f"({here / 'n.txt'!r},)"

    again = run(mixed())
    assert (take(ran), again.id, again.up_to_date) == ([], "", tuple(t.name for t in flow.tasks))
    assert again.result(of(again.flow, "sort")) == (here / "sorted.txt",)

    Path("raw data.txt").write_text("b\na\nc\n")  # sorted, it is what it was
    run(mixed())
    assert take(ran) == ["count", "joined", "raw", "sort"]

    Path("raw data.txt").write_text("a\nb\nd\n")
    third = run(mixed())
    assert take(ran) == ["count", "joined", "raw", "sort", "words"]
    assert RunHome.find(here, third.id).journal.exists()
    assert third.rest.reasons["raw"] == "its input raw data.txt has changed"


def test_what_is_missing_is_made_again_if_it_is_needed(ran: Path) -> None:
    flow = mixed()
    run(flow)
    take(ran)
    os.unlink("sorted.txt")
    outcome = run(mixed())
    assert take(ran) == []
    with pytest.raises(
        ForeplanError, match=r"sorted\.txt is not there any more.*targets=\['sort'\]"
    ):
        outcome.result(of(outcome.flow, "sort"))
    run(mixed(), targets=["sort"])
    assert take(ran) == ["sort"]
    os.unlink("sorted.txt")
    run(mixed(), force=["words"])
    assert take(ran) == ["sort", "words"]
    Path("sorted.txt").write_text("mine")
    with pytest.raises(InputError, match=r"sorted\.txt \(of sort\): foreplan\.run\(\.\.\., force="):
        run(mixed())


def test_failures_tell_why_and_a_resume_goes_on(ran: Path) -> None:
    flow = mixed(picky)
    outcome = foreplan.run(flow, "local:2")
    assert (outcome.status, outcome.not_done) == ("failed", ("end",))
    with pytest.raises(ValueError, match="not yet"):
        outcome.result(of(flow, "end"))
    assert take(ran) == ALL
    Path(GO).touch()
    Path("raw data.txt").write_text("b\nb\n")  # what was made from it is made again, here too
    resumed = foreplan.run(mixed(picky), resume=outcome.id)
    assert resumed.ok, resumed.failures
    assert take(ran) == ALL
    assert resumed.result(of(resumed.flow, "joined")) == "b-['b']-{'k': 'b'}"
    assert run(mixed(picky)).id == ""


def test_a_command_that_fails_says_so(ran: Path) -> None:
    flow = foreplan.Flow("fails")
    bad = flow.command("echo it is bad >&2; exit 3", outputs=["x"], name="bad")
    flow.task(load, bad.output, name="reads")
    outcome = foreplan.run(flow, "local:1")
    assert outcome.failures[0].command == "echo it is bad >&2; exit 3"
    assert outcome.not_done == ("bad", "reads")
    with pytest.raises(ForeplanError, match=r"'bad' failed: it exited with code 3\n.*it is bad"):
        outcome.result(bad)


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import foreplan
from runs.mixing import mixed


def deadly(files):
    if not os.path.exists("go"):
        open("go", "w").close()
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    return files[0].read_text().strip()


flow = mixed(deadly)
run = foreplan.run(flow, "local:1", resume=sys.argv[1] if sys.argv[1:] else None)
print(run.status, run.result(flow.tasks[-1]))
"""


def test_a_run_that_was_killed_goes_on(ran: Path) -> None:
    tests = str(Path(__file__).parents[1])
    Path("script.py").write_text(KILLED.format(tests=tests))
    command = [sys.executable, "script.py"]
    first = subprocess.run(command, capture_output=True, timeout=120)
    assert first.returncode == -signal.SIGKILL
    assert take(ran) == [name for name in ALL if name != "end"]
    second = subprocess.run([*command, "last"], capture_output=True, timeout=120, text=True)
    assert (second.stdout, take(ran)) == ("finished 3\n", []), second.stderr


def test_an_input_that_changes_while_a_function_runs_is_not_known_by_it(ran: Path) -> None:
    def changes(path: Path) -> str:
        text = path.read_text()
        path.write_text(text + "more")
        return text

    flow = foreplan.Flow("changes")
    flow.task(changes, flow.file("raw data.txt"))
    outcome = run(flow)
    (warning,) = outcome.warnings
    assert "its input raw data.txt was changed while it ran" in warning
    assert run(flow).run.workflow.task_names == ("changes",)


def test_bad_parts_fail_their_reader_alone(ran: Path) -> None:
    flow = foreplan.Flow("parts")
    pair = flow.task(divmod, 7, 2)
    wrong = flow.task(str, pair[2], name="wrong")
    deep = flow.task(str, pair[0]["x"], name="deep")
    good = flow.task(join, pair[0], pair[1])
    outcome = foreplan.run(flow, "local:1", keep_going=True)
    reasons = {failure.task: failure.reason for failure in outcome.failures}
    assert reasons == {
        "wrong": "the result of 'divmod' has no [2]: IndexError: tuple index out of range",
        "deep": "the result of 'divmod' has no [0]['x']: TypeError: 'int' object is not "
        "subscriptable",
    }
    assert outcome.result(good) == "3-1"
    for task in (wrong, deep):
        with pytest.raises(ForeplanError, match="has no"):
            outcome.result(task)


def test_temporary_outputs_go_when_functions_have_read_them(ran: Path) -> None:
    flow = foreplan.Flow("temporary")
    made = flow.command("echo a b > {output}", outputs=["t.txt"], temp=True)
    words = flow.task(load, made.output)
    first = run(flow, "local:1")
    assert (first.result(words), Path("t.txt").exists()) == (["a", "b"], False)
    assert run(flow, "local:1").id == ""


def names_in(*given: Any) -> list[Any]:
    return [p.name if isinstance(p, Path) else [q.name for q in p] for p in given]


def test_directories_and_patterns_are_arguments_too(ran: Path) -> None:
    flow = foreplan.Flow("many")
    made = flow.command("mkdir -p d p; touch d/x p/1.txt p/2.txt", outputs=["d/", "p/*.txt"])
    names = flow.task(names_in, made[0], made[1])
    first = run(flow, "local:1")
    assert first.result(names) == ["d", ["1.txt", "2.txt"]]
    here = Path.cwd()
    assert first.result(made) == (here / "d", [here / "p" / "1.txt", here / "p" / "2.txt"])
    assert run(flow, "local:1").id == ""


def test_files_that_are_not_there_are_named_before_anything_runs(ran: Path) -> None:
    flow = foreplan.Flow("missing")
    flow.task(load, flow.file("gone.txt"))
    with pytest.raises(InputError, match=r"no task makes it: gone\.txt"):
        foreplan.run(flow, "local:1")
    outside = foreplan.Flow("outside")
    outside.task(load, outside.file("/etc/hostname"))
    with pytest.raises(InputError, match="absolute path"):
        foreplan.run(outside, "local:1")


distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(processes=False, protocol="tcp", host="127.0.0.1", **options) as c,
        distributed.Client(c) as client,
    ):
        yield client


def test_on_dask_with_a_directory_that_all_see(ran: Path, client: Any) -> None:
    flow = mixed()
    with pytest.raises(InputError, match="shared=True"):
        foreplan.run(flow, client)
    first = run(flow, client, shared=True)
    assert take(ran).count("sort") == 1
    assert first.result(of(flow, "sort")) == (Path.cwd() / "sorted.txt",)
    assert first.result(of(flow, "end")) == f"({Path.cwd() / 'n.txt'!r},)"
    assert run(mixed(), client, shared=True).id == ""
    Path("raw data.txt").write_text("a\nb\nd\n")
    second = run(mixed(), client, shared=True, keep_results=True)
    assert second.result(of(second.flow, "joined")) == "a-['b', 'd']-{'k': 'd'}"
    parts = foreplan.Flow("parts")
    pair = parts.task(divmod, 7, 2)
    parts.task(str, pair[2], name="wrong")
    (failure,) = foreplan.run(parts, client).failures
    assert failure.reason.startswith("the result of 'divmod' has no [2]: IndexError")
