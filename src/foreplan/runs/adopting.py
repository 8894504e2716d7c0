"""Outputs that were made elsewhere, or changed by hand, as what their tasks give."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from foreplan.durable import reason
from foreplan.errors import InputError
from foreplan.model import Workflow
from foreplan.runs.expansions import with_expansions
from foreplan.runs.home import check_system
from foreplan.runs.options import Options
from foreplan.runs.surveys import survey_of
from foreplan.store.graph import WorkflowGraph
from foreplan.store.parts import Part, make_folder, parse
from foreplan.store.store import StoreError
from foreplan.store.survey import State, Survey


def adopt_files(workflow: Workflow, directory: Path, files: Sequence[str]) -> list[str]:
    """Have outputs count as what their tasks give from what is there now; the tasks."""
    check_system()
    options = Options(directory=directory)
    workflow = with_expansions(workflow, options)
    survey = survey_of(workflow, options)
    lines, tasks = survey.adopt(files), survey.makers(files)
    survey.store.add_lines(parse(b"".join(lines)).lines)
    _check_adopted(Survey(workflow, survey.memory.data, survey.store, survey.asked), tasks)
    make_folder(directory)
    part = Part(survey.store.folder, f"adopted-{secrets.token_hex(4)}")
    try:
        part.append(b"".join(lines))
    except OSError as error:
        raise StoreError(f"{survey.store.folder}: {reason(error)}: nothing is adopted") from None
    finally:
        part.close()
    return [workflow.task_names[task] for task in tasks]


def makes(workflow: Workflow, directory: Path, file: str) -> bool:
    """Return whether a task of a workflow makes a file, tasks added by earlier runs included."""
    return file in WorkflowGraph(with_expansions(workflow, Options(directory=directory))).maker


def _check_adopted(survey: Survey, tasks: Collection[int]) -> None:
    """Refuse to adopt what the next run would make again all the same."""
    names = survey.workflow.task_names
    for task in tasks:
        if survey.states[task] is State.UP_TO_DATE:
            continue
        why, waits = survey.reasons[task], survey.waited_for(task)
        told = (
            f"what {names[task]} gives cannot be adopted: the next run would make it again ({why})"
        )
        if waits:
            first = waits[0]
            files = " ".join(map(shlex.quote, survey.outputs(first)))
            told += (
                f", since {names[first]} is not up to date: {survey.reasons[first]}. Make that "
                f"first (`foreplan run FILE {names[first]}`)"
                + (f", or adopt {files}, too" if files else "")
            )
        raise InputError(told)
