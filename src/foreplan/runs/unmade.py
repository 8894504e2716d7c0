"""Outputs that no task makes any more: counted by runs, found and checked for `foreplan clean`."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from foreplan import formats
from foreplan.errors import ForeplanError
from foreplan.model import Workflow
from foreplan.model.filenames import fixed_folder, is_pattern, is_tree
from foreplan.quantities import many
from foreplan.runs.expansions import survey_with_expansions
from foreplan.runs.options import Options, parameters
from foreplan.store.content import MTIME, Memory, Status
from foreplan.store.run import RunStore
from foreplan.store.store import ResultOrigin, Store
from foreplan.store.survey import State
from foreplan.store.unmade import FilesInUse, Orphan, find_orphans, folders_of, orphans_on_disk


def origin_of(source: str | None, options: Options) -> ResultOrigin | None:
    """Return what results of a run are known by: the file of its workflow, and its parameters."""
    if source is None:
        return None
    folder, name = os.path.split(os.path.abspath(source))
    path = os.path.join(os.path.realpath(folder), name)
    data = os.path.realpath(options.directory)
    within = path.startswith(data + "/")
    params = json.dumps(options.kept_params(), sort_keys=True)
    return ResultOrigin(os.path.relpath(path, data) if within else path, params)


def note_origin(store: RunStore | None, source: str | None, options: Options) -> None:
    """Have the store know the workflow file and the parameters of a run."""
    origin = origin_of(source, options)
    if store is not None and origin is not None:
        with suppress(OSError):  # its outputs will never count as left over
            store.add_origin(origin)


def report_orphans(
    store: Store,
    source: str | None,
    options: Options,
    *workflows: Workflow,
) -> list[str]:
    """Return a sentence on the outputs that a workflow file made and has no tasks for any more.

    Its tasks are in `workflows`, together. Outputs that `foreplan clean` would keep do not count.
    No file is read: one whose time has changed counts as edited.
    """
    origin = origin_of(source, options)
    if origin is None:
        return []
    count = 0
    with suppress(OSError, ForeplanError):  # the run has ended well without it
        in_use = FilesInUse(store, workflows, {origin})
        data = store.folder.parents[1]
        memory = store.memory(MTIME)
        found = orphans_on_disk(store, in_use, origin)
        looks = (_look(data, memory, orphan, file) for orphan, file in found)
        count = sum(isinstance(left, LeftFile) for left in looks)
    if not count:
        return []
    where = "" if options.directory == Path() else f" --dir {shlex.quote(str(options.directory))}"
    them = "it" if count == 1 else "them"
    return [
        f"no task makes {many(count, 'earlier output')} any more: "
        f"`foreplan clean --outputs{where}` lists {them}"
    ]


class LeftFile(NamedTuple):
    """An orphan on disk, as a task has made it."""

    name: str
    status: Status  # if that changes, it stays
    about: str


class KeptFile(NamedTuple):
    """An orphan on disk that is not deleted."""

    name: str
    reason: str


@dataclass
class Leftovers:
    """The outputs of a directory that no task makes any more."""

    files: list[LeftFile] = field(default_factory=list)
    kept: list[KeptFile] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # of orphans and temporary outputs
    notes: list[str] = field(default_factory=list)


def find_leftovers(data: Path) -> Leftovers:
    """Find the outputs that no task makes any more, and the folders that these leave empty."""
    store = Store.read(data)
    found = Leftovers()
    workflows = dict[ResultOrigin, Workflow]()
    reasons = dict[ResultOrigin, str]()
    for origin in {*store.origins.values()}:
        try:
            workflow, why = _load(data, origin)
        except ForeplanError as error:
            reasons[origin] = str(error)
            continue
        workflows[origin] = workflow
        if why:
            reasons[origin] = why
    judged = workflows.keys() - reasons.keys()
    in_use = FilesInUse(store, [*workflows.values()], judged)
    orphans, doubtful = find_orphans(store, in_use, judged)
    memory = store.memory()
    for orphan in orphans:
        for file in orphan.files():
            if not in_use.has(file) and (left := _look(data, memory, orphan, file)):
                found.files.append(left) if isinstance(left, LeftFile) else found.kept.append(left)
    found.notes += _doubts(doubtful, reasons)
    temporary = filter(store.knows, in_use.temporary)
    found.folders = _folders(data, [*(o.name for o in orphans), *temporary], in_use)
    return found


def empty_folders(data: Path, folders: list[str]) -> list[str]:
    """Return the folders in which there is nothing but others of these that are empty, too."""
    empty = set[str]()
    for folder in folders:
        if _is_plain(data, folder):
            with os.scandir(data / folder) as listing:
                if all(f"{folder}/{inner.name}" in empty for inner in listing):
                    empty.add(folder)
    return [folder for folder in folders if folder in empty]


def _load(data: Path, origin: ResultOrigin) -> tuple[Workflow, str]:
    """Return a workflow as its file is now, and why it may make more than is known."""
    params = parameters(json.loads(origin.params))
    workflow = formats.load(data / origin.source, params=params, directory=data)
    if not workflow.grows:
        return workflow, ""
    survey = survey_with_expansions(workflow, Options(directory=data))
    names = survey.workflow.task_names
    for task, spec in survey.workflow.specs.items():
        if spec.expand and survey.states[task] is not State.UP_TO_DATE:
            return survey.workflow, f"which tasks {names[task]} adds is not known before it has run"
    return survey.workflow, ""


def _look(data: Path, memory: Memory, orphan: Orphan, file: str) -> LeftFile | KeptFile | None:
    """Return what is to be done with an orphan; None if it is not there."""
    path = data / file
    if not os.path.lexists(str(path)):
        return None
    if reason := shield_of(data, file):
        return KeptFile(file, reason)
    try:
        content = memory.content(file)
        status = memory.status(file)
    except ForeplanError as error:
        return KeptFile(file, str(error))
    own, adopted = orphan.contents(file)
    if content in adopted:
        return KeptFile(file, "somebody has adopted it")
    if content is None or status is None or content not in own:
        return KeptFile(file, "somebody has changed it")
    last = orphan.made[0]
    return LeftFile(file, status, f"of {last.task}, run {last.run}")


def shield_of(data: Path, file: str) -> str:
    """Return why an orphan must not be deleted, whatever is in it; empty if nothing forbids it."""
    if os.path.isabs(file) or ".." in file.split("/"):
        return "it is outside of the directory"
    path = str(data / file)
    if os.path.islink(path):
        return "it is a link"
    if os.path.realpath(path) != os.path.join(os.path.realpath(data), file.rstrip("/")):
        return "a link leads to it"
    if is_tree(file) != os.path.isdir(path):
        return "it is a directory now" if os.path.isdir(path) else "it is a file now"
    places = [path, *(os.path.join(top, name) for top, _, names in os.walk(path) for name in names)]
    if any(not os.lstat(place).st_mode & 0o222 for place in places):
        return "it is protected"
    return ""


def _doubts(doubtful: Counter[ResultOrigin], reasons: dict[ResultOrigin, str]) -> Iterator[str]:
    """Return a sentence for each workflow file of which it is not known what it makes now."""
    for origin, count in doubtful.items():
        yield f"{many(count, 'output')} of {origin.source} may be left over: {reasons[origin]}"


def _folders(data: Path, names: list[str], in_use: FilesInUse) -> list[str]:
    """Return the folders that foreplan made for outputs, the inner ones first."""
    inside = (name for name in names if not os.path.isabs(name) and ".." not in name.split("/"))
    found = set[str]()
    for name in inside:
        first = f"{fixed_folder(name)}/x" if is_pattern(name) else name
        found |= {folder for folder in folders_of(first) if not in_use.keeps_folder(folder)}
    return sorted(found, key=lambda folder: (-folder.count("/"), folder))


def _is_plain(data: Path, folder: str) -> bool:
    """Return whether a folder is there, and no link leads to it."""
    path = os.path.join(os.path.realpath(data), folder)
    return os.path.realpath(path) == path and os.path.isdir(path)
