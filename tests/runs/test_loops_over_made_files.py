"""Loops over files that tasks make: they wait for these tasks, and go over what they made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.model.causes import EXPANSION

Tasks = dict[str, Any]

COPY = {"run": "cp {p} {output}", "inputs": ["{p}"], "outputs": ["out/{p.name}"]}
TOTAL = {
    "run": "cat {inputs} > {output}",
    "inputs": {"all": "out/{p.name}"},
    "outputs": ["total"],
}


def write_lines(directory: Path, **lines: str) -> None:
    for name, words in lines.items():
        (directory / name).write_text("".join(f"{word}\n" for word in words.split()))


def run(tasks: Tasks, directory: Path, **options: Any) -> Any:
    outcome = foreplan.run({"params": {}, "tasks": tasks}, "local:2", dir=directory, **options)
    assert outcome.ok, outcome.failures
    return outcome


def total(directory: Path) -> list[str]:
    return (directory / "total").read_text().split()


def loop(glob: str, maker: Tasks, **fields: Any) -> Tasks:
    return {"copy-{p.name}": {"foreach": {"p": glob}, **COPY, **fields}, **maker, "total": TOTAL}


def cut(output: str, run: str) -> Tasks:
    return {"run": run.format("a"), "inputs": ["a"], "outputs": [output]}


SPLIT = "mkdir -p parts; split -l 1 --additional-suffix=.txt {} parts/"
DEEP = "mkdir -p parts/in; split -l 1 --additional-suffix=.txt {} parts/in/; echo > parts/log"


@pytest.mark.parametrize(
    ("glob", "output", "command", "temp"),
    [
        ("glob(parts/*)", "parts/", SPLIT, False),
        ("glob(./parts/*.txt)", "parts/", SPLIT, True),
        ("glob(parts/**/*.txt)", "parts/", DEEP, False),
        ("glob(parts/*)", "parts/*.txt", SPLIT, True),
        ("glob(p*/*.t?t)", "parts/*", SPLIT, False),
    ],
)
def test_the_glob_need_not_be_the_output(
    tmp_path: Path, glob: str, output: str, command: str, temp: bool
) -> None:
    maker = {"cut": cut(output, command) | {"temp": temp}}
    tasks = loop(glob, maker)
    for words in ("x y z", "x y", "y v w x"):
        write_lines(tmp_path, a=words)
        run(tasks, tmp_path)
        assert total(tmp_path) == words.split()
        assert run(tasks, tmp_path).run.n_done == 0
        assert [*tmp_path.glob("parts/**/*.txt")] == [] or not temp


SAMPLES: Tasks = {
    "cut-{s}": {
        "foreach": {"s": "$samples"},
        "run": "mkdir -p parts-{s}; split -l 1 {input} parts-{s}/",
        "inputs": ["{s}"],
        "outputs": ["parts-{s}/"],
    },
    "copy-{s}-{p.name}": {
        "foreach": {"s": "$samples", "p": "glob(parts-{s}/*)"},
        "run": "cp {p} {output}",
        "inputs": ["{p}"],
        "outputs": ["out-{s}/{p.name}"],
    },
    "merge-{s}": {
        "foreach": {"s": "$samples"},
        "run": "cat {inputs} > {output}",
        "inputs": {"all": "out-{s}/{p.name}"},
        "outputs": ["merged-{s}"],
    },
    "total": {
        "run": "cat {inputs} > {output}",
        "inputs": {"all": "merged-{s}"},
        "outputs": ["total"],
    },
}


def scatter(outputs: str = "parts-{s}/", temp: bool = False, **merge: Any) -> dict[str, Any]:
    made = {**SAMPLES["cut-{s}"], "outputs": [outputs], "temp": temp}
    merges = {**SAMPLES["merge-{s}"], **merge}
    return {
        "params": {"samples": ["a", "b"], "other": 1},
        "tasks": {**SAMPLES, "cut-{s}": made, "merge-{s}": merges},
    }


@pytest.mark.parametrize(
    ("outputs", "temp", "merge"),
    [
        ("parts-{s}/", True, {}),
        ("parts-{s}/*", True, {"inputs": ["out-{s}/*"]}),
        ("parts-{s}/", False, {"inputs": ["out-{s}/*"], "after": ["copy-{s}-*"]}),
        ("parts-{s}/*", False, {"inputs": ["out-{s}/*"], "after": ["copy-*-*"]}),
    ],
)
def test_scatter_and_gather_per_sample(
    tmp_path: Path, outputs: str, temp: bool, merge: Any
) -> None:
    work = scatter(outputs, temp, **merge)
    write_lines(tmp_path, a="1 2 3", b="4 5")

    def again() -> Any:
        outcome = foreplan.run(work, "local:2", dir=tmp_path)
        assert outcome.ok, outcome.failures
        assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0
        return outcome

    again()
    assert total(tmp_path) == ["1", "2", "3", "4", "5"]
    write_lines(tmp_path, b="4")
    names = {*again().run.workflow.task_names}
    assert total(tmp_path) == ["1", "2", "3", "4"]
    if merge.get("after") != ["copy-*-*"]:  # that one waits for all samples
        assert not [n for n in names if n.split("-")[1:2] == ["a"]]  # nothing of the other sample
    work["params"]["other"] = 2
    assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0
    work["params"]["samples"] = ["b"]
    again()
    assert total(tmp_path) == ["4"]


def test_a_loop_waits_for_all_tasks_that_make_files_of_it(tmp_path: Path) -> None:
    tasks = loop("glob(parts/*.txt)", {
        "one": {"run": "echo 1 > {output}", "outputs": ["parts/1.txt"]},
        "two-{k}": {"foreach": {"k": [2, 3]}, "run": "echo {k} > {output}",
                    "outputs": ["parts/{k}.txt"]},
        "many": cut("parts/in-*.txt", "split -l 1 --additional-suffix=.txt {} parts/in-"),
        "not": {"run": "echo > {output}", "outputs": ["parts/4.csv"]},
    })  # fmt: skip
    write_lines(tmp_path, a="x y")
    run(tasks, tmp_path)
    assert total(tmp_path) == ["1", "2", "3", "x", "y"]
    del tasks["one"]  # what it has made is left, and not read
    tasks["two-{k}"]["foreach"] = {"k": [2]}
    run(tasks, tmp_path)
    assert (tmp_path / "parts" / "1.txt").exists()
    assert total(tmp_path) == ["2", "x", "y"]
    (tmp_path / "parts" / "mine.txt").write_text("mine\n")
    with pytest.raises(foreplan.InputError, match=r"parts/mine.txt matches glob\(parts/\*.txt\)"):
        run(tasks, tmp_path)
    (tmp_path / "parts" / "mine.txt").unlink()
    (tmp_path / "parts" / "1.txt").write_text("mine, too\n")
    with pytest.raises(foreplan.InputError, match=r"parts/1.txt matches glob"):
        run(tasks, tmp_path)


@pytest.mark.parametrize("output", ["parts/", "parts/*.txt"])
def test_a_file_that_somebody_puts_there_meanwhile_is_refused(tmp_path: Path, output: str) -> None:
    """The second maker puts a file where the first one has made its own."""
    other = 'until test -s "$FOREPLAN_DIR"/parts/ab.txt; do sleep 0.01; done; '
    other += 'echo > "$FOREPLAN_DIR"/parts/mine.txt; echo > p/b.txt'
    ignores = ["parts/ab.txt", "parts/mine.txt"]
    tasks = loop("glob(p*/*.txt)", {
        "cut": cut(output, SPLIT),
        "other": {"run": other, "outputs": ["p/b.txt"], "ignores": ignores},
    })  # fmt: skip
    write_lines(tmp_path, a="x y")
    outcome = foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path)
    (failure,) = outcome.failures
    assert (failure.task, failure.cause) == ("copy-*", EXPANSION)
    assert "parts/mine.txt matches glob(p*/*.txt), but no task made it" in failure.reason


@pytest.mark.parametrize("inside", ["cut", "copy-{p.name}"])
def test_maker_and_loop_may_be_in_two_files(tmp_path: Path, inside: str) -> None:
    import yaml

    tasks: Any = loop("glob({folder}/*)", {"cut": cut("{folder}/", SPLIT)})
    tasks["copy-{p.name}"]["run"] = "echo $X > {output}; cat {p} >> {output}"
    common = {"params": {"folder": "parts"}, "defaults": {"env": {"X": "w"}}}
    inner = {"include": "common.yaml", "params": {}, "tasks": {inside: tasks.pop(inside)}}
    main = {"include": ["common.yaml", "inner.yaml"], "params": {}, "tasks": tasks}
    for name, content in (("common", common), ("inner", inner), ("main", main)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    for words in ("x y z", "x"):
        write_lines(tmp_path, a=words)
        outcome = foreplan.run(tmp_path / "main.yaml", "local:2", dir=tmp_path)
        assert outcome.ok, outcome.failures
        assert total(tmp_path) == [word for one in words.split() for word in ("w", one)]


def test_a_loop_over_the_files_of_another_loop(tmp_path: Path) -> None:
    """By sample, too: each waits for its own."""
    work = scatter()
    work["tasks"] = {
        "twice-{s}-{q.name}": {
            "foreach": {"s": "$samples", "q": "glob(out-{s}/*)"},
            "run": "cat {q} {q} > {output}",
            "inputs": ["{q}"],
            "outputs": ["twice/{s}-{q.name}"],
        },
        **work["tasks"],
        "total": {
            "run": "cat {inputs} > {output}",
            "inputs": {"all": "twice/{s}-{q.name}"},
            "outputs": ["total"],
        },
    }
    loaded = foreplan.load(work)
    expanding = {loaded.task_names[task] for task, spec in loaded.specs.items() if spec.expand}
    assert expanding == {"twice-a-*", "twice-b-*", "copy-a-*", "copy-b-*"}
    for words in ("1 2", "1 2 3", "2"):
        write_lines(tmp_path, a=words, b="4")
        assert foreplan.run(work, "local:2", dir=tmp_path).ok
        assert total(tmp_path) == [word for one in (*words.split(), "4") for word in (one, one)]
        assert foreplan.run(work, "local:2", dir=tmp_path).run.n_done == 0


def test_a_loop_that_reads_temporary_files_of_another_loop(tmp_path: Path) -> None:
    tasks = loop("glob(parts/*)", {"cut": cut("parts/", SPLIT) | {"temp": True}}, temp=True)
    tasks["twice-{p.name}"] = {
        "foreach": {"p": "glob(parts/*)"},
        "run": "cat out/{p.name} {p} > {output}",
        "inputs": ["{p}", "out/{p.name}"],
        "outputs": ["twice/{p.name}"],
        "temp": True,
    }
    tasks["total"] = {**TOTAL, "inputs": {"all": "twice/{p.name}"}}
    for words in ("x y", "x"):
        write_lines(tmp_path, a=words)
        run(tasks, tmp_path)
        assert total(tmp_path) == [word for one in words.split() for word in (one, one)]
        assert run(tasks, tmp_path).run.n_done == 0


def test_tasks_that_add_those_of_a_loop_are_not_many(tmp_path: Path) -> None:
    samples = [f"s{k}" for k in range(20)]
    merges: list[Any] = [{}, {"inputs": ["out-{s}/*"], "after": ["copy-{s}-*"]}]
    for merge in merges:
        work = scatter(**merge)
        work["params"]["samples"] = samples
        loaded = foreplan.load(work)
        names, specs = loaded.task_names, loaded.specs
        assert sum(spec.expand for spec in specs.values()) == 10
        assert specs[names.index("merge-s3")].gathers == ("out-s3/*",)
        assert {"copy-*-*", "copy-*-* (10)"} <= {*names}


def test_folders_that_tasks_make(tmp_path: Path) -> None:
    tasks = {
        "make-{k}": {"foreach": {"k": "$folders"}, "run": "mkdir -p d/{k}; echo {k} > d/{k}/x",
                     "outputs": ["d/{k}/"]},
        "copy-{p.name}": {"foreach": {"p": "glob(d/*)"}, "run": "cat {p}/x > {output}",
                          "inputs": ["{p}/"], "outputs": ["out/{p.name}"]},
        "total": TOTAL,
    }  # fmt: skip
    for folders in (["1", "2"], ["2"]):
        work = {"params": {"folders": folders}, "tasks": tasks}
        outcome = foreplan.run(work, "local:2", dir=tmp_path)
        assert outcome.ok, outcome.failures
        assert total(tmp_path) == folders


def test_a_loop_waits_for_what_tasks_add(tmp_path: Path) -> None:
    added = "echo 'tasks: {x: {run: echo x > parts/x.txt, outputs: [parts/x.txt]}}'"
    adds = {"run": added, "expand": True}
    tasks = loop("glob(parts/*)", {"cut": cut("parts/*.num", "seq 2 > parts/a.num"), "add": adds},
                 after=["add"])  # fmt: skip
    write_lines(tmp_path, a="1")
    run(tasks, tmp_path)
    assert total(tmp_path) == ["1", "2", "x"]
    assert run(tasks, tmp_path).run.n_done == 0


def test_what_a_task_prints_may_loop_over_what_others_make(tmp_path: Path) -> None:
    printed = "{params: {}, tasks: {'up-{p.stem}': {foreach: {p: glob(parts/*)}, run: 'cp {p} "
    printed += "{output}', inputs: ['{p}'], outputs: ['up/{p.stem}']}}}"
    (tmp_path / "adds.yaml").write_text(printed)
    tasks = {
        "cut": cut("parts/", SPLIT),
        "adds": {"run": "cat adds.yaml", "inputs": ["adds.yaml"], "expand": True},
        "total": {"run": "cat up/* > total", "after": ["adds"], "inputs": ["up/*"],
                  "outputs": ["total"]},
    }  # fmt: skip
    for words in ("x y z", "x"):
        write_lines(tmp_path, a=words)
        run(tasks, tmp_path)
        assert total(tmp_path) == words.split()


ODD = "printf 'it''s' > \"parts/it's \\\"q\\\" \\\\ \u00e9 \U0001f600\"; echo x > 'parts/a: #b'"


def test_names_of_files_are_taken_to_the_letter(tmp_path: Path) -> None:
    tasks = loop("glob(parts/*)", {"cut": cut("parts/", f"mkdir parts; {ODD}")})
    tasks["total"] = {**TOTAL, "run": "ls out > total"}
    write_lines(tmp_path, a="x")
    run(tasks, tmp_path)
    made = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert sorted((tmp_path / "total").read_text().splitlines()) == made
    assert len(made) == 2


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        (loop("glob(data/*)", {}, outputs=["data/{p.name}.out"]), "its own tasks make data/a.out"),
        (
            loop("glob(data/*)", {"cut": cut("data/", SPLIT)}, outputs=["data/{p.stem}.out"]),
            r"its own tasks make data/\*.out, which matches",
        ),
        (
            {
                "one-{p.name}": {"foreach": {"p": "glob(x/*)"}, **COPY, "outputs": ["y/{p.name}"]},
                "two-{p.name}": {"foreach": {"p": "glob(y/*)"}, **COPY, "outputs": ["x/{p.name}"]},
            },
            r"the tasks form a cycle: (one-\* -> two-\* -> one|two-\* -> one-\* -> two)",
        ),
        (
            loop("glob(parts/*)", {"cut": cut("parts/", SPLIT)}, after=["cut"]),
            "cannot come after 'cut', which adds no tasks",
        ),
        (
            {
                **loop("glob(parts/*)", {"cut": cut("parts/", SPLIT)}),
                "total": {"run": "cat out/*", "inputs": ["out/"]},
            },
            r"'out/' is a directory in which copy-\* makes files: write a pattern .*, 'out/\*'",
        ),
        (
            {
                "table": {"run": "echo a > t.csv", "outputs": ["t.csv"]},
                "x-{r.a}": {"foreach": {"r": "csv(t.csv)"}, "run": "echo {r.a}"},
            },
            "a task makes t.csv: its rows are not known",
        ),
        (
            loop("glob(parts/*)", {"cut": cut("parts/", SPLIT)})
            | {"copy-{q.name}": {"foreach": {"q": "glob(parts/*)"}, "run": "cat {q}"}},
            r"two tasks are called 'copy-\*'",
        ),
        (
            {"x-{p.name}-{s}": {"foreach": {"p": "glob(d-{s}/*)", "s": ["a"]}, "run": "cat {p}"}},
            "p depends on s, which must stand before it",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    tmp_path: Path, tasks: Tasks, problem: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").touch()
    write_lines(tmp_path, a="x", **{"t.csv": "a b"})
    with pytest.raises(foreplan.InputError, match=problem):
        foreplan.run({"params": {}, "tasks": tasks}, "local:2", dir=tmp_path)


def test_files_that_nobody_makes_are_those_of_the_directory(tmp_path: Path) -> None:
    """A pattern that leaves out what its tasks make is a loop over what is there, as ever."""
    tasks = loop("glob(data/*.txt)", {}, outputs=["data/{p.stem}.csv"])
    tasks["total"] = {**TOTAL, "inputs": {"all": "data/{p.stem}.csv"}}
    (tmp_path / "data").mkdir()
    for words in ("x y", "x"):
        for old in (tmp_path / "data").glob("*.txt"):
            old.unlink()
        write_lines(tmp_path / "data", **{f"{word}.txt": word for word in words.split()})
        run(tasks, tmp_path)
        assert total(tmp_path) == words.split()


def test_variables_may_depend_on_those_before_them(tmp_path: Path) -> None:
    for name in ("a/1", "a/2", "b/3"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    foreach = {"s": ["a", "b"], "p": "glob({s}/*)", "k": ["{p.name}.x", "{s}.y"]}
    body = {"foreach": foreach, "run": "cat {p}"}
    loaded = foreplan.load({"tasks": {"x-{s}-{p.name}-{k}": body}}, dir=tmp_path)
    assert loaded.task_names == (
        "x-a-1-1.x", "x-a-1-a.y", "x-a-2-2.x", "x-a-2-a.y", "x-b-3-3.x", "x-b-3-b.y",
    )  # fmt: skip


def test_files_side_by_side(tmp_path: Path) -> None:
    """Files that are there, with a list; files that a task makes, in pairs."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.in").write_text(name)
    tasks = {
        "make-{f.stem}": {
            "foreach": {"zip": {"f": "glob(*.in)", "k": [1, 2]}},
            "run": "cp {f} pairs/{f.stem}_1; echo {k} > pairs/{f.stem}_2",
            "inputs": ["{f}"],
            "outputs": ["pairs/{f.stem}_1", "pairs/{f.stem}_2"],
        },
        "copy-{p.match}": {
            "foreach": {"zip": {"p": "glob(pairs/*_1)", "q": "glob(pairs/*_2)"}},
            "run": "cat {p} {q} > {output}",
            "inputs": ["{p}", "{q}"],
            "outputs": ["out/{p.match}"],
        },
        "total": {**TOTAL, "inputs": {"all": "out/{p.match}"}},
    }
    run(tasks, tmp_path)
    assert total(tmp_path) == ["a1", "b2"]


def test_there_must_be_a_file_to_loop_over(tmp_path: Path) -> None:
    tasks = loop("glob(parts/*.csv)", {"cut": cut("parts/", SPLIT)})
    write_lines(tmp_path, a="x y")
    outcome = foreplan.run({"params": {}, "tasks": tasks}, "local:2", dir=tmp_path)
    assert outcome.failures[0].cause == EXPANSION
    assert "made no file that matches parts/*.csv" in outcome.failures[0].reason


@pytest.mark.parametrize("temp", [False, True])
def test_a_resume_after_an_edit_makes_the_tasks_of_the_loop_again(
    tmp_path: Path, temp: bool
) -> None:
    tasks = loop("glob(parts/*)", {"cut": cut("parts/*", SPLIT) | {"temp": temp}})
    tasks["total"] = {**TOTAL, "run": "test -e $FOREPLAN_DIR/go; cat {inputs} > {output}"}
    write_lines(tmp_path, a="x y")
    work = {"params": {}, "tasks": tasks}
    assert not foreplan.run(work, "local:2", dir=tmp_path).ok
    write_lines(tmp_path, a="x z")
    (tmp_path / "go").touch()
    assert foreplan.run(work, resume="last", dir=tmp_path).ok
    assert total(tmp_path) == ["x", "z"]
