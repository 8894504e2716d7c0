"""Jobs of a Snakefile as tasks: what Snakemake says of them is given here, and translated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreplan.errors import InputError
from foreplan.formats import workflow_from_dict
from foreplan.imports.snakefile import Imported, Translation, snakemake_python


def job(rule: str, command: str | None = None, **more: Any) -> dict[str, Any]:
    """What Snakemake says of a job."""
    plain: dict[str, Any] = {
        "rule": rule, "wildcards": {}, "kind": "shell", "command": command, "inputs": [],
        "outputs": [], "flags": {}, "input_flags": [], "log": [], "benchmark": None, "threads": 1,
        "resources": {}, "shell_exec": None, "retries": 0, "checkpoint": False, "conda": None,
        "conda_file": False, "container": None, "modules": False, "copies": False,
    }  # fmt: skip
    return plain | more


BASH = {"executable": "/usr/bin/bash", "prefix": None, "suffix": ""}


def translated(
    *jobs: dict[str, Any],
    directory: Path = Path(),
    shell: Any = BASH,
    again: Any = None,
    software: str = "",
) -> Imported:
    """The jobs as a workflow, which foreplan's own reader has taken."""
    found = {"version": "9", "shell": shell, "jobs": list(jobs)}
    asked = frozenset(software.split())
    imported = Translation(found, directory, "w", again, asked).imported()
    workflow_from_dict(imported.content)
    return imported


def test_fields() -> None:
    made = job(
        "sort", "sort a.txt > b/x.txt 2> log/x.log", wildcards={"s": "x/y", "n": "3"},
        inputs=["./a.txt"], outputs=["b/x.txt"], log=["log/x.log"], threads=4, retries=2,
        resources={"mem_mb": 1500, "gpu": 1, "runtime": 5}, benchmark="bench/x.tsv",
    )  # fmt: skip
    last = job("all", kind="none", inputs=["b/x.txt"])
    found = translated(last, made)
    assert found.content == {
        "name": "w",
        "tasks": {
            "sort-x_y-3": {
                "category": "sort",
                "run": "touch log/x.log; sort a.txt > b/x.txt 2> log/x.log",
                "inputs": ["a.txt"],
                "outputs": ["b/x.txt", "log/x.log"],
                "cores": 4,
                "memory": "1500MB",
                "gpus": 1,
                "retries": 2,
            }
        },
    }
    assert found.benchmarks == {"bench/x.tsv": "sort"}
    assert any("runtime" in note for note in found.notes)
    assert any("benchmark files are not written" in note for note in found.notes)


def test_touched_outputs_and_other_shells() -> None:
    made = job("a", "echo a", outputs=["d"], flags={"d": ["touch"]})
    (task,) = translated(made).content["tasks"].values()
    assert task["run"] == "echo a\ntouch d"
    shell = {"executable": "/usr/bin/bash", "prefix": "module load x;", "suffix": "|| true"}
    (task,) = translated(job("a", "echo a"), shell=shell).content["tasks"].values()
    assert (task["run"], task["shell"]) == ("module load x; echo a || true", "/usr/bin/bash")
    made = job("a", "echo a", shell_exec="/bin/zsh")
    (task,) = translated(made).content["tasks"].values()
    assert (task["run"], task["shell"]) == ("echo a", "/bin/zsh")


def test_marks_of_outputs_and_what_commands_run_in() -> None:
    made = job(
        "a", "x", outputs=["f", "g", "h"], flags={"f": ["temp"], "g": ["protected"]},
        container="docker://a", conda="b",
    )  # fmt: skip
    found = translated(made)
    outputs = [{"path": "f", "temp": True}, {"path": "g", "protected": True}, "h"]
    fields = {"category": "a", "run": "x", "outputs": outputs}
    assert found.content["tasks"] == {"a": fields}
    assert [note.split()[0] for note in found.notes] == ["conda", "containers"]
    found = translated(made, software="apptainer")
    assert found.content["tasks"] == {"a": fields | {"container": "docker://a"}}
    found = translated(made | {"container": None}, software="apptainer conda")
    assert found.content["tasks"] == {"a": fields | {"conda": "b"}}
    assert not found.notes
    with pytest.raises(InputError, match="described by a file are not made by foreplan: a"):
        translated(made | {"conda_file": True}, software="conda")


def test_directories_end_with_a_slash(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    made = job("split", "split db out", inputs=["db"], outputs=["out"])
    made["flags"] = {"out": ["directory", "temp"]}
    read = job("join", "cat out/* > all", inputs=["out"], outputs=["all"])
    tasks = translated(made, read, directory=tmp_path).content["tasks"]
    assert tasks["split"]["inputs"] == ["db/"]
    assert tasks["split"]["outputs"] == [{"path": "out/", "temp": True}]
    assert tasks["join"]["inputs"] == ["out/"]
    assert "ignores" not in tasks["join"]


def test_order_and_names() -> None:
    jobs = [
        job("merge", "cat s/* > all", inputs=["s/1", "s/2"], outputs=["all"]),
        job("make", "echo > s/2", wildcards={"a": "1-2", "b": "3"}, outputs=["s/2"]),
        job("make", "echo > s/1", wildcards={"a": "1", "b": "2-3"}, outputs=["s/1"]),
    ]
    names = list(translated(*jobs).content["tasks"])
    assert names == ["make-1-2-3", "make-1-2-3 (2)", "merge"]
    assert translated(*reversed(jobs)).content == translated(*jobs).content


def test_what_a_command_can_mean_is_listed(tmp_path: Path) -> None:
    for name in ("ref.fa", "ref.fa.fai", "ref.fa.sa"):
        (tmp_path / name).write_text("")
    index = job("index", "index ref.fa", inputs=["ref.fa"], outputs=["ref.fa.bwt", "ref.fa.sa"])
    first = job("first", "make > first.txt", outputs=["first.txt"])
    second = job("second", "cat x", inputs=["first.txt", "ref.fa.bwt"], outputs=["second.txt"])
    second["command"] = "bwa ref.fa > second.txt"
    third = job("third", "join first.txt second.txt other.txt d/* > third.txt")
    third |= {"inputs": ["second.txt"], "outputs": ["third.txt"]}
    other = job("other", "make > other.txt; make d/x", outputs=["other.txt", "d/x"])
    tasks = translated(index, first, second, third, other, directory=tmp_path).content["tasks"]
    # what the same job makes, and what is beside it; but nothing that others make
    assert tasks["second"]["inputs"] == ["first.txt", "ref.fa.bwt", "ref.fa.sa"]
    assert tasks["index"]["inputs"] == ["ref.fa", "ref.fa.fai"]
    # what is waited for anyway is an input, what is not is no file of theirs
    assert tasks["third"]["inputs"] == ["second.txt", "first.txt"]
    assert sorted(tasks["third"]["ignores"]) == ["d/*", "other.txt"]


def test_through_snakemake() -> None:
    made = job("plot", None, kind="script", wildcards={"s": "a b"}, outputs=["p/a b.png"])
    (task,) = translated(made, again=["python", "-m", "snakemake"]).content["tasks"].values()
    assert task["run"] == (
        'python -m snakemake --directory "$FOREPLAN_DIR" --cores 1 --allowed-rules plot '
        "--target-jobs 'plot:s=a b'\nmv -fT \"$FOREPLAN_DIR\"/'p/a b.png' 'p/a b.png'"
    )


def test_a_job_that_only_touches_its_outputs() -> None:
    made = job(
        "done", kind="none", inputs=["a"], outputs=["b c", "d"],
        flags={"b c": ["touch"], "d": ["touch", "temp"]},
    )  # fmt: skip
    task = translated(made).content["tasks"]["done"]
    assert (task["run"], task["inputs"]) == ("touch 'b c' d", ["a"])
    assert task["outputs"] == ["b c", {"path": "d", "temp": True}]


REFUSED = [
    ([job("a", kind="run"), job("b", kind="script")], r"a \(run:\), b \(script:\); --through-sn"),
    (
        [job("split", "x", checkpoint=True)],
        "after a checkpoint is known only when it has run: split",
    ),
    ([job("a", "x", outputs=["f"], flags={"f": ["pipe"]})], r"nothing like pipe\(\): a"),
    ([job("a", "x", input_flags=["storage_object"])], "nothing like storage: a"),
    ([job("a", "head -n <TBD> b")], "depend on files that are not there yet: a"),
    ([job("a", kind="none", outputs=["f"])], r"neither a command nor touch\(\): a"),
    (
        [job("a", kind="none", outputs=["f", "g"], flags={"g": ["touch"]})],
        r"neither a command nor touch\(\): a",
    ),
    ([job("a", "sh /cache/x.sh", copies=True)], r"whose copies Snakemake removes: a"),
    ([job("all", kind="none")], "there is nothing to run"),
    (
        [job("a", "x", benchmark="b.tsv"), job("b", "y", inputs=["b.tsv"])],
        "benchmark files are not written by foreplan, but read: b",
    ),
]


@pytest.mark.parametrize(("jobs", "problem"), REFUSED)
def test_what_foreplan_cannot_run_is_named(jobs: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        translated(*jobs)


def test_what_is_left_out_is_told() -> None:
    made = job(
        "a", "x", outputs=["f", "/far/g"], flags={"f": ["ensure"]}, input_flags=["ancient"],
        modules=True,
    )  # fmt: skip
    notes = "\n".join(translated(made).notes)
    for word in ("ensure() is not checked: a", "ancient()", "modules", "--absolute-paths"):
        assert word in notes


def test_rules_whose_only_outputs_are_flags_are_named() -> None:
    index = "bwa index ref.fa"
    jobs = [
        job("marked", index, outputs=["a.done"], flags={"a.done": ["touch"]}, log=["a.log"]),
        job("touched", f"{index} && touch -c b.done", outputs=["b.done"]),
        job("mixed", f"{index}; touch c.done; date > c", outputs=["c.done", "c"]),
        job("written", "touch d; date >> d", outputs=["d"]),
        job("empty", index, outputs=[]),
    ]
    (note,) = [note for note in translated(*jobs).notes if "flags" in note]
    assert "the only outputs are flags" in note
    assert note.endswith(": marked, touched; add the other files to `output:`")


def test_no_such_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no program 'snakemake-that-is-not-here'"):
        snakemake_python("snakemake-that-is-not-here")
    program = tmp_path / "bin" / "snakemake"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(InputError, match="there is no python beside"):
        snakemake_python(str(program))
    (program.parent / "python").write_text("")
    assert snakemake_python(str(program)) == str(program.parent / "python")
