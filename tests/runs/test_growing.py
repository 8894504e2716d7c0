"""Runs whose tasks add tasks: known by content, refused with a reason, resumed from anywhere."""

from __future__ import annotations

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

import foreplan
from foreplan.checks.runs import check_run
from foreplan.model.causes import EXPANSION
from foreplan.model.events import TasksAdded
from foreplan.report.why import why_in_run
from foreplan.runs import Options, find_rest
from foreplan.runs.adopting import adopt_files
from foreplan.runs.home import RunHome, runs
from foreplan.runs.journal import read
from foreplan.runs.replay import replay
from foreplan.runs.rest import Rest
from foreplan.runs.summary import summarise

SPLIT = """\
echo tasks:
for i in $(cat list.txt); do
  echo "  part-$i: {run: 'echo $i | tee -a log.txt > parts/$i.out', outputs: [parts/$i.out]}"
done
"""
WORK = {
    "name": "growing",
    "tasks": {
        "split": {"run": SPLIT, "inputs": ["list.txt"], "expand": True},
        "merge": {
            "run": "cat parts/*.out > all.txt",
            "after": ["split"],
            "inputs": ["parts/*.out"],
            "outputs": ["all.txt"],
        },
    },
}


def grow(directory: Path, parts: str, **options: Any) -> Any:
    (directory / "list.txt").write_text(parts)
    return foreplan.run(WORK, "local:2", dir=directory, **options)


@pytest.mark.parametrize("strategy", ["auto", "static", "fifo"])
def test_what_is_added_is_run_and_known_by_content(tmp_path: Path, strategy: str) -> None:
    outcome = grow(tmp_path, "1 2 3", strategy=strategy)
    assert outcome.ok
    assert (tmp_path / "all.txt").read_text() == "1\n2\n3\n"
    assert outcome.run.workflow.task_names[2:] == ("part-1", "part-2", "part-3")
    check_run(outcome.run)
    assert outcome.run.planned is None  # for none of its plans knew of all this from the start
    again = grow(tmp_path, "1 2 3", strategy=strategy)
    assert (again.run.n_done, len(again.up_to_date)) == (0, 5)
    # what is left of the first expansion is not read
    other = grow(tmp_path, "2 4", strategy=strategy)
    assert (tmp_path / "all.txt").read_text() == "2\n4\n"
    assert other.reused == ("part-2",)
    (home,) = [home for home in runs(tmp_path) if home.id == other.id]
    replayed = replay(read(home.journal), home.data)
    assert replayed.decisions == replayed.journalled
    assert replayed.header.workflow.task_names == other.run.workflow.task_names
    assert [new.more.task_names for new in replayed.driver.added] == [("part-2", "part-4")]


BAD = {
    "": "it has printed nothing",
    "tasks: [": ": .foreplan/added/split.yaml: line 2, column 1: this is not YAML",
    "tasks: {p: {rum: x}}": ": .foreplan/added/split.yaml: line 1: tasks.p: unknown field 'rum'",
    "tasks: {merge: {run: x}}": "there is a task 'merge' already",
    "tasks: {p: {run: x, outputs: [other.txt]}}": "made by 'other' already",
    "tasks: {p: {run: x, outputs: [in.txt]}}": "is an input already",
    "tasks: {p: {run: x, inputs: [all.txt]}}": "the tasks form a cycle: merge -> p -> merge",
    "tasks: {p: {run: x, inputs: [nowhere]}}": "'nowhere' is not there",
    "tasks: {p: {cost: 1}}": "no command to run",
    "tasks: {p: {run: x, cores: 1000, outputs: [parts/p.out]}}": "fits on no host",
    "tasks: {p: {run: x, resources: {key: 1}}}": "the resource 'key', which no declared task",
    "tasks: {p: {run: x, outputs: [../p]}}": "leaves the run's directory",
}


@pytest.mark.parametrize("printed", BAD)
def test_a_bad_expansion_fails_its_task_and_nothing_else(tmp_path: Path, printed: str) -> None:
    (tmp_path / "in.txt").write_text("x\n")
    (tmp_path / "adds.yaml").write_text(printed)
    split = {"run": "cat adds.yaml", "inputs": ["adds.yaml"], "expand": True}
    other = {"run": "cp in.txt other.txt", "inputs": ["in.txt"], "outputs": ["other.txt"]}
    work = {"tasks": {**WORK["tasks"], "split": split, "other": other}}  # type: ignore[dict-item]
    for n_done in (1, 0):  # again, where what is good is up to date
        outcome = foreplan.run(work, "local:2", dir=tmp_path, keep_going=True)
        assert (outcome.status, outcome.run.n_done) == ("failed", n_done)
        (failure,) = outcome.failures
        assert (failure.task, failure.cause) == ("split", EXPANSION)
        assert BAD[printed] in failure.reason
        assert outcome.not_done == ("split", "merge")
        if "cores" in printed:  # a run that knows it beforehand does not begin
            with pytest.raises(foreplan.InputError, match="fits on no host"):
                foreplan.run(work, "local:2", dir=tmp_path, keep_going=True)
            break


def test_added_tasks_may_add_tasks_and_whoever_waits_waits_for_all(tmp_path: Path) -> None:
    (tmp_path / "inner.yaml").write_text("tasks: {in: {run: 'echo in > b.out', outputs: [b.out]}}")
    (tmp_path / "outer.yaml").write_text(
        "tasks: {out: {run: cat inner.yaml, inputs: [inner.yaml], expand: true}}"
    )
    work: dict[str, Any] = {
        "tasks": {
            "split": {"run": "cat outer.yaml", "inputs": ["outer.yaml"], "expand": True},
            "merge": {
                "run": "cat *.out > all.txt",
                "after": ["split"],
                "inputs": ["*.out"],
                "outputs": ["all.txt"],
            },
        }
    }
    outcome = foreplan.run(work, "local:2", dir=tmp_path)
    assert outcome.ok
    assert (tmp_path / "all.txt").read_text() == "in\n"
    assert foreplan.run(work, "local:2", dir=tmp_path).up_to_date == ("split", "merge", "out", "in")
    work["tasks"]["merge"] |= {"run": "cat c.out > all.txt", "inputs": ["c.out"]}
    with pytest.raises(foreplan.InputError, match=r'`after: \[split\]` and a pattern: "c\*\.out"'):
        foreplan.run(work, "local:2", dir=tmp_path)


def cut_journal(home: RunHome, entries: int) -> None:
    lines = home.journal.read_bytes().splitlines(keepends=True)
    home.journal.write_bytes(b"".join(lines[: 1 + entries]))


def test_resumed_from_anywhere_with_nothing_done_twice(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    assert grow(whole, "1 2 3").ok
    entries = read(runs(whole)[0].journal).entries
    added = next(k for k, entry in enumerate(entries) if entry["t"] == "tasks")
    for kept in {1, added, added + 1, added + 2, added + 4, len(entries) - 2}:
        place = tmp_path / str(kept)
        shutil.copytree(whole, place, symlinks=True)
        cut_journal(runs(place)[0], kept)
        outcome = foreplan.run(WORK, resume=runs(place)[0].id, dir=place)
        assert outcome.ok, kept
        assert outcome.run.workflow.task_names[2:] == ("part-1", "part-2", "part-3")
        replayed = replay(read(runs(place)[0].journal), place)
        assert [type(new) for new in replayed.driver.added] == [TasksAdded]
        assert (place / "log.txt").exists() is False


def test_a_task_that_prints_other_tasks_than_before_fails(tmp_path: Path) -> None:
    assert grow(tmp_path, "1 2").ok
    home = runs(tmp_path)[0]
    entries = read(home.journal).entries
    cut_journal(home, next(k for k, entry in enumerate(entries) if entry["t"] == "tasks") + 2)
    (tmp_path / "list.txt").write_text("1 3")
    for file in (*tmp_path.glob("parts/*"), *tmp_path.glob(".foreplan/added/*")):
        file.unlink()  # so that all of it is made again
    outcome = foreplan.run(WORK, resume=home.id, dir=tmp_path)
    assert outcome.status == "failed"
    assert "other tasks than those that it has added before" in outcome.failures[0].reason
    assert grow(tmp_path, "1 3").ok
    assert (tmp_path / "all.txt").read_text() == "1\n3\n"


LOOP = {
    "name": "loop",
    "params": {"word": "x"},
    "tasks": {
        "split": {
            "run": 'for i in $(cat list.txt); do echo "$i x x" > parts/$i.txt; done',
            "inputs": ["list.txt"],
            "outputs": ["parts/*.txt"],
        },
        "count-{part.stem}": {
            "foreach": {"part": "glob(parts/*.txt)"},
            "run": "grep -o {word} {part} | wc -l > {output}",
            "inputs": ["{part}"],
            "outputs": ["counts/{part.stem}.num"],
        },
        "table": {
            "after": ["count-*"],
            "run": "cat counts/*.num > table.txt",
            "inputs": ["counts/*.num"],
            "outputs": ["table.txt"],
        },
    },
}


def test_a_loop_over_files_that_a_task_makes_waits_for_that_task(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("1 2")
    first = foreplan.run(LOOP, "local:2", dir=tmp_path)
    assert first.ok, first.failures
    assert first.run.workflow.task_names == ("split", "count-*", "table", "count-1", "count-2")
    assert (tmp_path / "table.txt").read_text() == "2\n2\n"
    assert len(foreplan.run(LOOP, "local:2", dir=tmp_path).up_to_date) == 5
    (tmp_path / "list.txt").write_text("1 3 4")
    other = foreplan.run(LOOP, "local:2", dir=tmp_path)
    assert other.ok, other.failures
    assert (other.reused, other.run.n_done) == (("count-1",), 6)
    assert (tmp_path / "table.txt").read_text() == "2\n2\n2\n"


def loop_with(table: dict[str, Any], count: dict[str, Any] | None = None) -> dict[str, Any]:
    tasks = cast("dict[str, Any]", LOOP["tasks"])
    counts = {**tasks["count-{part.stem}"], **(count or {})}
    full = {"run": "cat {inputs} > {output}", "outputs": ["table.txt"], **table}
    return {**LOOP, "tasks": {**tasks, "count-{part.stem}": counts, "table": full}}


@pytest.mark.parametrize(
    ("made", "gathered"),
    [("counts/{part.stem}.num", "counts/{part.stem}.num"), ("{part}.num", "{part}.num")],
)
def test_what_a_loop_over_files_yet_to_be_made_gives_is_gathered(
    tmp_path: Path, made: str, gathered: str
) -> None:
    work = loop_with({"inputs": [{"all": gathered}, "list.txt"]}, {"outputs": [made]})
    (tmp_path / "list.txt").write_text("1 2")
    outcome = foreplan.run(work, "local:2", dir=tmp_path)
    assert outcome.ok, outcome.failures
    assert (tmp_path / "table.txt").read_text() == "2\n2\n1 2"
    (tmp_path / "list.txt").write_text("3")
    assert foreplan.run(work, "local:2", dir=tmp_path).ok
    assert (tmp_path / "table.txt").read_text() == "2\n3"  # and none of before


@pytest.mark.parametrize(
    ("table", "count", "told"),
    [
        (
            {"inputs": {"all": "counts/{part.stem}.num", "only": "$part != x"}},
            {},
            "known only later",
        ),
        (
            {"inputs": {"all": "c/{part.stem}.n"}},
            {"run": "true", "outputs": ["c/{part.stem}.n", "c/{part.stem}.x.n"]},
            r"may mean c/\*.x.n, too: write `after: \[\"count-\*\"\]`",
        ),
        ({}, {"outputs": ["{prt}.n"]}, "unknown parameter or loop variable 'prt'"),
        ({}, {"inputs": {"all": "x"}}, "cannot gather files"),
    ],
)
def test_what_would_be_wrong_of_it_is_told_before_anything_runs(
    table: dict[str, Any], count: dict[str, Any], told: str
) -> None:
    with pytest.raises(foreplan.InputError, match=told):
        foreplan.load(loop_with(table, count))


MANY = """\
tasks:
  a: {run: mkdir res/a; echo a > res/a/out.txt, outputs: [res/a/]}
  b: {run: echo b > res/b/out.txt; echo x > res/b/x.txt, outputs: ["res/b/*.txt"]}
  c: {run: echo c > res/c/out.txt, outputs: [res/c/out.txt]}
"""


@pytest.mark.parametrize("pattern", ["res/*/out.txt", "res/*/", "res/*"])
def test_directories_and_patterns_of_added_tasks_are_gathered(tmp_path: Path, pattern: str) -> None:
    adds = tmp_path / "adds.yaml"
    table = {"after": ["split"], "inputs": [pattern], "outputs": ["table.txt"]}
    work = {
        "tasks": {
            "split": {"run": "cat adds.yaml", "inputs": ["adds.yaml"], "expand": True},
            "table": {"run": "cat res/*/out.txt > table.txt", **table},
        }
    }
    given = MANY if pattern != "res/*" else "".join(MANY.splitlines(keepends=True)[:2])
    adds.write_text(given)
    outcome = foreplan.run(work, "local:2", dir=tmp_path)
    assert outcome.ok, outcome.failures
    assert (tmp_path / "table.txt").read_text() == "a\nb\nc\n"[: 2 * given.count("run")]
    assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0
    adds.write_text(given.replace("res/a", "res/d"))  # what is left of before is not there
    assert foreplan.run(work, "local:2", dir=tmp_path).ok
    assert (tmp_path / "table.txt").read_text() == "b\nc\na\n"[-2 * given.count("run") :]


def test_directories_that_a_loop_makes_are_gathered(tmp_path: Path) -> None:
    count = {"run": "mkdir c/{part.stem}; cp {part} c/{part.stem}/n", "outputs": ["c/{part.stem}/"]}
    work = loop_with({"run": "cat c/*/n > {output}", "inputs": {"all": "c/{part.stem}/"}}, count)
    for parts in ("1 2", "2 3 4", "4"):
        (tmp_path / "list.txt").write_text(parts)
        outcome = foreplan.run(work, "local:2", dir=tmp_path)
        assert outcome.ok, outcome.failures
        right = "".join(f"{part} x x\n" for part in parts.split())
        assert (tmp_path / "table.txt").read_text() == right


def test_a_pattern_that_nothing_added_matches_is_refused(tmp_path: Path) -> None:
    work = loop_with({"after": ["count-*"], "inputs": ["cuonts/*.num"]})
    (tmp_path / "list.txt").write_text("1 2")
    told = r"no added task makes what 'cuonts/\*.num' is to gather"
    outcome = foreplan.run(work, "local:2", dir=tmp_path)
    assert (outcome.failures[0].task, outcome.failures[0].cause) == ("count-*", EXPANSION)
    assert re.search(told, outcome.failures[0].reason)
    with pytest.raises(foreplan.InputError, match=told):
        foreplan.run(work, "local:2", dir=tmp_path)


def run_printed(directory: Path, printed: str, **options: Any) -> Any:
    (directory / "adds.yaml").write_text(printed)
    split = {"run": "cat adds.yaml", "inputs": ["adds.yaml"], "expand": True}
    return foreplan.run({"tasks": {"split": split}}, "local:2", dir=directory, **options)


TREE = "tasks: {x: {run: mkdir -p res; echo 1 > res/1, outputs: [res/]}}"
FILE = "tasks: {x: {run: echo 1 > c/1.txt, outputs: [c/1.txt]}}"


def test_added_tasks_delete_nothing_that_foreplan_never_made(tmp_path: Path) -> None:
    mine = tmp_path / "res" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("precious\n")
    outcome = run_printed(tmp_path, TREE)
    assert "foreplan did not make res/mine.txt" in outcome.failures[0].reason
    assert mine.read_text() == "precious\n"
    with pytest.raises(foreplan.InputError, match="foreplan did not make res"):
        run_printed(tmp_path, TREE)
    assert adopt_files(outcome.run.workflow, tmp_path, ["res/"]) == ["x"]
    assert run_printed(tmp_path, TREE).run.n_done == 0


def test_added_tasks_write_over_nothing_that_somebody_has_changed(tmp_path: Path) -> None:
    assert run_printed(tmp_path, FILE).ok
    made = tmp_path / "c" / "1.txt"
    made.write_text("mine\n")
    outcome = run_printed(tmp_path, FILE + "  # again")
    assert "`foreplan adopt c/1.txt " in outcome.failures[0].reason
    assert made.read_text() == "mine\n"
    assert adopt_files(outcome.run.workflow, tmp_path, ["c/1.txt"]) == ["x"]
    assert run_printed(tmp_path, FILE + "  # again").run.n_done == 0
    assert made.read_text() == "mine\n"


def test_who_waits_for_what_is_added_says_so(tmp_path: Path) -> None:
    tasks: dict[str, Any] = {
        "split": WORK["tasks"]["split"],  # type: ignore[index]
        "last": {"run": "echo > last.txt", "after": ["split"], "outputs": ["last.txt"]},
    }
    (tmp_path / "list.txt").write_text("1 2")
    assert foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path).ok
    tasks["split"] = tasks["split"] | {"run": SPLIT + " "}
    rest = find_rest(foreplan.load({"tasks": tasks}), Options(directory=tmp_path))
    assert rest.reasons["last"] == "it waits for what split adds"
    again = foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path)
    assert "last" in again.reused  # what is added is what it was
    (tmp_path / "list.txt").write_text("1 3")
    assert "last" not in foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path).reused


def test_tasks_that_were_added_before_can_be_named(tmp_path: Path) -> None:
    assert run_printed(tmp_path, FILE).ok
    made = tmp_path / "c" / "1.txt"
    made.write_text("mine\n")
    with pytest.raises(foreplan.InputError, match=r"force=\['x'\]\) makes it again"):
        run_printed(tmp_path, FILE)
    assert run_printed(tmp_path, FILE, force=["x"]).ok
    assert made.read_text() == "1\n"
    made.unlink()
    assert run_printed(tmp_path, FILE, targets=["c/1.txt"]).ok
    assert made.read_text() == "1\n"
    for unknown in ({"force": ["y"]}, {"targets": ["y"]}):
        with pytest.raises(foreplan.InputError, match=r"unknown .* 'y'"):
            run_printed(tmp_path, FILE, **unknown)


def test_a_loop_over_temporary_files_becomes_up_to_date(tmp_path: Path) -> None:
    work = loop_with({"inputs": {"all": "counts/{part.stem}.num"}})
    tasks = cast("dict[str, Any]", work["tasks"])
    tasks["split"] = {**tasks["split"], "temp": True}
    (tmp_path / "list.txt").write_text("1 2")
    assert foreplan.run(work, "local:2", dir=tmp_path).ok
    assert not [*tmp_path.glob("parts/*")]
    assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0
    tasks["split"].pop("temp")  # so it is with files that somebody has deleted
    assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0
    (tmp_path / "counts" / "2.num").unlink()
    (tmp_path / "table.txt").unlink()
    reasons = Rest.find(foreplan.load(work), Options(directory=tmp_path)).reasons
    assert reasons["split"] == "its output parts/2.txt is missing, and count-2 needs it"
    again = foreplan.run(work, "local:2", dir=tmp_path)
    assert (again.reused, (tmp_path / "table.txt").read_text()) == (
        ("count-*", "count-1"),
        "2\n2\n",
    )
    shutil.rmtree(tmp_path / "parts")
    with pytest.raises(foreplan.InputError, match=r"count-\d needs it: run split first"):
        foreplan.run(work, "local:2", dir=tmp_path, force=["count-1"])


def test_a_command_may_print_tasks_to_the_letter(tmp_path: Path) -> None:
    printed = 'tasks: {x: {run: "echo 1 > pat/new.txt", outputs: ["pat/*"]}}'
    work = {"tasks": {"split": {"run": f"echo '{printed}'", "expand": True}}}
    assert foreplan.run(work, "local:2", dir=tmp_path).ok
    assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0
    assert foreplan.run(work, "local:2", dir=tmp_path, force=["split"]).reused == ("x",)
    assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0


def test_what_a_condition_leaves_out_of_a_loop_is_not_gathered(tmp_path: Path) -> None:
    count = {
        "foreach": {"part": "glob(parts/*.txt)", "k": [1, 2]},
        "if": ["$k > 1", "$part.stem != 3"],
        "run": "cp {part} {output}",
        "outputs": ["counts/{part.stem}-{k}.num"],
    }
    work = loop_with({"inputs": {"all": "counts/{part.stem}-{k}.num"}}, count)
    tasks = cast("dict[str, Any]", work["tasks"])
    tasks["count-{part.stem}-{k}"] = tasks.pop("count-{part.stem}")
    loaded = foreplan.load(work)
    assert loaded.spec(loaded.task_names.index("table")).gathers == ("counts/*-2.num",)
    (tmp_path / "list.txt").write_text("1 3")
    outcome = foreplan.run(work, "local:2", dir=tmp_path)
    assert outcome.ok, outcome.failures
    assert (tmp_path / "table.txt").read_text() == "1 x x\n"


@pytest.mark.parametrize("printed", ["tasks:", "tasks: {p: {run: date, if: false}}"])
def test_there_may_be_nothing_to_add(tmp_path: Path, printed: str) -> None:
    assert run_printed(tmp_path, printed).ok


def test_a_loop_that_reads_what_another_one_makes_waits_for_it(tmp_path: Path) -> None:
    tasks = cast("dict[str, Any]", LOOP["tasks"])
    foreach = {"part": "glob(parts/*.txt)"}
    second = {
        "foreach": foreach,
        "run": "cat {input} {input} > {output}",
        "inputs": ["counts/{part.stem}.num"],
        "outputs": ["twice/{part.stem}.num"],
    }
    table = {
        "run": "cat {inputs} > {output}",
        "inputs": {"all": "twice/{part.stem}.num"},
        "outputs": ["table.txt"],
    }
    work: Any = {**LOOP, "tasks": {"twice-{part.stem}": second, **tasks, "table": table}}
    (tmp_path / "list.txt").write_text("1 2")
    for word, right in (("x", "2\n2\n2\n2\n"), ("1", "1\n1\n0\n0\n")):
        run = f"(grep -o {word} {{part}} || true) | wc -l > {{output}}"  # of the first loop alone
        work["tasks"]["count-{part.stem}"] = {**tasks["count-{part.stem}"], "run": run}
        outcome = foreplan.run(work, "local:2", dir=tmp_path)
        assert outcome.ok, outcome.failures
        assert (tmp_path / "table.txt").read_text() == right
        assert len(foreplan.run(work, "local:2", dir=tmp_path).up_to_date) == 8


def test_the_pattern_of_a_loop_may_have_parameters(tmp_path: Path) -> None:
    text = json.dumps(LOOP).replace("parts/*.txt", "{folder}/*.txt")
    work = json.loads(text.replace('"word": "x"', '"word": "x", "folder": "parts"'))
    (tmp_path / "list.txt").write_text("1 2")
    assert foreplan.run(work, "local:2", dir=tmp_path).ok
    assert (tmp_path / "table.txt").read_text() == "2\n2\n"


def test_a_pattern_that_a_declared_task_makes_is_its_own(tmp_path: Path) -> None:
    tasks = {
        **LOOP["tasks"],  # type: ignore[dict-item]
        "both": {
            "after": ["count-*"],
            "run": "cat parts/*.txt counts/*.num | wc -l > both.txt",
            "inputs": ["parts/*.txt", "counts/*.num"],
            "outputs": ["both.txt"],
        },
    }
    (tmp_path / "list.txt").write_text("1 2")
    outcome = foreplan.run({**LOOP, "tasks": tasks}, "local:2", dir=tmp_path)
    assert outcome.ok, outcome.failures
    assert (tmp_path / "both.txt").read_text().strip() == "4"


def test_temporary_outputs_stay_while_tasks_may_be_added_that_read_them(tmp_path: Path) -> None:
    adds = "tasks: {more: {run: cat t.out > more.out, inputs: [t.out], outputs: [more.out]}}"
    (tmp_path / "adds.yaml").write_text(adds)
    tasks = {
        "t": {"run": "echo t > t.out", "outputs": ["t.out"], "temp": True},
        "reads": {"run": "cat t.out > r.out", "inputs": ["t.out"], "outputs": ["r.out"]},
        "split": {"run": "cat adds.yaml", "inputs": ["adds.yaml", "r.out"], "expand": True},
    }
    outcome = foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path)
    assert outcome.ok, outcome.failures
    assert (tmp_path / "more.out").read_text() == "t\n"
    assert not (tmp_path / "t.out").exists()


def test_the_list_of_runs_and_the_why_of_a_task_know_what_was_added(tmp_path: Path) -> None:
    source = tmp_path / "growing.json"
    source.write_text(json.dumps(WORK))
    (tmp_path / "list.txt").write_text("1 2")
    assert foreplan.run(source, "local:2", dir=tmp_path).ok
    home = runs(tmp_path)[0]
    assert (summarise(home).done, summarise(home).total) == (4, 4)
    told = why_in_run(home, "part-2")
    assert told.because == "split has added it"
    assert told.known is not None
    assert told.known.now == "up to date"


def test_pools_are_there_for_what_is_added_alone(tmp_path: Path) -> None:
    """Those that are declared count, also where no task that is left asks for them."""
    split = SPLIT.replace("outputs:", "pools: {db: 1}, outputs:")
    work = {"pools": {"db": 1}, "tasks": {"split": {"run": split, "inputs": ["list.txt"]}}}
    cast(Any, work)["tasks"]["split"]["expand"] = True
    for parts in ("1", "1 2 3"):
        (tmp_path / "list.txt").write_text(parts)
        outcome = foreplan.run(work, "local:2", dir=tmp_path)
        assert outcome.ok
        check_run(outcome.run)
    begun = outcome.run.attempts
    spans = sorted(zip(begun.start[begun.task > 0], begun.finish[begun.task > 0], strict=True))
    assert all(one[1] <= other[0] for one, other in pairwise(spans))  # there is one token


def test_a_temporary_file_of_an_earlier_run_goes_with_its_last_reader(tmp_path: Path) -> None:
    work = {
        "tasks": {
            "t": {"run": "echo 1 > t.txt", "outputs": ["t.txt"], "temp": True},
            "r": {"run": "cat t.txt > r.txt", "inputs": ["t.txt"], "outputs": ["r.txt"]},
            "e": {"run": "echo 'tasks: {a: {run: echo}}'", "expand": True},
        }
    }
    assert foreplan.run(work, dir=tmp_path, targets=["t"]).ok
    assert (tmp_path / "t.txt").exists()
    assert foreplan.run(work, dir=tmp_path).ok
    assert not (tmp_path / "t.txt").exists()
