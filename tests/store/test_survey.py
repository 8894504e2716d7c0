"""What is up to date and why not, in words: one change at a time."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.errors import InputError
from foreplan.store import parts
from foreplan.store.content import settle
from foreplan.store.making import made
from foreplan.store.store import Store
from foreplan.store.survey import Asked, State, Survey

Tasks = dict[str, dict[str, Any]]


class Place:
    """A directory in which tasks are made: an output names what was read."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.ran: list[str] = []

    def write(self, **files: str) -> None:
        for name, content in files.items():
            (self.data / name).write_text(content)

    def survey(self, tasks: Tasks, edges: list[list[str]] | None = None, **asked: Any) -> Survey:
        workflow = foreplan.load({"tasks": tasks, "edges": edges or []})
        return Survey(workflow, self.data, Store.open(self.data, lambda run: False), Asked(**asked))

    def why(self, tasks: Tasks, **more: Any) -> dict[str, str]:
        """The tasks that are not up to date, and why."""
        survey = self.survey(tasks, **more)
        names = survey.workflow.task_names
        busy = survey.tasks(State.STALE, State.UNSURE)
        return {names[t]: f"{survey.states[t].value}: {survey.reasons[t]}" for t in busy}

    def run(self, tasks: Tasks, **more: Any) -> list[str]:
        """Make what is not up to date; the tasks that ran."""
        survey = self.survey(tasks, **more)
        assert not survey.edited
        names, ran = survey.workflow.task_names, []
        part = parts.Part(survey.store.folder, "run")
        for task in survey.workflow.order.tolist():
            if survey.states[task] is not State.STALE:
                continue
            name, making = names[task], survey.making(task)
            outputs = tasks[name].get("outputs", [])
            for output in outputs:
                read = [(self.data / file).read_text() for file in tasks[name].get("inputs", [])]
                (self.data / output).parent.mkdir(exist_ok=True)
                (self.data / output).write_text(f"{name.upper()[:1]}({','.join(read)})")
            done = made(making, data=str(self.data), scratch=str(self.data), outputs=outputs,
                        task=name, run="run")  # fmt: skip
            part.append(done.line)
            survey.finish(task, done.contents)
            ran.append(name)
        part.close()
        return ran


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made_here = Place(tmp_path)
    made_here.write(raw="1", more="2", tool="3")
    return made_here


def three() -> Tasks:
    """raw -> a -> b -> c, where b runs a script that it does not declare."""
    return {
        "a": {"run": "make raw", "inputs": ["raw"], "outputs": ["x"]},
        "b": {"run": "./tool x", "inputs": ["x"], "outputs": ["y"]},
        "c": {"run": "cat y", "inputs": ["y"], "outputs": ["z"]},
    }


def test_nothing_was_ever_run(place: Place) -> None:
    assert place.why(three()) == dict.fromkeys("abc", "stale: it has no earlier result here")
    assert place.run(three()) == ["a", "b", "c"]
    assert place.why(three()) == {}


def test_a_file_that_foreplan_did_not_make(place: Place) -> None:
    place.write(x="mine")
    why = place.why(three())
    assert why["a"].startswith(
        "stale: it has no earlier result here; its output x, which foreplan did"
    )
    assert "`foreplan adopt x` keeps it" in why["a"]
    assert place.survey(three()).edited == []


def test_each_change_has_its_words(place: Place) -> None:
    tasks = three()
    place.run(tasks)
    place.write(raw="2")
    assert place.why(tasks) == {
        "a": "stale: its input raw has changed",
        "b": "unsure: it reads x, which is made again",
        "c": "unsure: it reads y, which is made again",
    }
    place.write(raw="1")
    tasks["a"]["run"] = "make  raw"
    assert place.why(tasks)["a"] == "stale: its command has changed"
    tasks = three()
    tasks["a"]["shell"] = "sh"
    assert place.why(tasks)["a"] == "stale: its command has changed"
    tasks = three()
    tasks["a"]["inputs"] = ["raw", "more"]
    assert place.why(tasks)["a"] == "stale: it has a new input more"
    tasks["a"]["inputs"] = []
    tasks["a"]["run"] = "make"
    assert place.why(tasks)["a"] == ("stale: its command has changed; it no longer reads raw")
    tasks = three()
    tasks["a"]["outputs"] = ["x", "w"]
    assert place.why(tasks)["a"] == "stale: its outputs have changed"
    place.write(tool="4")
    assert place.why(three()) == {
        "b": "stale: its input tool has changed",
        "c": "unsure: it reads y, which is made again",
    }
    place.write(tool="3")
    assert place.why(three()) == {}
    assert place.why(three(), force=["b"])["b"] == "stale: forced"
    assert len(place.why(three(), force=True)) == 3


def test_what_does_not_count(place: Place) -> None:
    tasks = three()
    place.run(tasks)
    for field, value in (("cost", 5), ("retries", 3), ("timeout", 9), ("category", "k")):
        assert place.why({name: task | {field: value} for name, task in tasks.items()}) == {}
    renamed = {f"new-{name}": task for name, task in tasks.items()}
    assert place.why(renamed) == {}
    for file in ("raw", "x", "y", "z", "tool"):
        (place.data / file).touch()
    assert place.why(tasks) == {}
    added = tasks | {"d": {"run": "cat z raw", "inputs": ["z", "raw"], "outputs": ["w"]}}
    assert place.why(added) == {"d": "stale: it has no earlier result here"}
    moved = added | {"c": tasks["c"] | {"outputs": ["z2"]}, "d": added["d"] | {"inputs": ["raw"]}}
    assert place.why(moved) == {
        "c": "stale: its outputs are new here: a task of this name made others before",
        "d": "stale: it has no earlier result here",
    }


def test_what_is_made_again_alike_ends_the_wave(place: Place) -> None:
    tasks = three()
    place.run(tasks)
    tasks["a"]["run"] += " # better"
    assert place.run(tasks) == ["a"]
    assert place.why(tasks) == {}


def test_what_is_missing_is_made_if_somebody_needs_it(place: Place) -> None:
    tasks = three()
    place.run(tasks)
    (place.data / "z").unlink()
    assert place.why(tasks) == {"c": "stale: its output z is missing"}
    (place.data / "y").unlink()
    (place.data / "x").unlink()
    assert place.why(tasks) == {
        "a": "stale: its output x is missing, and b needs it",
        "b": "stale: its output y is missing, and c needs it",
        "c": "stale: its output z is missing",
    }
    place.run(tasks)
    (place.data / "x").unlink()
    assert place.why(tasks) == {}
    assert place.why(tasks, targets=["x"]) == {"a": "stale: its output x is missing"}
    place.write(tool="4")
    assert place.run(tasks) == ["a", "b", "c"][:2]  # y is as it was


def test_what_reads_a_file_that_is_made_for_another_waits_for_it(place: Place) -> None:
    """A task may give something else the next time."""
    tasks = three() | {"d": {"run": "cat x", "inputs": ["x"], "outputs": ["w"]}}
    place.run(tasks)
    (place.data / "x").unlink()
    place.write(tool="4")
    survey = place.survey(tasks)
    assert survey.states == [State.STALE, State.STALE, State.UNSURE, State.UNSURE]
    assert survey.reasons[3] == "it reads what a makes again"
    place.write(x="something else")
    entry = settle(str(place.data / "x"))
    assert entry is not None
    assert survey.finish(0, {"x": entry}) == ([], [3])


def test_what_is_unsure_and_missing_is_made_for_what_runs(place: Place) -> None:
    tasks = three()
    tasks["c"] |= {"run": "cat y more", "inputs": ["y", "more"]}
    place.run(tasks)
    (place.data / "y").unlink()
    place.write(more="new")
    tasks["a"]["run"] += " # better"
    survey = place.survey(tasks)
    assert survey.states == [State.STALE] * 3
    assert survey.reasons[1] == "its output y is missing, and c needs it"
    assert place.run(tasks) == ["a", "b", "c"]


def test_targets(place: Place) -> None:
    tasks = three() | {"d": {"run": "cat raw", "inputs": ["raw"], "outputs": ["w"]}}
    assert place.run(tasks, targets=["y"]) == ["a", "b"]
    assert place.run(tasks, targets=["c"]) == ["c"]
    survey = place.survey(tasks, targets=["c"])
    assert survey.tasks(State.LEFT_OUT) == [3]
    with pytest.raises(InputError, match=r"unknown target 'yy' \(did you mean 'y'\?\)"):
        place.survey(tasks, targets=["yy"])
    with pytest.raises(InputError, match=r"unknown task 'y'"):
        place.survey(tasks, force=["y"])


def test_what_was_edited_stops_until_somebody_decides(place: Place) -> None:
    tasks = three()
    place.run(tasks)
    place.write(y="mine")
    assert place.survey(tasks).edited == [("y", "b")]
    assert place.survey(tasks, force=["b"]).edited == []
    assert place.survey(tasks, targets=["x"]).edited == []
    survey = place.survey(tasks)
    part = parts.Part(survey.store.folder, "adopt")
    for line in survey.adopt(["y"]):
        part.append(line)
    assert place.survey(tasks).edited == []
    assert place.why(tasks) == {"c": "stale: its input y has changed"}
    assert place.run(tasks) == ["c"]
    assert (place.data / "z").read_text() == "C(mine)"
    with pytest.raises(InputError, match=r"unknown output 'raw'"):
        survey.adopt(["raw"])
    (place.data / "x").unlink()
    with pytest.raises(InputError, match="its output 'x' is missing"):
        place.survey(tasks).adopt(["x"])


def test_what_was_made_elsewhere_can_be_adopted(place: Place) -> None:
    place.write(x="from elsewhere")
    survey = place.survey(three())
    parts.Part(survey.store.folder, "adopt").append(b"".join(survey.adopt(["x"])))
    assert place.run(three()) == ["b", "c"]
    assert (place.data / "z").read_text() == "C(B(from elsewhere))"


def test_a_task_without_outputs_is_run_by_every_run_unless_it_is_cached(place: Place) -> None:
    tasks: Tasks = {"a": {"run": "make raw", "inputs": ["raw"]}}
    for _ in range(2):
        assert place.run(tasks) == ["a"]
    assert place.why(tasks) == {"a": "stale: it has no outputs: it is run by every run"}
    assert place.why(tasks, done=["a"]) == {}  # by this run, which is resumed
    tasks["a"]["cache"] = True
    assert place.why(tasks) == {}  # it was run with this input
    place.write(raw="5")
    assert place.why(tasks) == {"a": "stale: its input raw has changed"}
    assert place.run(tasks) == ["a"]
    assert place.run(tasks) == []


def test_an_edge_hands_on_what_the_task_before_it_is_made_from(place: Place) -> None:
    tasks: Tasks = {
        "a": {"run": "fill the database"},
        "b": {"run": "ask it", "outputs": ["x"]},
    }
    edges = [["a", "b"]]
    assert place.run(tasks, edges=edges) == ["a", "b"]
    assert place.run(tasks, edges=edges) == ["a"]  # by every run, and nothing is new about it
    tasks["a"]["run"] = "fill it with something else"
    assert place.why(tasks, edges=edges)["b"] == "stale: a, which it comes after, has changed"
    assert place.run(tasks, edges=edges) == ["a", "b"]


def test_a_new_edge_is_no_new_input(place: Place) -> None:
    tasks: Tasks = {
        "a": {"run": "a", "outputs": ["x"]},
        "check": {"run": "check", "inputs": ["x"], "cache": True},
        "b": {"run": "b", "outputs": ["y"]},
    }
    place.run({"b": tasks["b"]})
    edges = [["check", "b"]]
    assert place.why(tasks, edges=edges)["b"] == "stale: it now comes after check"
    place.run(tasks, edges=edges)
    again = place.why(tasks, edges=edges, force=["a"])
    assert again["b"] == "unsure: it comes after check, which is made again"


def test_an_input_that_changes_while_it_is_read(place: Place) -> None:
    tasks = three()
    survey = place.survey(tasks)
    making = survey.making(0)
    place.write(x="made of the old", raw="new")
    done = made(making, data=str(place.data), scratch=str(place.data), outputs=["x"], task="a",
                run="r")  # fmt: skip
    assert done.warning == "a: its input raw was changed while it ran: it will be run again"
    parts.Part(survey.store.folder, "r").append(done.line)
    again = place.survey(tasks)
    assert again.edited == []  # it is foreplan's own
    assert again.reasons[0] == "its input raw was changed while it ran"
    assert again.states[0] is State.STALE


def test_what_a_job_must_know_travels(place: Place) -> None:
    making = place.survey(three()).making(0)
    assert pickle.loads(pickle.dumps(making)) == making
    assert making.recipe is not None
    assert making.recipe.inputs.keys() == making.statuses.keys() == {"raw"}


def test_inputs_that_change_while_others_are_made_count_as_they_are(place: Place) -> None:
    tasks = three()
    tasks["c"] |= {"run": "cat y more", "inputs": ["y", "more"]}
    place.run(tasks)
    place.write(tool="4")
    survey = place.survey(tasks)
    assert survey.states == [State.UP_TO_DATE, State.STALE, State.UNSURE]
    place.write(more="new")
    entry = settle(str(place.data / "y"))
    assert entry is not None
    assert survey.finish(1, {"y": entry}) == ([], [2])
    assert survey.reasons[2] == "its input more has changed"


def test_an_input_that_is_missing(place: Place) -> None:
    (place.data / "raw").unlink()
    assert place.why(three())["a"] == "stale: its input raw is missing"
    making = place.survey(three()).making(0)
    assert making.recipe is None
    assert making.note == "one of its inputs is missing"


def test_patterns_folders_and_what_is_ignored(place: Place) -> None:
    (place.data / "lib").mkdir()
    place.write(**{"lib/a.py": "1", "p1.csv": "1"})
    tasks: Tasks = {
        "a": {"run": "PYTHONPATH=lib python $FOREPLAN_DIR/tool *.csv more", "outputs": ["x"],
              "ignores": ["more"]},
    }  # fmt: skip
    place.run(tasks)
    assert place.why(tasks) == {}
    for change, why in (
        ({"lib/a.py": "2"}, "its input lib has changed"),
        ({"tool": "2"}, "its input tool has changed"),
        ({"p1.csv": "2"}, "its input p1.csv has changed"),
        ({"p2.csv": "2"}, "it has a new input p2.csv"),
    ):
        place.write(**change)
        assert place.why(tasks) == {"a": f"stale: {why}"}
        place.run(tasks)
    place.write(more="3")
    assert place.why(tasks) == {}
    os.unlink(place.data / "p2.csv")
    assert place.why(tasks) == {}  # from the same files as before came what is there


def test_what_a_script_imports_beside_it(place: Place) -> None:
    (place.data / "lib/pkg").mkdir(parents=True)
    files = {
        "lib/main.py": "import os, helper, no_such\ndef f():\n    from pkg.deep import name",
        "lib/helper.py": "import main\nx = '\\d'", "lib/broken.py": "def (",
        "lib/pkg/__init__.py": "", "lib/pkg/deep.py": "from .. import helper\nfrom . import near",
        "lib/pkg/near.py": "import broken", "lib/other.py": "", "lib/near.py": "",
    }  # fmt: skip
    place.write(**files)
    tasks: Tasks = {"a": {"run": "python3 lib/main.py", "outputs": ["x"]}}
    place.run(tasks)
    for name in ("helper", "pkg/__init__", "pkg/deep", "pkg/near", "broken"):
        file = f"lib/{name}.py"
        place.write(**{file: files[file] + "# other"})
        assert place.why(tasks) == {"a": f"stale: its input {file} has changed"}
        place.write(**files)
    place.write(**{"lib/other.py": "1", "lib/near.py": "1", "helper.py": "1"})
    assert place.why(tasks) == {}


def test_a_link_that_leads_out_belongs_to_a_task_only_if_that_is_allowed(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "big"
    outside.write_text("1")
    (place.data / "big").symlink_to(outside)
    tasks: Tasks = {"a": {"run": "cat big", "outputs": ["x"]}}
    place.run(tasks)
    place.run(tasks, anywhere=True)
    outside.write_text("2")
    assert place.why(tasks) == {}
    assert place.why(tasks, anywhere=True) == {"a": "stale: its input big has changed"}


def test_two_outputs_of_two_attempts(place: Place) -> None:
    """The recipe is the same, the results are not, and a kill left one of each."""
    tasks: Tasks = {"a": {"run": "random", "outputs": ["x", "y"]}}
    place.run(tasks)
    survey = place.survey(tasks, force=True)
    making = survey.making(0)
    place.write(x="other x", y="other y")
    done = made(making, data=str(place.data), scratch=str(place.data), outputs=["x", "y"],
                task="a", run="r")  # fmt: skip
    parts.Part(survey.store.folder, "r").append(done.line)
    assert place.why(tasks) == {}
    place.write(y="A()")
    assert place.survey(tasks).edited == []
    assert place.why(tasks) == {"a": "stale: its output y is of another attempt"}
    place.write(x="A()")  # all of the first: what that recipe gave, too
    assert place.why(tasks) == {}
