"""What a directory tells of a workflow before it is run, and what a run may not touch there."""

from __future__ import annotations

import fnmatch
import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from foreplan.errors import InputError, unknown_name
from foreplan.executors.results import KeptResults
from foreplan.files import near
from foreplan.model import Workflow
from foreplan.model.call import Calls
from foreplan.model.filenames import is_many
from foreplan.runs.entries import Header
from foreplan.runs.home import check_private
from foreplan.runs.options import Options
from foreplan.store.content import CONTENT
from foreplan.store.store import Store
from foreplan.store.survey import Asked, State, Survey

LISTED = 5  # tasks or files that are named


def uses_store(calls: Calls | None, options: Options) -> bool:
    """Whether results are known by their keys: not by times of files that were made elsewhere."""
    return calls is not None or not _is_carried(options) or options.trust == CONTENT


def _is_carried(options: Options) -> bool:
    """Whether the files of commands travel to the machines and back."""
    from foreplan.executors.base import find_scheme

    return not (find_scheme(options.on).here or options.shared)


def survey_of(
    workflow: Workflow,
    options: Options,
    done: Collection[str] = (),
    header: Header | None = None,
    calls: Calls | None = None,
    kept: KeptResults | None = None,
    replaces: Collection[str] | None = None,
    again: Mapping[str, str] | None = None,
    waiting: Collection[str] = (),
) -> Survey:
    """Compare a workflow with its directory and the store.

    The tasks of `again` are run, too, for the reason that stands there; those that are `waiting`
    are left out.
    """
    data = options.directory.absolute()
    store = Store.read(data)
    asked = Asked(
        options.targets,
        force=_forced(workflow, options.force),
        again=again or {},
        waiting=waiting,
        done=done,
        after={} if header is None else header.after,
        trust=options.trust,
        replaces=named_by_force(workflow, options) if replaces is None else replaces,
        keeps_temp=header is not None and bool(header.left_out),
        temp={} if header is None else header.temp,
        anywhere=options.absolute,
    )
    if kept is not None:
        asked = replace(asked, after={}, temp={})  # all tasks are surveyed
        asked = replace(asked, every_result=options.keep_results is True, has_result=kept.has)
        return Survey(workflow, data, store, asked, calls)
    asked = replace(asked, carried=_is_carried(options))
    return Survey(workflow, data, store, asked)


def kept_results(directory: Path) -> KeptResults:
    """The results of a directory's runs; they are pickles, which run code."""
    data = directory.absolute()
    for place in (data / ".foreplan", data / ".foreplan" / "runs"):
        if place.exists():
            check_private(place)
    return KeptResults(data)


def still_forced(workflow: Workflow, options: Options, done: Collection[str]) -> tuple[str, ...]:
    """The tasks that a run which is resumed has still to run, whatever is known of them."""
    force = _forced(workflow, options.force)
    names = {*workflow.task_names} if force is True else force or set[str]()
    return tuple(names - {*done})


def _forced(workflow: Workflow, wanted: bool | Sequence[str]) -> bool | set[str]:
    """The tasks that are meant by names and patterns."""
    if isinstance(wanted, bool):
        return wanted
    names, found = workflow.task_names, set[str]()
    for pattern in wanted:
        meant = {pattern} if pattern in names else set(fnmatch.filter(names, pattern))
        if not meant:
            raise InputError(unknown_name("task", pattern, names))
        found |= meant
    return found


def named_by_force(workflow: Workflow, options: Options) -> set[str]:
    """The tasks that may replace what is protected: those that are named, not just all."""
    named = () if isinstance(options.force, bool) else options.force
    forced = _forced(workflow, tuple(pattern for pattern in named if pattern != "*"))
    return set() if isinstance(forced, bool) else forced


def run_command(source: str | Path, options: Options, *more: str) -> str:
    """Return the command that runs a workflow file with these options, as it must be typed here."""
    from foreplan.executors.base import DEFAULT

    words = ["foreplan", "run", near(Path(source)), *options.targets]
    words += [] if options.place == DEFAULT else ["--on", options.place]
    words += ["--shared"] * options.shared + ["--absolute-paths"] * options.absolute
    words += [] if options.trust == CONTENT else ["--trust", options.trust]
    for name, value in options.params.items():
        is_plain = isinstance(value, str | float)  # numbers as they were written
        text = str(value) if is_plain else json.dumps(value, ensure_ascii=False)
        words += ["--set", f"{name}={text}"]
    try:
        is_here = options.directory.absolute() == Path.cwd()
    except OSError:
        is_here = False
    words += [] if is_here else ["--dir", near(options.directory)]
    return shlex.join([*words, *more])


def force_command(source: str | Path | None, options: Options, task: str) -> str:
    """Return the command, or the call in Python, that runs a task whatever is known of it."""
    if source is None:
        return f"foreplan.run(..., force=[{task!r}])"
    # a target may be another task, which does not need this one
    return f"`{run_command(source, replace(options, targets=()), '--force', task)}`"


def check_protected(
    survey: Survey, options: Options, source: str | None, run: str = ""
) -> tuple[str, ...]:
    """Refuse to make protected outputs again; return warnings about those that may have to be.

    A task is only known to run again when the tasks before it have run: they may give what they
    gave before.
    """
    names = survey.workflow.task_names
    for task in survey.tasks(State.STALE):
        if file := survey.shielded(task, run):
            why = survey.reasons[task]
            told = f" ({why})" if why else ""
            raise InputError(
                f"{file} is protected, and {names[task]} would make it again{told}: "
                f"{force_command(source, options, names[task])} does"
            )
    found = [(t, file) for t in survey.tasks(State.UNSURE) if (file := survey.shielded(t, run))]
    lines = [
        f"{file} is protected: {names[task]} fails if it has to run again "
        f"({survey.reasons[task]}); {force_command(source, options, names[task])} lets it"
        for task, file in found[:LISTED]
    ]
    more = f"so are outputs of {len(found) - LISTED} other tasks that may have to run again"
    return (*lines, *([more] if found[LISTED:] else ()))


def check_edited(
    survey: Survey,
    options: Options,
    source: str | None,
    otherwise: str = "",
    of_flow: bool = False,
    tasks: Collection[str] | None = None,
) -> None:
    """Refuse to write over files changed by hand, or to delete files that foreplan never made.

    With `tasks`, these alone are looked at.
    """
    for file, output, task, changed in survey.foreign:
        if tasks is not None and task not in tasks:
            continue
        whose = (
            f"somebody has changed {file}, and"
            if changed
            else f"foreplan did not make {file}, or has no record of it, but"
        )
        adopt = f"`foreplan adopt {shlex.quote(output)}` takes all of it as what {task} gives, "
        force = force_command(source, options, task)
        raise InputError(
            f"{whose} it is among {output}, which {task} makes and replaces whole: move it "
            f"elsewhere; {'' if of_flow else adopt}{force} deletes it"
        )
    edited = [one for one in survey.edited if tasks is None or one.task in tasks]
    if not edited:
        return
    inner = (survey.changed_file(file) if is_many(file) else "" for file, _ in edited[:LISTED])
    listed = ", ".join(
        (f"{changed} in " if changed else "") + f"{file} (of {task})"
        for changed, (file, task) in zip(inner, edited, strict=False)
    )
    more = f" and {len(edited) - LISTED} more" if edited[LISTED:] else ""
    first = edited[0]
    again = f"{force_command(source, options, first.task)} makes it again"
    if of_flow:
        raise InputError(f"somebody has changed what foreplan has made: {listed}{more}: {again}")
    directory = options.directory
    where = "" if directory == Path() else f" --dir {shlex.quote(str(directory))}"
    name = shlex.quote(first.file)
    raise InputError(
        f"somebody has changed what foreplan has made: {listed}{more}: "
        f"`foreplan adopt {name}{where}` keeps it as it is, {again}"
        + (f"; {otherwise}" if otherwise else "")
    )
