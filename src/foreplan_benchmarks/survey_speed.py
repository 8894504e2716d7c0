"""What it takes to see that all is up to date: the file, the store, the survey; warm and cold.

And by whole commands that find nothing to do: `foreplan run`, and Snakemake where there is one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from foreplan import formats
from foreplan.errors import InputError
from foreplan.model import Workflow
from foreplan.store.making import made
from foreplan.store.parts import Part
from foreplan.store.store import Store
from foreplan.store.survey import State, Survey
from foreplan_benchmarks.goals import Goal


@dataclass(frozen=True)
class Step:
    """One step: the best of several tries."""

    what: str
    seconds: float
    cpu: float
    goal: Goal | None

    @property
    def verdict(self) -> str:
        """Whether the processor's time is where it should be: the clock is everybody's."""
        return "" if self.goal is None else self.goal.verdict(self.cpu)


def survey_times(
    tasks: int = 10_000,
    tries: int = 3,
    progress: Callable[[float], None] = lambda share: None,
    snakemake: str | None = None,
) -> list[Step]:
    """A workflow with two files per task, in an empty directory first, then with all of it made."""
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        _write_inputs(data, tasks)
        found = [take("reading the workflow, YAML", tries, lambda: _load(data))]
        workflow = _load(data)
        found.append(
            take(
                "survey of an empty directory, inputs are read",
                tries,
                lambda: Survey(workflow, data, Store.read(data)),
            )
        )
        progress(0.3)
        _make_all(workflow, data)
        progress(0.6)
        found.append(take("reading the store", tries, lambda: Store.read(data), Goal(0.3)))
        found.append(_take_survey("survey, warm", tries, workflow, data, True, Goal(0.6)))
        progress(0.8)
        found.append(_take_survey("survey, every file read anew", tries, workflow, data, False))
        foreplan = [sys.executable, "-c", "from foreplan.cli.main import main; main()"]
        command = [*foreplan, "run", "pairs.yaml"]
        found.append(_take_command(FOREPLAN, tries, command, data, NOTHING, Goal(1.5)))
        progress(0.9)
        if snakemake is not None:
            found.append(_take_snakemake(snakemake, tasks, tries, data))
        return found


FOREPLAN, SNAKEMAKE = "foreplan run, the whole command", "snakemake, the whole command"
NOTHING, SNAKE_NOTHING = "nothing to do", "Nothing to be done"
SNAKEFILE = """\
K = range({pairs})
rule all:
    input: expand("out/{{k}}.csv", k=K), expand("out/{{k}}.log", k=K)
rule sort:
    input: "in/{{k}}.txt"
    output: "mid/{{k}}.txt"
    shell: "sort {{input}} > {{output}}"
rule count:
    input: "mid/{{k}}.txt"
    output: "out/{{k}}.csv", "out/{{k}}.log"
    shell: "python3 tool.py {{input}} --log {{output[1]}} > {{output[0]}}"
"""


def _take_snakemake(program: str, tasks: int, tries: int, data: Path) -> Step:
    """Snakemake in the same directory, once it has been told that what is there is its own."""
    (data / "Snakefile").write_text(SNAKEFILE.format(pairs=tasks // 2))
    command = [program, "-c2", "--nocolor", "--quiet", "progress"]
    _run_in(data, [*command, "--touch"])
    return _take_command(SNAKEMAKE, tries, [program, "-c2", "--nocolor"], data, SNAKE_NOTHING)


def _take_command(
    what: str, tries: int, command: list[str], data: Path, said: str, goal: Goal | None = None
) -> Step:
    """A whole process that finds nothing to do, and says so."""
    best = (float("inf"), float("inf"))
    for _ in range(tries):
        begun, used = time.perf_counter(), _cpu_of_children()
        output = _run_in(data, command)
        taken = time.perf_counter() - begun, _cpu_of_children() - used
        if said not in output:
            raise AssertionError(f"{what}: {output[-500:]}")
        best = min(best, taken, key=lambda pair: pair[1])
    return Step(what, *best, goal)


def _run_in(data: Path, command: list[str]) -> str:
    home = {"FOREPLAN_HOME": str(data / "history")}
    done = subprocess.run(
        command, cwd=data, env=os.environ | home, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise InputError(f"{command[0]} failed: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout + done.stderr


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_inputs(data: Path, tasks: int) -> None:
    """Pairs of tasks: one input, one file between them, two products."""
    for folder in ("in", "mid", "out"):
        (data / folder).mkdir()
    (data / "tool.py").write_text("a script that is named, but not declared\n")
    listed: dict[str, Any] = {}
    for k in range(tasks // 2):
        (data / f"in/{k}.txt").write_text(f"{k}\n" * 50)
        listed[f"sort{k}"] = {
            "run": f"sort in/{k}.txt > mid/{k}.txt",
            "inputs": [f"in/{k}.txt"],
            "outputs": [f"mid/{k}.txt"],
        }
        listed[f"count{k}"] = {
            "run": f"python3 tool.py mid/{k}.txt --log out/{k}.log > out/{k}.csv",
            "inputs": [f"mid/{k}.txt"],
            "outputs": [f"out/{k}.csv", f"out/{k}.log"],
        }
    formats.save(formats.load({"name": "pairs", "tasks": listed}), data / "pairs.yaml")


def _load(data: Path) -> Workflow:
    return formats.load(data / "pairs.yaml")


def _make_all(workflow: Workflow, data: Path) -> None:
    """What a run leaves: outputs, and a line for each task."""
    store = Store.open(data, lambda run: True)
    survey = Survey(workflow, data, store)
    part = Part(store.folder, "run")
    part.append(survey.take_news())
    for task in workflow.order.tolist():
        items = workflow.out_item[slice(*workflow.out_ptr[task : task + 2])].tolist()
        outputs = [workflow.item_name(item) for item in items]
        for output in outputs:
            (data / output).write_text(f"{output}\n" * 50)
        done = made(
            survey.making(task),
            data=os.fspath(data),
            scratch=os.fspath(data),
            outputs=outputs,
            task=workflow.task_names[task],
            run="run",
        )
        part.append(done.line)
        survey.finish(task, done.contents)
    part.close()


def take(what: str, tries: int, work: Callable[[], object], goal: Goal | None = None) -> Step:
    """The best of several tries, by the processor's time."""
    best = (float("inf"), float("inf"))
    for _ in range(tries):
        begun, used = time.perf_counter(), time.process_time()
        work()
        taken = time.perf_counter() - begun, time.process_time() - used
        best = min(best, taken, key=lambda pair: pair[1])
    return Step(what, *best, goal)


def _take_survey(
    what: str, tries: int, workflow: Workflow, data: Path, known: bool, goal: Goal | None = None
) -> Step:
    """The survey without the reading of the store; the statuses of files are known, or not."""
    steps = []
    for _ in range(tries):
        store = Store.read(data)
        if not known:
            store.files.clear()
        steps.append(take(what, 1, partial(_check, workflow, data, store), goal))
    return min(steps, key=lambda step: step.cpu)


def _check(workflow: Workflow, data: Path, store: Store) -> None:
    survey = Survey(workflow, data, store)
    if len(survey.tasks(State.UP_TO_DATE)) < workflow.n_tasks:
        raise AssertionError(f"all is made, and yet: {sorted(set(survey.reasons))[-1]}")
