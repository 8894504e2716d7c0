"""The names of a workflow's files, before anything runs: none leaves the run's directory."""

from __future__ import annotations

import os
from collections.abc import Iterable

from weft.errors import InputError
from weft.model.workflow import Workflow

OWN = ".weft"  # where runs keep what is theirs


def check_paths(workflow: Workflow, absolute_ok: bool = False) -> None:
    """An InputError unless every task has a command, and every file a place of its own.

    Where links lead is seen only when files are read and published.
    """
    for task, name in enumerate(workflow.task_names):
        if not (workflow.spec(task).run or "").strip():
            raise InputError(
                "it has no command to run: give it one with 'run'", place=f"tasks.{name}"
            )
    names = [name for name in workflow.item_names or () if name is not None]
    for name in names:
        problem = _problem(name, absolute_ok)
        if problem is not None:
            raise InputError(problem, place=f"file {name!r}")
    _check_clashes(names)


def _problem(name: str, absolute_ok: bool) -> str | None:
    if not name or "\0" in name:
        return "this is not a name of a file"
    if os.path.isabs(name) and not absolute_ok:
        return (
            "this is an absolute path: name files relative to the run's directory, "
            "or allow it with --absolute-paths"
        )
    normal = os.path.normpath(name)
    parts = normal.split("/")
    if parts[0] == "..":
        return (
            "this leaves the run's directory; where that is wanted, give an absolute path "
            "and --absolute-paths"
        )
    if normal == ".":
        return "this is the run's directory itself, not a file in it"
    if parts[0] == OWN:
        return f"{OWN} is where weft keeps its own files; choose another place"
    if normal != name:
        return f"one file must not have two names: write it as {normal!r}"
    return None


def _check_clashes(names: Iterable[str]) -> None:
    known = set(names)
    for name in sorted(known):
        parent = os.path.dirname(name)
        while parent not in ("", "/"):
            if parent in known:
                raise InputError(
                    f"{parent!r} is a file too: one path cannot be both a file and a directory",
                    place=f"file {name!r}",
                )
            parent = os.path.dirname(parent)
