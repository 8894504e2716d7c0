"""What of a workflow is left to do in its directory: the rest is up to date."""

from __future__ import annotations

import fnmatch
import os
import secrets
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.durable import reason
from weft.errors import InputError, WeftError, unknown_name
from weft.executors.results import KeptResults, NoResultError, load_result
from weft.model import Estimates, TaskSpec, Workflow
from weft.model.call import (
    FAR,
    Call,
    Calls,
    NoPartError,
    Ref,
    ReturnedTasks,
    calls_of_part,
    calls_with,
    part_of,
    replaced,
)
from weft.model.filenames import covers, is_many, is_there
from weft.model.growth import check_gathered, expansion_file, files_of, grow
from weft.model.resources import asks_by_inputs
from weft.quantities import first_few, many
from weft.runs.entries import Header
from weft.runs.former import NOTHING_FORMER, FormerTaken, take_former
from weft.runs.growing import CHANGED, check_added, digest_of_added, printed_by, returned_by
from weft.runs.home import RunHome, check_private, check_system, runs
from weft.runs.journal import decode
from weft.runs.lock import is_driven
from weft.runs.options import Options, parameters
from weft.shell import text_of, there
from weft.store.content import CONTENT
from weft.store.digests import PYTHON
from weft.store.graph import WorkflowGraph
from weft.store.parts import Part, folder_of, make_folder, parse, put
from weft.store.run import RunStore
from weft.store.store import KeptResult, Store, StoreError
from weft.store.survey import EVERY_RUN, NEVER_RUN, Asked, State, Survey

if TYPE_CHECKING:
    from weft.runs.replay import Replayed

_LISTED = 5
_OUTDATED = (State.STALE, State.UNSURE)


@dataclass(frozen=True)
class Rest:
    """The tasks that a run has to do, each with the reason; and those that are up to date."""

    workflow: Workflow  # these alone
    numbers: tuple[int, ...]  # of each task, in the whole workflow
    reasons: dict[str, str]  # why each runs
    up_to_date: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # what is asked for does not need them
    survey: Survey | None = None  # None: the store is not asked
    former: FormerTaken = NOTHING_FORMER  # what runs of before there was a store have made
    calls: tuple[Call | None, ...] | None = None  # of these tasks, if there are functions
    # results of other tasks that these take, by their names, in the order of their numbers
    taken: Mapping[str, KeptResult] = field(default_factory=dict)
    kept: KeptResults | None = None  # results of functions, of all runs of the directory
    # what tasks have printed that are up to date, and have added tasks before anything was run
    expansions: Mapping[str, Workflow] = field(default_factory=dict)
    set_out: tuple[Call | None, ...] | None = None  # its calls before any tasks were added

    @property
    def complete(self) -> Workflow:
        """The workflow that these are a part of, or all."""
        return self.workflow if self.survey is None else self.survey.workflow

    @property
    def outer(self) -> list[int]:
        """The tasks whose results are taken of others, by their numbers in the whole."""
        names = () if self.survey is None else self.survey.workflow.task_names
        index = {name: task for task, name in enumerate(names)} if self.taken else {}
        return [index[name] for name in self.taken]

    @property
    def first(self) -> int:
        """The first number of these among the results of the run."""
        return FAR if _grows(self.complete) else len(self.numbers)

    @staticmethod
    def whole(workflow: Workflow, calls: Calls | None = None) -> Rest:
        """All of it."""
        of_tasks = None if calls is None else tuple(calls)
        return Rest(workflow, tuple(range(workflow.n_tasks)), {}, (), calls=of_tasks)

    @staticmethod
    def to_plan(workflow: Workflow, options: Options, otherwise: str = "") -> Rest:
        """What a plan of a directory is about: what its store leaves to do, else all of it.

        `otherwise` is what else can be done where somebody has changed an output by hand.
        """
        commands = all(workflow.spec(task).run is not None for task in range(workflow.n_tasks))
        known = commands and folder_of(options.directory).is_dir() and uses_store(None, options)
        return Rest.find(workflow, options, otherwise) if known else Rest.whole(workflow)

    @staticmethod
    def find(
        workflow: Workflow,
        options: Options,
        otherwise: str = "",
        calls: Calls | None = None,
    ) -> Rest:
        """What the directory and its store leave to do; nothing is begun."""
        kept = None if calls is None else _kept_results(options.directory)
        expansions = dict[str, Workflow]()
        if calls is None and _grows(workflow):
            survey, former = _with_printed(workflow, options, expansions)
        else:
            survey, former = _survey(workflow, options, calls=calls, kept=kept)
        if kept is not None and _grows(workflow):
            survey, options = _with_returned(survey, options, kept, expansions)
            calls = survey.calls
        workflow = survey.workflow
        added = {name for name, more in expansions.items() if more.n_tasks}
        for task, spec in workflow.specs.items() if added and calls is None else ():
            if spec.gathers and survey.states[task] is not State.LEFT_OUT:
                check_gathered(workflow, task, added)
        _check_edited(survey, options.directory, otherwise, of_flow=calls is not None)
        _check_protected(survey)
        names = workflow.task_names
        runs = [state in (State.STALE, State.UNSURE) for state in survey.states]
        numbers = tuple(t for t, is_run in enumerate(runs) if is_run)
        part, outer = (
            (None, ()) if calls is None else _part_of(workflow, calls, numbers, expansions)
        )
        return Rest(
            workflow.part(np.array(runs, dtype=np.bool_)),
            numbers,
            {names[t]: survey.reasons[t] for t in numbers},
            tuple(names[t] for t in survey.tasks(State.UP_TO_DATE)),
            tuple(names[t] for t in survey.tasks(State.LEFT_OUT)),
            survey,
            former,
            part,
            {names[t]: _result_of(survey, t) for t in outer},
            kept,
            expansions,
        )

    @staticmethod
    def resumed(
        workflow: Workflow, options: Options, done: Collection[str], header: Header
    ) -> Rest:
        """All of a run that is resumed, of which these tasks are done."""
        known = {*workflow.task_names, *WorkflowGraph(workflow).maker}  # others were up to date
        targets = tuple(target for target in options.targets if target in known)
        replaces = _replaces(workflow, options)
        options = replace(options, targets=targets, force=_still_forced(workflow, options, done))
        survey, former = _survey(workflow, options, done, header, replaces=replaces)
        _check_protected(survey, header.id)
        _check_edited(survey, options.directory, "if it is deleted, the run makes it again")
        return Rest(workflow, tuple(range(workflow.n_tasks)), {}, (), (), survey, former)

    def grown(self, workflow: Workflow, done: Collection[str], header: Header) -> Rest:
        """The same with tasks that were added to what is run, of which these are done.

        They may not write over what somebody has made by hand, as nobody may.
        """
        numbers = tuple(range(workflow.n_tasks))
        if self.survey is None:
            return replace(self, workflow=workflow, numbers=numbers)
        asked, names = self.survey.asked, {*workflow.task_names}
        known = {*names, *WorkflowGraph(workflow).maker}
        force = names if asked.force is True else names.intersection(asked.force or ())
        asked = replace(
            asked,
            targets=tuple(target for target in asked.targets if target in known),
            force=force.difference(done),
            done={*done},
            after=header.after,
        )
        data = self.survey.memory.data
        survey = Survey(workflow, data, Store.read(data), asked)
        added = names.difference(self.workflow.task_names)  # others may be making their files now
        _check_edited(survey, header.options.directory, tasks=added)
        return replace(self, workflow=workflow, numbers=numbers, survey=survey)

    def with_returned(
        self, task: int, returned: ReturnedTasks, workflow: Workflow, done: Collection[str]
    ) -> Rest:
        """The same with what a function of it adds, which makes it this workflow."""
        survey, by = self.survey, self.numbers[task]
        assert self.calls is not None
        if survey is None:
            calls = _calls_with(self.calls, by, returned, workflow.task_names[task])
            return replace(
                self, workflow=workflow, numbers=tuple(range(len(calls))), calls=tuple(calls)
            )
        whole, more = survey.workflow, returned.workflow
        name, n = whole.task_names[by], whole.n_tasks
        calls = _calls_with(survey.calls, by, returned, name)
        whole = whole if more is None else grow(whole, by, more)
        numbers = (*self.numbers, *range(n, whole.n_tasks))
        names, asked = {*whole.task_names}, survey.asked
        force = names if asked.force is True else {*(asked.force or ())}
        asked = replace(
            asked,
            targets=_with_added(asked.targets, name, more),
            force=force.difference(done),
            done={*done},
        )
        data = survey.memory.data
        again = Survey(whole, data, Store.read(data), asked, calls)
        for k, other in enumerate(survey.workflow.task_names):
            if other in done and (content := survey.content_of(k)):
                again.take_as(k, content)  # it may be in memory only
        for k, result in zip(self.outer, self.taken.values(), strict=True):
            again.take_as(k, result.content)
        part, _ = calls_of_part(calls, numbers, self.first, self.outer)
        return replace(self, workflow=workflow, numbers=numbers, survey=again, calls=part)

    def others(self) -> dict[str, str]:
        """Where tasks may be added: files of tasks that are no part of this, and their makers."""
        if self.survey is None or not any(spec.expand for spec in self.workflow.specs.values()):
            return {}
        own = files_of(self.workflow)
        whole = files_of(self.survey.workflow)
        return {file: task for file, task in whole.items() if own.get(file) != task}

    def sizes_taken(self) -> dict[int, float]:
        """Of tasks that ask by the size of inputs, the bytes of results of others, by task."""
        if not self.taken or self.survey is None:
            return {}
        whole, taken = self.survey.workflow, dict(zip(self.outer, self.taken.values(), strict=True))
        found = dict[int, float]()
        for task in asks_by_inputs(self.workflow):
            first, end = whole.in_ptr[self.numbers[task] : self.numbers[task] + 2].tolist()
            makers = whole.item_producer[whole.in_item[first:end]].tolist()
            found[task] = float(sum(taken[maker].file[0] for maker in makers if maker in taken))
        return found

    def outdated(self) -> set[int]:
        """The tasks whose results the store knows, but which do not hold any more."""
        survey = self.survey
        if survey is None:
            return set()
        stale = survey.tasks(*_OUTDATED)
        known = {task for task in stale if any(map(survey.store.knows, survey.outputs(task)))}
        known |= {task for task in survey.fed_by_files() if survey.states[task] in _OUTDATED}
        own = {number: task for task, number in enumerate(self.numbers)}
        # nobody could make what has lost its inputs
        return {own[task] for task in known if task in own and not survey.missing(task)}

    def check_needed(self, directory: Path) -> None:
        """Refuse to resume a run if what it has to do needs files that nobody makes any more."""
        survey, graph = self.survey, WorkflowGraph(self.workflow)
        assert survey is not None
        data, names = directory.absolute(), self.workflow.task_names
        gone = {file for file in graph.maker if not is_there(str(data), file)}
        todo = [t for t, name in enumerate(names) if name not in survey.asked.done]
        todo += [graph.maker[file] for file in gone & graph.unread]
        needed, missing = dict.fromkeys(todo), dict[str, None]()
        while todo:
            task = todo.pop()
            outside = (file for file in graph.read[task] if file not in graph.maker)
            missing |= dict.fromkeys(file for file in outside if not (data / file).exists())
            more = [graph.maker[f] for f in graph.read[task] if f in gone]
            todo += [other for other in more if other not in needed]
            needed |= dict.fromkeys(more)
        if missing:
            raise InputError(
                f"what is left of the run needs {first_few(missing)}, which is not there: put it "
                "there; if an earlier run has made it, `weft run` makes it again",
                source=str(data),
            )

    def of(self, estimates: Estimates) -> Estimates:
        """What is known of these tasks, out of what is known of all."""
        if len(self.numbers) == len(estimates.cost):
            return estimates
        if max(self.numbers, default=0) >= len(estimates.cost):
            raise InputError(
                "the estimates are of the declared tasks, but there are others that were added by "
                "a run before: leave the estimates out"
            )
        return estimates.part(list(self.numbers))

    @staticmethod
    def resumed_calls(
        workflow: Workflow,
        options: Options,
        calls: Calls,
        done: Collection[str],
        header: Header,
        replayed: Replayed,
        home: RunHome,
    ) -> Rest:
        """The same of functions, of which `workflow` and `calls` are all that is declared."""
        set_out = None
        if _grows(workflow):
            grown = _Regrown(workflow, calls, options, home)
            set_out = grown.add_all(header, replayed, done)
            workflow, calls, options = grown.workflow, grown.calls, grown.options
        kept, replaces = _kept_results(options.directory), _replaces(workflow, options)
        options = replace(options, force=_still_forced(workflow, options, done))
        survey, former = _survey(workflow, options, done, header, calls, kept, replaces)
        _check_edited(survey, options.directory, of_flow=True)
        _check_protected(survey, header.id)
        names = workflow.task_names
        own = {*header.workflow.task_names}
        numbers = tuple(t for t, name in enumerate(names) if name in own)
        part, outer = _part_of(workflow, calls, numbers, header.expansions)
        taken = {names[t]: header.taken[names[t]] for t in outer}
        changed = [n for n, r in taken.items() if not survey.is_result(names.index(n), r.content)]
        if changed and header.python == PYTHON:
            raise InputError(
                f"the function or the arguments of {first_few(map(repr, changed))} have changed "
                f"since run {header.id} began, and what came out of them then would be used beside "
                "what comes out now: undo the change, or begin a new run (without resume)"
            )
        for task, result in zip(outer, taken.values(), strict=True):
            survey.take_as(task, result.content)
        for number, task in enumerate(numbers):
            survey.recall(task, header.id, number)
        more = (header.up_to_date, header.left_out)
        rest = Rest(header.workflow, numbers, {}, *more, survey, former, part, taken, kept)
        return replace(rest, set_out=set_out)

    def open_store(self, home: RunHome) -> RunStore | None:
        """The store, as a run asks it; it is made, and mended if it must be."""
        if self.survey is None:
            return None
        store = Store.open(home.data, lambda run: _is_live(home.data, run))
        self.warnings[:] = store.warnings or self.warnings  # now also where what is damaged went
        self._keep([self.former.lines])
        outer = self.outer
        opened = RunStore(self.survey, home.id, self.numbers, self.kept, outer, self.first)
        self._bring_results(home, opened, outer)
        return opened

    def _bring_results(self, home: RunHome, store: RunStore, tasks: Sequence[int]) -> None:
        """Have the results of other runs that are needed among those of this run."""
        assert self.survey is not None
        first = self.first
        for k, (name, result) in enumerate(self.taken.items()):
            number = first + k
            assert self.kept is not None
            if self.kept.has(result._replace(run=home.id, number=number)):
                continue
            try:
                file = self.kept.bring(result, str(home.results), number)
            except OSError as error:
                raise WeftError(
                    f"the result of {name!r}, which run {result.run} has made, cannot be had: "
                    f"{reason(error)}: begin a new run, which makes it again"
                ) from None
            making = self.survey.making(tasks[k])
            store.add_call(making, name, KeptResult(home.id, number, result.content, file))

    def load(self, home: Path, task: int, name: str) -> Any:
        """The result of a function, by the number of its task in the whole: of whichever run.

        Of one that has added tasks, it is made of theirs.
        """
        whole = self.complete
        found = self._load(home, task, name)
        if not whole.spec(task).expand:
            return found
        inner = () if found.workflow is None else found.workflow.task_names

        def result(ref: Ref) -> Any:
            other = f"{name}/{inner[ref.task]}"
            return part_of(self._load(home, whole.task_names.index(other), other), ref.path, other)

        return replaced(found.value, Ref, result)

    def _load(self, home: Path, task: int, name: str) -> Any:
        if task in self.numbers:
            return load_result(home / "results", self.numbers.index(task), name)
        if name in self.left_out or self.survey is None or self.kept is None:
            raise NoResultError(f"task {name!r} has no result: it was not asked for")
        result = self.survey.results[task]
        if result is None or result.call is None or not self.kept.has(result.call):
            raise NoResultError(
                f"the result of task {name!r} is up to date, but not there any more: "
                f"weft.run(..., targets=[{name!r}]) makes it again"
            )
        return load_result(self.kept.folder(result.call.run), result.call.number, name)

    @property
    def uncertain(self) -> list[str]:
        """What cannot be known by its key, in a sentence or none."""
        found = {} if self.survey is None else self.survey.uncertain
        tasks = {name: found[name] for name in self.workflow.task_names if name in found}
        if not tasks:
            return []
        why = next(iter(tasks.values()))
        one = f"{next(iter(tasks))!r}: {why}" if len(tasks) == 1 else ""
        return [
            f"{one}: it is run by every run"
            if one
            else f"{first_few(map(repr, tasks))} are run by every run: their functions or "
            f"arguments cannot be compared (of the first: {why.partition(': ')[2]})"
        ]

    def remember(self) -> None:
        """Have kept what was found out on the way, so that it need not be again."""
        if self.survey is not None:
            self._keep([self.former.lines, self.survey.take_news()])

    def _keep(self, lines: list[bytes]) -> None:
        assert self.survey is not None
        with suppress(OSError):  # then it is found out again
            if any(lines):
                folder = make_folder(self.survey.memory.data)
                put(folder, f"noted-{secrets.token_hex(4)}", lines)

    @property
    def messages(self) -> list[str]:
        """What is wrong with the store, and what it has just learned."""
        return [*self.warnings, *filter(None, [self.former.message])]

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the store."""
        return [] if self.survey is None else self.survey.store.warnings

    @property
    def summary(self) -> str:
        """How much is left to do, in a line."""
        done, left = len(self.up_to_date), len(self.numbers)
        if not left:
            return f"nothing to do: {many(done, 'task')} up to date"
        return f"{done:,} of {many(done + left, 'task')} up to date; to run: {many(left, 'task')}"

    def in_words(self) -> list[str]:
        """What runs and why, in a few lines; nothing where all of it is new."""
        if not self.up_to_date and {*self.reasons.values()} <= {NEVER_RUN, EVERY_RUN}:
            return []
        by_reason: dict[str, list[str]] = {}
        for task, why in self.reasons.items():
            by_reason.setdefault(why, []).append(task)
        lines = [_of_reason(why, tasks) for why, tasks in by_reason.items()]
        more = [f"and for {len(lines) - _LISTED} other reasons"] if lines[_LISTED:] else []
        return [self.summary, *lines[:_LISTED], *more]


def _of_reason(why: str, tasks: list[str]) -> str:
    """A line on tasks that run for one reason."""
    listed = first_few(tasks, _LISTED)
    count = f" ({len(tasks):,} tasks)" if len(tasks) > _LISTED else ""
    return f"  {listed}{count}: {why}"


def uses_store(calls: Calls | None, options: Options) -> bool:
    """Whether results are known by their keys: not by times of files that were made elsewhere."""
    return calls is not None or not _is_carried(options) or options.trust == CONTENT


def _is_carried(options: Options) -> bool:
    """Whether the files of commands travel to the machines and back."""
    from weft.executors.base import find_scheme

    return not (find_scheme(options.on).here or options.shared)


def _survey(
    workflow: Workflow,
    options: Options,
    done: Collection[str] = (),
    header: Header | None = None,
    calls: Calls | None = None,
    kept: KeptResults | None = None,
    replaces: Collection[str] | None = None,
    before: _Before | None = None,
) -> tuple[Survey, FormerTaken]:
    """What is known of a directory; and what of it comes from runs of earlier versions."""
    data = options.directory.absolute()
    store, forced = Store.read(data), _forced(workflow, options.force)
    again = {} if before is None else before.again
    asked = Asked(
        options.targets,
        forced if forced is True or not again else {*(forced or ()), *again},
        done,
        {} if header is None else header.after,
        trust=options.trust,
        replaces=_replaces(workflow, options) if replaces is None else replaces,
        keeps_temp=header is not None and bool(header.left_out),
        anywhere=options.absolute,
    )
    if kept is not None:
        asked = replace(asked, after={}, every_result=options.keep_results, has_result=kept.has)
        return Survey(workflow, data, store, asked, calls), NOTHING_FORMER
    asked = replace(asked, carried=_is_carried(options))
    survey = Survey(workflow, data, store, asked)
    former = take_former(survey, "" if header is None else header.id)
    if former.tasks:
        store.add_lines(parse(former.lines).lines)
        survey = Survey(workflow, data, store, asked)
    for name in again.keys() - ({*workflow.task_names} if forced is True else forced or set()):
        task = workflow.task_names.index(name)
        if survey.states[task] is State.STALE:
            survey.reasons[task] = again[name]
    return survey, former


@dataclass
class _Before:
    """What is known of expansions before anything runs."""

    expansions: dict[str, Workflow] = field(default_factory=dict)  # by the task that has printed it
    again: dict[str, str] = field(default_factory=dict)  # tasks that must run for it, and why
    # files of patterns of which nothing is there, by pattern
    gone: dict[str, list[str]] = field(default_factory=dict)

    def look_for(self, survey: Survey) -> None:
        """Take note of what tasks that are up to date have made, but is not there."""
        for result in survey.results:
            for pattern, files in result.matched.items() if result is not None else ():
                if not survey.files_of(pattern):
                    self.gone[pattern] = list(files)

    def first(self, survey: Survey) -> dict[str, str]:
        """The tasks that must run before others are added, each with the reason.

        What was added before comes after nobody: it may not begin while its files are made again.
        """
        workflow, states, graph = survey.workflow, survey.states, WorkflowGraph(survey.workflow)
        names, todo, found = workflow.task_names, list[int](), dict[str, str]()
        for task in survey.tasks(*_OUTDATED):
            if workflow.spec(task).added_by is not None:
                read = (file for file in graph.read[task] if file in graph.inner)
                inner = {graph.maker[file]: file for file in read}
                todo += [maker for maker in inner if states[maker] in _OUTDATED]
                found |= {
                    names[maker]: f"its output {file} is missing, and {names[task]} needs it"
                    for maker, file in inner.items()
                    if not is_there(str(survey.memory.data), file)
                }
            if names[task] in self.expansions and self.expansions[names[task]].n_tasks:
                todo += [other for other in graph.before[task] if states[other] in _OUTDATED]
        while todo:
            task = todo.pop()
            if states[task] is State.STALE:
                found.setdefault(names[task], survey.reasons[task])
            else:
                todo += [other for other in graph.before[task] if states[other] in _OUTDATED]
        return {name: why for name, why in found.items() if name not in self.again}


def _with_printed(
    workflow: Workflow, options: Options, expansions: dict[str, Workflow]
) -> tuple[Survey, FormerTaken]:
    """The survey with the tasks that are added by what is up to date.

    Where one of them needs what another has to make again, they are added when that is there.
    """
    before = _Before()
    while True:
        survey, former = _grown_before(workflow, options, before)
        needed = before.first(survey)
        if not needed:
            expansions |= before.expansions
            return survey, former
        if _as_far_as_known(workflow, options) != options:  # what is named would not be there
            maker, why = next(iter(needed.items()))
            raise InputError(f"{maker}: {why}: run {maker} first (`weft run ... {maker}`)")
        before = _Before(again=before.again | needed)


def _grown_before(
    workflow: Workflow, options: Options, before: _Before
) -> tuple[Survey, FormerTaken]:
    workflow = _passing_own(workflow, options.directory)
    known = _as_far_as_known(workflow, options)
    survey, former = _survey(workflow, known, before=before)
    while news := _known_expansions(survey, before.expansions):
        before.look_for(survey)
        workflow = _with_known(workflow, options, news, before)
        workflow = _passing_own(workflow, options.directory)
        known = _as_far_as_known(workflow, options)
        survey, former = _survey(workflow, known, before=before)
    return (survey, former) if known == options else _survey(workflow, options, before=before)


def _passing_own(workflow: Workflow, directory: Path) -> Workflow:
    """Have commands that print tasks to the letter read nothing of what these have made before."""
    specs = dict[int, TaskSpec]()
    for task, spec in workflow.specs.items():
        command = text_of(spec.run or "", spec.shell, spec.around) if spec.expand else ""
        if named := there(command, str(directory), spec.ignores):
            try:
                more = printed_by(workflow.task_names[task], directory)
            except WeftError:  # it says so when it is added
                continue
            made = [file for file, maker in files_of(more).items() if maker]
            own = [n for n in named if any(f == n or f.startswith(f"{n}/") for f in made)]
            own += [n for n in named if any(is_many(f) and covers(f, n) for f in made)]
            if own:
                specs[task] = replace(spec, ignores=(*spec.ignores, *own))
    return replace(workflow, specs={**workflow.specs, **specs}) if specs else workflow


def _as_far_as_known(workflow: Workflow, options: Options) -> Options:
    """What is asked for before all tasks are there: other names may be of tasks that are added."""
    if not _grows(workflow):
        return options
    names, force = workflow.task_names, options.force
    if not isinstance(force, bool):
        force = tuple(one for one in force if one in names or fnmatch.filter(names, one))
    known = {*names, *WorkflowGraph(workflow).maker}
    targets = options.targets if known.issuperset(options.targets) else ()
    return replace(options, force=force, targets=targets)


def with_expansions(workflow: Workflow, options: Options) -> Workflow:
    """The workflow with the tasks that are added by what is up to date, as a run would begin."""
    if not _grows(workflow):
        return workflow
    return _grown_before(workflow, options, _Before())[0].workflow


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
            more = printed_by(name, options.directory, before.gone)
            grown = grow(workflow, task, more)
            check_added(grown, workflow.n_items, options.directory, options.absolute)
            workflow, before.expansions[name] = grown, more
        except WeftError as error:  # it says so when it is run
            before.expansions[name] = Workflow.from_items("", [], [], [])
            before.again[name] = f"what it has printed before cannot be added: {error}"
    return workflow


def _grows(workflow: Workflow) -> bool:
    return any(spec.expand for spec in workflow.specs.values())


def _calls_with(calls: Calls, by: int, returned: ReturnedTasks, name: str) -> list[Call | None]:
    try:
        return calls_with(calls, by, returned, name)
    except (NoPartError, TypeError) as error:  # the latter: a list where a set should hold it
        raise InputError(f"a task cannot take it as its result: {error}") from None


def _part_of(
    workflow: Workflow, calls: Calls, numbers: Sequence[int], expansions: Mapping[str, Workflow]
) -> tuple[tuple[Call | None, ...], tuple[int, ...]]:
    """The calls of a part, and others whose results it needs, or which have added tasks."""
    if not _grows(workflow):
        return calls_of_part(calls, numbers)
    also = [workflow.task_names.index(name) for name in expansions]
    return calls_of_part(calls, numbers, FAR, also)


def _with_added(targets: Collection[str], name: str, more: Workflow | None) -> tuple[str, ...]:
    """What is asked for: with a task, all that it adds."""
    added = more.task_names if more is not None and name in targets else ()
    return tuple(dict.fromkeys((*targets, *added)))


def _with_returned(
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
                workflow, calls = grown, _calls_with(calls, task, returned, name)
                known[name] = more or Workflow.from_items("", [], [], [])
                options = replace(options, targets=_with_added(options.targets, name, more))
            except WeftError:  # it says so when it is run
                lost.append(name)
        if lost:
            force = () if isinstance(options.force, bool) else options.force
            options = replace(options, force=(*force, *lost))
        survey, _ = _survey(workflow, options, calls=calls, kept=kept)


class _Regrown:
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
        set_out, _ = _part_of(self.workflow, self.calls, numbers, header.expansions)
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
            self.calls = _calls_with(self.calls, task, returned, name)
        except WeftError as error:
            raise InputError(
                f"the tasks that {name!r} has added cannot be had any more ({error}): begin a new "
                "run (without resume)"
            ) from None
        if returned.workflow is not None:
            self.workflow = grow(self.workflow, task, returned.workflow)
        targets = _with_added(self.options.targets, name, returned.workflow)
        self.options = replace(self.options, targets=targets)


def _kept_results(directory: Path) -> KeptResults:
    """The results of a directory's runs; they are pickles, which run code."""
    data = directory.absolute()
    for place in (data / ".weft", data / ".weft" / "runs"):
        if place.exists():
            check_private(place)
    return KeptResults(data)


def _result_of(survey: Survey, task: int) -> KeptResult:
    result = survey.results[task]
    assert result is not None
    assert result.call is not None
    return result.call


def _still_forced(workflow: Workflow, options: Options, done: Collection[str]) -> tuple[str, ...]:
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


def _replaces(workflow: Workflow, options: Options) -> set[str]:
    """The tasks that may replace what is protected: those that are named, not just all."""
    named = () if isinstance(options.force, bool) else options.force
    forced = _forced(workflow, tuple(pattern for pattern in named if pattern != "*"))
    return set() if isinstance(forced, bool) else forced


def _check_protected(survey: Survey, run: str = "") -> None:
    """Refuse to make again what is protected."""
    names = survey.workflow.task_names
    for task in survey.tasks(State.STALE):
        if file := survey.shielded(task, run):
            why = survey.reasons[task]
            told = f" ({why})" if why else ""
            raise InputError(
                f"{file} is protected, and {names[task]} would make it again{told}: "
                f"`weft run --force {names[task]}` does"
            )


def _is_live(data: Path, run: str) -> bool:
    home = RunHome(data / ".weft" / "runs" / run)
    return home.path.is_dir() and is_driven(home)


def _check_edited(
    survey: Survey,
    directory: Path,
    otherwise: str = "",
    of_flow: bool = False,
    tasks: Collection[str] | None = None,
) -> None:
    """Refuse to write over what somebody has changed by hand, or to delete what weft never made.

    With `tasks`, these alone are looked at.
    """
    for file, output, task, changed in survey.foreign:
        if tasks is not None and task not in tasks:
            continue
        whose = (
            f"somebody has changed {file}, and"
            if changed
            else f"weft did not make {file}, or has no record of it, but"
        )
        adopt = f"`weft adopt {shlex.quote(output)}` takes all of it as what {task} gives, "
        force = f"weft.run(..., force=[{task!r}])" if of_flow else f"`weft run --force {task}`"
        raise InputError(
            f"{whose} it is among {output}, which {task} makes and replaces whole: move it "
            f"elsewhere; {'' if of_flow else adopt}{force} deletes it"
        )
    edited = [one for one in survey.edited if tasks is None or one.task in tasks]
    if not edited:
        return
    listed = ", ".join(f"{file} (of {task})" for file, task in edited[:_LISTED])
    more = f" and {len(edited) - _LISTED} more" if edited[_LISTED:] else ""
    first, where = edited[0], "" if directory == Path() else f" --dir {directory}"
    if of_flow:
        again = f"weft.run(..., force=[{first.task!r}]) makes it again"
        raise InputError(f"somebody has changed what weft has made: {listed}{more}: {again}")
    name = shlex.quote(first.file)
    raise InputError(
        f"somebody has changed what weft has made: {listed}{more}: "
        f"`weft adopt {name}{where}` keeps it as it is, "
        f"`weft run --force {first.task}` makes it again" + (f"; {otherwise}" if otherwise else "")
    )


def adopt_files(workflow: Workflow, directory: Path, files: Sequence[str]) -> list[str]:
    """Have outputs count as what their tasks give from what is there now; the tasks."""
    check_system()
    options = Options(directory=directory)
    workflow = with_expansions(workflow, options)
    survey, former = _survey(workflow, options)
    lines, tasks = [former.lines, *survey.adopt(files)], survey.makers(files)
    survey.store.add_lines(parse(b"".join(lines)).lines)
    _check_adopted(Survey(workflow, survey.memory.data, survey.store, survey.asked), tasks)
    make_folder(directory)
    part = Part(survey.store.folder, f"adopted-{secrets.token_hex(4)}")
    try:
        part.append(b"".join(lines))
    except OSError as error:
        raise StoreError(f"{survey.store.folder}: {reason(error)}: nothing is adopted") from None
    finally:
        part.close()
    return [workflow.task_names[task] for task in tasks]


def _check_adopted(survey: Survey, tasks: Collection[int]) -> None:
    """Refuse to adopt what the next run would make again all the same."""
    names = survey.workflow.task_names
    for task in tasks:
        if survey.states[task] is State.UP_TO_DATE:
            continue
        why, waits = survey.reasons[task], survey.waited_for(task)
        told = (
            f"what {names[task]} gives cannot be adopted: the next run would make it again ({why})"
        )
        if waits:
            first = waits[0]
            files = " ".join(map(shlex.quote, survey.outputs(first)))
            told += (
                f", since {names[first]} is not up to date: {survey.reasons[first]}. Make that "
                f"first (`weft run FILE {names[first]}`)"
                + (f", or adopt {files}, too" if files else "")
            )
        raise InputError(told)


def last_source(directory: Path) -> tuple[str, dict[str, Any]]:
    """The file of the workflow that was run last in a directory, and its parameters."""
    for home in runs(directory):
        if source := _header(home).get("source"):
            return str(source), kept_params(home)
    raise InputError("no workflow was run here yet: name its file with --workflow")


def kept_params(home: RunHome) -> dict[str, Any]:
    """The parameters that a run was given."""
    return parameters(_header(home).get("options", {}).get("params", {}))


def _header(home: RunHome) -> dict[str, Any]:
    with home.journal.open("rb") as file:
        header: dict[str, Any] = decode(file.readline().partition(b" ")[2])
    return header
