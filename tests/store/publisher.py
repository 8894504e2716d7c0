"""A small process that makes what is not up to date, as a run does, until somebody kills it.

`python publisher.py DATA JOBS.json`: jobs as in tiny.py.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from foreplan.store import parts
from foreplan.store.making import made
from foreplan.store.store import Store
from foreplan.store.survey import State, Survey
from store.tiny import Job, workflow_of


def jobs_of(content: list[dict[str, Any]]) -> list[Job]:
    """The jobs of a file."""
    tuples = {f.name for f in fields(Job) if str(f.type).startswith("tuple")}
    given: list[dict[str, Any]] = [
        {name: tuple(value) if name in tuples else value for name, value in one.items()}
        for one in content
    ]
    return [Job(**one) for one in given]


def publish(data: Path, jobs: list[Job]) -> None:
    """Make all that is not up to date; say of each task that it is made, once it is."""
    store = Store.open(data, lambda run: run == f"run-{os.getpid()}")
    survey = Survey(workflow_of(jobs), data, store)
    if survey.edited or store.warnings:
        print("edited", survey.edited, store.warnings, flush=True)
        os._exit(3)
    run = f"run-{os.getpid()}"
    by_name = {job.name: job for job in jobs}
    news = survey.take_news()
    if news:
        parts.append(str(store.folder), run, news)
    for task in survey.workflow.order.tolist():
        if survey.states[task] is not State.STALE:
            continue
        job, making = by_name[survey.workflow.task_names[task]], survey.making(task)
        scratch = data / ".foreplan" / f"scratch-{secrets.token_hex(4)}"
        scratch.mkdir()
        files = (*job.inputs, *job.scripts)
        for name, content in job.results({n: (data / n).read_text() for n in files}).items():
            (scratch / name).write_text(content)
        done = made(
            making,
            data=str(data),
            scratch=str(scratch),
            outputs=job.outputs,
            task=job.name,
            run=run,
        )
        parts.append(str(store.folder), run, done.line)
        for name in job.outputs:
            os.replace(scratch / name, data / name)
        print("ran", job.name, flush=True)
        survey.finish(task, done.contents)


if __name__ == "__main__":
    publish(Path(sys.argv[1]), jobs_of(json.loads(Path(sys.argv[2]).read_text())))
