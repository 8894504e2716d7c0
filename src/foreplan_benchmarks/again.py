"""What runs again after a change: 122 tasks by foreplan, and by Snakemake where there is one."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foreplan.errors import InputError

SAMPLES = [f"s{k:02}" for k in range(20)]
EDITED = "all.txt"
# of a sample: the step, what it reads, its command; each notes that it was run
STEPS = (
    ("trim", ("reads/{s}.txt",), "head -n 150 {i[0]} > {o}"),
    ("align", ("trim/{s}.txt", "ref.txt"), "cat {i[0]} {i[1]} > {o}"),
    ("sort", ("align/{s}.txt",), "sort -n {i[0]} > {o}"),
    ("count", ("scripts/count.sh", "sort/{s}.txt"), "sh {i[0]} {i[1]} > {o}"),
    ("qc", ("trim/{s}.txt",), "wc -l < {i[0]} > {o}"),
    ("join", ("count/{s}.txt", "qc/{s}.txt"), "cat {i[0]} {i[1]} > {o}"),
)
COUNT = "sort -n \"$1\" | uniq -c | awk '{print $2, $1}'\n"
NOTED = '; echo "$FOREPLAN_TASK" >> "$RAN"'
SNAKE_NOTED = '; echo x >> "$RAN"'


@dataclass
class Rule:
    """A task, or with `{s}` in its name one of each sample."""

    name: str
    inputs: list[str]
    output: str
    run: str
    more: dict[str, Any] = field(default_factory=dict)  # cost, timeout


def rules() -> list[Rule]:
    """The whole pipeline: six steps of twenty samples, and two for all."""
    found = [Rule(name, list(reads), f"{name}/{{s}}.txt", run) for name, reads, run in STEPS]
    joined = [f"join/{s}.txt" for s in SAMPLES]
    return [
        *found,
        Rule("merge", joined, EDITED, "cat {all} > {o}"),
        Rule("report", [EDITED], "report.txt", "wc {i[0]} > {o}"),
    ]


def write_inputs(place: Path) -> None:
    """The files that no task makes."""
    for folder in ("reads", "scripts"):
        (place / folder).mkdir(parents=True)
    for k, sample in enumerate(SAMPLES):
        lines = (f"{(k * 7 + j * 13) % 101}\n" for j in range(200))
        (place / f"reads/{sample}.txt").write_text("".join(lines))
    (place / "scripts/count.sh").write_text(COUNT)
    (place / "ref.txt").write_text("3\n5\n7\n")


def _text(rule: Rule, inputs: list[str], output: str) -> str:
    return rule.run.format(i=inputs, o=output, all=" ".join(inputs))


def foreplan_workflow(given: list[Rule]) -> dict[str, Any]:
    """The pipeline as foreplan reads it, every task written out."""
    tasks: dict[str, Any] = {}
    for rule in given:
        for sample in SAMPLES if "{s}" in rule.output else [""]:
            inputs = [name.format(s=sample) for name in rule.inputs]
            output = rule.output.format(s=sample)
            tasks[f"{rule.name}-{sample}".strip("-")] = {
                **({"category": rule.name} if sample else {}),
                "run": _text(rule, inputs, output) + NOTED,
                "inputs": inputs,
                "outputs": [output],
                **rule.more,
            }
    return {"name": "again", "tasks": tasks}


def short_workflow(given: list[Rule]) -> dict[str, Any]:
    """The same in short: a template of each step."""
    tasks: dict[str, Any] = {}
    for rule in given:
        own = [f"{{inputs[{k}]}}" for k in range(len(rule.inputs))]
        looped = "{s}" in rule.output
        tasks[f"{rule.name}-{{s}}" if looped else rule.name] = {
            **({"foreach": {"s": "$samples"}} if looped else {}),
            "run": rule.run.format(i=own, o="{output}", all="{inputs}") + NOTED,
            "inputs": rule.inputs,
            "outputs": [rule.output],
            **rule.more,
        }
    return {"name": "again", "params": {"samples": SAMPLES}, "tasks": tasks}


def snakefile(given: list[Rule]) -> str:
    """The pipeline as Snakemake reads it."""
    read = {name for rule in given for name in rule.inputs}
    products = [r.output for r in given if r.output not in read and "{s}" not in r.output]
    text = [f"rule all:\n    input: {products!r}\n"]
    for rule in given:
        run = _text(rule, [f"{{input[{k}]}}" for k in range(len(rule.inputs))], "{output}")
        run = run if "{all}" not in rule.run else "cat {input} > {output}"
        lines = [f"rule {rule.name}:", f"    input: {rule.inputs!r}"]
        lines += [f"    output: {rule.output!r}"]
        if rule.more:
            lines += [f"    resources: runtime={rule.more.get('timeout', 60)}, mem_mb=100"]
        text.append("\n".join([*lines, f"    shell: {run + SNAKE_NOTED!r}"]) + "\n")
    return "\n".join(text)


class Tool:
    """A way to run the pipeline in a directory."""

    name = ""

    def write(self, place: Path, given: list[Rule]) -> None:
        """Write the pipeline down."""
        raise NotImplementedError

    def command(self, place: Path) -> list[str]:
        """What runs it."""
        raise NotImplementedError

    def run(self, place: Path) -> tuple[int, int, float]:
        """How many tasks it ran, its exit code, and the seconds that it took."""
        ran = place.parent / "ran"
        ran.write_text("")
        environment = {
            **os.environ,
            "RAN": str(ran),
            "FOREPLAN_HOME": str(place.parent / "history"),
        }
        begin = time.perf_counter()
        done = subprocess.run(
            self.command(place), cwd=place, env=environment, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        seconds = time.perf_counter() - begin
        if done.returncode not in (0, 2):
            raise InputError(f"{self.name} failed: {(done.stdout + done.stderr)[-800:]}")
        return len(ran.read_text().splitlines()), done.returncode, seconds


class ForeplanTool(Tool):
    """`foreplan run`."""

    name = "foreplan"

    def write(self, place: Path, given: list[Rule]) -> None:
        """In short, as YAML."""
        from foreplan.formats.texts import dump_yaml

        (place.parent / "again.yaml").write_text(dump_yaml(short_workflow(given)))

    def command(self, place: Path) -> list[str]:
        """This Python's foreplan."""
        workflow = str(place.parent / "again.yaml")
        foreplan = [sys.executable, "-c", "from foreplan.cli.main import main; main()"]
        return [*foreplan, "run", workflow, "--quiet", "--on", "local:2"]


NO_SNAKEMAKE = (
    "Snakemake is not here: `pip install snakemake` in an environment of its own, and say where it "
    "is with --snakemake"
)


class Snakemake(Tool):
    """`snakemake`, with all of its reasons to run again."""

    name = "Snakemake"

    def __init__(self, program: str) -> None:
        self.program = program

    def write(self, place: Path, given: list[Rule]) -> None:
        """As a Snakefile."""
        (place.parent / "Snakefile").write_text(snakefile(given))

    def command(self, place: Path) -> list[str]:
        """In the directory, but without anything of ours in it."""
        snakefile = str(place.parent / "Snakefile")
        return [self.program, "-s", snakefile, "-c2", "--nocolor"]


def find_snakemake(program: str | None) -> Snakemake | None:
    """Snakemake, if it is here."""
    found = shutil.which(program or "snakemake")
    if program and found is None:
        raise InputError(f"there is no program {program!r}")
    return Snakemake(found) if found else None


Edit = Callable[[Path, list[Rule]], None]


def _rewrite(name: str, old: str, new: str) -> Edit:
    def edit(place: Path, given: list[Rule]) -> None:
        text = (place / name).read_text()
        assert old in text, f"{old!r} is not in {name}"
        (place / name).write_text(text.replace(old, new, 1))

    return edit


def _touch(place: Path, given: list[Rule]) -> None:
    (place / "reads/s00.txt").touch()


def _other_command(name: str, old: str, new: str) -> Edit:
    def edit(place: Path, given: list[Rule]) -> None:
        rule = next(rule for rule in given if rule.name == name)
        assert old in rule.run
        rule.run = rule.run.replace(old, new)

    return edit


def _say(**more: Any) -> Edit:
    def edit(place: Path, given: list[Rule]) -> None:
        for rule in given:
            rule.more.update(more)

    return edit


def _add(place: Path, given: list[Rule]) -> None:
    given.append(Rule("largest", ["sort/s00.txt"], "largest.txt", "tail -n 1 {i[0]} > {o}"))


def _delete(name: str) -> Edit:
    def edit(place: Path, given: list[Rule]) -> None:
        (place / name).unlink()

    return edit


def _nothing(place: Path, given: list[Rule]) -> None:
    """Nothing has changed."""


CHANGES: dict[str, Edit] = {
    "nothing": _nothing,
    "an input is touched": _touch,
    "one input": _rewrite("reads/s00.txt", "13\n", "14\n"),
    "a command, another result (20 tasks)": _other_command("sort", "sort -n", "sort -nr"),
    "a command, the same result (20 tasks)": _other_command("sort", "sort -n", "sort  -n"),
    "the time-outs": _say(timeout=77),
    "the costs": _say(cost=3),
    "a task is added": _add,
    "a script that is an input, another result": _rewrite("scripts/count.sh", "$2, $1", "$1, $2"),
    "a script that is an input, the same result": _rewrite("scripts/count.sh", "$2, $1", "$2,$1"),
    "a product is deleted": _delete("report.txt"),
    "an intermediate is deleted": _delete("sort/s00.txt"),
    "a product is edited by hand": _rewrite("report.txt", " ", "  "),
}


@dataclass(frozen=True)
class Again:
    """How many tasks a tool ran after a change."""

    change: str
    tool: str
    ran: int
    exit: int
    seconds: float


def measure(
    tools: list[Tool], changes: list[str], progress: Callable[[float], None]
) -> Iterator[Again]:
    """Each change by each tool, in a directory in which all was done before."""
    cases = [(change, tool) for change in changes for tool in tools]
    for number, (change, tool) in enumerate(cases):
        with tempfile.TemporaryDirectory(prefix="foreplan-again-") as folder:
            place = Path(folder, "data")
            place.mkdir()
            write_inputs(place)
            given = rules()
            tool.write(place, given)
            first, code, _ = tool.run(place)
            if code or first != len(foreplan_workflow(given)["tasks"]):
                raise InputError(f"{tool.name} ran {first} tasks at first")
            given = copy.deepcopy(given)
            CHANGES[change](place, given)
            tool.write(place, given)
            yield Again(change, tool.name, *tool.run(place))
        progress((number + 1) / len(cases))
