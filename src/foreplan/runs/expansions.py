"""What tasks have added before: it is there before anything runs, if they are up to date.

And what a run that is resumed has added to its flow, as it is kept in its home.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from foreplan.errors import ForeplanError, InputError
from foreplan.executors.results import KeptResults, NoResultError
from foreplan.model import TaskSpec, Workflow
from foreplan.model.call import (
    FAR,
    Call,
    Calls,
    NoPartError,
    ReturnedTasks,
    calls_of_part,
    calls_with,
)
from foreplan.model.filenames import covers, is_many, is_there
from foreplan.model.growth import expansion_file, files_of, grow, waiting_for
from foreplan.runs.entries import Header
from foreplan.runs.growing import CHANGED, check_added, digest_of_added, printed_by, returned_by
from foreplan.runs.home import RunHome
from foreplan.runs.options import Options
from foreplan.runs.surveys import survey_of
from foreplan.shell import text_of, there
from foreplan.store.digests import PYTHON
from foreplan.store.graph import WorkflowGraph
from foreplan.store.survey import OUTDATED, State, Survey

if TYPE_CHECKING:
    from foreplan.runs.replay import Replayed


def with_expansions(workflow: Workflow, options: Options) -> Workflow:
    """The workflow with the tasks that are added by what is up to date, as a run would begin."""
    if not workflow.grows:
        return workflow
    return survey_with_expansions(workflow, options).workflow


def survey_with_expansions(workflow: Workflow, options: Options) -> Survey:
    """Survey a workflow that grows, with the tasks that are added by what is up to date."""
    return _grown_before(workflow, options, _Before())


def with_printed(workflow: Workflow, options: Options, expansions: dict[str, Workflow]) -> Survey:
    """The survey with the tasks that are added by what is up to date.

    Where one of them needs what another has to make again, they are added when that is there.
    """
    before = _Before()
    while True:
        survey = _grown_before(workflow, options, before)
        needed = before.first(survey)
        if not needed:
            expansions |= before.expansions
            return survey
        if _as_far_as_known(workflow, options) != options:  # what is named would not be there
            maker, why = next(iter(needed.items()))
            raise InputError(f"{maker}: {why}: run {maker} first (`foreplan run ... {maker}`)")
        before = _Before(again=before.again | needed)


@dataclass
class _Before:
    """What is known of expansions before anything runs."""

    expansions: dict[str, Workflow] = field(default_factory=dict)  # by the task that has printed it
    again: dict[str, str] = field(default_factory=dict)  # tasks that must run for it, and why

    def first(self, survey: Survey) -> dict[str, str]:
        """The tasks that must run before others are added, each with the reason.

        What was added before comes after nobody: it may not begin while its files are made again.
        """
        workflow, states, graph = survey.workflow, survey.states, WorkflowGraph(survey.workflow)
        names, todo, found = workflow.task_names, list[int](), dict[str, str]()
        for task in survey.tasks(*OUTDATED):
            if workflow.spec(task).added_by is not None:
                read = (file for file in graph.read[task] if file in graph.inner)
                inner = {graph.maker[file]: file for file in read}
                todo += [maker for maker in inner if states[maker] in OUTDATED]
                found |= {
                    names[maker]: f"its output {file} is missing, and {names[task]} needs it"
                    for maker, file in inner.items()
                    if not is_there(str(survey.memory.data), file)
                }
            if names[task] in self.expansions and self.expansions[names[task]].n_tasks:
                todo += [other for other in graph.before[task] if states[other] in OUTDATED]
        while todo:
            task = todo.pop()
            if states[task] is State.STALE:
                found.setdefault(names[task], survey.reasons[task])
            else:
                todo += [other for other in graph.before[task] if states[other] in OUTDATED]
        return {name: why for name, why in found.items() if name not in self.again}


def _grown_before(workflow: Workflow, options: Options, before: _Before) -> Survey:
    while True:
        workflow = _passing_own(workflow, options.directory)
        known, waiting = _as_far_as_known(workflow, options), _waiting(workflow, before)
        survey = survey_of(workflow, known, again=before.again, waiting=waiting)
        news = _known_expansions(survey, before.expansions)
        if not news:
            break
        workflow = _with_known(workflow, options, news, before)
    if waiting or known != options:
        survey = survey_of(workflow, options, again=before.again)
    return survey


def _waiting(workflow: Workflow, before: _Before) -> list[str]:
    """The tasks behind expansions that are not known: their inputs are not all known, either."""
    names, behind = workflow.task_names, WorkflowGraph(workflow).behind
    adding = [t for t, spec in workflow.specs.items() if spec.expand]
    todo = [
        w for t in adding if names[t] not in before.expansions for w in waiting_for(workflow, t)
    ]
    found = set[int]()
    while todo:
        task = todo.pop()
        if task not in found:
            found.add(task)
            todo += behind[task]
    return [names[task] for task in sorted(found)]


def _passing_own(workflow: Workflow, directory: Path) -> Workflow:
    """Have commands that print tasks to the letter read nothing of what these have made before."""
    specs = dict[int, TaskSpec]()
    for task, spec in workflow.specs.items():
        command = text_of(spec.run or "", spec.shell, spec.around) if spec.expand else ""
        if named := there(command, str(directory), spec.ignores):
            try:
                more = printed_by(workflow.task_names[task], directory, workflow)
            except ForeplanError:  # it says so when it is added
                continue
            made = [file for file, maker in files_of(more).items() if maker]
            own = [n for n in named if any(f == n or f.startswith(f"{n}/") for f in made)]
            own += [n for n in named if any(is_many(f) and covers(f, n) for f in made)]
            if own:
                specs[task] = replace(spec, ignores=(*spec.ignores, *own))
    return replace(workflow, specs={**workflow.specs, **specs}) if specs else workflow


def _as_far_as_known(workflow: Workflow, options: Options) -> Options:
    """What is asked for before all tasks are there: other names may be of tasks that are added."""
    if not workflow.grows:
        return options
    names, force = workflow.task_names, options.force
    if not isinstance(force, bool):
        force = tuple(one for one in force if one in names or fnmatch.filter(names, one))
    known = {*names, *WorkflowGraph(workflow).maker}
    targets = options.targets if known.issuperset(options.targets) else ()
    return replace(options, force=force, targets=targets)


def _known_expansions(survey: Survey, known: Mapping[str, Workflow]) -> list[int]:
    """The tasks that add others and are up to date, but for those that are known."""
    names, specs, data = survey.workflow.task_names, survey.workflow.specs, survey.memory.data
    up_to_date = [t for t in specs if specs[t].expand and survey.states[t] is State.UP_TO_DATE]
    new = (t for t in up_to_date if names[t] not in known)
    return [t for t in new if os.path.exists(os.path.join(data, expansion_file(names[t])))]


def _with_known(
    workflow: Workflow, options: Options, news: Collection[int], before: _Before
) -> Workflow:
    """The workflow with what tasks have printed before; one that cannot be added is made again."""
    for task in news:
        name = workflow.task_names[task]
        try:
            more = printed_by(name, options.directory, workflow)
            grown = grow(workflow, task, more)
            check_added(grown, workflow.n_items, options.directory, options.absolute)
            workflow, before.expansions[name] = grown, more
        except ForeplanError as error:  # it says so when it is run
            before.expansions[name] = Workflow.from_items("", [], [], [])
            before.again[name] = f"what it has printed before cannot be added: {error}"
    return workflow


def with_returned(
    survey: Survey, options: Options, kept: KeptResults, known: dict[str, Workflow]
) -> tuple[Survey, Options]:
    """The survey of a flow with what functions have added before, if they are up to date.

    One whose tasks cannot be added, or that has to be made again for them, is forced: it runs.
    """
    declared = survey.workflow, survey.calls, options.targets
    while True:
        workflow, calls, names = survey.workflow, survey.calls, survey.workflow.task_names
        is_new = [t for t, spec in workflow.specs.items() if spec.expand and names[t] not in known]
        new = [t for t in is_new if survey.states[t] is State.UP_TO_DATE]
        lost = [n for n in known if survey.states[names.index(n)] is not State.UP_TO_DATE]
        if lost:
            (workflow, calls, targets), new = declared, []
            options = replace(options, targets=targets)
            known.clear()
        elif not new:
            return survey, options
        for task in new:
            name, result = names[task], survey.results[task]
            try:
                if result is None or result.call is None or not kept.has(result.call):
                    raise NoResultError(name)
                folder = Path(kept.folder(result.call.run))
                returned = returned_by(folder, result.call.number, name)
                more = returned.workflow
                grown = workflow if more is None else grow(workflow, task, more)
                workflow, calls = grown, calls_of(calls, task, returned, name)
                known[name] = more or Workflow.from_items("", [], [], [])
                options = replace(options, targets=with_added(options.targets, name, more))
            except ForeplanError:  # it says so when it is run
                lost.append(name)
        if lost:
            force = () if isinstance(options.force, bool) else options.force
            options = replace(options, force=(*force, *lost))
        survey = survey_of(workflow, options, calls=calls, kept=kept)


class Regrown:
    """A flow with all that a run has added to it, as what its functions returned is kept there."""

    def __init__(self, workflow: Workflow, calls: Calls, options: Options, home: RunHome) -> None:
        self.workflow, self.calls, self.options, self._home = workflow, calls, options, home

    def add_all(
        self, header: Header, replayed: Replayed, done: Collection[str]
    ) -> tuple[Call | None, ...]:
        """Add what was there when the run set out, then the rest; its calls in between."""
        for name in header.expansions:
            self._add(name, FAR + list(header.taken).index(name))
        own, names = {*replayed.declared.task_names}, self.workflow.task_names
        numbers = [t for t, name in enumerate(names) if name in own]
        set_out, _ = calls_of_rest(self.workflow, self.calls, numbers, header.expansions)
        names, digests = header.workflow.task_names, replayed.driver.coordinator.expanded
        for task, digest in digests.items():
            self._add(names[task], task, digest if header.python == PYTHON else "")
        for task, name in enumerate(names):  # some add nothing
            if name in done and task not in digests and header.workflow.spec(task).expand:
                self._add(name, task)
        return set_out

    def _add(self, name: str, number: int, digest: str = "") -> None:
        task = self.workflow.task_names.index(name)
        try:
            returned = returned_by(self._home.results, number, name)
            if digest and digest_of_added(returned.workflow, returned) != digest:
                raise InputError(CHANGED)
            self.calls = calls_of(self.calls, task, returned, name)
        except ForeplanError as error:
            raise InputError(
                f"the tasks that {name!r} has added cannot be had any more ({error}): begin a new "
                "run (without resume)"
            ) from None
        if returned.workflow is not None:
            self.workflow = grow(self.workflow, task, returned.workflow)
        targets = with_added(self.options.targets, name, returned.workflow)
        self.options = replace(self.options, targets=targets)


def calls_of(calls: Calls, by: int, returned: ReturnedTasks, name: str) -> list[Call | None]:
    """All calls with those that a task has returned; what cannot be its result is refused."""
    try:
        return calls_with(calls, by, returned, name)
    except (NoPartError, TypeError) as error:  # the latter: a list where a set should hold it
        raise InputError(f"a task cannot take it as its result: {error}") from None


def calls_of_rest(
    workflow: Workflow, calls: Calls, numbers: Sequence[int], expansions: Mapping[str, Workflow]
) -> tuple[tuple[Call | None, ...], tuple[int, ...]]:
    """The calls of a part, and others whose results it needs, or which have added tasks."""
    if not workflow.grows:
        return calls_of_part(calls, numbers)
    also = [workflow.task_names.index(name) for name in expansions]
    return calls_of_part(calls, numbers, FAR, also)


def with_added(targets: Collection[str], name: str, more: Workflow | None) -> tuple[str, ...]:
    """What is asked for: with a task, all that it adds."""
    added = more.task_names if more is not None and name in targets else ()
    return tuple(dict.fromkeys((*targets, *added)))
