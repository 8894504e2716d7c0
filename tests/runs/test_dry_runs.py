"""Dry runs: bounds of the number of tasks, reasons in groups, missing intermediate files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import foreplan
from foreplan.runs import Options, Rest, find_rest
from repeated import repetitions

Tasks = dict[str, dict[str, Any]]


def look(folder: Path, tasks: Tasks, **options: Any) -> Rest:
    workflow = foreplan.load({"tasks": tasks})
    return find_rest(workflow, Options(directory=folder, **options), only_look=True)


def draw(rng: random.Random) -> Tasks:
    """Draw tasks that cut what they read, so that another input often gives the same output."""
    tasks = Tasks()
    files = ["source-0", "source-1"]
    for number in range(rng.randint(3, 7)):
        read = rng.sample(files, min(len(files), rng.randint(1, 2)))
        lines = rng.choice((1, 1, 9))
        tasks[f"t{number}"] = {
            "run": f"cat {' '.join(read)} | sort | head -n {lines} > made-{number}"
            "; echo $FOREPLAN_TASK >> $RAN",
            "inputs": read,
            "outputs": [f"made-{number}"],
            "temp": rng.random() < 0.2,
            "category": rng.choice("ab"),
        }
        files.append(f"made-{number}")
    return tasks


def change(folder: Path, tasks: Tasks, rng: random.Random) -> dict[str, Any]:
    """Edit a source, delete an output or edit a command; return options of the next run."""
    match rng.choice(("edit", "delete", "delete", "command", "force")):
        case "edit":
            with open(folder / f"source-{rng.randint(0, 1)}", "a") as source:
                source.write(f"{rng.randint(0, 9)}\n")
        case "delete":
            (folder / f"made-{rng.randrange(len(tasks))}").unlink(missing_ok=True)
        case "command":
            task = tasks[f"t{rng.randrange(len(tasks))}"]
            task["run"] = task["run"].replace("cat ", "cat  ", 1)
        case _:
            return {"force": [f"t{rng.randrange(len(tasks))}"]}
    return {}


@pytest.mark.parametrize("seed", repetitions(4))
def test_as_many_tasks_run_as_a_dry_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    record = tmp_path / "ran"
    monkeypatch.setenv("RAN", str(record))
    tasks = draw(rng)
    for number in range(2):
        (tmp_path / f"source-{number}").write_text(f"{number}\n")
    options = dict[str, Any]()
    for _ in range(5):
        rest = look(tmp_path, tasks, **options)
        record.write_text("")
        assert foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path, **options).ok
        ran = {*record.read_text().split()}
        assert rest.certain <= ran <= {*rest.workflow.task_names}
        options = change(tmp_path, tasks, rng)


def test_reasons_that_differ_only_in_names_are_one_group(tmp_path: Path) -> None:
    tasks = Tasks()
    for number in range(12):
        (tmp_path / f"{number}.fq").write_text("reads\n")
        tasks[f"align-{number}"] = {
            "run": f"cat {number}.fq > {number}.bam",
            "inputs": [f"{number}.fq"],
            "outputs": [f"{number}.bam"],
            "category": "align",
        }
    reading = [f"{number}.bam" for number in range(12)]
    tasks["merge"] = {"run": "cat *.bam > all", "inputs": reading, "outputs": ["all"]}
    assert foreplan.run({"tasks": tasks}, "local:2", dir=tmp_path).ok
    for number in range(10):
        (tmp_path / f"{number}.fq").write_text("more\n")
    rest = look(tmp_path, tasks)
    assert (
        rest.summary
        == "2 of 13 tasks up to date, 1 may turn out to be; to run: at least 10, at most 11 tasks"
    )
    assert [str(group) for group in rest.groups()] == [
        "align (10 tasks): its input *.fq has changed",
        "merge: it reads 0.bam, which is made again",
    ]


def test_missing_intermediates_that_nothing_needs_are_named(tmp_path: Path) -> None:
    tasks = {
        "cut": {"run": "echo 1 > cut.txt", "outputs": ["cut.txt"]},
        "sum": {"run": "cp cut.txt sum.txt", "inputs": ["cut.txt"], "outputs": ["sum.txt"]},
    }
    assert foreplan.run({"tasks": tasks}, "local:1", dir=tmp_path).ok
    (tmp_path / "cut.txt").unlink()
    rest = look(tmp_path, tasks)
    assert rest.survey is not None
    assert not rest.numbers
    assert rest.survey.unneeded_files() == ["cut.txt"]
    tasks["sum"]["run"] = "cp  cut.txt sum.txt"
    rest = look(tmp_path, tasks)
    assert rest.survey is not None
    assert rest.certain == {"cut", "sum"}
    assert rest.survey.unneeded_files() == []
