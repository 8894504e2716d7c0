"""A Snakefile as a workflow: its jobs by Snakemake itself, their commands run by foreplan."""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from foreplan.errors import InputError
from foreplan.files import printable
from foreplan.formats.foreplan_workflow import OUTPUT_MARKS, unused_name, workflow_from_literals
from foreplan.quantities import first_few, many
from foreplan.shell import named_files, named_patterns, touched_files
from foreplan.version import install_command

NO_SNAKEMAKE = (
    f"Snakemake is not here: {install_command('snakemake')}, or say with --snakemake where the "
    "program is"
)
APPTAINER, CONDA = SOFTWARE = ("apptainer", "conda")
TOUCHED = "none"  # the kind of a job without a command: it only touches its outputs
OWN = ("shell", TOUCHED)  # kinds of jobs that foreplan runs itself
TOLD = 15  # lines of what Snakemake says
UNKNOWN = "<TBD>"  # what Snakemake writes where it cannot know yet
# flags of files that a fixed graph of commands cannot have
REFUSED = {
    "pipe": "pipe()",
    "service": "service()",
    "update": "update()",
    "from_queue": "from_queue()",
    "storage_object": "storage",
}
LEFT_OUT = {
    "ensure": "ensure() is not checked",
    "ancient": "ancient() inputs count by their content, as all others",
}


@dataclass(frozen=True)
class SnakefileQuery:
    """Which jobs, as one would ask Snakemake for them."""

    snakefile: Path | None
    directory: Path | None  # None: the current one, or what the Snakefile says
    cores: int
    targets: tuple[str, ...] = ()
    config: tuple[str, ...] = ()
    configfiles: tuple[Path, ...] = ()
    through: bool = False  # what is no command is run by Snakemake
    software: frozenset[str] = frozenset()  # of SOFTWARE, what commands are to run in


@dataclass(frozen=True)
class Imported:
    """A workflow as a foreplan file has it, what could not be taken over, and what made it."""

    content: dict[str, Any]
    notes: list[str]
    version: str
    directory: Path  # of the data
    benchmarks: dict[str, str] = field(default_factory=dict)  # the category of each file
    n_edges: int = 0


def snakemake_python(program: str | None) -> str:
    """The Python that has Snakemake: this one, or that of the program."""
    if program is None and importlib.util.find_spec("snakemake") is not None:
        return sys.executable
    found = shutil.which(program or "snakemake")
    if found is None:
        raise InputError(NO_SNAKEMAKE if program is None else f"there is no program {program!r}")
    for place in (Path(found).resolve().parent, Path(found).parent):
        if (place / "python").exists():
            return str(place / "python")
    raise InputError(f"there is no python beside {found}: it is not Snakemake's own program")


def import_snakefile(asked: SnakefileQuery, python: str) -> Imported:
    """The jobs of a Snakefile as a workflow."""
    found = _read_jobs(asked, python)
    words = _again(asked, found["snakefile"], python)
    again = [*map(shlex.quote, words)] if asked.through else None
    directory = Path(found["directory"])
    name = directory.resolve().name or "snakemake"
    return Translation(found, directory, name, again, asked.software).imported()


def _read_jobs(asked: SnakefileQuery, python: str) -> dict[str, Any]:
    """What Snakemake, in a process of its own, says of the jobs."""
    words = {
        "snakefile": None if asked.snakefile is None else str(asked.snakefile.absolute()),
        "directory": None if asked.directory is None else str(asked.directory.absolute()),
        "cores": asked.cores,
        "targets": asked.targets,
        "config": asked.config,
        "configfiles": [str(file.absolute()) for file in asked.configfiles],
    }
    script = Path(__file__).with_name("snakemake_jobs.py")
    with tempfile.TemporaryDirectory(prefix="foreplan-import-") as folder:
        question, answer = Path(folder, "asked.json"), Path(folder, "jobs.json")
        question.write_text(json.dumps(words), encoding="utf-8")
        done = subprocess.run(
            [python, "-P", str(script), str(question), str(answer)],
            capture_output=True, text=True, errors="replace", check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode == 0:
            return json.loads(answer.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    lines = [line for line in done.stderr.splitlines() if line.strip()][-TOLD:]
    source = printable(asked.snakefile or "Snakefile")
    raise InputError("Snakemake does not take it:\n" + "\n".join(lines), source=source)


def _again(asked: SnakefileQuery, snakefile: str, python: str) -> Iterator[str]:
    """The words by which Snakemake is asked for one job of the same Snakefile."""
    yield from (python, "-m", "snakemake", "--snakefile", snakefile, "--nolock", "--force")
    yield from ("--ignore-incomplete", "--nocolor", "--notemp", "--no-hooks")
    if asked.config:
        yield from ("--config", *asked.config)
    if asked.configfiles:
        yield from ("--configfile", *(str(file.absolute()) for file in asked.configfiles))


class Translation:
    """From Snakemake's jobs to the fields of tasks."""

    def __init__(
        self,
        found: Mapping[str, Any],
        directory: Path,
        name: str,
        again: list[str] | None = None,
        software: frozenset[str] = frozenset(),
    ) -> None:
        self.found, self.directory, self.name, self.again = found, directory, name, again
        self.software = software
        self.jobs = [job for job in found["jobs"] if job["kind"] != "none" or job["outputs"]]
        for job in self.jobs:
            for key in ("inputs", "outputs", "log"):
                job[key] = list(dict.fromkeys(map(os.path.normpath, job[key])))
        self._folders = {
            *(file for job in self.jobs for file in _flagged(job, "directory")),
            *(f for job in self.jobs for f in job["inputs"] if os.path.isdir(directory / f)),
        }
        self.maker = {file: i for i, job in enumerate(self.jobs) for file in _products(job)}

    def imported(self) -> Imported:
        """The workflow; what foreplan cannot run is refused, all of it at once."""
        if problems := list(self._problems()):
            raise InputError("; ".join(problems))
        tasks: dict[str, dict[str, Any]] = {}
        for i in self._order():
            job = self.jobs[i]
            values = (value.replace("/", "_") for value in job["wildcards"].values())
            tasks[unused_name("-".join([job["rule"], *values]), tasks)] = self._fields(i, job)
        if not tasks:
            raise InputError("no job of it has a command: there is nothing to run")
        content = {"name": self.name, "tasks": tasks}
        workflow = workflow_from_literals(content)
        return Imported(
            content,
            list(self._notes()),
            self.found["version"],
            self.directory,
            {job["benchmark"]: job["rule"] for job in self.jobs if job["benchmark"]},
            workflow.n_edges,
        )

    @cached_property
    def _before(self) -> list[set[int]]:
        """Of each job, those that make what it reads."""
        made = self.maker
        return [{made[file] for file in job["inputs"] if file in made} for job in self.jobs]

    def _order(self) -> list[int]:
        """What is made first comes first, jobs of a rule together, whatever order they came in."""
        depth: dict[int, int] = {}
        for i in TopologicalSorter(dict(enumerate(self._before))).static_order():
            depth[i] = 1 + max((depth[k] for k in self._before[i]), default=0)
        names = [(job["rule"], *job["wildcards"].values()) for job in self.jobs]
        return sorted(depth, key=lambda i: (depth[i], names[i]))

    def _problems(self) -> Iterator[str]:
        if names := self._rules(lambda job: job["checkpoint"]):
            yield (
                f"which jobs come after a checkpoint is known only when it has run: {names}; "
                "import what comes before it with --target, and write the rest as a loop over the "
                "files that it makes (manual: Coming from Snakemake, Checkpoints)"
            )
        others = {job["rule"]: job["kind"] for job in self.jobs if job["kind"] not in OWN}
        if others and self.again is None:
            said = first_few((f"{rule} ({kind}:)" for rule, kind in others.items()), 10)
            yield f"no shell commands: {said}; --through-snakemake runs these jobs by Snakemake"
        for flag, word in REFUSED.items():
            if names := self._rules(lambda job, flag=flag: flag in _flags(job)):
                yield f"foreplan has nothing like {word}: {names}"
        if names := self._rules(lambda job: UNKNOWN in (job["command"] or "")):
            yield (
                f"commands depend on files that are not there yet: {names}; run Snakemake as far "
                "as these, or say what they need in other words"
            )
        if CONDA in self.software and (names := self._rules(lambda job: job["conda_file"])):
            yield (
                f"environments that are described by a file are not made by foreplan: {names}; "
                "make them, and name them in the Snakefile"
            )
        if names := self._rules(lambda job: job["kind"] == TOUCHED and _untouched(job)):
            yield f"rules have outputs, but neither a command nor touch(): {names}"
        if names := self._rules(lambda job: job["copies"]):
            yield (
                "workflow.source_path() gives files that are not on this machine, and whose copies "
                f"Snakemake removes: {names}; put them beside the Snakefile"
            )
        measured = {job["benchmark"] for job in self.jobs if job["benchmark"]}
        if names := self._rules(lambda job: measured.intersection(job["inputs"])):
            yield f"benchmark files are not written by foreplan, but read: {names}"

    def _notes(self) -> Iterator[str]:
        """What is other than with Snakemake, or left to the user."""
        for flag, words in LEFT_OUT.items():
            if names := self._rules(lambda job, flag=flag: flag in _flags(job)):
                yield f"{words}: {names}"
        alone = "are left out, as by Snakemake without --sdm"
        for key, words in (
            ("conda", "" if CONDA in self.software else f"conda environments {alone}"),
            ("container", "" if APPTAINER in self.software else f"containers {alone}"),
            ("modules", f"environment modules {alone}"),
            ("benchmark", "benchmark files are not written, as foreplan measures by itself"),
        ):
            if words and (names := self._rules(lambda job, key=key: job[key])):
                yield f"{words}: {names}"
        if names := self._rules(_makes_flags_only):
            yield (
                f"the only outputs are flags, and nothing else that these rules write is kept: "
                f"{names}; add the other files to `output:`"
            )
        known = {"mem_mb", "mem_mib", "gpu", "nvidia_gpu", "disk_mib"}
        if others := sorted({n for job in self.jobs for n in job["resources"]} - known):
            yield f"resources that nothing here is short of are left out: {first_few(others, 10)}"
        far = [f for job in self.jobs for f in (*job["inputs"], *_products(job)) if _is_far(f)]
        if far:
            said = many(len(set(far)), "file")
            yield f"{said} outside of the directory: run it with --absolute-paths"

    def _rules(self, wanted: Any) -> str:
        """The rules of the jobs that are meant, if any."""
        return first_few(dict.fromkeys(job["rule"] for job in self.jobs if wanted(job)), 10)

    def _fields(self, i: int, job: Mapping[str, Any]) -> dict[str, Any]:
        resources = job["resources"]
        fields: dict[str, Any] = {"category": job["rule"]}
        fields |= self._command(job)
        inputs, ignores = self._seen(i, job, fields["run"])
        gpus = resources.get("gpu") or resources.get("nvidia_gpu")
        for key, value in (
            ("inputs", [self._named(file) for file in inputs]),
            ("outputs", [self._output(file, job) for file in _products(job)]),
            ("ignores", ignores),
            ("cores", job["threads"] if job["threads"] > 1 else None),
            ("memory", f"{resources['mem_mb']}MB" if resources.get("mem_mb") else None),
            ("gpus", gpus),
            ("retries", job["retries"]),
            ("container", job["container"] if APPTAINER in self.software else None),
            ("conda", job["conda"] if CONDA in self.software else None),
        ):
            if value:
                fields[key] = value
        return fields

    def _named(self, file: str) -> str:
        """A file as foreplan names it: of a directory the name ends with a slash."""
        return f"{file}/" if file in self._folders else file

    def _output(self, file: str, job: Mapping[str, Any]) -> str | dict[str, object]:
        """An output, with what is said of it."""
        marks = {mark: True for mark in OUTPUT_MARKS if file in _flagged(job, mark)}
        return {"path": self._named(file), **marks} if marks else self._named(file)

    def _command(self, job: Mapping[str, Any]) -> dict[str, str]:
        """The command, and its shell if that is not foreplan's own, which is Snakemake's."""
        if job["kind"] == TOUCHED:
            return {"run": f"touch {shlex.join(_products(job))}"}
        if job["kind"] != "shell":
            return {"run": self._through(job)}
        shell = self.found["shell"]
        executable = job["shell_exec"] or shell["executable"] or "sh"
        is_bash = os.path.basename(executable) == "bash"
        prefix, suffix = shell["prefix"], shell["suffix"] or ""
        run = f"{prefix or ''} {job['command']} {suffix}".strip()
        logs = " ".join(shlex.quote(file) for file in job["log"])
        touched = _flagged(job, "touch")
        run = f"touch {logs}; {run}" if logs else run
        run += f"\ntouch {shlex.join(touched)}" if touched else ""
        own = is_bash and prefix is None
        return {"run": run} if own else {"run": run, "shell": executable}

    def _through(self, job: Mapping[str, Any]) -> str:
        """By Snakemake in the data directory, where the Snakefile finds all that it looks for."""
        wildcards = ",".join(f"{name}={value}" for name, value in job["wildcards"].items())
        words = [
            *(self.again or []),
            "--directory",
            '"$FOREPLAN_DIR"',
            "--cores",
            str(job["threads"]),
        ]
        words += ["--allowed-rules", job["rule"], "--target-jobs"]
        words.append(shlex.quote(f"{job['rule']}:{wildcards}"))
        moved = (
            f'mv -fT "$FOREPLAN_DIR"/{shlex.quote(file)} {shlex.quote(file)}'
            for file in _products(job)
            if not _is_far(file)
        )
        return "\n".join([" ".join(words), *moved])

    def _seen(self, i: int, job: Mapping[str, Any], command: str) -> tuple[list[str], list[str]]:
        """The inputs with what the command can mean beside them, and words that mean nothing.

        Snakemake's commands run where all files are; foreplan's see what is listed or named. A
        program that is given `ref.fa` may look for `ref.fa.fai`.
        """
        own, inputs = set(_products(job)), dict.fromkeys(job["inputs"])
        words, ignores = named_files(command), dict[str, None]()
        before = {f for file in job["inputs"] if file in self.maker for f in self._beside(file)}
        for word in words:
            inputs |= dict.fromkeys(sorted(f for f in before - own if f.startswith(word)))
            if word in job["inputs"]:
                pattern = glob.escape(word) + ".*"
                found = glob.glob(pattern, root_dir=self.directory)
                inputs |= dict.fromkeys(sorted(f for f in found if f not in self.maker))
        for word in (*words, *named_patterns(command)):
            meant = [file for file in self._meant(word) if file not in own]
            if meant and not any(file in inputs for file in meant):
                waited = [file for file in meant if self.maker[file] in self._ancestors(i)]
                inputs |= dict.fromkeys(waited)
                ignores |= {} if waited else {word: None}
        return list(inputs), list(ignores)

    def _beside(self, file: str) -> list[str]:
        """What the job that makes a file makes."""
        return _products(self.jobs[self.maker[file]])

    def _meant(self, word: str) -> list[str]:
        """The files of jobs that a word of a command names: one, a folder's, or by pattern."""
        if word in self.maker:
            return [word]
        if word in self._inside:
            return self._inside[word]
        if any(sign in word for sign in "*?["):
            return [file for file in self.maker if fnmatchcase(file, word)]
        return []

    @cached_property
    def _inside(self) -> dict[str, list[str]]:
        inside: dict[str, list[str]] = {}
        for file in self.maker:
            folder = os.path.dirname(file)
            while folder not in ("", "/"):
                inside.setdefault(folder, []).append(file)
                folder = os.path.dirname(folder)
        return inside

    def _ancestors(self, i: int) -> set[int]:
        """The jobs before one."""
        seen, todo = set[int](), [i]
        while todo:
            new = self._before[todo.pop()] - seen
            seen |= new
            todo += new
        return seen


def _products(job: Mapping[str, Any]) -> list[str]:
    """The outputs, and the logs, which commands write as well."""
    return list(dict.fromkeys((*job["outputs"], *job["log"])))


def _flagged(job: Mapping[str, Any], flag: str) -> list[str]:
    """The outputs with a flag."""
    return [os.path.normpath(file) for file, flags in job["flags"].items() if flag in flags]


def _untouched(job: Mapping[str, Any]) -> list[str]:
    """The outputs that touch() does not make."""
    touched = _flagged(job, "touch")
    return [file for file in job["outputs"] if file not in touched]


def _makes_flags_only(job: Mapping[str, Any]) -> bool:
    """Return whether all outputs of a command only show that it has run."""
    if job["kind"] != "shell" or not job["outputs"]:
        return False
    flags = {*_flagged(job, "touch"), *touched_files(job["command"] or "")}
    return flags.issuperset(job["outputs"])


def _flags(job: Mapping[str, Any]) -> set[str]:
    return {*job["input_flags"], *(flag for flags in job["flags"].values() for flag in flags)}


def _is_far(file: str) -> bool:
    return os.path.isabs(file) or file.split("/", 1)[0] == ".."


def benchmark_files(imported: Imported) -> Iterable[tuple[Path, str]]:
    """The benchmark files that are there, each with its category."""
    for file, rule in imported.benchmarks.items():
        if (imported.directory / file).is_file():
            yield imported.directory / file, rule
