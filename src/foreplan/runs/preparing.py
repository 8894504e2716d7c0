"""Preparation of a directory before a run begins or is resumed there: one function for both.

Nobody else may have written to its `.foreplan`. Processes that killed runs left behind are ended:
they could publish over what is made now. All files that no task makes must be there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from foreplan.errors import ForeplanError, InputError
from foreplan.executors.base import find_scheme
from foreplan.executors.containers import end_containers
from foreplan.executors.processes import OF_RUN, end_left_behind, find_left_behind
from foreplan.formats.deferred import made_globs
from foreplan.model import Workflow
from foreplan.model.filenames import inner_files, is_there, suggest_pattern
from foreplan.model.growth import waiting_for
from foreplan.quantities import first_few, many, shortened
from foreplan.runs.home import RunHome, check_private
from foreplan.runs.journal import read, read_header, resume_words
from foreplan.runs.lock import DeadRun, driver, hold_alone, hold_dead_runs, is_driven, signed_runs
from foreplan.runs.replay import replay
from foreplan.store.graph import WorkflowGraph

_AT_ONCE = 200  # locks that are held together


def prepare_directory(
    directory: Path,
    workflow: Workflow | None = None,
    done: Collection[str] | None = None,
    only_look: bool = False,
    moved: RunHome | None = None,
) -> list[str]:
    """Make a directory ready for a run; return lines on what was done.

    The files of `workflow` are checked, if it is given; of a run that is resumed, those that are
    left to read once the tasks of `done` are done. With `only_look` nothing is ended. `moved` is a
    killed run that is resumed at another place: it is ended where it was, too.
    """
    data = directory.absolute()
    if not data.is_dir():
        raise InputError("there is no such directory", source=str(data))
    for place in (data / ".foreplan", data / ".foreplan" / "runs"):
        with suppress(FileNotFoundError):
            check_private(place)
    notes = _look_for_orphans(data) if only_look else _end_orphans(data)
    if moved is not None:
        notes += _end([moved])
    if workflow is not None:
        _check_inputs(workflow, data, done)
    return notes


def _end_orphans(data: Path) -> list[str]:
    """End what killed runs have left behind; they are not examined again."""
    top = data / ".foreplan"
    if not signed_runs(top):
        return []
    notes = list[str]()
    with hold_alone(top / "claims.lock"):  # whoever begins meanwhile waits until it is done
        signed = signed_runs(top)
        for first in range(0, len(signed), _AT_ONCE):
            with hold_dead_runs(signed[first : first + _AT_ONCE]) as dead:
                for run in dead:
                    _check_host(run)
                notes += _end([run.home for run in dead])
    return notes


def _end(dead: list[RunHome]) -> Iterator[str]:
    homes = {os.path.realpath(home.path): home for home in dead}
    _check_outside(homes)
    ended = end_left_behind(homes)
    _check_all_ended(homes)
    for path, home in homes.items():
        if count := sum(process.home == path for process in ended):
            yield f"ended {_processes(count)} that the killed run {home.id} left behind"
        yield from _end_elsewhere(path, home)


def _end_elsewhere(path: str, home: RunHome) -> Iterator[str]:
    """End the containers of a killed run, and its processes on other machines."""
    header = _header(home)
    specs = header.get("workflow", {}).get("specs", {}).values()
    if any("container" in spec.get("around", {}) for spec in specs):
        end_containers(path)
    if not any("run" in spec for spec in specs):
        return  # functions end with their workers
    on = str(header.get("on", ""))
    try:
        count = find_scheme(on).end_left_behind(on, path)
    except ForeplanError:
        count = None
    if count is None:
        yield f"the killed run {home.id} may have left processes on {on}, which cannot be asked"
    elif count:
        yield f"ended {_processes(count)} that the killed run {home.id} left behind on {on}"


def _look_for_orphans(data: Path) -> list[str]:
    """Say what would be ended, or refuse as a run would."""
    dead = [home for home in signed_runs(data / ".foreplan") if not is_driven(home)]
    for home in dead:
        _check_host(DeadRun(home, driver(home)))
    homes = {os.path.realpath(home.path): home for home in dead}
    found = [process.home for process in find_left_behind(homes)]
    return [
        f"would end {_processes(found.count(path))} that the killed run {home.id} left behind"
        for path, home in homes.items()
        if path in found
    ]


def _check_host(run: DeadRun) -> None:
    """Refuse if a run was killed on another host while tasks of it ran there."""
    home, died = run
    if died is None or died.is_here or not _has_open_attempts(home):
        return
    with suppress(ForeplanError):
        if not find_scheme(str(_header(home).get("on", ""))).here:
            return  # its tasks run elsewhere, and are asked for there
    raise InputError(
        f"run {home.id} was killed on host {died.host} (process {died.pid}), and tasks of it may "
        f"still run there, which would write over what is made now: a new run, or "
        f"{resume_words(home.journal)}, on {died.host} ends them; if none of them runs any more, "
        f"remove {home.lock}"
    )


def _has_open_attempts(home: RunHome) -> bool:
    """Return whether tasks ran when the driver of a run died; True if that cannot be read."""
    if not home.journal.exists():
        return False
    try:
        coordinator = replay(read(home.journal), home.data).driver.coordinator
    except ForeplanError:
        return True
    return bool(coordinator.state.running())


def _check_outside(homes: dict[str, RunHome]) -> None:
    """Refuse to go on as part of a run that was killed: it is about to be ended itself."""
    outer = homes.get(os.environ.get(OF_RUN, ""))
    if outer is not None:
        raise InputError(f"run {outer.id}, a task of which has started this, was killed")


def _check_all_ended(homes: dict[str, RunHome]) -> None:
    for process in find_left_behind(homes):
        raise InputError(
            f"process {process.pid}, which the killed run {homes[process.home].id} left behind, "
            "cannot be ended: wait for its end, and try again"
        )


def _header(home: RunHome) -> dict[str, Any]:
    try:
        return read_header(home.journal)
    except (OSError, ValueError, KeyError):  # it had not begun, or is damaged
        return {}


def _processes(count: int) -> str:
    return many(count, "process", "processes")


def _check_inputs(workflow: Workflow, data: Path, done: Collection[str] | None) -> None:
    """Refuse to run if files are not there that no task makes."""
    if done is None:
        missing = _missing(workflow, data, None)
    else:
        missing = _missing(workflow, data, _left_to_do(workflow, data, done))
    if not missing:
        return
    if done is not None:
        raise InputError(
            f"what is left of the run needs {first_few(map(shortened, missing))}, which is not "
            "there: put it there; if an earlier run has made it, `foreplan run` makes it again",
            source=str(data),
        )
    listed = first_few(
        f"{shortened(name)} (read by {_first_name(workflow, readers)})"
        if readers
        else shortened(name)
        for name, readers in missing.items()
    )
    one = len(missing) == 1
    them, they_are = ("it", "it is") if one else ("them", "they are")
    problem = (
        f"{many(len(missing), 'input file')} {'is' if one else 'are'} not in {data}, and no task "
        f"makes {them}: {listed}; put {them} there, or say with --dir where {they_are}"
    )
    reader = next((task for readers in missing.values() for task in readers), None)
    problem += _advise_on_added(workflow, reader, next(iter(missing)))
    raise InputError(problem) if reader is None else workflow.task_error(reader, problem, "inputs")


def _advise_on_added(workflow: Workflow, reader: int | None, file: str) -> str:
    """Return how a task reads a file of tasks that another adds; empty if no task adds any."""
    names = workflow.task_names
    adding = [t for t, s in workflow.specs.items() if s.expand and s.run and not made_globs(s)]
    if not adding:
        return ""
    waited_for = [t for t in adding if reader is not None and reader in waiting_for(workflow, t)]
    by, pattern = map(shortened, (names[(waited_for or adding)[0]], suggest_pattern(file)))
    return (
        f'; for a file of a task that {by} adds, write `after: [{by}]` and a pattern: "{pattern}"'
    )


def _first_name(workflow: Workflow, tasks: Sequence[int]) -> str:
    return first_few((shortened(workflow.task_names[task]) for task in tasks), 1)


def _missing(workflow: Workflow, data: Path, tasks: Collection[int] | None) -> dict[str, list[int]]:
    """The files that no task makes and that are not there, each with its readers among `tasks`."""
    names, inner = workflow.item_names or (), inner_files(workflow)
    missing = dict[str, list[int]]()
    for item in np.flatnonzero(workflow.item_producer < 0).tolist() if names else ():
        name = names[item]
        readers = workflow.use_task[slice(*workflow.use_ptr[item : item + 2])].tolist()
        if tasks is not None:
            readers = [task for task in readers if task in tasks]
        if not name or name in inner or (tasks is not None and not readers):
            continue
        if not is_there(str(data), name):
            missing[name] = readers
    return missing


def _left_to_do(workflow: Workflow, data: Path, done: Collection[str]) -> set[int]:
    """The tasks that are not done, and those that must be repeated: their files are gone."""
    graph = WorkflowGraph(workflow)
    gone = {file for file in graph.maker if not is_there(str(data), file)}
    todo = [task for task, name in enumerate(workflow.task_names) if name not in done]
    todo += [graph.maker[file] for file in gone & graph.unread]
    needed = set(todo)
    while todo:
        makers = {graph.maker[file] for file in graph.read[todo.pop()] if file in gone}
        todo += makers - needed
        needed |= makers
    return needed
