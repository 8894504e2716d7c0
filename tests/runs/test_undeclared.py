"""Files that commands write beside their outputs: refused, or not kept and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors.undeclared import UndeclaredFiles
from foreplan.report.data import report_of
from foreplan.report.tables import facts_of
from foreplan.report.why import why_in_run
from foreplan.runs.home import RunHome
from foreplan.runs.opening import reopen_run
from foreplan.runs.undeclared import NotKept, summarise_not_kept

Tasks = dict[str, dict[str, Any]]


def run(tasks: Tasks, data: Path, **options: Any) -> Any:
    return foreplan.run({"tasks": tasks}, "local:2", dir=data, **options)


def test_a_redirection_to_a_file_that_is_there_is_refused_before_the_run(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    tasks = {"a": {"run": "echo a > a; echo half > notes.txt", "outputs": ["a"]}}
    assert run(tasks, tmp_path).ok  # a new file, which is not kept
    notes.write_text("precious")
    with pytest.raises(InputError, match=r"a redirects output to notes.txt, which is in the data"):
        run(tasks, tmp_path)
    tasks["a"]["ignores"] = ["notes.txt"]
    assert run(tasks, tmp_path, force=True).ok
    assert notes.read_text() == "precious"


def test_a_redirection_to_a_file_that_appears_is_refused_before_the_task(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": 'echo a > a; echo precious > "$FOREPLAN_DIR/notes"', "outputs": ["a"]},
        "b": {"run": 'touch "$FOREPLAN_DIR/ran"; echo half > notes', "inputs": ["a"]},
    }
    failed = run(tasks, tmp_path)
    (failure,) = failed.failures
    assert failure.reason.startswith("it redirects output to notes, which is in the data directory")
    assert failure.unlisted == ()
    assert (tmp_path / "notes").read_text() == "precious\n"
    assert not (tmp_path / "ran").exists()


INDEX = {
    "run": "for e in 1 2; do cat ref > pfx.$e; done; mkdir -p d/__pycache__; cp ref d/x; "
    "touch d/__pycache__/y; ln -s ref link; mkfifo pipe; touch pfx.done",
    "inputs": ["ref"],
    "outputs": ["pfx.done"],
}


def index_and_use(data: Path, use: str = "cat pfx.1 > use", **fields: Any) -> Any:
    (data / "ref").write_text("NEW\n")
    (data / "pfx.1").write_text("OLD\n")
    inputs = ["pfx.done", *fields.pop("inputs", ())]
    return run(
        {"idx": INDEX, "use": {"run": use, "inputs": inputs, "outputs": ["use"], **fields}}, data
    )


def test_files_that_are_not_kept_are_reported(tmp_path: Path) -> None:
    outcome = index_and_use(tmp_path)
    assert outcome.ok
    (made,) = outcome.undeclared
    assert (made.task, made.files, made.bytes) == ("idx", 3, 12)
    assert made.names == ("pfx.1", "d/x", "pfx.2")  # first what hides an older file
    assert not made.at_least
    assert summarise_not_kept(outcome.undeclared) == (
        "3 files (12 bytes) not listed under outputs: pfx.1, d/x, pfx.2 (made by idx)"
    )
    line = "use reads an older pfx.1: idx made a new one, which was not kept"
    assert [text.startswith(line) for text in made.stale_reads()] == [True]
    written = {
        "task": "idx", "files": 3, "bytes": 12, "names": ("pfx.1", "d/x", "pfx.2"),
        "at_least": False, "read": ({"task": "use", "file": "pfx.1"},),
    }  # fmt: skip
    assert outcome.to_dict()["undeclared"] == [written]
    home = RunHome.find(tmp_path, "last")
    report = report_of(home)
    assert report.undeclared == outcome.undeclared
    assert report.to_dict()["undeclared"] == [written]
    facts = dict(facts_of(report))
    assert facts["not kept"].startswith("3 files (12 bytes)")
    assert facts["warning"].startswith(line)
    for task, own in (("idx", made), ("use", None)):
        why = why_in_run(home, task)
        assert why.undeclared == own
        assert why.stale[0].startswith(line)


@pytest.mark.parametrize(
    ("use", "fields", "reads"),
    [
        ("cat pfx.? > use", {}, True),
        ("x=1; cat pfx.$x > use", {"inputs": ["pfx.1"]}, True),
        ("sh -c 'cat pfx.1' > use", {"ignores": ["pfx.1"]}, False),
        ("cat pfx.done > use", {}, False),
    ],
)
def test_whoever_reads_an_older_file_is_named(
    tmp_path: Path, use: str, fields: dict[str, Any], reads: bool
) -> None:
    (made,) = index_and_use(tmp_path, use, **fields).undeclared
    assert bool(made.read) == reads


def test_files_that_another_task_makes_are_not_older(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": "x=1; echo a > f$x; touch a", "outputs": ["a"]},
        "b": {"run": "echo b > f1", "inputs": ["a"], "outputs": ["f1"]},
        "c": {"run": "cat f1 > c", "inputs": ["f1"], "outputs": ["c"]},
    }
    (tmp_path / "f1").write_text("old")
    outcome = run(tasks, tmp_path, force=True)
    assert [(made.task, made.read) for made in outcome.undeclared] == [("a", ())]
    tasks["a"]["run"] = "touch a"
    assert run(tasks, tmp_path).undeclared == ()


def test_a_former_directory_and_links_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x")
    tasks: Tasks = {"a": {"run": "mkdir d; cat in > d/x", "inputs": ["in"], "outputs": ["d/"]}}
    assert run(tasks, tmp_path).undeclared == ()
    assert run(tasks, tmp_path, force=True).undeclared == ()
    tasks["a"]["run"] += "; sed -i s/x/y/ in"  # a new file in place of the link
    (made,) = run(tasks, tmp_path).undeclared
    assert made.names == ("in",)
    assert (tmp_path / "in").read_text() == "x"


def test_not_all_files_are_counted(tmp_path: Path) -> None:
    for name in ("a/1", "a/2", "a/3", "b/4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert UndeclaredFiles(str(tmp_path), ["a/", "b/4"]).report("") is None
    assert UndeclaredFiles(str(tmp_path), ["a/"]).report("")["names"] == ["b/4"]  # type: ignore[index]
    report = UndeclaredFiles(str(tmp_path), most=4).report(str(tmp_path))
    assert report is not None
    assert report["at_least"]
    assert 0 < report["files"] < 4
    made = NotKept("t", 2, 6, ("a/1", "a/2"), at_least=True)
    assert summarise_not_kept([made]).startswith("at least 2 files (6 bytes)")
    assert summarise_not_kept([made] * 4).endswith("; ...")


def test_what_is_not_kept_survives_a_resume(tmp_path: Path) -> None:
    tasks = {
        "a": {"run": "touch a x", "outputs": ["a"]},
        "b": {"run": "test -e $FOREPLAN_DIR/go && touch b", "inputs": ["a"], "outputs": ["b"]},
    }
    first = run(tasks, tmp_path)
    assert not first.ok
    assert [made.task for made in first.undeclared] == ["a"]
    (tmp_path / "go").touch()
    with reopen_run(RunHome(first.home)) as session:
        again = session.drive()
    assert again.ok
    assert again.undeclared == first.undeclared


@pytest.mark.parametrize(
    ("command", "output", "near"),
    [
        ("touch Out.txt out.tx other", "out.txt", "; it made 'out.tx', 'Out.txt'"),
        ("mkdir a; touch a/out.txt zzz", "out.txt", "; it made 'a/out.txt'"),
        ("touch w-1.txt zzz", "parts/*.txt", "; it made 'w-1.txt'"),
        ("mkdir Index; touch Index/x", "index/", "; it made 'Index/'"),
        ("touch index", "index/", "; it made 'index'"),
        ("touch zzz", "out.txt", ""),
    ],
)
def test_near_misses_of_a_missing_output_are_named(
    tmp_path: Path, command: str, output: str, near: str
) -> None:
    failed = run({"t": {"run": command, "outputs": [output]}}, tmp_path)
    assert failed.failures[0].reason.endswith(near or "is missing")
