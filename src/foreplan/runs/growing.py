"""A run that grows: what a task adds is checked, estimated, and told to the coordinator.

Commands print tasks. Functions return some of a flow: their result is kept, and found again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foreplan.engine.state import TaskState
from foreplan.errors import ForeplanError, InputError
from foreplan.executors.base import Workload, find_scheme
from foreplan.executors.paths import check_paths
from foreplan.executors.results import load_result
from foreplan.formats.deferred import MadeFiles, made_globs
from foreplan.formats.foreplan_workflow import workflow_from_dict
from foreplan.formats.growing import printed_tasks
from foreplan.formats.origins import SourceText
from foreplan.model import Workflow
from foreplan.model.call import Call, Calls, ReturnedTasks, qualified_name
from foreplan.model.causes import CAUSE, EXPANSION
from foreplan.model.events import (
    OWN_FAULT,
    Event,
    Heard,
    ItemLost,
    TaskFailed,
    TaskFinished,
    TasksAdded,
)
from foreplan.model.filenames import inner_files, is_there
from foreplan.model.growth import (
    check_apart,
    check_gathered,
    expansion_file,
    files_of,
    grow,
    waiting_for,
)
from foreplan.model.resources import check_fits, declared_needs
from foreplan.quantities import first_few, many, shortened
from foreplan.runs.entries import without_categories, workflow_to_entry
from foreplan.shell import check_listed
from foreplan.store.content import digest_of
from foreplan.store.digests import digests_of
from foreplan.store.survey import State, Survey

if TYPE_CHECKING:
    from foreplan.runs.rest import Rest
    from foreplan.runs.session import Session

ITEMS = "items"  # in the detail of a lost item: how many there were, which its place goes by
CHANGED = "these are other tasks than those that it has added before; a new run begins with these"


class Growing:
    """The expansions of a run, while it is driven."""

    def __init__(
        self,
        session: Session,
        work: Callable[[Workflow, Calls | None], Workload],
        claim: Callable[[Workflow], None],
        results: Path,
    ) -> None:
        self._session, self._work, self._claim = session, work, claim
        self._results = results
        self._refused: dict[int, TaskFailed] = {}  # by attempt

    def read(self, event: TaskFinished) -> list[Heard]:
        """What is heard of a task that is done: before that, the tasks that it adds.

        If they cannot be added, it has failed.
        """
        coordinator = self._session.coordinator
        task = coordinator.state.attempt(event.attempt).task
        if not coordinator.workflow.spec(task).expand:
            return [event]
        try:
            added = self._expand(task, event.time)
        except ForeplanError as error:
            how = "printed" if self._rest.calls is None else "returned"
            reason = f"what it has {how} cannot be added: {error}"
            detail = {**(event.detail or {}), "reason": reason, CAUSE: EXPANSION}
            self._refused[event.attempt] = TaskFailed(event.attempt, event.time, OWN_FAULT, detail)
            return [self._refused[event.attempt]]
        return [event] if added is None else [added, event]

    def as_heard(self, event: Event) -> Event:
        """The event as the coordinator has heard it."""
        if self._refused and isinstance(event, TaskFinished):
            return self._refused.get(event.attempt, event)
        return event

    @property
    def _rest(self) -> Rest:
        assert self._session.rest is not None
        return self._session.rest

    def _expand(self, task: int, time: float) -> TasksAdded | None:
        """What is to be heard of the tasks that it adds; None: there is nothing new."""
        coordinator, options = self._session.coordinator, self._session.header.options
        workflow, name = coordinator.workflow, coordinator.workflow.task_names[task]
        returned = None if self._rest.calls is None else returned_by(self._results, task, name)
        more = (
            printed_by(name, options.directory, workflow) if returned is None else returned.workflow
        )
        digest = digest_of_added(more, returned)
        if task in coordinator.expanded:
            if coordinator.expanded[task] != digest:
                raise InputError(CHANGED)
            return None
        if more is None or more.n_tasks == 0:
            if returned is not None:  # its readers take what it is, all the same
                rest = self._rest.with_returned(task, returned, workflow, self._done())
                self._session.machines.extend(workflow, rest.calls)
                self._session.take_tasks(workflow, rest)
            return None
        header = self._session.header
        check_apart(more, {*header.up_to_date, *header.left_out}, header.others)
        grown = grow(workflow, task, more)
        if returned is None:
            check_added(grown, workflow.n_items, options.directory, options.absolute)
            self._check_gathered(grown, task)
            rest = self._rest.grown(grown, self._done(), header)
            check_loops(rest.survey, [task])
        else:
            rest = self._rest.with_returned(task, returned, grown, self._done())
        check_fits(grown, coordinator.platform, declared_needs(grown))
        find_scheme(options.on).check_work(self._work(grown, rest.calls))
        self._claim(grown)
        return self._take(task, time, more, grown, rest, digest)

    def _check_gathered(self, grown: Workflow, task: int) -> None:
        """Refuse to add what leaves a task without a file that it gathers."""
        before = self._session.header.expansions
        added = {name for name, more in before.items() if more.n_tasks}
        added |= {grown.task_names[t] for t in (task, *self._session.coordinator.expanded)}
        for waiter in waiting_for(grown, task):
            check_gathered(grown, waiter, added)

    def _done(self) -> list[str]:
        coordinator = self._session.coordinator
        names = coordinator.workflow.task_names
        return [names[t] for t in coordinator.state.tasks(TaskState.DONE).tolist()]

    def _take(
        self, task: int, time: float, more: Workflow, grown: Workflow, rest: Rest, digest: str
    ) -> TasksAdded:
        """Have all that takes part in the run know the tasks, but for the coordinator."""
        session = self._session
        coordinator, directory = session.coordinator, session.header.options.directory
        session.machines.extend(grown, rest.calls)
        known, platform = coordinator.estimates, coordinator.platform
        estimates = session.estimating.grow(
            grown, rest.calls, directory, known, platform, session.machines
        )
        session.take_tasks(grown, rest)
        added = f"{many(more.n_tasks, 'task')}: {first_few(more.task_names)}"
        session.listener.said(f"{grown.task_names[task]} has added {added}")
        reads = session.estimating.reads(estimates.needs, coordinator.workflow.n_tasks)
        return TasksAdded(time, task, more, grown, estimates, digest, reads)


def digest_of_added(more: Workflow | None, returned: ReturnedTasks | None) -> str:
    """By what it is known whether a task adds the same again."""
    if returned is not None and more is not None:
        more = without_categories(more)
    entry: Any = None if more is None else workflow_to_entry(more)
    if returned is not None:
        entry = [entry, *digests_of([*returned.calls, Call(tuple, (returned.value,))])]
    return digest_of(json.dumps(entry).encode())


def returned_by(results: Path, number: int, name: str) -> ReturnedTasks:
    """The tasks that a function has returned, by the number of its result; under its name."""
    returned = load_result(results, number, name)
    if not isinstance(returned, ReturnedTasks):
        raise InputError("its result does not hold tasks: run it again")
    if returned.problem:
        raise InputError(returned.problem)
    if returned.workflow is None:
        return returned
    names = tuple(f"{name}/{task}" for task in returned.workflow.task_names)
    specs = {
        task: replace(spec, category=spec.category or _category(returned.calls[task]))
        for task, spec in returned.workflow.specs.items()
    }
    return replace(returned, workflow=replace(returned.workflow, task_names=names, specs=specs))


def _category(call: Call | None) -> str | None:
    """That of a function which says nothing itself."""
    return None if call is None else qualified_name(call.function)


def printed_by(task: str, directory: Path, workflow: Workflow) -> Workflow:
    """The tasks that a task of a workflow has printed.

    Their loops wait for tasks of the workflow as well; other files are looked for in the directory.
    """
    file = directory / expansion_file(task)
    others = [name for name, maker in files_of(workflow).items() if maker]

    def read(document: Mapping[str, Any], made: MadeFiles | None, origin: SourceText) -> Workflow:
        return workflow_from_dict(
            document, directory=directory, origin=origin, others=others, made=made
        )

    try:
        return printed_tasks(file.read_text(encoding="utf-8"), expansion_file(task), read)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError("it is not text (UTF-8)") from None


def check_added(workflow: Workflow, first: int, directory: Path, absolute: bool) -> None:
    """Refuse what a file with these tasks would be refused for; items from `first` on are new."""
    check_paths(workflow, absolute)
    check_listed(workflow)
    names, inner = workflow.item_names or (), inner_files(workflow)
    for item in np.flatnonzero(workflow.item_producer[first:] < 0).tolist():
        name = names[first + item]
        if name is not None and name not in inner and not is_there(str(directory), name):
            task = int(workflow.use_task[workflow.use_ptr[first + item]])
            problem = f"{shortened(name)!r} is not there, and no task makes it"
            raise workflow.task_error(task, problem, "inputs")


def check_loops(survey: Survey | None, begun: Collection[int] = ()) -> None:
    """Refuse files among those of a loop that its tasks did not make.

    What an earlier run made is passed by. `begun` are tasks whose loops begin now, so that outputs
    they read must be as they were made; before a run, outputs are checked by themselves.
    """
    if survey is None:
        return
    for task, spec in survey.workflow.specs.items():
        patterns = made_globs(spec)
        if not patterns or (begun and task not in begun) or survey.states[task] is State.LEFT_OUT:
            continue
        for pattern in patterns:
            if found := survey.foreign_file(task, pattern, with_outputs=bool(begun)):
                name = survey.workflow.task_names[task]
                problem = f"{found} matches glob({pattern}), but no task made it as it is"
                raise InputError(
                    f"{problem}: {name} loops over files that tasks make, and over no others; "
                    "move it elsewhere, or write a pattern that does not match it"
                )


def as_lost(event: ItemLost, workflow: Workflow) -> ItemLost:
    """A loss, its place by the items that there are now."""
    items = (event.detail or {}).get(ITEMS, workflow.n_items)
    host, item = divmod(event.place, int(items))
    return ItemLost(host * workflow.n_items + item, event.time)
