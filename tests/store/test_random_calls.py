"""Random flows, changed between runs, whose results come and go; beside a slow twin."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import foreplan
from foreplan.store import parts
from foreplan.store.making import call_line
from foreplan.store.store import KeptResult, Store
from foreplan.store.survey import Asked, State, Survey

Draw = Callable[[st.SearchStrategy[int]], int]


def mix(salt: int, more: int, *others: int) -> int:
    """Few values, so that results are often the same again."""
    return (salt + more + sum(others)) % 3


@dataclass(frozen=True)
class Job:
    name: str
    salt: int
    more: int
    takes: tuple[int, ...]

    def value(self, values: dict[int, int]) -> int:
        return mix(self.salt, self.more, *(values[k] for k in self.takes))

    def recipe(self, values: dict[int, int]) -> object:
        return self.salt, self.more, tuple(values[k] for k in self.takes)


def flow_of(jobs: list[Job]) -> foreplan.Flow:
    flow, tasks = foreplan.Flow("mixed"), list[Any]()
    for job in jobs:
        taken = [tasks[k] for k in job.takes]
        tasks.append(flow.task(partial(mix, job.salt), job.more, *taken, name=job.name))
    return flow


@dataclass
class Directory:
    """Where calls are made, some results are kept, and all that was made is remembered."""

    data: Path
    kept: dict[tuple[str, int], int] = field(default_factory=dict)
    lines: list[tuple[object, int, tuple[str, int]]] = field(default_factory=list)
    runs: int = 0

    def has(self, kept: KeptResult) -> bool:
        return (kept.run, kept.number) in self.kept

    def survey(self, jobs: list[Job], asked: Asked) -> Survey:
        workflow, calls = flow_of(jobs).build()
        store = Store.open(self.data, lambda run: False)
        return Survey(workflow, self.data, store, replace(asked, has_result=self.has), calls)

    def run(
        self, jobs: list[Job], asked: Asked, keep: Callable[[int], bool], end: int
    ) -> list[str]:
        """Do what is to do, of at most so many tasks; those that ran. `keep`: is it kept?"""
        survey, self.runs = self.survey(jobs, asked), self.runs + 1
        run, values, ran = f"r{self.runs}", dict[int, int](), list[str]()
        part, todo = parts.Part(survey.store.folder, run), survey.tasks(State.STALE, State.UNSURE)
        for task, job in enumerate(jobs):
            if task not in todo:
                values[task] = self._value(survey, task)
                continue
            making = survey.making(task)
            assert making.recipe is not None, making.note
            found = survey.found(task, making)
            if found is not None:
                assert found.call is not None
                values[task] = self.kept[found.call[:2]]
                survey.finish(task, {}, found.call.content)
                continue
            if len(ran) == end:
                break
            ran.append(job.name)
            values[task] = job.value(values)
            kept = KeptResult(run, task, f"content {values[task]}", (0, 0, 0, ""))
            part.append(call_line(making, task=job.name, kept=kept))
            self.lines.append((job.recipe(values), values[task], (run, task)))
            if keep(task):
                self.kept[run, task] = values[task]
            survey.finish(task, {}, kept.content)
        part.close()
        return ran

    def _value(self, survey: Survey, task: int) -> int:
        content = survey.content_of(task)
        return int(content.split()[1]) if content else -1


def twin(
    jobs: list[Job], there: Directory, targets: Collection[str], force: Collection[str]
) -> list[str]:
    """The tasks that run, found by looking at everything until nothing changes."""
    names = [job.name for job in jobs]
    read = {k for job in jobs for k in job.takes}
    products = {names.index(t) for t in targets} or {k for k in range(len(jobs)) if k not in read}
    wanted = set(products) if targets else set(range(len(jobs)))
    while more := {k for w in wanted for k in jobs[w].takes} - wanted:
        wanted |= more

    def known(job: Job, values: dict[int, int]) -> tuple[bool, bool]:
        """Whether it was ever made, and whether that is kept."""
        if not all(k in values for k in job.takes):
            return False, False
        same = [place for recipe, _, place in there.lines if recipe == job.recipe(values)]
        return bool(same), any(place in there.kept for place in same)

    must = {k for k in wanted if names[k] in force}
    while True:
        values: dict[int, int] = {}
        idle: dict[int, bool] = {}
        for k in sorted(wanted - must):
            made, kept = known(jobs[k], values)
            if kept or (made and k not in products):
                idle[k] = kept
                values[k] = jobs[k].value(values)
        needed = {k for w in wanted - idle.keys() for k in jobs[w].takes if idle.get(k) is False}
        if not needed:
            break
        must |= needed
    ran = []
    for k in sorted(wanted - idle.keys()):
        _, kept = known(jobs[k], values)
        if not kept or names[k] in force:
            ran.append(names[k])
        values[k] = jobs[k].value(values)
    return ran


def number(draw: Draw, most: int) -> int:
    return draw(st.integers(0, most))


def draw_jobs(draw: Draw) -> list[Job]:
    jobs = []
    for k in range(1 + number(draw, 6)):
        takes = {number(draw, k - 1) for _ in range(number(draw, 3))} if k else set()
        jobs.append(Job(f"t{k}", number(draw, 1), number(draw, 2), tuple(sorted(takes))))
    return jobs


def draw_change(draw: Draw, there: Directory, jobs: list[Job]) -> list[Job]:
    k, what = number(draw, len(jobs) - 1), number(draw, 5)
    changes: dict[str, Any] = {}
    if what == 0:
        changes = {"salt": number(draw, 2)}
    elif what == 1:
        changes = {"more": number(draw, 4)}
    elif what == 2:
        changes = {"name": f"r{jobs[k].name}"[:6]}
    elif what == 3 and k:
        changes = {"takes": tuple(sorted({*jobs[k].takes} ^ {number(draw, k - 1)}))}
    elif there.kept:  # a result goes, or all of a run
        gone = sorted(there.kept)[number(draw, len(there.kept) - 1)]
        for place in list(there.kept):
            if place == gone or (what == 5 and place[0] == gone[0]):
                del there.kept[place]
    return [replace(job, **changes) if i == k else job for i, job in enumerate(jobs)]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_runs_is_what_must(data: st.DataObject) -> None:
    draw: Draw = data.draw
    with tempfile.TemporaryDirectory() as folder:
        there, jobs = Directory(Path(folder)), draw_jobs(draw)
        for _ in range(1 + number(draw, 5)):
            for _ in range(number(draw, 2)):
                jobs = draw_change(draw, there, jobs)
            names = [job.name for job in jobs]
            pick = names[number(draw, len(names) - 1)]
            targets = (pick,) if number(draw, 4) == 0 else ()
            force = (pick,) if number(draw, 5) == 0 else ()
            expected = twin(jobs, there, targets, force)
            end = number(draw, len(jobs)) if number(draw, 2) == 0 else len(jobs)
            rare = number(draw, 3)  # on Dask, not all results are kept
            asked = Asked(targets=targets, force=force)
            kept = {k for k in range(len(jobs)) if k % 3 != rare}
            ran = there.run(jobs, asked, kept.__contains__, end)
            assert ran == expected[:end]
        assert there.run(jobs, Asked(), lambda k: True, len(jobs)) is not None
        assert there.run(jobs, Asked(), lambda k: True, len(jobs)) == []
