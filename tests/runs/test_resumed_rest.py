"""`foreplan resume` asks the store what still holds of what its run has done."""

from __future__ import annotations

from pathlib import Path

import pytest

import foreplan
from foreplan.errors import InputError
from runs.test_again import Place, Tasks, pipeline, place, task

__all__ = ["place"]  # the fixture


def stopped(place: Place, tasks: Tasks, **options: object) -> None:
    """A run of all but the last task, which fails until `go.sh` says otherwise."""
    place.write("go.sh", "exit 3")
    tasks["join"] |= {"run": f"sh go.sh; {tasks['join']['run']}"}
    failed = foreplan.run({"tasks": tasks}, "local:2", dir=place.data, **options)  # type: ignore[arg-type]
    assert failed.not_done == ("join",)
    place.write("go.sh", "true")


def test_nothing_has_changed(place: Place) -> None:
    tasks = pipeline()
    stopped(place, tasks)
    place.write("count.sh", "wc -l < $1\n")  # the same content
    assert place.run(tasks, resume="last") == {"join"}
    assert place.run(tasks) == set()


def test_an_output_was_edited(place: Place) -> None:
    tasks = pipeline()
    stopped(place, tasks)
    before = (place.data / "x.n").read_text()
    place.write("x.n", "40\n")
    with pytest.raises(InputError, match=r"x\.n \(of count-x\).*if it is deleted, the run makes"):
        place.run(tasks, resume="last")
    (place.data / "x.n").unlink()
    assert place.run(tasks, resume="last") == {"count-x", "join"}
    assert (place.data / "x.n").read_text() == before


def test_an_input_has_changed(place: Place) -> None:
    tasks = pipeline()
    stopped(place, tasks)
    place.write("x.txt", "1\n7\n3\n")
    assert place.run(tasks, resume="last") == {"cut-x", "count-x", "join"}
    assert (place.data / "x.cut").read_text() == "1\n7\n"
    assert place.run(tasks) == set()


def test_an_input_has_changed_and_its_result_has_not(place: Place) -> None:
    tasks = pipeline()
    stopped(place, tasks)
    place.write("x.txt", "1\n2\n7\n")
    assert place.run(tasks, resume="last") == {"cut-x", "join"}


def test_a_finished_run_whose_input_has_changed(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks)
    place.write("x.txt", "9\n")
    assert place.run(tasks, resume="last") == {"cut-x", "count-x", "join"}
    assert place.run(tasks, resume="last") == set()


def test_a_script_that_is_not_declared_is_used_as_it_is(place: Place) -> None:
    tasks = pipeline()
    for name in ("count-x", "count-y"):
        tasks[name]["inputs"].remove("count.sh")
    stopped(place, tasks)
    place.write("count.sh", "wc -c < $1\n")
    assert place.run(tasks, resume="last") == {"join"}
    assert place.run(tasks) == {"count-x", "count-y", "join"}  # a new run looks at that, too


def test_an_edge_without_a_file_from_what_is_no_part_of_the_run(place: Place) -> None:
    """The key of what comes before belongs to the key, whoever resumes the part behind it."""
    workflow = {"tasks": pipeline(), "edges": [["cut-y", "count-x"]]}

    def run(**options: str) -> list[str]:
        place.ran.write_text("")
        assert foreplan.run(workflow, "local:1", dir=place.data, **options).ok  # type: ignore[arg-type]
        return place.ran.read_text().split()

    run()
    place.write("x.txt", "9\n")
    assert run() == ["cut-x", "count-x", "join"]
    assert run(resume="last") == []
    place.write("x.txt", "8\n8\n")
    assert run(resume="last") == ["cut-x", "count-x", "join"]
    assert run() == []


def test_a_target_that_was_up_to_date(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks, targets=["x.n"])
    stopped(place, tasks, targets=["x.n", "all.txt"])
    assert place.run(tasks, resume="last") == {"join"}


def test_what_was_forced_is_done_once(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks)
    stopped(place, tasks, force=True)
    assert place.run(tasks, resume="last") == {"join"}


def test_an_input_from_outside_is_gone(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks, targets=["x.n"])  # which is no part of the next run
    stopped(place, tasks)
    (place.data / "x.n").unlink()
    with pytest.raises(
        InputError, match=r"needs x\.n, which is not there.*`foreplan run` makes it"
    ):
        place.run(tasks, resume="last")
    assert place.run(tasks) == {"count-x", "join"}


def test_an_input_that_only_finished_tasks_have_read_may_go(place: Place) -> None:
    tasks = pipeline()
    stopped(place, tasks)
    (place.data / "x.txt").unlink()
    assert place.run(tasks, resume="last") == {"join"}


def test_what_makes_no_files_is_done_once_in_a_run(place: Place) -> None:
    tasks = pipeline()
    tasks["say"] = {"run": "cat x.cut; echo say >> $RAN", "inputs": ["x.cut"]}
    tasks["also"] = {"run": "cat x.cut; echo also >> $RAN", "inputs": ["x.cut"]}
    stopped(place, tasks, keep_going=True)
    assert place.run(tasks, resume="last") == {"join"}
    assert place.run(tasks) == {"say", "also"}


def test_an_adopted_output_is_kept(place: Place) -> None:
    tasks = pipeline()
    stopped(place, tasks)
    place.write("x.n", "40\n")
    from foreplan.runs.adopting import adopt_files

    adopt_files(foreplan.load({"tasks": tasks}), place.data, ["x.n"])
    assert place.run(tasks, resume="last") == {"join"}
    assert (place.data / "all.txt").read_text().startswith("40\n")


def test_a_single_task(place: Place) -> None:
    tasks: Tasks = {"a": task("cat x.txt > x.cut", ["x.txt"], "x.cut")}
    assert place.run(tasks) == {"a"}
    (place.data / "x.cut").unlink()
    assert place.run(tasks, resume="last") == {"a"}


def test_nothing_is_done_again_for_a_temporary_file_that_was_read(tmp_path: Path) -> None:
    """The reader, which is done, has read a temporary file of an earlier run, too."""
    make = "echo a >> $FOREPLAN_DIR/log; echo 1 > a.txt; echo 1 > t.txt"
    work = {
        "tasks": {
            "e": {"run": "echo 1 > e.txt", "outputs": ["e.txt"], "temp": True},
            "a": {"run": make, "outputs": ["a.txt", {"path": "t.txt", "temp": True}]},
            "z": {"run": "cat e.txt t.txt > z.txt", "inputs": ["e.txt", "t.txt"],
                  "outputs": ["z.txt"]},
            "u": {"run": "test -e $FOREPLAN_DIR/go; cat z.txt > u.txt", "inputs": ["z.txt"],
                  "outputs": ["u.txt"]},
        }
    }  # fmt: skip
    assert foreplan.run(work, dir=tmp_path, targets=["e"]).ok
    assert not foreplan.run(work, dir=tmp_path).ok
    (tmp_path / "go").touch()
    assert foreplan.run(work, resume="last", dir=tmp_path).ok
    assert (tmp_path / "log").read_text() == "a\n"
    assert not (tmp_path / "t.txt").exists()
