"""Directories and patterns as inputs and outputs: known by content, published whole."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.executors import trees
from foreplan.executors.base import Workload
from foreplan.model import filenames
from foreplan.runs import Options, find_rest
from foreplan.runs.adopting import adopt_files
from foreplan.runs.shells import task_place
from foreplan.store.store import Store
from runs.people import checked

Tasks = dict[str, dict[str, Any]]
INDEX = "mkdir -p idx/sub/empty; cat in > idx/a; sort -r in > idx/sub/b; ln -s a idx/link"
SPLIT = "split -l 1 --additional-suffix=.txt in parts/p-"


def pipeline(index: str = INDEX, split: str = SPLIT) -> Tasks:
    return {
        "index": {"run": index, "inputs": ["in"], "outputs": ["idx/"]},
        "split": {"run": split, "inputs": ["in"], "outputs": ["parts/*.txt"]},
        "use": {
            "run": "cat idx/sub/b parts/*.txt > all",
            "inputs": ["idx/", "parts/*.txt"],
            "outputs": ["all"],
        },
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "in").write_text("x\ny\n")
    return tmp_path


def run(tasks: Tasks, data: Path, **options: Any) -> Any:
    return foreplan.run({"tasks": tasks}, "local:2", dir=data, **options)


def todo(tasks: Tasks, data: Path, **options: Any) -> dict[str, str]:
    return find_rest(foreplan.load({"tasks": tasks}), Options(directory=data, **options)).reasons


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_they_are_made_read_and_up_to_date(data: Path) -> None:
    checked(run(pipeline(), data))
    assert listing(data / "idx") == ["a", "link", "sub", "sub/b", "sub/empty"]
    assert listing(data / "parts") == ["p-aa.txt", "p-ab.txt"]
    assert (data / "all").read_text() == "y\nx\nx\ny\n"
    assert todo(pipeline(), data) == {}
    for path in (data / "idx" / "a", data / "parts" / "p-aa.txt"):
        os.utime(path)
    assert todo(pipeline(), data) == {}


def test_what_is_made_anew_replaces_all_of_it(data: Path) -> None:
    run(pipeline(), data)
    (data / "in").write_text("z\n")
    outcome = run(pipeline("mkdir idx idx/sub; cp in idx/sub/b"), data)
    checked(outcome)
    assert listing(data / "idx") == ["sub", "sub/b"]
    assert listing(data / "parts") == ["p-aa.txt"]
    assert (data / "all").read_text() == "z\nz\n"
    assert todo(pipeline("mkdir idx idx/sub; cp in idx/sub/b"), data) == {}


def test_what_comes_out_as_it_was_ends_the_wave(data: Path) -> None:
    run(pipeline(), data)
    changed = pipeline(INDEX + " ", SPLIT + " ")
    outcome = run(changed, data)
    assert outcome.ok
    assert len(outcome.reused) == 1


def test_a_store_remembers_what_matched(data: Path) -> None:
    outcome = run(pipeline(), data)
    (result,) = Store.read(data).made("parts/*.txt")
    assert [*result.matched["parts/*.txt"]] == ["parts/p-aa.txt", "parts/p-ab.txt"]
    assert outcome.ok


def test_edits_are_found_and_can_be_adopted(data: Path) -> None:
    run(pipeline(), data)
    (data / "idx" / "new").write_text("mine")
    with pytest.raises(InputError, match=r"somebody has changed .* idx/ \(of index\).*adopt idx/"):
        todo(pipeline(), data)
    assert adopt_files(foreplan.load({"tasks": pipeline()}), data, ["idx/"]) == ["index"]
    assert todo(pipeline(), data) == {"use": "its input idx/ has changed"}
    run(pipeline(), data)
    (data / "parts" / "p-aa.txt").write_text("mine")
    with pytest.raises(InputError, match=r"adopt 'parts/\*\.txt'"):
        todo(pipeline(), data)
    assert todo(pipeline(), data, force=("split",))["split"] == "forced"
    adopt_files(foreplan.load({"tasks": pipeline()}), data, ["parts/*.txt"])
    assert todo(pipeline(), data) == {"use": "its input parts/*.txt has changed"}


def test_an_empty_folder_counts(data: Path) -> None:
    run(pipeline(), data)
    (data / "idx" / "sub" / "empty").rmdir()
    with pytest.raises(InputError, match="somebody has changed"):
        todo(pipeline(), data)


def test_what_foreplan_never_made_is_not_deleted(data: Path) -> None:
    (data / "parts").mkdir()
    (data / "parts" / "notes.txt").write_text("mine")
    for options in ({}, {"force": True}):
        with pytest.raises(InputError, match=r"foreplan did not make parts/notes\.txt"):
            run(pipeline(), data, **options)
    (data / "parts" / "notes.txt").unlink()
    (data / "idx").mkdir()  # nothing is in it
    run(pipeline(), data)
    (data / "parts" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"foreplan did not make parts/notes\.txt"):
        run(pipeline(), data)


def test_a_new_pattern_spares_what_somebody_has_changed(data: Path) -> None:
    """Also if a task made it once that is no part of the workflow any more."""
    run({"s": {"run": "echo s > parts/s.txt", "outputs": ["parts/s.txt"]}}, data)
    tasks = {"split": {"run": SPLIT, "inputs": ["in"], "outputs": ["parts/*.txt"]}}
    assert "replaces what foreplan made there before" in todo(tasks, data)["split"]
    (data / "parts" / "s.txt").write_text("notes")
    adopted = {"s": {"run": "echo s > parts/s.txt", "outputs": ["parts/s.txt"]}}
    told = r"somebody has changed parts/s\.txt.*force=\['split'\]"
    for _ in range(2):  # then adopted, by that name
        with pytest.raises(InputError, match=told):
            run(tasks, data)
        assert (data / "parts" / "s.txt").read_text() == "notes"
        adopt_files(foreplan.load({"tasks": adopted}), data, ["parts/s.txt"])
    run(tasks, data, force=["split"])
    assert listing(data / "parts") == ["p-aa.txt", "p-ab.txt"]


def test_a_single_file_that_was_among_a_directory(data: Path) -> None:
    run({"a": {"run": "mkdir o; echo 1 > o/x", "outputs": ["o/"]}}, data)
    tasks = {"a": {"run": "echo 1 > o/x", "outputs": ["o/x"]}}
    assert {*todo(tasks, data)} == {"a"}
    (data / "o" / "x").write_text("notes")
    with pytest.raises(InputError, match=r"somebody has changed.*o/x \(of a\)"):
        run(tasks, data)
    run(tasks, data, force=["a"])
    assert (data / "o" / "x").read_text() == "1\n"
    assert todo(tasks, data) == {}


def test_what_is_changed_while_it_runs_stays(data: Path) -> None:
    tasks = pipeline()
    run(tasks, data)
    (data / "in").write_text("z\n")
    edit = "p=par; echo mine > $FOREPLAN_DIR/${p}ts/p-ab.txt; touch f"
    tasks["first"] = {"run": edit, "outputs": ["f"]}
    tasks["split"]["inputs"] = ["in", "f"]
    run(tasks, data)
    assert (data / "parts" / "p-ab.txt").read_text() == "mine\n"


def test_without_the_store_all_is_made_again_by_force(data: Path) -> None:
    run(pipeline(), data)
    shutil.rmtree(data / ".foreplan")
    (data / "parts" / "p-zz.txt").write_text("old")
    for options in ({}, {"force": True}):
        with pytest.raises(InputError, match=r"has no record of it.*force="):
            run(pipeline(), data, **options)
    checked(run(pipeline(), data, force=["index", "split"]))
    assert listing(data / "parts") == ["p-aa.txt", "p-ab.txt"]


def test_a_directory_that_foreplan_never_made_is_not_replaced(data: Path) -> None:
    (data / "idx").mkdir()
    (data / "idx" / "mine").touch()
    with pytest.raises(InputError, match="foreplan did not make idx/mine"):
        run(pipeline(), data)


def test_what_is_missing_is_made_again_only_if_it_is_needed(data: Path) -> None:
    run(pipeline(), data)
    shutil.rmtree(data / "idx")
    shutil.rmtree(data / "parts")
    assert todo(pipeline(), data) == {}
    (data / "all").unlink()
    assert {*todo(pipeline(), data)} == {"index", "split", "use"}
    checked(run(pipeline(), data))
    (data / "parts" / "p-aa.txt").unlink()
    assert "some files of its output" in todo(pipeline(), data)["split"]


def test_what_a_kill_leaves_is_no_edit(data: Path) -> None:
    """Files of a pattern appear one by one, a directory at once."""
    run(pipeline(), data)
    shutil.copytree(data / "idx", data / "old")
    (data / "in").write_text("1\n2\n3\n")
    run(pipeline(), data)
    shutil.rmtree(data / "idx")
    (data / "old").rename(data / "idx")
    (data / "parts" / "p-ab.txt").write_text("y\n")  # as before
    (data / "parts" / "p-ac.txt").unlink()
    assert {*todo(pipeline(), data)} == {"index", "split", "use"}
    checked(run(pipeline(), data))
    assert (data / "all").read_text() == "3\n2\n1\n1\n2\n3\n"


@pytest.mark.parametrize("at_once", [True, False])
def test_directories_change_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    if not at_once:
        monkeypatch.setattr(trees, "exchange_at_once", lambda source, target: False)
    for name in ("new", "place"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "place").chmod(0o555)
    trees.put_tree(str(tmp_path / "new"), str(tmp_path / "place"))
    assert (tmp_path / "place" / "file").read_text() == "new"


@pytest.mark.parametrize("whole", ["o/", "o/*"])
@pytest.mark.parametrize("temp", [False, True])
def test_a_file_of_many_is_read(data: Path, whole: str, temp: bool) -> None:
    """Nothing is there at first, and what is made again is read again."""
    tasks: Tasks = {
        "a": {
            "run": "mkdir -p o; cat in > o/x; echo > o/y", "inputs": ["in"], "outputs": [whole],
            "temp": temp,
        },
        "c": {"run": "cat o/x > c", "inputs": ["o/x"], "outputs": ["c"], "after": ["a"]},
        "d": {"run": "cat o/x > d", "inputs": [whole, "o/x"], "outputs": ["d"]},
    }  # fmt: skip
    checked(run(tasks, data))
    assert todo(tasks, data) == {}
    (data / "in").write_text("new\n")
    assert {*todo(tasks, data)} == {"a", "c", "d"}
    checked(run(tasks, data))
    assert (data / "c").read_text() == (data / "d").read_text() == "new\n"
    assert (data / "o" / "x").exists() == (not temp)
    assert todo(tasks, data, force=("a",))["c"].startswith("it reads")
    (data / "c").unlink()
    assert "a" in todo(tasks, data) or not temp  # its file is needed
    checked(run(tasks, data, targets=["c"]))
    assert todo(tasks, data) == {}


def test_a_file_of_many_that_is_not_made(data: Path) -> None:
    tasks: Tasks = {
        "a": {"run": "mkdir o; touch o/x", "outputs": ["o/"]},
        "c": {"run": "cat o/z > c", "inputs": ["o/", "o/z"], "outputs": ["c"]},
    }
    assert "its input 'o/z' is missing" in str(run(tasks, data).failures)


def test_links_in_a_directory_lead_on(data: Path) -> None:
    (data / "more").mkdir()
    (data / "more" / "file").write_text("more")
    links = "ln -s $FOREPLAN_DIR/in idx/in; ln -s $FOREPLAN_DIR/more idx/more; ln -s in idx/l"
    command = f"mkdir idx; {links}"
    run({"t": {"run": command, "outputs": ["idx/"]}}, data)
    assert (data / "idx" / "in").read_text() == "x\ny\n"
    assert not (data / "idx" / "in").is_symlink()
    assert (data / "idx" / "more" / "file").read_text() == "more"
    assert os.readlink(data / "idx" / "l") == "in"


@pytest.mark.parametrize(
    ("command", "output", "problem"),
    [
        ("true", "idx/", "its output 'idx/' is missing"),
        ("touch idx", "idx/", "its output 'idx/' is missing"),
        ("mkdir idx; ln -s nowhere idx/a", "idx/", "contains a link to nothing: 'idx/a'"),
        ("true", "parts/*.txt", "no file matches its output 'parts/*.txt'"),
        ("touch parts/a; mkdir parts/b", "parts/*", "the folder 'parts/b' matches its output"),
        ("mkdir idx", "idx", "its output 'idx' is a directory: if it is meant, write 'idx/'"),
    ],
)
def test_what_is_not_made_is_said(data: Path, command: str, output: str, problem: str) -> None:
    failed = run({"t": {"run": command, "outputs": [output]}}, data)
    assert problem in str(failed.failures)
    assert not (data / "idx").exists()


def test_temporary_and_protected_ones(data: Path) -> None:
    tasks = pipeline()
    tasks["index"]["temp"] = tasks["split"]["temp"] = True
    checked(run(tasks, data))
    assert not (data / "idx").exists()
    assert listing(data / "parts") == []
    assert todo(tasks, data) == {}
    assert not list((data / ".foreplan" / "runs").glob("*/attempts/gone-*"))
    tasks = pipeline()
    tasks["index"]["protected"] = tasks["split"]["protected"] = True
    run(tasks, data, force=("index", "split"))
    for path in ("idx", "idx/sub/b", "parts/p-aa.txt"):
        assert not stat.S_IMODE(os.stat(data / path).st_mode) & 0o222, path
    (data / "in").write_text("1\n")
    with pytest.raises(InputError, match="idx/ is protected"):
        run(tasks, data)
    checked(run(tasks, data, force=("index", "split")))
    assert (data / "all").read_text() == "1\n1\n"


def test_a_loop_over_temporary_files(data: Path) -> None:
    """They stay until the tasks that it adds have read them."""
    tasks: Tasks = {
        "split": {"run": SPLIT, "inputs": ["in"], "outputs": ["parts/*.txt"], "temp": True},
        "up-{f.name}": {"foreach": {"f": "glob(parts/*.txt)"}, "run": "cp {input} {output}",
                        "inputs": ["{f}"], "outputs": ["up/{f.name}"]},
    }  # fmt: skip
    assert run(tasks, data).ok
    assert listing(data / "up") == ["p-aa.txt", "p-ab.txt"]
    assert listing(data / "parts") == []
    (data / "in").write_text("x\nz\n")
    assert run(tasks, data).ok
    assert (data / "up" / "p-ab.txt").read_text() == "z\n"


def test_who_prints_tasks_may_make_what_they_read(data: Path) -> None:
    added = '"  up-$f: {run: cp $f up-$f, inputs: [$f], outputs: [up-$f]}"'
    lines = f"{SPLIT}; echo tasks:; for f in parts/*.txt; do echo {added}; done"
    tasks: Tasks = {
        "split": {"run": lines, "inputs": ["in"], "outputs": ["parts/*.txt"], "expand": True}
    }
    assert run(tasks, data).ok
    assert listing(data / "up-parts") == ["p-aa.txt", "p-ab.txt"]


def test_a_shell_has_them(data: Path) -> None:
    tasks = pipeline()
    run(tasks, data, targets=["index", "split"])
    with task_place(Workload(foreplan.load({"tasks": tasks}), directory=data), 2) as place:
        assert (place.path / "idx" / "a").exists()
        assert listing(place.path / "parts") == ["p-aa.txt", "p-ab.txt"]


def test_inputs_that_nobody_makes(data: Path) -> None:
    tasks: Tasks = {
        "t": {
            "run": "cat raw/* more/*.csv > out",
            "inputs": ["raw/", "more/*.csv"],
            "outputs": ["out"],
        }
    }
    with pytest.raises(
        InputError, match=r"2 input files are not.*raw/ \(read by t\), more/\*\.csv \(read by t\)"
    ):
        run(tasks, data)
    for name in ("raw/1", "more/2.csv", "more/other"):
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(name + "\n")
    run(tasks, data)
    assert (data / "out").read_text() == "raw/1\nmore/2.csv\n"
    (data / "more" / "3.csv").write_text("3\n")
    assert todo(tasks, data) == {"t": "its input more/*.csv has changed"}


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ({"b": {"run": "cat d/x"}}, "b names d/x, and so d/, which a makes: list it under inputs"),
        ({"b": {"run": "cat p/1.txt"}}, r"b names p/1.txt, and so p/\*.txt, which a makes"),
        ({"b": {"run": "true", "inputs": ["d/x"]}}, "b reads 'd/x', which is among 'd/', and that"),
        ({"b": {"run": "true", "outputs": ["p/x.txt"]}}, r"b makes 'p/x.txt', which is among"),
        ({"b": {"run": "true", "outputs": ["d/e/"]}}, r"b makes 'd/e/', which is among 'd/'"),
        (
            {"b": {"run": "true", "outputs": ["p/a*"]}},
            r"a makes 'p/\*.txt', which may have files of 'p/a\*', which b",
        ),
        ({"b": {"run": "true", "inputs": ["p/[ab]?t*"]}}, r"b reads 'p/\[ab\]\?t\*'"),
        ({"b": {"run": "true", "inputs": ["*"]}}, r"a makes 'd/', which is among '\*'"),
    ],
)
def test_two_names_for_one_file_are_refused(tasks: Tasks, problem: str) -> None:
    first: Tasks = {"a": {"run": "true", "outputs": ["d/", "p/*.txt", "q"]}}
    with pytest.raises(InputError, match=problem):
        foreplan.load({"tasks": first | tasks})


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/tmp/x/", "a directory that a task makes is published in the run's directory"),
        ("/tmp/*.txt", "a pattern is of files in the run's directory"),
        ("../x/", "this leaves the run's directory"),
        ("./", "this is the run's directory itself"),
        ("a//", "write it as 'a/'"),
        (".foreplan/*", "where foreplan keeps its own files"),
    ],
)
def test_their_places_are_checked_before_anything_begins(
    data: Path, name: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        run({"t": {"run": "true", "outputs": [name]}}, data, absolute=True)


@pytest.mark.parametrize("name", ["outputs", "inputs"])
def test_a_pattern_of_too_many_files_fails_the_task(
    data: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(filenames, "MOST_FILES", 2)
    task = {"run": "mkdir -p p; touch p/1 p/2 p/3", name: ["p/*"]}
    if name == "inputs":
        (data / "p").mkdir()
        for k in range(3):
            (data / f"p/{k}").touch()
        with pytest.raises(InputError, match=r"'p/\*' matches more than 2 files"):
            run({"t": task}, data)
    else:
        outcome = run({"t": task}, data)
        assert "matches more than 2 files" in str(outcome.failures)


def test_patterns_that_share_no_file_stand_side_by_side() -> None:
    outputs = ["p/*.txt", "p/*.csv", "p/*/a", "q/a?", "q/b*", "q/a"]
    tasks = {f"t{k}": {"run": "true", "outputs": [name]} for k, name in enumerate(outputs)}
    assert foreplan.load({"tasks": tasks}).n_items == len(outputs)


def test_who_comes_right_after_may_read_one_of_them(data: Path) -> None:
    tasks: Tasks = {
        "split": {"run": SPLIT, "inputs": ["in"], "outputs": ["parts/*.txt"]},
        "one": {"run": "cat parts/p-aa.txt > one", "inputs": ["parts/p-aa.txt", "parts/*.txt"],
                "outputs": ["one"]},
    }  # fmt: skip
    foreplan.load({"tasks": tasks})


def test_loops_and_wildcards_of_commands(data: Path) -> None:
    content: dict[str, Any] = {
        "params": {"n": 1},
        "tasks": {
            "split": {"run": "split -l {n} --additional-suffix=.txt in 'a b/p-'",
                      "inputs": ["in"], "outputs": [{"path": "a b/*.txt", "temp": True}]},
            "join": {"run": "cat {inputs} > {output}", "inputs": ["a b/*.txt"],
                     "outputs": ["all"]},
        },
    }  # fmt: skip
    assert foreplan.run(content, "local:1", dir=data).ok
    assert (data / "all").read_text() == "x\ny\n"


def test_dask_refuses_them_unless_its_directory_is_shared(data: Path) -> None:
    with pytest.raises(InputError, match="directories and patterns do not travel"):
        foreplan.run({"tasks": pipeline()}, "dask://127.0.0.1:1", dir=data)
