"""`foreplan run` a second time: what is up to date is not run, whatever else has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.errors import InputError
from foreplan.runs import Options, find_rest
from foreplan.runs.adopting import adopt_files
from foreplan.runs.journal import read
from foreplan.runs.replay import replay

Tasks = dict[str, dict[str, Any]]


def pipeline() -> Tasks:
    """Two samples, each cut and counted, and both joined; a script is among the inputs."""
    tasks: Tasks = {}
    for s in ("x", "y"):
        tasks[f"cut-{s}"] = task(f"head -n 2 {s}.txt > {s}.cut", [f"{s}.txt"], f"{s}.cut")
        tasks[f"count-{s}"] = task(
            f"sh count.sh {s}.cut > {s}.n", ["count.sh", f"{s}.cut"], f"{s}.n"
        )
    tasks["join"] = task("cat x.n y.n > all.txt", ["x.n", "y.n"], "all.txt")
    return tasks


def task(run: str, inputs: list[str], output: str) -> dict[str, Any]:
    return {"run": f"{run}; echo $FOREPLAN_TASK >> $RAN", "inputs": inputs, "outputs": [output]}


class Place:
    """A directory with the inputs, and what ran there."""

    def __init__(self, folder: Path) -> None:
        self.data, self.ran = folder / "data", folder / "ran"
        self.data.mkdir()
        self.write("x.txt", "1\n2\n3\n")
        self.write("y.txt", "4\n5\n6\n")
        self.write("count.sh", "wc -l < $1\n")

    def write(self, name: str, text: str) -> None:
        (self.data / name).write_text(text)

    def run(self, tasks: Tasks, **options: Any) -> set[str]:
        """The tasks whose commands ran, each once."""
        self.ran.write_text("")
        outcome = foreplan.run({"tasks": tasks}, "local:2", dir=self.data, **options)
        assert outcome.ok, outcome.failures
        check_run(outcome.run)
        ran = self.ran.read_text().split()
        assert len(ran) == len(set(ran))
        return set(ran)

    def rest(self, tasks: Tasks, **options: Any) -> dict[str, str]:
        """What would run, and why."""
        asked = Options(directory=self.data, **options)
        return find_rest(foreplan.load({"tasks": tasks}), asked).reasons


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("FOREPLAN_HOME", str(tmp_path / "history"))
    monkeypatch.setenv("RAN", str(tmp_path / "ran"))
    return Place(tmp_path)


ALL = {"cut-x", "cut-y", "count-x", "count-y", "join"}


def touch(place: Place, tasks: Tasks) -> None:
    (place.data / "x.txt").touch()


def input_seen(place: Place, tasks: Tasks) -> None:
    place.write("x.txt", "1\n7\n3\n")


def input_cut_away(place: Place, tasks: Tasks) -> None:
    place.write("x.txt", "1\n2\n7\n")


def other_command(place: Place, tasks: Tasks) -> None:
    tasks["cut-x"]["run"] = tasks["cut-x"]["run"].replace("-n 2", "-n 1")


def same_result(place: Place, tasks: Tasks) -> None:
    tasks["cut-x"]["run"] = tasks["cut-x"]["run"].replace("head -n 2", "head  -n 2")


def said_otherwise(place: Place, tasks: Tasks) -> None:
    for fields in tasks.values():
        fields |= {"cost": 3, "timeout": 77, "retries": 1, "category": "k"}


def renamed(place: Place, tasks: Tasks) -> None:
    tasks["scissors"] = tasks.pop("cut-x")


def added(place: Place, tasks: Tasks) -> None:
    tasks["last"] = task("tail -n 1 all.txt > last.txt", ["all.txt"], "last.txt")


def script(place: Place, tasks: Tasks) -> None:
    place.write("count.sh", "wc -c < $1\n")


def no_product(place: Place, tasks: Tasks) -> None:
    (place.data / "all.txt").unlink()


def no_intermediate(place: Place, tasks: Tasks) -> None:
    (place.data / "x.cut").unlink()


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        (lambda place, tasks: None, set()),
        (touch, set()),
        (input_seen, {"cut-x", "count-x"}),  # it counts two lines as before
        (input_cut_away, {"cut-x"}),
        (other_command, {"cut-x", "count-x", "join"}),
        (same_result, {"cut-x"}),
        (said_otherwise, set()),
        (renamed, set()),
        (added, {"last"}),
        (script, {"count-x", "count-y", "join"}),
        (no_product, {"join"}),
        (no_intermediate, set()),
    ],
)
def test_what_runs_after_a_change(
    place: Place, change: Callable[[Place, Tasks], None], runs: set[str]
) -> None:
    tasks = pipeline()
    assert place.run(tasks) == ALL
    change(place, tasks)
    assert place.run(tasks) == runs
    assert place.run(tasks) == set()


def test_reasons(place: Place) -> None:
    tasks = pipeline()
    assert set(place.rest(tasks).values()) == {"it has no earlier result here"}
    place.run(tasks)
    assert place.rest(tasks) == {}
    place.write("x.txt", "9\n9\n9\n")
    assert place.rest(tasks) == {
        "cut-x": "its input x.txt has changed",
        "count-x": "it reads x.cut, which is made again",
        "join": "it reads x.n, which is made again",
    }
    assert place.rest(tasks, force=["join"])["join"] == "forced"


def test_one_reason_of_many_categories_is_one_line(place: Place) -> None:
    tasks = {f"t{k}": task("true", [], f"{k}.out") | {"category": f"kind-{k}"} for k in range(7)}
    rest = find_rest(foreplan.load({"tasks": tasks}), Options(directory=place.data, force=True))
    assert rest.in_words() == [
        "0 of 7 tasks up to date; to run: 7 tasks",
        "  t0, t1, ... (7 tasks): forced",
    ]
    reasons = {name: f"reason {name}" for name in tasks}
    assert replace(rest, reasons=reasons).in_words()[-1] == "  2 tasks for 2 other reasons"


def test_force_and_targets(place: Place) -> None:
    tasks = pipeline()
    assert place.run(tasks, targets=["x.n"]) == {"cut-x", "count-x"}
    assert place.run(tasks, targets=["join"]) == {"cut-y", "count-y", "join"}
    assert place.run(tasks, force=["cut-*"]) == {"cut-x", "cut-y"}
    assert place.run(tasks, force=True) == ALL
    for wrong, hint in (({"force": ["cut"]}, "cut-x"), ({"targets": ["al.txt"]}, "all.txt")):
        with pytest.raises(InputError, match=hint):
            place.run(tasks, **wrong)


def test_edited_by_hand(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks)
    place.write("x.n", "40\n")
    with pytest.raises(InputError, match=r"x\.n \(of count-x\)"):
        place.run(tasks)
    assert place.run(tasks, force=["count-x"]) == {"count-x"}
    place.write("x.n", "40\n")
    assert adopt_files(foreplan.load({"tasks": tasks}), place.data, ["x.n"]) == ["count-x"]
    assert place.run(tasks) == {"join"}
    assert (place.data / "all.txt").read_text().startswith("40\n")
    assert place.run(tasks) == set()


def test_what_would_be_made_again_is_not_adopted(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks)
    workflow = foreplan.load({"tasks": tasks})
    for name in ("x.cut", "all.txt"):
        place.write(name, "mine\n")
    told = (
        r"what join gives cannot.*count-x is not up to date.*foreplan run FILE count-x.*adopt x\.n"
    )
    with pytest.raises(InputError, match=told):
        adopt_files(workflow, place.data, ["x.cut", "all.txt"])
    with pytest.raises(InputError, match=r"somebody has changed.*x\.cut"):  # nothing is adopted
        place.run(tasks)
    adopt_files(workflow, place.data, ["x.cut"])
    assert place.run(tasks, targets=["count-x"]) == {"count-x"}
    adopt_files(workflow, place.data, ["all.txt"])
    assert place.run(tasks) == set()
    assert (place.data / "all.txt").read_text() == "mine\n"


def test_made_elsewhere(place: Place) -> None:
    tasks = pipeline()
    for name, text in (("x.cut", "1\n2\n"), ("x.n", "2\n")):
        place.write(name, text)
    adopt_files(foreplan.load({"tasks": tasks}), place.data, ["x.cut", "x.n"])
    assert place.run(tasks) == {"cut-y", "count-y", "join"}


def test_without_outputs(place: Place) -> None:
    tasks: Tasks = {"say": {"run": "cat x.txt; echo say >> $RAN", "inputs": ["x.txt"]}}
    assert [place.run(tasks) for _ in range(2)] == [{"say"}, {"say"}]
    tasks["say"]["cache"] = True
    assert [place.run(tasks) for _ in range(2)] == [set(), set()]
    first = (place.data / "x.txt").read_text()
    for text in ("new\n", first):  # what it did the first time is undone since
        place.write("x.txt", text)
        assert [place.run(tasks) for _ in range(2)] == [{"say"}, set()]


def test_a_failed_run_goes_on_with_the_next(place: Place) -> None:
    tasks = pipeline()
    tasks["join"]["run"] = "exit 3"
    assert foreplan.run({"tasks": tasks}, "local:2", dir=place.data).status == "failed"
    assert place.run(pipeline()) == {"join"}


def test_a_run_of_a_part_is_resumed(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks, targets=["count-x"])
    place.write("go.sh", "exit 3")
    tasks["join"] |= {"run": f"sh go.sh; {tasks['join']['run']}"}
    tasks["last"] = task("tail -n 1 all.txt > last.txt", ["all.txt"], "last.txt")
    failed = foreplan.run({"tasks": tasks}, "local:1", dir=place.data, targets=["join"])
    assert failed.not_done == ("join",)
    place.write("go.sh", "true")
    assert place.run(tasks, targets=["join"], resume="last") == {"join"}
    tasks["cut-y"]["run"] = "true"
    with pytest.raises(InputError, match="changed: cut-y"):
        place.run(tasks, resume="last")


def test_an_input_that_changes_meanwhile(place: Place) -> None:
    tasks = {
        "a": task("cat x.txt > x.cut; echo more >> $FOREPLAN_DIR/x.txt", ["x.txt"], "x.cut"),
    }
    outcome = foreplan.run({"tasks": tasks}, "local:1", dir=place.data)
    (told,) = outcome.warnings
    assert told == "a: its input x.txt was changed while it ran: it will be run again"
    assert "a" in place.rest(tasks)


def test_the_journal_tells_why(place: Place) -> None:
    tasks = pipeline()
    place.run(tasks)
    place.write("x.txt", "9\n9\n9\n")
    outcome = foreplan.run({"tasks": tasks}, "local:2", dir=place.data)
    header = json.loads(
        (outcome.home / "journal.jsonl").read_text().split(" ", 1)[1].split("\n")[0]
    )
    assert set(header["up_to_date"]) == {"cut-y", "count-y"}
    assert header["reasons"]["cut-x"] == "its input x.txt has changed"


def test_trust_in_times(place: Place) -> None:
    tasks = pipeline()
    assert place.run(tasks, trust="mtime") == ALL
    assert place.run(tasks, trust="mtime") == set()
    with pytest.raises(InputError, match="nothing to trust"):
        place.run(tasks, trust="luck")


def test_what_turns_out_to_be_up_to_date_is_planned_with_no_time(place: Place) -> None:
    tasks = pipeline()
    for fields in tasks.values():
        fields["cost"] = 5
    place.run(tasks)
    same_result(place, tasks)
    outcome = foreplan.run({"tasks": tasks}, "local:1", "static", dir=place.data, use_history=False)
    run = replay(read(outcome.home / "journal.jsonl"), place.data)
    names = run.header.workflow.task_names
    assert names == ("cut-x", "count-x", "join")
    (told,) = run.driver.learned
    assert told.estimates.cost[1:].tolist() == [[0.0], [0.0]]
    assert told.time >= outcome.run.attempts.finish[0]
