"""Names of files: a workflow's, none of which leaves the run's directory, and those of logs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache

from foreplan.errors import InputError
from foreplan.files import unencodable
from foreplan.model.filenames import is_pattern, is_tree
from foreplan.model.growth import is_expansion_file
from foreplan.model.workflow import Workflow
from foreplan.quantities import shortened

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
    for task in range(workflow.n_tasks):
        if task not in functions and not (workflow.spec(task).run or "").strip():
            raise workflow.task_error(task, "it has no command to run: give it one with 'run'")
    _check_encoding(workflow)
    files = {
        name: item
        for item, name in enumerate(workflow.item_names or ())
        if name is not None and not (name.startswith(OWN) and is_expansion_file(workflow, item))
    }
    for name, item in files.items():
        problem = _problem(name, absolute_ok)
        if is_tree(name) and os.path.isabs(name) and workflow.item_producer[item] >= 0:
            problem = problem or "a directory that a task makes is published in the run's directory"
        if problem is not None:
            raise _file_error(workflow, item, problem)
    _check_clashes(workflow, files)


def _file_error(workflow: Workflow, item: int, problem: str) -> InputError:
    """Return an error about a file, at the task that makes it, or else at one that reads it."""
    maker = int(workflow.item_producer[item])
    field = "inputs" if maker < 0 else "outputs"
    task = maker if maker >= 0 else int(workflow.use_task[workflow.use_ptr[item]])
    file = shortened(workflow.item_name(item))
    return workflow.task_error(task, f"the file {file!r}: {problem}", field)


def _check_encoding(workflow: Workflow) -> None:
    """Refuse names and commands that this locale cannot pass to the system."""
    for item, name in enumerate(workflow.item_names or ()):
        if name is not None and (problem := _encoding_problem(name)):
            raise _file_error(workflow, item, problem)
    for task, name in enumerate(workflow.task_names):
        spec = workflow.spec(task)
        variables = () if spec.around is None else spec.around.env
        for text in (name, spec.run, spec.shell, *(value for pair in variables for value in pair)):
            if text is not None and (problem := _encoding_problem(text)):
                raise workflow.task_error(task, problem)


def _encoding_problem(text: str) -> str:
    if text.isascii():
        return ""
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        return unencodable(error)
    return ""


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
        return f"one file must not have two names: write it as {shortened(normal)!r}"
    return None


def _check_clashes(workflow: Workflow, files: Mapping[str, int]) -> None:
    folders = set[str]()
    for name in sorted(files):
        parent = name.rpartition("/")[0]
        while parent and parent not in folders:
            if parent in files:
                problem = f"{shortened(parent)!r} is a file too"
                how = "one path cannot be both a file and a directory"
                raise _file_error(workflow, files[name], f"{problem}: {how}")
            folders.add(parent)
            parent = parent.rpartition("/")[0]
