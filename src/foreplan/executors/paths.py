"""Names of files: a workflow's, none of which leaves the run's directory, and those of logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache

from foreplan.errors import InputError
from foreplan.files import unencodable
from foreplan.model.filenames import is_pattern, is_tree
from foreplan.model.growth import is_expansion_file
from foreplan.model.workflow import Workflow

OWN = ".foreplan"  # where runs keep what is theirs
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")


def log_name(attempt: int, task: str) -> str:
    """What the logs of an attempt are called, without their endings."""
    return f"{attempt}-{_ODD.sub('_', task)[:60]}"


@lru_cache(maxsize=1)  # a run is checked where it is read, begun and performed
def check_paths(
    workflow: Workflow, absolute_ok: bool = False, functions: frozenset[int] = frozenset()
) -> None:
    """An InputError unless every task has something to run, and every file a place of its own.

    Where links lead is seen only when files are read and published.
    """
    for task, name in enumerate(workflow.task_names):
        if task not in functions and not (workflow.spec(task).run or "").strip():
            raise InputError(
                "it has no command to run: give it one with 'run'", place=f"tasks.{name}"
            )
    _check_encoding(workflow)
    names = [
        name
        for item, name in enumerate(workflow.item_names or ())
        if name is not None and not (name.startswith(OWN) and is_expansion_file(workflow, item))
    ]
    for name in names:
        problem = _problem(name, absolute_ok)
        if problem is not None:
            raise InputError(problem, place=f"file {name!r}")
    for item, file in enumerate(workflow.item_names or ()):
        outside = file is not None and is_tree(file) and os.path.isabs(file)
        if outside and workflow.item_producer[item] >= 0:
            problem = "a directory that a task makes is published in the run's directory"
            raise InputError(problem, place=f"file {file!r}")
    _check_clashes(names)


def _check_encoding(workflow: Workflow) -> None:
    """Refuse names and commands that this locale cannot pass to the system."""
    for name in workflow.item_names or ():
        if name is not None and not name.isascii():
            _check_text(name, f"file {name!r}")
    for task, name in enumerate(workflow.task_names):
        spec = workflow.spec(task)
        variables = () if spec.around is None else spec.around.env
        for text in (name, spec.run, spec.shell, *(value for pair in variables for value in pair)):
            if text is not None and not text.isascii():
                _check_text(text, f"tasks.{name}")


def _check_text(text: str, place: str) -> None:
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise InputError(unencodable(error), place=place) from None


def _problem(name: str, absolute_ok: bool) -> str | None:
    if not name or "\0" in name:
        return "this is not a name of a file"
    if os.path.isabs(name) and not absolute_ok:
        return (
            "this is an absolute path: name files relative to the run's directory, "
            "or allow it with --absolute-paths"
        )
    normal = os.path.normpath(name) + ("/" if is_tree(name) else "")
    if is_pattern(name) and os.path.isabs(name):
        return "a pattern is of files in the run's directory"
    parts = normal.split("/")
    if parts[0] == "..":
        return (
            "this leaves the run's directory; where that is wanted, give an absolute path "
            "and --absolute-paths"
        )
    if normal in (".", "./"):
        return "this is the run's directory itself, not a file in it"
    if parts[0] == OWN:
        return f"{OWN} is where foreplan keeps its own files; choose another place"
    if normal != name:
        return f"one file must not have two names: write it as {normal!r}"
    return None


def _check_clashes(names: Iterable[str]) -> None:
    known, folders = set(names), set[str]()
    for name in sorted(known):
        parent = name.rpartition("/")[0]
        while parent and parent not in folders:
            if parent in known:
                raise InputError(
                    f"{parent!r} is a file too: one path cannot be both a file and a directory",
                    place=f"file {name!r}",
                )
            folders.add(parent)
            parent = parent.rpartition("/")[0]
