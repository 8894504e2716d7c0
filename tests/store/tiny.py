"""Workflows whose commands are functions of contents, run by the store alone; and a slow twin.

A command is `mix SALT NAMES... > OUTPUTS # COMMENT`: each output is the sum of the salt and of the
numbers in the files, modulo 3 or so, so that results are often the same again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import foreplan
from foreplan.model import Workflow
from foreplan.store import parts
from foreplan.store.making import Made, Making, made
from foreplan.store.store import Store
from foreplan.store.survey import Asked, State, Survey


class KilledError(Exception):
    """The run ends here, as if by a kill."""


@dataclass(frozen=True)
class Job:
    """A task of a tiny workflow."""

    name: str
    salt: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    comment: int = 0
    scripts: tuple[str, ...] = ()  # named, but not declared

    @property
    def command(self) -> str:
        read = " ".join((*self.scripts, *self.inputs))
        return f"mix {self.salt} {read} > {' '.join(self.outputs)} # {self.comment}"

    def results(self, contents: dict[str, str]) -> dict[str, str]:
        """What it makes of what its files hold."""
        total = self.salt + sum(int(contents[name]) for name in (*self.scripts, *self.inputs))
        return {name: str((total + k) % 3) for k, name in enumerate(self.outputs)}


def workflow_of(jobs: Collection[Job]) -> Workflow:
    """The workflow of some jobs."""
    tasks: dict[str, Any] = {
        job.name: {"run": job.command, "inputs": list(job.inputs), "outputs": list(job.outputs)}
        for job in jobs
    }
    return foreplan.load({"tasks": tasks})


@dataclass
class Tiny:
    """A directory with a store, and all that was ever made in it."""

    data: Path
    # what the twin knows: what came out of which recipe, and what each file ever held
    history: list[tuple[object, dict[str, str]]] = field(default_factory=list)
    ever: dict[str, set[str]] = field(default_factory=dict)

    def contents(self) -> dict[str, str]:
        """All files, read."""
        return {p.name: p.read_text() for p in self.data.iterdir() if p.is_file()}

    def survey(self, jobs: list[Job], asked: Asked | None = None) -> Survey:
        """What the store says."""
        store = Store.open(self.data, lambda run: False)
        assert not store.warnings
        return Survey(workflow_of(jobs), self.data, store, asked or Asked())

    def run(
        self, jobs: list[Job], asked: Asked | None = None, end: tuple[int, str] | None = None
    ) -> list[str]:
        """Do what is not up to date; the tasks that were run. `end`: after so many tasks, where."""
        survey = self.survey(jobs, asked)
        assert not survey.edited
        part = parts.Part(survey.store.folder, f"run-{secrets.token_hex(3)}")
        part.append(survey.take_news())
        by_name = {job.name: job for job in jobs}
        ran: list[str] = []
        try:
            for task in survey.workflow.order.tolist():
                state = survey.states[task]
                assert state is not State.UNSURE, "its inputs are all known"
                if state is State.STALE:
                    name = survey.workflow.task_names[task]
                    kill = end[1] if end is not None and len(ran) == end[0] else ""
                    ran.append(name)
                    done = self._attempt(by_name[name], survey.making(task), part, kill)
                    survey.finish(task, done.contents)
        except KilledError:
            pass
        finally:
            part.close()
        return ran

    def _attempt(self, job: Job, making: Making, part: parts.Part, kill: str) -> Made:
        scratch = self.data / ".foreplan" / "scratch"
        scratch.mkdir(exist_ok=True)
        contents = self.contents()
        results = job.results(contents)
        for name, content in results.items():
            (scratch / name).write_text(content)
        if kill == "before":
            raise KilledError
        done = made(
            making,
            data=str(self.data),
            scratch=str(scratch),
            outputs=job.outputs,
            task=job.name,
            run="run",
        )
        assert not done.missing
        assert not done.warning
        part.append(done.line)
        self.history.append((recipe_of(job, contents), results))
        for name, content in results.items():
            self.ever.setdefault(name, set()).add(content)
        for name in job.outputs:
            if kill == "line":
                raise KilledError
            os.replace(scratch / name, self.data / name)
            if kill == "half":
                raise KilledError
        return done


def recipe_of(job: Job, contents: dict[str, str]) -> object:
    """What a result is made from, in full."""
    used = {name: contents[name] for name in (*job.inputs, *job.scripts)}
    return job.command, sorted(used.items()), sorted(job.outputs)


@dataclass
class Twin:
    """Says which tasks run, by reading everything and looking again until nothing changes."""

    jobs: list[Job]  # in topological order
    tiny: Tiny
    targets: Collection[str] = ()
    force: Collection[str] = ()

    def __post_init__(self) -> None:
        self.disk = self.tiny.contents()
        self.maker = {name: job for job in self.jobs for name in job.outputs}
        self.wanted = self._wanted()
        self.products = self._products()

    def _wanted(self) -> list[Job]:
        if not self.targets:
            return self.jobs
        wanted = [j for j in self.jobs if j.name in self.targets or {*j.outputs} & {*self.targets}]
        while True:
            more = [self.maker[n] for j in wanted for n in j.inputs if n in self.maker]
            new = [job for job in more if job not in wanted]
            if not new:
                return [job for job in self.jobs if job in wanted]
            wanted += new[:1]

    def _products(self) -> set[str]:
        if self.targets:
            of_tasks = {n for job in self.jobs if job.name in self.targets for n in job.outputs}
            return of_tasks | {n for n in self.targets if n in self.maker}
        read = {name for job in self.jobs for name in job.inputs}
        return {name for job in self.jobs for name in job.outputs if name not in read}

    def edited(self) -> list[tuple[str, str]]:
        """The outputs on disk that nobody made."""
        return [
            (name, job.name)
            for job in self.wanted
            for name in job.outputs
            if job.name not in self.force
            and name in self.disk
            and name in self.tiny.ever
            and self.disk[name] not in self.tiny.ever[name]
        ]

    def _held(self, job: Job, contents: dict[str, str]) -> dict[str, str] | None:
        """What came out of the same recipe, if that is what is on disk as far as it must be."""
        recipe = recipe_of(job, contents)
        for made_from, results in reversed(self.tiny.history):
            if made_from == recipe and all(
                self.disk[n] == c if n in self.disk else n not in self.products
                for n, c in results.items()
            ):
                return results
        return None

    def expected(self) -> list[str]:
        """The tasks that run."""
        must = {job.name for job in self.jobs if job.name in self.force}
        while True:
            known = {n: c for n, c in self.disk.items() if n not in self.maker}
            idle: list[Job] = []
            for job in self.wanted:
                ready = all(name in known for name in (*job.inputs, *job.scripts))
                held = self._held(job, known) if ready and job.name not in must else None
                if held is not None:
                    idle.append(job)
                    known |= held
            active = [job for job in self.wanted if job not in idle]
            needed = {
                self.maker[n].name
                for job in active
                for n in job.inputs
                if n in self.maker and n not in self.disk
            }
            if needed <= must:
                return self._run(must)
            must |= needed

    def _run(self, must: set[str]) -> list[str]:
        known = {n: c for n, c in self.disk.items() if n not in self.maker}
        ran = []
        for job in self.wanted:
            held = self._held(job, known) if job.name not in must else None
            if held is None:
                ran.append(job.name)
                held = job.results(known)
            known |= held
        return ran


def from_nothing(jobs: list[Job], contents: dict[str, str]) -> dict[str, str]:
    """What all files hold if everything is made."""
    made_by = {name for job in jobs for name in job.outputs}
    known = {name: content for name, content in contents.items() if name not in made_by}
    for job in jobs:
        known |= job.results(known)
    return known


def changed(jobs: list[Job], index: int, **what: Any) -> list[Job]:
    """The jobs with one changed."""
    return [replace(job, **what) if k == index else job for k, job in enumerate(jobs)]
