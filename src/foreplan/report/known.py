"""What the store knows of a task: what it was made from, by whom, and what has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foreplan.durable import reason as system_reason
from foreplan.errors import ForeplanError, InputError, unknown_name
from foreplan.model import Workflow
from foreplan.runs.expansions import with_expansions
from foreplan.runs.home import RunHome
from foreplan.runs.options import Options
from foreplan.runs.surveys import run_command, uses_store
from foreplan.store.changes import COMMAND, INPUT, KeyChange, changes
from foreplan.store.keys import digest_of_command
from foreplan.store.store import Result, Store
from foreplan.store.survey import Asked, State, Survey

if TYPE_CHECKING:
    from foreplan.runs.entries import Header


@dataclass(frozen=True)
class Changed:
    """A part of what a result is made from: as it was, and as it is."""

    what: str  # command, function, arguments, input, output or after
    name: str  # of a file, or of another task
    before: str | None  # the command itself, or a digest; None: it was not there
    after: str | None
    made_by: str = ""  # the run that made what is there now


@dataclass(frozen=True)
class KnownTask:
    """What is known of a task's results beyond one run."""

    made_by: str = ""  # the run of the last result; empty: none is known, or it was adopted
    made_at: float | None = None  # seconds since 1970
    note: str = ""  # what is said of that result
    now: str | None = None  # up to date, stale, unsure; None: it was not looked
    reason: str = ""  # why it is not
    edited: str = ""  # an output that somebody has changed by hand
    remake: str = ""  # the command that makes an edited output again
    since: str = ""  # the run of the result that what has changed is compared with
    changed: tuple[Changed, ...] = ()
    problem: str = ""  # why it could not be looked


def is_keyed(header: Header) -> bool:
    """Whether results of a run are known by what they are made from."""
    return bool(header.reasons) or (not header.functions and uses_store(None, header.options))


def known_of_workflow(
    directory: Path, source: str | Path, task: str, params: Mapping[str, object]
) -> KnownTask:
    """As the workflow's file and the directory are now."""
    from foreplan import api

    workflow = api.load(source, params=params, dir=directory)
    workflow = with_expansions(workflow, Options(directory=directory))
    if task not in workflow.task_names:
        raise InputError(unknown_name("task", task, workflow.task_names), source=str(source))
    options = Options(directory=directory, params=params)
    return _now(workflow, task, source, options)


def known_of_run(home: RunHome, header: Header, task: str, live: bool = False) -> KnownTask | None:
    """What made a task run, or not, in a run; and how it stands now, if the run is over."""
    if not is_keyed(header):
        return None
    store = Store.read(home.data)
    last = _results(store, header.workflow, task)
    own = next((k for k, result in enumerate(last) if result.run == home.id), None)
    now = None if live or header.functions else _looked(home, header, task)
    if own is not None and last[own].key is not None:
        before = _before(last, own)
        changed = () if before is None else _compared(home.data, store, before, last[own])
        found = _of(last[own], "" if before is None else before.run, changed)
    elif now is not None:
        return now
    else:
        found = _of(last[0] if last else None, "", ())
    if now is None:
        return found
    return replace(
        now,
        made_by=found.made_by,
        made_at=found.made_at,
        note=found.note,
        since=found.since,
        changed=found.changed,
    )


def _looked(home: RunHome, header: Header, task: str) -> KnownTask | None:
    """How a task stands by the workflow's file as it is now; None if there is none."""
    from foreplan import api

    if header.source is None or not Path(header.source).exists():
        return None
    try:
        workflow = api.load(header.source, params=header.options.params, dir=home.data)
        workflow = with_expansions(workflow, replace(header.options, targets=(), force=False))
        if task not in workflow.task_names:
            known = header.workflow.task_names
            by = header.workflow.spec(known.index(task)).added_by if task in known else None
            if by is not None:
                return KnownTask(problem=f"{by}, which has added it, is not up to date")
            return KnownTask(problem=f"{header.source} has no such task any more")
        options = replace(header.options, directory=home.data)
        return _now(workflow, task, header.source, options)
    except ForeplanError as error:
        return KnownTask(problem=str(error))
    except OSError as error:
        return KnownTask(problem=system_reason(error))


def _now(workflow: Workflow, task: str, source: str | Path, options: Options) -> KnownTask:
    """By the survey of the whole workflow: what is before a task counts, too."""
    data = options.directory.absolute()
    asked = Asked(trust=options.trust, anywhere=options.absolute)
    store = Store.read(data)
    survey = Survey(workflow, data, store, asked)
    index = workflow.task_names.index(task)
    state, result = survey.states[index], survey.results[index]
    last = _results(store, workflow, task)
    edited = next((file for file, of in survey.edited if of == task), "")
    plain = replace(options, targets=())
    remake = run_command(source, plain, "--force", task) if edited else ""
    if state is State.UP_TO_DATE:
        found = _of(result, "", ())
        return replace(found, now=state.value, edited=edited, remake=remake)
    known, changed = _of(last[0] if last else None, "", ()), tuple[Changed, ...]()
    recipe = survey.making(index).recipe if last else None
    if last and last[0].key is not None and recipe is not None:
        found_changes = changes(last[0].recipe, last[0].outputs, recipe.parts, recipe.outputs)
        now = _command_of(workflow, task)
        changed = tuple(_told(data, store, last[0], c, now, workflow) for c in found_changes)
    reason = survey.reasons[index]
    known = replace(known, now=state.value, reason=reason, edited=edited, remake=remake)
    return replace(known, since=known.made_by, changed=changed)


def _results(store: Store, workflow: Workflow, task: str) -> list[Result]:
    """What the task, or another that made its outputs, has given, the latest first."""
    names = workflow.item_names or ()
    if task in workflow.task_names:
        index = workflow.task_names.index(task)
        items = workflow.out_item[workflow.out_ptr[index] : workflow.out_ptr[index + 1]].tolist()
        for item in items if names else ():
            name = names[item]
            if name is not None and (made := store.made(name)):
                return made
    return store.of_task(task)


def _before(results: list[Result], own: int) -> Result | None:
    """The last result before one, of another run."""
    for result in results[own + 1 :]:
        if result.run != results[own].run:
            return result
    return None


def _of(result: Result | None, since: str, changed: tuple[Changed, ...]) -> KnownTask:
    if result is None:
        return KnownTask()
    return KnownTask(result.run, result.at, result.note, since=since, changed=changed)


def _compared(data: Path, store: Store, old: Result, new: Result) -> tuple[Changed, ...]:
    """What is different between what two results were made from."""
    if old.key is None:
        return ()
    found = changes(old.recipe, old.outputs, new.recipe, new.outputs)
    later = _workflow_of(data, new.run)
    text = None if later is None else _command_of(later, new.task)
    return tuple(_told(data, store, old, change, text, later) for change in found)


def _told(
    data: Path, store: Store, old: Result, change: KeyChange, now: str | None,
    workflow: Workflow | None,
) -> Changed:  # fmt: skip
    """A change, with the words of commands and the makers of files where they are known."""
    if change.what == COMMAND:
        former = _workflow_of(data, old.run)
        then = None if former is None else _command_of(former, old.task, change.before)
        return Changed(change.what, "", then or change.before, now or change.after)
    made_by = ""
    if change.what == INPUT and change.after is not None:
        made = (r for r in store.made(change.name) if r.outputs[change.name][3] == change.after)
        made_by = next((result.run for result in made), "")
    return Changed(change.what, change.name, change.before, change.after, made_by)


def _command_of(workflow: Workflow, task: str, how: str | None = None) -> str | None:
    """The command of a task; if a digest is given, of whichever task it is that of."""
    names = workflow.task_names
    own = [names.index(task)] if task in names else []
    candidates: Iterable[int] = own if how is None else (*own, *range(workflow.n_tasks))
    for index in candidates:
        spec = workflow.spec(index)
        if how is None or digest_of_command(spec) == how:
            return spec.run
    return None


def _workflow_of(data: Path, run: str) -> Workflow | None:
    """The workflow of another run, if that is still there and can be read."""
    from foreplan.runs.entries import workflow_from_entry
    from foreplan.runs.home import runs
    from foreplan.runs.journal import read_header

    try:
        (home,) = (home for home in runs(data) if home.id == run)
        return workflow_from_entry(read_header(home.journal)["workflow"])
    except (ForeplanError, OSError, KeyError, ValueError):
        return None
