"""Outputs that go when their last reader is done, and outputs that are not replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.runs import Options, find_rest
from foreplan.store.store import Store
from foreplan.store.survey import Survey
from runs.people import checked

Tasks = dict[str, dict[str, Any]]


def pipeline() -> Tasks:
    """Two read what one makes; one joins them."""
    return {
        "cut": {"run": "cat in > cut.txt", "inputs": ["in"], "outputs": ["cut.txt"], "temp": True},
        "one": {"run": "cat cut.txt > one", "inputs": ["cut.txt"], "outputs": ["one"]},
        "two": {"run": "test ! -e $FOREPLAN_DIR/bad; cat cut.txt cut.txt > two",
                "inputs": ["cut.txt"],
                "outputs": ["two"]},
        "join": {"run": "cat one two > all", "inputs": ["one", "two"], "outputs": ["all"]},
    }  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "in").write_text("x\n")
    return tmp_path


def run(tasks: Tasks, data: Path, **options: Any) -> Any:
    return foreplan.run({"tasks": tasks}, "local:2", dir=data, **options)


def todo(tasks: Tasks, data: Path, **options: Any) -> set[str]:
    return {*find_rest(foreplan.load({"tasks": tasks}), Options(directory=data, **options)).reasons}


def test_it_goes_when_its_last_reader_is_done_and_alone_runs_nothing(data: Path) -> None:
    checked(run(pipeline(), data))
    assert not (data / "cut.txt").exists()
    assert (data / "all").read_text() == "x\n" * 3
    assert todo(pipeline(), data) == set()


def test_it_is_made_again_if_a_reader_must_run_again(data: Path) -> None:
    run(pipeline(), data)
    tasks = pipeline()
    tasks["join"]["run"] = "cat two one > all"
    assert todo(tasks, data) == {"join"}
    tasks["one"]["run"] = "cat cut.txt cut.txt > one"
    outcome = run(tasks, data)
    checked(outcome)
    assert (data / "all").read_text() == "x\n" * 4
    assert not (data / "cut.txt").exists()


def test_a_failed_run_keeps_what_is_still_needed_and_its_resume_removes_it(data: Path) -> None:
    (data / "bad").touch()
    failed = run(pipeline(), data, keep_going=True)
    assert not failed.ok
    assert (data / "cut.txt").exists()
    (data / "bad").unlink()
    outcome = run(pipeline(), data, resume=failed.id)
    checked(outcome)
    assert not (data / "cut.txt").exists()


def test_a_resume_makes_it_again_only_for_who_has_not_read_it(data: Path) -> None:
    tasks = pipeline()
    tasks["join"]["run"] = "test ! -e $FOREPLAN_DIR/bad; cat one two > all"
    tasks["two"]["run"] = "cat cut.txt cut.txt > two"
    (data / "bad").touch()
    failed = run(tasks, data)
    assert not (data / "cut.txt").exists()
    (data / "bad").unlink()
    outcome = run(tasks, data, resume=failed.id)
    run_ = checked(outcome)
    names = [run_.workflow.task_names[t] for t in run_.attempts.task.tolist()]
    assert sorted(names) == ["cut", "join", "join", "one", "two"]


def test_what_a_killed_run_left_is_removed_by_the_next_that_does_something(data: Path) -> None:
    run(pipeline(), data)
    again = pipeline()
    again["cut"]["temp"] = False  # as if it was killed before it could
    run(again, data, targets=["cut.txt"])
    assert (data / "cut.txt").exists()
    tasks = pipeline()
    tasks["join"]["run"] = "cat two one > all"
    run(tasks, data)
    assert not (data / "cut.txt").exists()


@pytest.mark.parametrize("output", ["cut.txt", "cut.txt/", "parts/*.txt"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_resume_removes_what_an_earlier_run_made(data: Path, output: str, alone: bool) -> None:
    """A resume knows files that are no part of it, and is the last to read them."""
    tasks = pipeline()
    folder = output.removesuffix("*.txt").rstrip("/")
    files = output if output == "cut.txt" else f"{folder}/*.txt"
    make = f"mkdir -p {folder}; cat in > {folder}/1.txt"
    make = "cat in > cut.txt" if output == "cut.txt" else make
    tasks["cut"] |= {"outputs": [output], "run": make}
    tasks["one"] |= {"inputs": [output], "run": f"cat {files} > one"}
    twice = f"test ! -e $FOREPLAN_DIR/bad; cat {files} {files} > two"
    tasks["two"] |= {"inputs": [output], "run": twice}
    (data / "bad").touch()
    run(tasks, data, **({"targets": ["cut"]} if alone else {}))
    assert run(tasks, data).not_done == ("two", "join")
    assert run(tasks, data, resume="last").not_done == ("two", "join")
    assert (data / folder).exists()  # it is still to be read
    (data / "bad").unlink()
    checked(run(tasks, data, resume="last"))
    assert (data / "all").read_text() == "x\n" * 3
    assert not (data / folder).is_file()
    assert not [*(data / folder).glob("*")]


def test_what_is_asked_for_or_read_by_nobody_stays(data: Path) -> None:
    run(pipeline(), data, targets=["cut.txt", "all"])
    assert (data / "cut.txt").exists()
    tasks: Tasks = {"a": {"run": "echo > a", "outputs": ["a"], "temp": True}}
    run(tasks, data)
    assert (data / "a").exists()


@pytest.mark.parametrize("targets", [["two"], ["two", "one", "cut.txt"]])
def test_a_resume_leaves_what_others_want(data: Path, targets: list[str]) -> None:
    run(pipeline(), data, targets=["cut"])
    (data / "bad").touch()
    run(pipeline(), data, targets=targets)
    (data / "bad").unlink()
    run(pipeline(), data, resume="last")
    assert (data / "two").exists()
    assert (data / "cut.txt").exists()


def test_a_reader_that_is_left_out_keeps_it(data: Path) -> None:
    run(pipeline(), data, targets=["one"])
    assert (data / "cut.txt").exists()


def test_what_somebody_has_changed_meanwhile_stays(data: Path) -> None:
    tasks = pipeline()
    tasks["join"]["run"] = "cat one two > all; echo mine > $FOREPLAN_DIR/cut.txt"
    tasks["join"]["inputs"] += ["cut.txt"]
    run(tasks, data)
    assert (data / "cut.txt").read_text() == "mine\n"


def protected(run: str = "cat in > kept; echo y > free") -> Tasks:
    outputs = [{"path": "kept", "protected": True}, "free"]
    return {"t": {"run": run, "inputs": ["in"], "outputs": outputs}}


def test_what_is_protected_is_read_only_and_not_made_again(data: Path) -> None:
    checked(run(protected(), data))
    assert not stat.S_IMODE(os.stat(data / "kept").st_mode) & 0o222
    assert stat.S_IMODE(os.stat(data / "free").st_mode) & 0o200
    assert todo(protected(), data) == set()
    before = {*(data / ".foreplan" / "runs").iterdir()}
    for options in ({}, {"force": True}, {"force": ("*",)}):
        with pytest.raises(InputError, match="kept is protected, and t would make it again"):
            run(protected("cat in in > kept; echo y > free"), data, **options)
    assert {*(data / ".foreplan" / "runs").iterdir()} == before
    run(protected("cat in in > kept; echo y > free"), data, force=("t",))
    assert (data / "kept").read_text() == "x\nx\n"
    assert not stat.S_IMODE(os.stat(data / "kept").st_mode) & 0o222


def test_a_file_that_was_there_is_not_replaced_either(data: Path) -> None:
    (data / "kept").write_text("mine")
    with pytest.raises(InputError, match="kept is protected"):
        run(protected(), data)
    assert (data / "kept").read_text() == "mine"


def test_who_turns_out_to_be_stale_fails_and_leaves_it(data: Path) -> None:
    tasks: Tasks = {
        "a": {"run": "cat in > mid", "inputs": ["in"], "outputs": ["mid"]},
        "b": {"run": "cat mid > kept", "inputs": ["mid"], "outputs": ["kept"], "protected": True,
              "retry": {"system": 3, "exit": 3}},
    }  # fmt: skip
    run(tasks, data)
    (data / "in").write_text("new\n")
    rest = find_rest(foreplan.load({"tasks": tasks}), Options(directory=data))
    assert rest.warnings == [
        "kept is protected: b fails if it has to run again (it reads mid, which is made again); "
        "foreplan.run(..., force=['b']) lets it"
    ]
    assert not find_rest(rest.complete, Options(directory=data, force=("b",))).warnings
    failed = run(tasks, data, retries=3)
    assert failed.run.failed_attempts == 1
    (failure,) = failed.failures
    assert "its output kept is protected: a run with `--force b` makes it again" in str(failure)
    assert (data / "kept").read_text() == "x\n"
    assert run(tasks, data, force=("b",)).ok
    assert (data / "kept").read_text() == "new\n"


def test_what_the_same_run_has_made_is_not_in_its_way(data: Path) -> None:
    """If it was killed between two outputs, its resume makes both."""
    tasks: Tasks = {
        "t": {"run": "echo 1 > a; echo 2 > b", "outputs": ["a", "b"], "protected": True}
    }
    done = run(tasks, data)
    survey = Survey(foreplan.load({"tasks": tasks}), data, Store.read(data))
    assert (survey.shielded(0, done.id), survey.shielded(0, "other")) == ("", "a")
