"""Where measurements come from, and how near that is to a workflow that is asked about."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from weft.model import Call, Workflow
from weft.model.call import qualified_name

_WORDS = re.compile(r"([^\w./-]+)")  # what stands between words of a command, kept by split
_FILE = "\0"  # in the place of a file's name: no command has it


class Level(IntEnum):
    """How near a measurement is to who asks, the nearest first."""

    OWN = 0  # the same workflow in the same directory
    NEAR = 1  # another workflow of that directory
    FAR = 2  # another directory: there the same name need not mean the same work
    OLD = 3  # from before directories were kept: only the workflow's name is known


class Row(NamedTuple):
    """Measurements of one kind: of a category, as near as this.

    Far ones are marked by their command, old ones by their workflow: else one project's `align`
    would pass for another's.
    """

    level: Level
    category: str
    mark: str = ""


@dataclass(frozen=True)
class Origin:
    """Who measures or asks: a workflow by its name, in a data directory."""

    directory: str
    workflow: str

    @staticmethod
    def of(workflow: Workflow, directory: str | PathLike[str]) -> Origin:
        """The origin of what a workflow does in a directory, whatever way leads there."""
        return Origin(str(Path(directory).resolve()), workflow.name)

    def row(self, category: str, command: str, directory: str, workflow: str) -> Row:
        """The row of a measurement that has this origin, as this one sees it."""
        if not directory:
            return Row(Level.OLD, category, workflow)
        if directory != self.directory:
            return Row(Level.FAR, category, command)
        return Row(Level.OWN if workflow == self.workflow else Level.NEAR, category)


def categories_of(workflow: Workflow) -> tuple[str, ...]:
    """The category of every task under which history knows it; its own name if it has none."""
    return tuple(
        workflow.spec(task).category or f"{workflow.name}/{name}"
        for task, name in enumerate(workflow.task_names)
    )


def commands_of(workflow: Workflow, calls: Sequence[Call] | None = None) -> tuple[str, ...]:
    """The mark of every task's command, by which it is known in other directories; empty if none.

    A function is known by its module and name. In a command the names of the task's own files do
    not count: it is the same command for other files.
    """
    if calls is not None:
        return tuple(_digest(qualified_name(call.function)) for call in calls)
    texts = [workflow.spec(task).run for task in range(workflow.n_tasks)]
    return tuple(
        "" if text is None else _digest(_template(text, _files(workflow, task)))
        for task, text in enumerate(texts)
    )


def _files(workflow: Workflow, task: int) -> set[str | None]:
    names = workflow.item_names
    if names is None:
        return set()
    read = workflow.in_item[workflow.in_ptr[task] : workflow.in_ptr[task + 1]]
    written = workflow.out_item[workflow.out_ptr[task] : workflow.out_ptr[task + 1]]
    return {names[item] for item in (*read.tolist(), *written.tolist())}


def _template(command: str, files: set[str | None]) -> str:
    """The command with a sign in the place of every word that names one of the files."""
    return "".join(_FILE if word in files else word for word in _WORDS.split(command.strip()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
