"""A task of a run, by its name: what people ask about."""

from __future__ import annotations

from foreplan.errors import InputError, unknown_name
from foreplan.runs.entries import Header

UP_TO_DATE, LEFT_OUT = "up to date", "left out"


def standing(header: Header, task: str) -> str | None:
    """Why a task of the workflow is no part of a run: UP_TO_DATE or LEFT_OUT; None if it is.

    One that nobody knows is an InputError, which names the nearest.
    """
    if task in header.workflow.task_names:
        return None
    if task in header.up_to_date:
        return UP_TO_DATE
    if task in header.left_out:
        return LEFT_OUT
    known = (*header.workflow.task_names, *header.up_to_date, *header.left_out)
    raise InputError(unknown_name("task", task, known))


def number_of(header: Header, task: str) -> int:
    """The number of a task in a run; an InputError if it is no part of it."""
    why = standing(header, task)
    if why == UP_TO_DATE:
        raise InputError(
            f"{task} is no part of run {header.id}: it was up to date when that began; "
            f"`foreplan why {task}` says by what"
        )
    if why == LEFT_OUT:
        raise InputError(
            f"{task} is no part of run {header.id}: nothing that was asked for needs it"
        )
    return header.workflow.task_names.index(task)
