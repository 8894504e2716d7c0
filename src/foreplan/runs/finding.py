"""A task of a run, by its name: what people ask about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from foreplan.errors import InputError, unknown_name
from foreplan.formats import is_workflow_name
from foreplan.runs.entries import Header
from foreplan.runs.home import RunHome, runs
from foreplan.runs.journal import read_header

UP_TO_DATE, LEFT_OUT = "up to date", "left out"


def standing(header: Header, task: str) -> str | None:
    """Return why a run leaves a task of its workflow out: UP_TO_DATE or LEFT_OUT; else None.

    An unknown task is an InputError, which names the nearest.
    """
    if task in header.workflow.task_names:
        return None
    if task in header.up_to_date:
        return UP_TO_DATE
    if task in header.left_out:
        return LEFT_OUT
    known = (*header.workflow.task_names, *header.up_to_date, *header.left_out)
    if is_workflow_name(task):
        raise InputError(
            f"run {header.id} has no task {task!r}: if that is a workflow's file, name a task "
            "after it"
        )
    raise InputError(unknown_name("task", task, known))


def earlier_runs_with(home: RunHome, task: str) -> Iterator[RunHome]:
    """Return the runs of the same workflow's file that may have run a task, the newest first.

    There are none if the run itself does not leave the task out.
    """

    def leaves_out(header: dict[str, Any]) -> bool:
        return task in header.get("up_to_date", ()) or task in header.get("left_out", ())

    header = read_header(home.journal)
    for other in runs(home.data) if leaves_out(header) else ():
        with suppress(OSError, ValueError, KeyError):  # its journal is unreadable
            then = read_header(other.journal)
            if then.get("source") == header.get("source") and not leaves_out(then):
                yield other


def number_of(header: Header, task: str) -> int:
    """Return the number of a task in a run; an InputError if the run leaves it out."""
    why = standing(header, task)
    if why == UP_TO_DATE:
        raise InputError(
            f"{task} did not run in {header.id}: it was up to date when that run began; "
            f"`foreplan why {task}` names the run that made its outputs"
        )
    if why == LEFT_OUT:
        raise InputError(f"{task} did not run in {header.id}: no target of that run needs it")
    return header.workflow.task_names.index(task)
